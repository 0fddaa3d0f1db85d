//! The end inside the sandbox.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::mpsc;
use std::thread;

use ostler_egress::{bridge, variables, variables_with_token};

/// Starts a bridge to a socket; returns a function that connects to it.
fn start(socket: &Path, most: usize) -> impl Fn() -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let socket = socket.to_owned();
    thread::spawn(move || bridge::serve(&listener, &socket, most));
    move || TcpStream::connect(address).unwrap()
}

fn read_all(mut stream: impl std::io::Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    bytes
}

// Mutant: `pass_on` shuts down both directions at the end of one.
#[test]
fn each_direction_ends_by_itself_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("proxy.sock");
    let proxy = UnixListener::bind(&socket).unwrap();
    let connect = start(&socket, 4);
    // More than any buffer on the way holds.
    let bytes: Vec<u8> = (0..5_000_000_u32).map(|it| (it % 251) as u8).collect();
    for client_first in [true, false] {
        let mut client = connect();
        let (mut server, _) = proxy.accept().unwrap();
        thread::scope(|scope| {
            if client_first {
                let sent = scope.spawn(|| read_all(&server));
                client.write_all(&bytes).unwrap();
                client.shutdown(Shutdown::Write).unwrap();
                assert_eq!(sent.join().unwrap(), bytes);
                let received = scope.spawn(|| read_all(&client));
                (&server).write_all(&bytes).unwrap();
                server.shutdown(Shutdown::Write).unwrap();
                assert_eq!(received.join().unwrap(), bytes);
            } else {
                server.write_all(b"done").unwrap();
                server.shutdown(Shutdown::Write).unwrap();
                assert_eq!(read_all(&client), b"done");
                client.write_all(b"still here").unwrap();
                client.shutdown(Shutdown::Write).unwrap();
                assert_eq!(read_all(&server), b"still here");
            }
        });
    }
}

#[test]
fn without_a_proxy_the_client_is_disconnected_and_the_next_one_may_succeed() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("proxy.sock");
    let connect = start(&socket, 1);
    for _ in 0..3 {
        assert_eq!(connect().read(&mut [0]).unwrap_or(0), 0);
    }
    let proxy = UnixListener::bind(&socket).unwrap();
    let client = connect();
    let (server, _) = proxy.accept().unwrap();
    drop(server);
    assert_eq!(read_all(&client), b"");
}

// Mutant: `Slots::take` does not wait.
#[test]
fn there_are_never_more_connections_than_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("proxy.sock");
    let proxy = UnixListener::bind(&socket).unwrap();
    let connect = start(&socket, 2);
    let (accepted, connections) = mpsc::channel();
    thread::spawn(move || {
        while let Ok((stream, _)) = proxy.accept() {
            if accepted.send(stream).is_err() {
                return;
            }
        }
    });
    let clients: Vec<_> = (0..5).map(|_| connect()).collect();
    let first = [connections.recv().unwrap(), connections.recv().unwrap()];
    assert!(connections.try_recv().is_err());
    // Those that wait get their turn when others end, however they end.
    drop(first);
    drop(clients);
    for _ in 0..3 {
        drop(connections.recv().unwrap());
    }
    let client = connect();
    drop(connections.recv().unwrap());
    assert_eq!(read_all(&client), b"");
}

// Mutant: names in upper case only. `ALL_PROXY` is not `socks5h`: on that Python's httpx fails (tried with 0.28.1).
#[test]
fn variables_lead_everything_but_the_sandbox_itself_to_the_bridge() {
    let variables = variables(3128);
    let value = |name: &str| {
        let mut found = variables.iter().filter(|(key, _)| key == name).map(|(_, value)| value);
        let value = found.next().unwrap_or_else(|| panic!("{name} is missing"));
        assert_eq!(found.next(), None, "{name} is there twice");
        value.as_str()
    };
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]
    {
        assert_eq!(value(name), "http://127.0.0.1:3128", "{name}");
    }
    for name in ["NO_PROXY", "no_proxy"] {
        assert_eq!(value(name), "localhost,127.0.0.1,::1");
    }
    let with_token = variables_with_token(3128, "s3cret");
    let with_token = with_token.iter().find(|(name, _)| name == "HTTPS_PROXY").unwrap();
    assert_eq!(with_token.1, "http://ostler:s3cret@127.0.0.1:3128");
}

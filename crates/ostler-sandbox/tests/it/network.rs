//! The attacks by way of the network. Targets are listeners of these tests on this machine.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use ostler_sandbox::{Layers, Sandbox};

use crate::probe::{self, NO_NAMESPACES, NO_SECCOMP, NONE, Probe};
use crate::stage::Stage;

/// Whether a script connects to a listener of the test.
fn connects(layers: Layers, address: &str, script: &str) -> bool {
    let listener = TcpListener::bind((address, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let stage = Stage::new();
    let script = script.replace("PORT", &port.to_string());
    let output = stage.run(layers, &script);
    let said = String::from_utf8_lossy(&output.stdout).contains("ESCAPED");
    listener.set_nonblocking(true).unwrap();
    let came = listener.accept().is_ok();
    assert_eq!(said, came, "{output:?}");
    came
}

// Row 17. Mutant: without `--unshare-net`, and without entering the shared network.
#[test]
fn no_port_of_this_machine_can_be_reached() {
    let script = |host: &str| {
        format!(
            "python3 -c \"import socket; socket.create_connection(('{host}', PORT), 3); print('ESCAPED')\""
        )
    };
    for host in ["127.0.0.1", "::1"] {
        assert!(!connects(Layers::ALL, host, &script(host)), "{host}");
        assert!(
            connects(NO_NAMESPACES, host, &script(host)),
            "the test itself does not work: {host}"
        );
    }
}

// Row 18. Mutant: without namespaces; the test runs it.
#[test]
fn datagrams_go_nowhere() {
    let arrives = |layers| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let port = socket.local_addr().unwrap().port();
        let script = format!("echo x > /dev/udp/127.0.0.1/{port}");
        Stage::new().run(layers, &script);
        socket.recv(&mut [0; 8]).is_ok()
    };
    assert!(!arrives(Layers::ALL));
    assert!(arrives(NO_NAMESPACES), "the test itself does not work");
}

const SOCKETS: &[Probe] = &[
    Probe::new(
        18,
        NO_SECCOMP,
        "python3 -c \"import socket; socket.socket(16, 3, 0); print('ESCAPED')\"",
    ),
    Probe::of_root(
        18,
        NONE,
        "python3 -c \"import socket; socket.socket(17, 3, 0); print('ESCAPED')\"",
    ),
    Probe::of_root(
        18,
        NONE,
        "python3 -c \"import socket; socket.socket(2, 3, 1); print('ESCAPED')\"",
    ),
    Probe::new(
        19,
        NO_SECCOMP,
        "python3 -c \"import socket; socket.socket(1, 1, 0); print('ESCAPED')\"",
    ),
    Probe::new(22, NO_NAMESPACES, "tail -n +3 /proc/net/dev | grep -v '^ *lo:' && echo ESCAPED"),
];

// Mutant: each script with the layers taken away that stop it; the test runs it.
#[test]
fn no_other_kind_of_socket_can_be_made() {
    probe::check(SOCKETS);
}

// Row 19. Mutant: AF_UNIX in the list of families.
#[test]
fn no_socket_of_another_program_can_be_used() {
    let connects = |layers, name: &str| {
        let stage = Stage::new();
        let listener = UnixListener::bind(stage.path("work/socket")).unwrap();
        let hidden = SocketAddr::from_abstract_name(b"ostler-test-socket");
        let hidden = hidden.and_then(|address| UnixListener::bind_addr(&address));
        let script = format!(
            "python3 -c \"import socket; s=socket.socket(1); s.connect({name}); s.send(b'x'); print('ESCAPED')\""
        );
        let output = stage.run(layers, &script);
        let (listener, _other) = match name.starts_with("'\\0") {
            true => (hidden.unwrap(), listener),
            false => (listener, hidden.unwrap()),
        };
        listener.set_nonblocking(true).unwrap();
        let came = listener.accept().is_ok_and(|(mut peer, _)| peer.read(&mut [0]).is_ok());
        assert_eq!(came, String::from_utf8_lossy(&output.stdout).contains("ESCAPED"), "{output:?}");
        came
    };
    assert!(!connects(Layers::ALL, "'socket'"));
    assert!(connects(NO_SECCOMP, "'socket'"), "the test itself does not work");
    assert!(!connects(Layers::ALL, "'\\0ostler-test-socket'"));
    assert!(connects(NONE, "'\\0ostler-test-socket'"), "the test itself does not work");
}

// Row 19. A pair of datagram sockets needs no `socket` call, and each of the two can be connected to another address later.
// Mutant: as it was, all pairs are allowed.
#[test]
fn no_datagram_reaches_a_socket_of_another_program() {
    let arrives = |layers, kind: &str| {
        let stage = Stage::new();
        let socket = UnixDatagram::bind(stage.path("outside/socket")).unwrap();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(stage.path("outside/socket"), open).unwrap();
        socket.set_nonblocking(true).unwrap();
        let script = format!(
            "python3 -c \"import os, socket; a, b = socket.socketpair(1, socket.{kind}); \
             a.connect(os.environ['OUTSIDE'] + '/socket'); a.send(b'x')\""
        );
        stage.run(layers, &script);
        socket.recv(&mut [0; 8]).is_ok()
    };
    assert!(arrives(NO_SECCOMP, "SOCK_DGRAM"), "the test itself does not work");
    for kind in ["SOCK_DGRAM", "SOCK_RAW"] {
        assert!(!arrives(Layers::ALL, kind), "{kind}");
    }
    let pairs = "python3 -c \"import socket
for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
    a, b = socket.socketpair(1, kind | socket.SOCK_CLOEXEC); a.send(b'x'); print(b.recv(1))\"";
    let output = Stage::new().run(Layers::ALL, pairs);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "b'x'\nb'x'\n", "{output:?}");
}

// Mutants: `network()` answers `None`; `with` makes a new network.
#[test]
fn programs_of_one_sandbox_reach_each_other_and_those_of_another_do_not() {
    let stage = Stage::new();
    let (sandbox, other) = (stage.sandbox(Layers::ALL), stage.sandbox(Layers::ALL));
    let start = |sandbox: &Sandbox, script: &str| {
        let work = stage.path("work");
        let bash = sandbox.command(Path::new("/bin/bash"), &["-c", script], &work).unwrap();
        let mut command = Command::new(&bash.program);
        command.args(&bash.arguments).stdin(Stdio::null()).stdout(Stdio::piped());
        (command.stderr(Stdio::piped()).spawn().unwrap(), bash.guard)
    };
    let server = "import socket; s=socket.create_server(('127.0.0.1', 0)); \
        print(s.getsockname()[1], flush=True)\nwhile True: s.accept()[0].send(b'hello')";
    let (mut server, _guard) = start(&sandbox, &format!("python3 -c \"{server}\""));
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let port: u16 = line.trim().parse().unwrap();
    let fetch = format!("cat < /dev/tcp/127.0.0.1/{port}");
    let output = |sandbox: &Sandbox| {
        let (client, _guard) = start(sandbox, &fetch);
        String::from_utf8(client.wait_with_output().unwrap().stdout).unwrap()
    };
    assert_eq!(output(&sandbox), "hello");
    assert_eq!(output(&sandbox.with(stage.boundary.clone()).unwrap()), "hello");
    assert_eq!(output(&other), "", "another sandbox has another network");
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "and this machine has another one");
    server.kill().unwrap();
    server.wait().unwrap();
}

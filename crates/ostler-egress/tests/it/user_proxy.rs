//! A proxy of the user in the place of ours.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;

use ostler_egress::rules::HostRules;
use ostler_egress::{Proxy, UserProxy};

/// A server that reads four bytes and sends its name. Returns its port.
fn server(name: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().take(1) {
            let mut stream = stream.unwrap();
            stream.read_exact(&mut [0; 4]).unwrap();
            stream.write_all(name.as_bytes()).unwrap();
        }
    });
    port
}

// Mutants: both protocols go to one port; the rules decide.
#[tokio::test(flavor = "multi_thread")]
async fn connections_go_to_the_port_of_their_protocol() {
    let folder = tempfile::tempdir().unwrap();
    let ask = |proxy: UserProxy, bytes: &'static [u8]| {
        let folder = tempfile::tempdir_in(&folder).unwrap();
        let socket = folder.path().join("private/socket");
        // No host is allowed by these rules.
        let builder = Proxy::builder(HostRules::new().strict_allowlist(true)).user_proxy(proxy);
        let proxy = builder.start(&socket).unwrap();
        async move {
            let asked = tokio::task::spawn_blocking(move || {
                let mut stream = UnixStream::connect(socket).unwrap();
                stream.write_all(bytes).unwrap();
                let mut answer = String::new();
                stream.shutdown(std::net::Shutdown::Write).unwrap();
                stream.read_to_string(&mut answer).unwrap();
                answer
            });
            let answer = asked.await.unwrap();
            drop((proxy, folder));
            answer
        }
    };
    let both = || UserProxy { http: Some(server("http")), socks: Some(server("socks")) };
    assert_eq!(ask(both(), b"GET /").await, "http");
    assert_eq!(ask(both(), b"\x05\x01\x00\x05").await, "socks");
    let only_socks = UserProxy { http: None, socks: Some(server("socks")) };
    let refusal = ask(only_socks, b"GET /").await;
    assert!(refusal.starts_with("HTTP/1.1 502") && refusal.contains("no HTTP proxy"), "{refusal}");
    let only_http = UserProxy { http: Some(server("http")), socks: None };
    assert!(ask(only_http, b"\x05\x01\x00\x05").await.contains("no SOCKS5 proxy"));
}

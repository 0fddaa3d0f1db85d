//! The socket, the rules of a running proxy, and its end.

use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use ostler_egress::{HostOutcome, HostRules, Proxy, StartError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixStream};

use crate::support::{Sandbox, accept, read_all, read_head, usual_rules};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn the_socket_is_private_and_goes_with_the_proxy() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("new/proxy.sock");
    let proxy = Proxy::builder(HostRules::new()).start(&socket).unwrap();
    assert!(std::fs::metadata(&socket).unwrap().file_type().is_socket());
    assert_eq!((mode(&socket), mode(socket.parent().unwrap())), (0o600, 0o700));
    assert!(matches!(
        Proxy::builder(HostRules::new()).start(&socket),
        Err(StartError::Create { .. })
    ));
    assert!(socket.exists(), "a second proxy does not remove the socket of the first");
    drop(proxy);
    assert!(!socket.parent().unwrap().exists());
    // A folder that was there stays.
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let proxy = Proxy::builder(HostRules::new()).start(&folder.path().join("proxy.sock")).unwrap();
    proxy.close().await;
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

// Mutant: `is_private` always true.
#[tokio::test]
async fn a_folder_that_others_can_reach_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bits) in [("group", 0o750), ("others", 0o701), ("all", 0o777)] {
        let open = folder.path().join(name);
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(bits)).unwrap();
        let started = Proxy::builder(HostRules::new()).start(&open.join("proxy.sock"));
        assert!(matches!(started, Err(StartError::Folder(_))), "{name}");
    }
    let (private, link) = (folder.path().join("private"), folder.path().join("link"));
    drop(Proxy::builder(HostRules::new()).start(&private.join("proxy.sock")).unwrap());
    std::fs::create_dir(&private).unwrap();
    std::fs::set_permissions(&private, std::fs::Permissions::from_mode(0o700)).unwrap();
    symlink(&private, &link).unwrap();
    let started = Proxy::builder(HostRules::new()).start(&link.join("proxy.sock"));
    assert!(matches!(started, Err(StartError::Folder(_))));
}

#[test]
fn without_a_runtime_there_is_an_error_and_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    let started = Proxy::builder(HostRules::new()).start(&folder.path().join("proxy.sock"));
    assert!(matches!(started, Err(StartError::Runtime)));
}

/// A tunnel through the proxy: both ends.
async fn tunnel(sandbox: &Sandbox, target: &str) -> (UnixStream, tokio::net::TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    sandbox.network.lead_to(listener.local_addr().unwrap());
    let mut client = sandbox.connect().await;
    client.write_all(format!("CONNECT {target} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
    let server = accept(&listener).await;
    assert!(read_head(&mut client).await.unwrap().starts_with("HTTP/1.1 200 "));
    (client, server)
}

// Mutant: connections are spawned on the runtime and not in the `JoinSet`.
#[tokio::test]
async fn connections_end_with_the_proxy() {
    let sandbox = Sandbox::start(usual_rules()).await;
    let (mut client, mut server) = tunnel(&sandbox, "allowed.test:443").await;
    let mut idle = sandbox.connect().await;
    let Sandbox { proxy, .. } = sandbox;
    drop(proxy);
    for text in
        [read_all(&mut client).await, read_all(&mut server).await, read_all(&mut idle).await]
    {
        assert_eq!(text, "");
    }
}

// Mutant: `revoked` never ends.
#[tokio::test]
async fn connections_end_when_the_rules_no_longer_allow_them() {
    let sandbox = Sandbox::start(usual_rules()).await;
    let (mut revoked, _server) = tunnel(&sandbox, "allowed.test:443").await;
    let (mut kept, mut kept_server) = tunnel(&sandbox, "a.wild.test:443").await;
    sandbox.proxy.set_rules(HostRules::new().allow("*.wild.test").unwrap());
    assert_eq!(read_all(&mut revoked).await, "");
    kept.write_all(b"still").await.unwrap();
    let mut bytes = [0; 5];
    kept_server.read_exact(&mut bytes).await.unwrap();
    assert!(sandbox.connect_to("allowed.test:443").await.starts_with("HTTP/1.1 403 "));
    // A rule against the address that was dialled ends it, too.
    let rules = sandbox.proxy.rules().as_ref().clone();
    sandbox.proxy.set_rules(rules.deny("93.184.216.34").unwrap());
    assert_eq!(read_all(&mut kept).await, "");
}

// Mutant: `rest` without its limit.
#[tokio::test]
async fn a_tunnel_whose_client_is_gone_ends_although_the_server_says_nothing() {
    let limits = crate::support::limits(|it| {
        it.half_closed = std::time::Duration::from_millis(50);
        it.connections = 1;
    });
    let sandbox = Sandbox::start_with(usual_rules(), |it| it.limits(limits)).await;
    let (client, mut server) = tunnel(&sandbox, "allowed.test:443").await;
    drop(client);
    assert_eq!(server.read(&mut [0]).await.unwrap(), 0);
    // The server neither sends nor closes. The next client is served only when the tunnel has ended.
    assert!(sandbox.connect_to("unlisted.test:443").await.starts_with("HTTP/1.1 403 "));
    drop(server);
}

#[tokio::test]
async fn events_tell_what_happened_in_order_and_how_many_were_dropped() {
    let sandbox = Sandbox::start(usual_rules()).await;
    let mut events = sandbox.proxy.events();
    sandbox.get("allowed.test", "/").await;
    sandbox.get("unlisted.test", "/").await;
    sandbox.socks(b"bad\x1bname", 80).await;
    let (list, dropped) = events.take();
    let list: Vec<_> = list.iter().map(|it| (it.host.as_str(), it.port, it.outcome)).collect();
    assert_eq!(
        list,
        [
            ("allowed.test", 80, HostOutcome::Allowed),
            ("unlisted.test", 80, HostOutcome::Denied),
            ("bad\\u{1b}name", 0, HostOutcome::Denied),
        ]
    );
    assert_eq!(dropped, 0);
    for _ in 0..300 {
        sandbox.socks(b"unlisted.test", 80).await;
    }
    let (list, dropped) = events.take();
    assert_eq!((list.len(), dropped), (256, 44));
    sandbox.get("allowed.test", "/").await;
    assert_eq!(events.next().await.unwrap().host, "allowed.test");
    drop(sandbox);
    assert_eq!(events.next().await, None);
}

//! SOCKS5.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::support::{DEAD, Sandbox, accept, read_all, usual_rules};

#[tokio::test]
async fn a_tunnel_carries_bytes_both_ways_and_each_end_by_itself() {
    let sandbox = Sandbox::start(usual_rules()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    sandbox.network.lead_to(listener.local_addr().unwrap());
    let mut client = sandbox.connect().await;
    // Everything at once, without waiting for replies.
    client
        .write_all(b"\x05\x02\x00\x01\x05\x01\x00\x03\x0cALLOWED.test\x01\xbbearly ")
        .await
        .unwrap();
    let mut server = accept(&listener).await;
    let mut replies = [0; 12];
    client.read_exact(&mut replies).await.unwrap();
    assert_eq!(replies, [5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    client.write_all(b"and late").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(read_all(&mut server).await, "early and late");
    server.write_all(b"an answer").await.unwrap();
    drop(server);
    assert_eq!(read_all(&mut client).await, "an answer");
    assert_eq!(sandbox.network.dialled(), ["93.184.216.34:443"]);
}

// Mutant: `judge` allows addresses that are on no list.
#[tokio::test]
async fn addresses_are_judged_like_those_in_a_url() {
    let rules =
        usual_rules().allow("127.0.0.1:8080").unwrap().allow("[2606:4700::1111]:443").unwrap();
    let sandbox = Sandbox::start(rules).await;
    let v4 =
        |address: [u8; 4], port: u16| [&[5, 1, 0, 1][..], &address, &port.to_be_bytes()].concat();
    let v6 = |address: &str, port: u16| {
        let address: std::net::Ipv6Addr = address.parse().unwrap();
        [&[5, 1, 0, 4][..], &address.octets(), &port.to_be_bytes()].concat()
    };
    for (request, reply) in [
        (v4([127, 0, 0, 1], 80), 2),
        (v4([8, 8, 8, 8], 80), 2),
        (v4([169, 254, 169, 254], 80), 2),
        (v4([127, 0, 0, 1], 0), 2),
        (v6("::1", 8080), 2),
        (v6("::ffff:127.0.0.1", 80), 2),
        (v6("fd00:ec2::254", 80), 2),
        (v6("2606:4700::1111", 80), 2),
        (v4([127, 0, 0, 1], 8080), 0),
        (v6("::ffff:127.0.0.1", 8080), 0),
        (v6("2606:4700::1111", 443), 0),
    ] {
        assert_eq!(sandbox.socks_request(&request).await, reply, "{request:?}");
    }
    assert_eq!(sandbox.network.resolved(), [""; 0]);
    assert_eq!(
        sandbox.network.dialled(),
        ["127.0.0.1:8080", "127.0.0.1:8080", "[2606:4700::1111]:443"]
    );
}

#[tokio::test]
async fn only_the_command_connect_is_supported() {
    let sandbox = Sandbox::start(usual_rules()).await;
    // BIND, UDP ASSOCIATE, and commands that do not exist.
    for command in [2, 3, 0, 4, 255] {
        let request = [&[5, command, 0, 3, 12][..], b"allowed.test", &[1, 187]].concat();
        assert_eq!(sandbox.socks_request(&request).await, 7, "{command}");
    }
    assert_eq!(sandbox.socks_request(&[5, 1, 0, 2]).await, 8);
    assert_eq!(sandbox.socks_methods(&[1, 2, 128]).await, [5, 0xff]);
    assert_eq!(sandbox.network.dialled(), [""; 0]);
}

#[tokio::test]
async fn failures_of_the_network_have_their_own_replies() {
    let sandbox = Sandbox::start(usual_rules()).await;
    sandbox.network.name("allowed.test", &[DEAD]);
    assert_eq!(sandbox.socks(b"allowed.test", 80).await, 5);
    sandbox.network.name("allowed.test", &[]);
    assert_eq!(sandbox.socks(b"allowed.test", 80).await, 4);
}

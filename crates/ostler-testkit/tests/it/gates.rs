//! Gates: a test stops a response at any point and releases it, without sleeping.

use ostler_testkit::{Outcome, reply};

use crate::support::{RawExchange, always, ask, events, message, send, streamed};

#[tokio::test]
async fn a_stream_waits_at_its_gate_until_it_is_released() {
    let server = always(reply().text_pieces(["before", "after"]).gate(3, "half")).await;
    let mut response = send(&server, &streamed(ask("hi"))).await;
    let gate = server.gate("half");
    gate.reached().await;

    let mut seen = String::new();
    while !seen.contains("before") {
        seen.push_str(std::str::from_utf8(&response.chunk().await.unwrap().unwrap()).unwrap());
    }
    assert!(!seen.contains("after"));
    assert_eq!(server.requests()[0].outcome, Outcome::Open);

    gate.release();
    let rest = response.text().await.unwrap();
    assert!(rest.contains("after") && rest.contains("message_stop"));
}

#[tokio::test]
async fn a_released_gate_delays_no_response() {
    let server = always(reply().text("x").gate(0, "open")).await;
    server.gate("open").release();
    assert!(!events(&server, "hi").await.is_empty());
    assert_eq!(server.gate("open").arrivals(), 1);
}

#[tokio::test]
async fn several_streams_can_wait_at_one_gate() {
    let server = always(reply().text("x").gate(1, "all")).await;
    let three =
        async { tokio::join!(events(&server, "a"), events(&server, "b"), events(&server, "c")) };
    let gate = async {
        server.gate("all").reached_by(3).await;
        server.gate("all").release();
    };
    let ((a, b, c), ()) = tokio::join!(three, gate);
    assert_eq!([a.len(), b.len(), c.len()], [a.len(); 3]);
}

#[tokio::test]
async fn a_held_response_sends_no_headers() {
    let server = always(reply().text("x").hold("headers")).await;
    let answer = async { message(&server, &ask("hi")).await };
    let watch = async {
        server.gate("headers").reached().await;
        assert_eq!(server.requests()[0].status, None);
        server.gate("headers").release();
    };
    assert_eq!(tokio::join!(answer, watch).0["content"][0]["text"], "x");
}

#[tokio::test]
async fn a_client_that_leaves_while_headers_are_held_is_noticed() {
    let server = always(reply().hold("never")).await;
    let exchange = RawExchange::send(&server, &streamed(ask("hi"))).await;
    server.gate("never").reached().await;
    drop(exchange);
    let requests =
        server.wait_for("the client to leave", |requests| requests[0].client_left()).await;
    assert_eq!(requests[0].status, None);
}

#[tokio::test(start_paused = true)]
async fn waiting_is_bounded_by_real_time_even_when_the_test_pauses_its_clock() {
    let server = always(reply().text("x").delay_before_first_byte_ms(30).gate(1, "paused")).await;
    let _exchange = RawExchange::send(&server, &streamed(ask("hi"))).await;
    server.gate("paused").reached().await;
    assert_eq!(server.wait_for_requests(1).await.len(), 1);
}

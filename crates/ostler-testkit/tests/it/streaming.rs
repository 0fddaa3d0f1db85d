//! The events of streams, and that a call without a stream gets the same message.

use ostler_testkit::{Block, Reply, Script, ScriptedApi, Text, ToolUse, Usage, reply, when};
use serde_json::{Value, json};

use crate::support::{accumulate, after_tool, always, ask, events, message, names, send, streamed};

fn rich() -> Reply {
    reply()
        .thinking("Let me think about 日本.", "c2lnbmF0dXJl")
        .redacted_thinking("b3BhcXVl")
        .text("Hello, wörld! 🎉")
        .tool_use("Bash", json!({"command": "echo 'añ日本🎉'", "timeout": 5}))
        .tool_use("Read", json!({"path": "a.txt"}))
        .usage(Usage::tokens(120, 30).cached(7, 100))
}

#[tokio::test]
async fn a_text_is_streamed_in_the_events_of_the_public_api() {
    let server = always(reply().text_pieces(["Hel", "lo"]).usage(Usage::tokens(12, 5))).await;
    let response = send(&server, &streamed(ask("hi"))).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream; charset=utf-8");
    assert_eq!(response.headers()["request-id"], "req_000000000000000000000001");
    let expected = concat!(
        "event: message_start\n",
        r#"data: {"type":"message_start","message":{"id":"msg_000000000000000000000001","type":"message","#,
        r#""role":"assistant","model":"claude-test","content":[],"stop_reason":null,"stop_sequence":null,"#,
        r#""usage":{"input_tokens":12,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}}"#,
        "\n\nevent: content_block_start\n",
        r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        "\n\nevent: ping\n",
        r#"data: {"type":"ping"}"#,
        "\n\nevent: content_block_delta\n",
        r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}"#,
        "\n\nevent: content_block_delta\n",
        r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo"}}"#,
        "\n\nevent: content_block_stop\n",
        r#"data: {"type":"content_block_stop","index":0}"#,
        "\n\nevent: message_delta\n",
        r#"data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"#,
        r#""usage":{"input_tokens":12,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":5}}"#,
        "\n\nevent: message_stop\n",
        r#"data: {"type":"message_stop"}"#,
        "\n\n",
    );
    assert_eq!(response.text().await.unwrap(), expected);
}

#[tokio::test]
async fn the_events_of_a_stream_add_up_to_the_message_of_a_call_without_a_stream() {
    let server = always(rich()).await;
    let whole = message(&server, &ask("hi")).await;
    let mut added_up = accumulate(&events(&server, "hi").await);
    // Each call makes new ids.
    added_up["id"] = whole["id"].clone();
    for index in [3, 4] {
        assert_ne!(added_up["content"][index]["id"], whole["content"][index]["id"]);
        added_up["content"][index]["id"] = whole["content"][index]["id"].clone();
    }
    assert_eq!(added_up, whole);
    assert_eq!(whole["stop_reason"], "tool_use");
    assert_eq!(whole["content"][0]["signature"], "c2lnbmF0dXJl");
    assert_eq!(whole["content"][3]["input"]["command"], "echo 'añ日本🎉'");
    assert_eq!(whole["usage"]["cache_read_input_tokens"], 100);
}

#[tokio::test]
async fn a_tool_input_is_split_into_the_requested_number_of_deltas() {
    let input = json!({"text": "日本語🎉 and more"});
    let call = ToolUse::new("Write", input.clone()).id("toolu_mine").split(7);
    let server = always(reply().block(call.into())).await;
    let events = events(&server, "hi").await;
    let pieces: Vec<&str> =
        events.iter().filter_map(|event| event["delta"]["partial_json"].as_str()).collect();
    assert_eq!((pieces.len(), pieces[0]), (8, ""), "an empty delta, then seven");
    assert_eq!(serde_json::from_str::<Value>(&pieces.concat()).unwrap(), input);
    assert_eq!(accumulate(&events)["content"][0]["id"], "toolu_mine");
}

#[tokio::test]
async fn an_empty_tool_input_is_one_empty_delta() {
    let server = always(reply().tool_use("Stop", json!({}))).await;
    let events = events(&server, "hi").await;
    let pieces: Vec<&str> =
        events.iter().filter_map(|event| event["delta"]["partial_json"].as_str()).collect();
    assert_eq!(pieces, [""]);
    assert_eq!(message(&server, &ask("hi")).await["content"][0]["input"], json!({}));
}

#[tokio::test]
async fn a_script_can_send_a_tool_input_that_is_not_valid_json() {
    let call = ToolUse::new("Bash", json!({"command": "ls"})).raw_input(r#"{"command": "l"#);
    let server = always(reply().block(call.into())).await;
    let events = events(&server, "hi").await;
    let pieces: Vec<&str> =
        events.iter().filter_map(|event| event["delta"]["partial_json"].as_str()).collect();
    assert_eq!(pieces.concat(), r#"{"command": "l"#);
}

#[tokio::test]
async fn server_tools_and_unknown_blocks_are_sent_unchanged() {
    let result = json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content": []});
    let search = Block::ServerToolUse(ToolUse::new("web_search", json!({"query": "x"})));
    let server = always(reply().block(search).block(Block::Raw { block: result.clone() })).await;
    let message = accumulate(&events(&server, "hi").await);
    assert_eq!(message["content"][0]["type"], "server_tool_use");
    assert_eq!(message["content"][0]["input"], json!({"query": "x"}));
    assert_eq!(message["content"][1], result);
    assert_eq!(message["stop_reason"], "end_turn", "the client has no tool to run");
}

#[tokio::test]
async fn stop_reason_stop_sequence_and_model_can_be_set() {
    let server = always(reply().text("a").stop_reason("max_tokens").model("claude-other")).await;
    let cut_short = message(&server, &ask("hi")).await;
    assert_eq!(
        (&cut_short["stop_reason"], &cut_short["model"]),
        (&json!("max_tokens"), &json!("claude-other"))
    );

    let server = always(reply().text("a").stop_sequence("END")).await;
    let stopped = accumulate(&events(&server, "hi").await);
    assert_eq!(
        (&stopped["stop_reason"], &stopped["stop_sequence"]),
        (&json!("stop_sequence"), &json!("END"))
    );
}

#[tokio::test]
async fn an_empty_reply_is_a_message_without_content() {
    let server = always(reply()).await;
    assert_eq!(
        names(&events(&server, "hi").await),
        ["message_start", "message_delta", "message_stop"]
    );
    assert_eq!(message(&server, &ask("hi")).await["content"], json!([]));
}

#[tokio::test]
async fn templates_insert_the_prompt_and_the_newest_tool_result() {
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Bash", json!({"command": "echo {{prompt}}"})))
        .rule(when().turn(1), reply().text("{{prompt}} gave {{tool_result}}"));
    let server = ScriptedApi::start(script).await;
    let call = message(&server, &ask("hi")).await;
    assert_eq!(call["content"][0]["input"]["command"], "echo hi");
    let end = message(&server, &after_tool(ask("hi"), &call, "done")).await;
    assert_eq!(end["content"][0]["text"], "hi gave done");
}

#[tokio::test]
async fn tokens_are_estimated_when_the_script_does_not_count_them() {
    let server = always(reply().text("some words")).await;
    let short = message(&server, &ask("hi")).await;
    let long = message(&server, &ask(&"hi ".repeat(1000))).await;
    let input = |message: &Value| message["usage"]["input_tokens"].as_u64().unwrap();
    assert_eq!(
        input(&long) - input(&short),
        2998u64.div_ceil(4),
        "a quarter of the additional bytes"
    );
    assert_eq!(short["usage"]["output_tokens"], 9, "a quarter of the bytes of the block");
}

#[tokio::test]
async fn thinking_can_be_given_in_its_pieces() {
    let thinking = Block::Thinking {
        thinking: Text::Pieces(vec!["a".into(), "bc".into()]),
        signature: "s".into(),
        split: 1,
    };
    let server = always(reply().block(thinking)).await;
    let events = events(&server, "hi").await;
    let deltas: Vec<_> =
        events.iter().filter(|event| event["type"] == "content_block_delta").collect();
    assert_eq!(deltas[0]["delta"], json!({"type": "thinking_delta", "thinking": "a"}));
    assert_eq!(deltas[1]["delta"], json!({"type": "thinking_delta", "thinking": "bc"}));
    assert_eq!(deltas[2]["delta"], json!({"type": "signature_delta", "signature": "s"}));
}

//! Searching the web: a whole session with a scripted API.

use futures::StreamExt as _;
use ostler_engine::model::{Model as _, Request, ServerTool, WebSearch};
use ostler_engine::offline::OfflineModel;
use ostler_engine::tool::Effect;
use ostler_testkit::{Block, Reply, Script, ScriptedApi, Status, ToolUse, Usage, reply, when};
use serde_json::{Value, json};

use crate::session::Session;
use crate::whole::{self, Outcome};

pub(crate) async fn run(api: &ScriptedApi) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    whole::run(folder.path(), &["allow WebSearch"], whole::model(api), "look").await
}

fn hits(call: &str) -> Block {
    let page = |title: &str, url: &str| json!({"type": "web_search_result", "title": title, "url": url, "encrypted_content": "e", "page_age": null});
    Block::Raw {
        block: json!({"type": "web_search_tool_result", "tool_use_id": call,
            "content": [page("One", "https://a.example/1"), page("Two", "https://b.example/2")]}),
    }
}

pub(crate) fn searched(call: &str) -> Reply {
    let server = ToolUse::new("web_search", json!({"query": "crabs"})).id(call);
    reply().block(Block::ServerToolUse(server)).block(hits(call))
}

pub(crate) fn script(input: Value, answers: Vec<Reply>) -> Script {
    let inner = when().prompt_contains("Search the web for: crabs");
    Script::new()
        .rule(when().prompt_contains("look").turn(0), reply().tool_use("WebSearch", input))
        .rule(when().prompt_contains("look").has_tool_result(true), reply().text("Done."))
        .rule(inner, answers)
}

#[tokio::test]
async fn a_search_is_a_separate_request_with_the_published_output() {
    let answer =
        searched("srv_1").text("Crabs are ").text("decapods.").usage(Usage::tokens(100, 50));
    let input = json!({"query": "crabs", "allowed_domains": ["a.example"]});
    let api = ScriptedApi::start(script(input, vec![answer])).await;
    let Outcome { mut structured, text, is_error, result } = run(&api).await;
    assert!(!is_error, "{text}");
    assert_eq!(
        text,
        "- One: https://a.example/1\n- Two: https://b.example/2\n\nCrabs are decapods."
    );
    assert!(structured["durationSeconds"].is_number());
    structured["durationSeconds"] = json!(0);
    let content = json!([{"title": "One", "url": "https://a.example/1"}, {"title": "Two", "url": "https://b.example/2"}]);
    assert_eq!(
        structured,
        json!({"query": "crabs", "durationSeconds": 0, "searchCount": 1,
            "results": [{"tool_use_id": "srv_1", "content": content}, "Crabs are decapods."]})
    );
    let requests = api.requests();
    let inner = &requests[1].body;
    assert_eq!(
        inner["tools"],
        json!([{"type": "web_search_20250305", "name": "web_search", "max_uses": 5,
            "allowed_domains": ["a.example"], "cache_control": {"type": "ephemeral"}}])
    );
    assert_eq!(inner["model"], "test-model");
    // The search is outside the conversation, but counts in its usage.
    assert_eq!(requests[2].body["messages"].as_array().unwrap().len(), 3);
    let usage = &result.model_usage["test-model"];
    assert!(usage.output_tokens >= 50 && usage.input_tokens >= 100, "{usage:?}");
    api.finish();
}

#[tokio::test]
async fn a_paused_search_is_continued() {
    let answers = vec![searched("srv_1").stop_reason("pause_turn"), reply().text("All of it.")];
    let api = ScriptedApi::start(script(json!({"query": "crabs"}), answers)).await;
    let Outcome { structured, text, .. } = run(&api).await;
    assert!(text.ends_with("\n\nAll of it."), "{text}");
    assert_eq!(structured["results"].as_array().unwrap().len(), 2);
    let content = &api.requests()[2].body["messages"][1]["content"];
    assert_eq!(content[0]["type"], "server_tool_use");
    assert_eq!(
        content[1]["content"][0]["encrypted_content"], "e",
        "the API's message is sent back unchanged"
    );
    api.finish();
}

#[tokio::test]
async fn a_search_that_fails_says_why() {
    let failed = |call: &str| Block::Raw {
        block: json!({"type": "web_search_tool_result", "tool_use_id": call,
            "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}}),
    };
    for (answer, expected, is_error) in [
        (reply().block(failed("srv_1")), "A search failed: max_uses_exceeded.", true),
        (searched("srv_1").block(failed("srv_2")), "A search failed: max_uses_exceeded.", false),
        (reply().status(Status::new(400)), "the search failed: ", true),
    ] {
        let api = ScriptedApi::start(script(json!({"query": "crabs"}), vec![answer])).await;
        let outcome = run(&api).await;
        assert!(outcome.text.contains(expected), "{}", outcome.text);
        assert_eq!(outcome.is_error, is_error, "{}", outcome.text);
    }
}

#[tokio::test]
async fn a_search_that_a_rule_denies_is_not_sent() {
    let api = ScriptedApi::start(script(json!({"query": "crabs"}), vec![searched("srv_1")])).await;
    let folder = tempfile::tempdir().unwrap();
    let outcome = whole::run(folder.path(), &["deny WebSearch"], whole::model(&api), "look").await;
    assert!(outcome.is_error && outcome.text.contains("forbids it"), "{}", outcome.text);
    assert_eq!(api.requests().len(), 2);
}

#[tokio::test]
async fn invalid_searches_are_not_sent() {
    for (input, why) in [
        (json!({"query": " "}), "query is empty"),
        (json!({"query": "x", "allowed_domains": ["a"], "blocked_domains": ["b"]}), "not both"),
    ] {
        let error = Session::new().error("WebSearch", input).await;
        assert!(error.contains(why), "{error}");
    }
    let error = Session::new().error("WebSearch", json!({"query": "x"})).await;
    assert!(error.contains("no model here"), "{error}");
}

#[tokio::test]
async fn the_offline_demo_says_that_it_cannot_search() {
    let request = Request {
        server_tools: vec![ServerTool::WebSearch(WebSearch::default())],
        ..Request::new("offline-demo", Vec::new())
    };
    let answer = OfflineModel::new().respond(request).next().await.unwrap();
    assert!(answer.unwrap_err().to_string().contains("set ANTHROPIC_API_KEY"));
}

#[test]
fn the_effect_of_a_search_is_its_query() {
    let effect = Session::new().effect("WebSearch", json!({"query": "crabs"}));
    assert_eq!(effect, Effect::Search("crabs".to_owned()));
    assert!(effect.is_read_only());
}

//! Structured answers that fit the host's schema.

use ostler_testkit::{Script, reply, when};
use serde_json::{Value, json};

use crate::host::TestHost;

fn schema() -> Value {
    json!({"type": "object", "properties": {"answer": {"type": "string"}, "score": {"type": "integer"}},
        "required": ["answer", "score"]})
}

async fn host(script: Script) -> TestHost {
    TestHost::with(script, |options| options.launch.output.schema = Some(schema())).await
}

fn answers(input: Value) -> ostler_testkit::Reply {
    reply().tool_use("StructuredOutput", input)
}

#[tokio::test]
async fn an_answer_that_fits_ends_the_turn() {
    let answer = json!({"answer": "yes", "score": 3});
    let mut host =
        host(Script::new().rule(when().offers_tool("StructuredOutput"), answers(answer.clone())))
            .await;
    host.prompt("rate it").await;
    let result = host.result().await;
    assert_eq!(result.structured_output, Some(answer.clone()));
    assert_eq!(result.result, Some(answer.to_string()));
    assert_eq!(host.api.requests().len(), 1);
}

#[tokio::test]
async fn an_answer_that_does_not_fit_goes_back_with_the_errors() {
    let script = Script::new().rule(when().turn(0), answers(json!({"answer": 7}))).rule(
        when().tool_result_contains("Output does not match required schema"),
        answers(json!({"answer": "yes", "score": 1})),
    );
    let mut host = host(script).await;
    host.prompt("rate it").await;
    assert_eq!(host.result().await.structured_output, Some(json!({"answer": "yes", "score": 1})));
    let result_text = host.api.requests()[1].tool_results()[0].text.clone();
    assert!(
        result_text.contains("/answer: 7 is not of type")
            && result_text.contains("\"score\" is a required property"),
        "{result_text}"
    );
}

#[tokio::test]
async fn five_wrong_answers_are_an_error() {
    let mut host = host(Script::new().rule(when(), answers(json!({"answer": 7})))).await;
    host.prompt("rate it").await;
    let result = host.result().await;
    assert_eq!(result.subtype.as_str(), "error_max_structured_output_retries");
    assert_eq!((result.is_error, host.api.requests().len()), (true, 5));
}

#[tokio::test]
async fn a_model_that_gives_no_structured_answer_is_reminded_once_and_then_it_is_an_error() {
    let script = Script::new()
        .rule(
            when().prompt_contains("StructuredOutput"),
            answers(json!({"answer": "ok", "score": 2})),
        )
        .rule(when(), reply().text("It is fine."));
    let mut host1 = host(script).await;
    host1.prompt("rate it").await;
    assert_eq!(host1.result().await.structured_output, Some(json!({"answer": "ok", "score": 2})));
    let mut host2 = host(Script::new().rule(when(), reply().text("It is fine."))).await;
    host2.prompt("rate it").await;
    let result = host2.result().await;
    assert_eq!(result.subtype.as_str(), "error_max_structured_output_retries");
    assert_eq!((result.structured_output, result.is_error), (None, true));
    assert_eq!(host2.api.requests().len(), 2);
}

#[tokio::test]
async fn an_invalid_schema_starts_no_session() {
    for (schema, expected) in [
        (json!({"properties": {"a": {"type": "no such type"}}}), "not a JSON schema"),
        (json!({"type": "array"}), "must be an object"),
    ] {
        let api = ostler_testkit::ScriptedApi::start(Script::new()).await;
        let mut options = TestHost::options(&api);
        options.launch.output.schema = Some(schema);
        assert!(ostler_engine::session::start(options).unwrap_err().contains(expected));
    }
}

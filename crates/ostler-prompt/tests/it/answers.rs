//! Seed 002, "Structured Output": from the type to the schema, and from the model's answer to the type.

use ostler_prompt::{ClientConfig, Error, Session};
use ostler_testkit::{Script, reply, when};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::fake::{Fake, INTRODUCES, prompt};
use crate::result;
use crate::stage::{Backend, PublishedEvents, Stage, within};

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Verdict {
    score: u8,
    why: Option<String>,
}

async fn answered<T: ostler_prompt::Output>(answer: Value) -> (Result<T, Error>, Stage) {
    let script = Script::new().rule(when(), reply().tool_use("StructuredOutput", answer));
    let stage = Stage::new(script).await;
    let response = within(stage.adapter().evaluate(&prompt::<T>("go"), &Session::new())).await;
    (response.map(|response| response.output), stage)
}

#[tokio::test]
async fn the_type_gives_the_schema_and_the_answer_is_decoded() {
    let (verdict, stage) = answered::<Verdict>(json!({"score": 3, "why": null})).await;
    assert_eq!(verdict.unwrap(), Verdict { score: 3, why: None });
    let request = &stage.requests()[0];
    let tools = request.body["tools"].as_array().unwrap();
    let tool = tools.iter().find(|tool| tool["name"] == "StructuredOutput").unwrap();
    assert_eq!(tool["input_schema"]["required"], json!(["score"]));
    assert_eq!(tool["input_schema"]["properties"]["why"]["type"], json!(["string", "null"]));
}

#[tokio::test]
async fn without_an_output_type_there_is_no_output_format() {
    let stage = Stage::new(Script::new().rule(when(), reply().text("Done."))).await;
    let response = within(stage.adapter().evaluate(&prompt::<()>("go"), &Session::new())).await;
    let response = response.unwrap();
    assert_eq!((response.output, response.text.as_deref()), ((), Some("Done.")));
    assert!(!stage.requests()[0].tool_names().contains(&"StructuredOutput"));
}

#[tokio::test]
async fn answers_that_are_not_objects_work_too() {
    assert_eq!(answered::<Vec<u8>>(json!({"value": [1, 2]})).await.0.unwrap(), [1, 2]);
    assert_eq!(answered::<String>(json!({"value": "yes"})).await.0.unwrap(), "yes");
}

#[tokio::test]
async fn the_model_corrects_an_invalid_answer() {
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("StructuredOutput", json!({"score": "three"})))
        .rule(
            when().has_tool_error(true),
            reply().tool_use("StructuredOutput", json!({"score": 3})),
        );
    let stage = Stage::new(script).await;
    let (session, prompt) = (Session::new(), prompt::<Verdict>("go"));
    let response = within(stage.adapter().evaluate(&prompt, &session)).await.unwrap();
    assert_eq!(response.output.score, 3);
}

#[tokio::test]
async fn a_model_that_gives_no_valid_answer_fails_the_run() {
    let script =
        Script::new().rule(when(), reply().tool_use("StructuredOutput", json!({"score": "three"})));
    let stage = Stage::new(script).await;
    let error = within(stage.adapter().evaluate(&prompt::<Verdict>("go"), &Session::new())).await;
    let Err(Error::AnswerRetries { errors, .. }) = error else { panic!("{error:?}") };
    assert!(!errors.is_empty());
}

/// An engine that returns this result, whatever the schema.
async fn with_result<T: ostler_prompt::Output>(result: &str) -> Result<T, Error> {
    let fake = Fake::new(&[INTRODUCES, result]);
    let adapter = ostler_prompt::Adapter::new(fake.options());
    let response = within(adapter.evaluate(&prompt::<T>("go"), &Session::new())).await;
    response.map(|response| response.output)
}

#[tokio::test]
async fn a_value_that_does_not_parse_is_an_error_that_names_the_field() {
    // An engine that does not validate.
    let result = result!(
        r#""subtype":"success","is_error":false,"result":"","structured_output":{"score":1000}"#
    );
    let error = with_result::<Verdict>(result).await.unwrap_err();
    let Error::AnswerShape { field, reason, .. } = &error else { panic!("{error:?}") };
    assert_eq!(field.as_deref(), Some("score"));
    assert!(reason.contains("1000"), "{reason}");
    assert!(error.to_string().contains("at `score`"), "{error}");
}

#[tokio::test]
async fn success_without_structured_output_is_a_failure() {
    let result = result!(r#""subtype":"success","is_error":false,"result":"I would rather not.""#);
    let error = with_result::<Verdict>(result).await.unwrap_err();
    assert!(
        matches!(&error, Error::AnswerMissing { text, .. } if text == "I would rather not."),
        "{error:?}"
    );
    let null =
        result!(r#""subtype":"success","is_error":false,"result":"","structured_output":null"#);
    assert!(matches!(with_result::<Verdict>(null).await, Err(Error::AnswerMissing { .. })));
}

#[tokio::test]
async fn the_turn_ends_with_the_answer() {
    // The model is not asked again: the script has no rule for that.
    let (verdict, stage) = answered::<Verdict>(json!({"score": 3})).await;
    assert_eq!((verdict.unwrap().score, stage.requests().len()), (3, 1));
}

/// Gives an answer, calls a tool, gives another answer, and ends.
fn second_thoughts() -> Script {
    Script::new()
        .rule(when().turn(0), reply().tool_use("StructuredOutput", json!({"score": 3})))
        .rule(when().turn(1), reply().tool_use("Bash", json!({"command": "true"})))
        .rule(when().turn(2), reply().tool_use("StructuredOutput", json!({"score": 4})))
        .rule(when().turn(3), reply().text("That is all."))
}

async fn without_stopping(backend: Backend) {
    let stage = Stage::on(backend, second_thoughts()).await;
    let (session, prompt) = (Session::new(), prompt::<Verdict>("go"));
    let adapter = stage.adapter_with(ClientConfig::default().with_stop_on_structured_output(false));
    let response = within(adapter.evaluate(&prompt, &session)).await.unwrap();
    assert_eq!((response.output.score, response.tool_calls), (4, 3));
    assert_eq!(response.text.as_deref(), Some("That is all."));
    assert_eq!(response.stop_reason, "end_turn");
}

#[tokio::test]
async fn without_stopping_the_agent_continues_and_its_last_answer_counts() {
    without_stopping(Backend::Embedded).await;
}

#[tokio::test]
#[ignore = "needs npm packages; run by cargo xtask test"]
async fn without_stopping_the_older_vendor_program_continues_too() {
    without_stopping(Backend::Vendor50).await;
}

#[tokio::test]
async fn of_several_answers_the_last_one_counts() {
    let script = Script::new().rule(
        when(),
        reply()
            .tool_use("StructuredOutput", json!({"score": 3}))
            .tool_use("Bash", json!({"command": "true"}))
            .tool_use("StructuredOutput", json!({"score": 4})),
    );
    let stage = Stage::new(script).await;
    let (session, prompt) = (Session::new(), prompt::<Verdict>("go"));
    let mut published = PublishedEvents::of(&session);
    let response = within(stage.adapter().evaluate(&prompt, &session)).await.unwrap();
    assert_eq!(response.output.score, 4);
    assert_eq!(published.lines().len(), 5);
}

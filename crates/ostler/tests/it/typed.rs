//! Typed answers, of single prompts and in a conversation, and the engine that runs if the options name none.

use ostler::{Client, ErrorKind, Options};
use ostler_testkit::{Script, ScriptedApi, reply, when};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
enum Verdict {
    Fine,
    Broken { line: u32 },
}

async fn api(script: Script) -> (ScriptedApi, Options, tempfile::TempDir) {
    let api = ScriptedApi::start(script).await;
    let home = tempfile::tempdir().unwrap();
    let mut options = Options::new()
        .cwd(home.path())
        .env("HOME", home.path().display().to_string())
        .env("ANTHROPIC_API_KEY", "key")
        .env("ANTHROPIC_BASE_URL", api.base_url());
    options.session.ephemeral = true;
    (api, options, home)
}

#[tokio::test]
async fn options_without_an_engine_use_the_embedded_one() {
    let (_api, options, _home) = api(Script::new().rule(when(), reply().text("from inside"))).await;
    // No engine program can be found.
    let options = options.env("PATH", "").env("OSTLER_ENGINE", "");
    let result = ostler::prompt("hello", options.clone()).await.unwrap();
    assert_eq!(result.result.as_deref(), Some("from inside"));
    let mut default = Options::default();
    (default.engine, default.context) = (options.engine, options.context);
    default.session.ephemeral = true;
    let mut client = Client::connect(default).await.unwrap();
    assert_eq!(client.prompt("hello").await.unwrap().result.as_deref(), Some("from inside"));
}

#[tokio::test]
async fn an_answer_can_be_an_enum() {
    let answer = json!({"value": {"Broken": {"line": 3}}});
    let script = Script::new().rule(when(), reply().tool_use("StructuredOutput", answer));
    let (_api, options, _home) = api(script).await;
    let verdict: Verdict = ostler::prompt_as("Is it fine?", options).await.unwrap();
    assert_eq!(verdict, Verdict::Broken { line: 3 });
}

#[tokio::test]
async fn a_conversation_answers_with_values_of_any_type() {
    let script = Script::new()
        .rule(when().prompt_contains("Get ready"), reply().text("I am ready."))
        .rule(
            when().prompt_contains("Is it fine?"),
            reply().text("```json\n{\"value\": \"Perfect\"}\n```"),
        )
        .rule(
            when().prompt_contains("Your answer does not match"),
            reply().text("{\"value\": \"Fine\"}"),
        )
        .rule(when().prompt_contains("Which lines?"), reply().text("{\"value\": [1, 2]}"));
    let (api, options, _home) = api(script).await;
    let mut client = Client::connect(options).await.unwrap();
    client.prompt("Get ready").await.unwrap();
    let verdict: Verdict = client.prompt_as("Is it fine?").await.unwrap();
    assert_eq!(verdict, Verdict::Fine);
    let numbers: Vec<u32> = client.prompt_as("Which lines?").await.unwrap();
    assert_eq!(numbers, [1, 2]);
    let asked = api.requests();
    let body = |n: usize| asked[n].body.to_string();
    assert!(body(1).contains("JSON schema") && body(1).contains("Broken"), "{}", body(1));
    assert!(body(2).contains("unknown variant `Perfect`"), "{}", body(2));
}

#[tokio::test]
async fn a_conversation_gives_up_after_two_corrections() {
    let (api, options, _home) = api(Script::new().rule(when(), reply().text("no JSON"))).await;
    let mut client = Client::connect(options).await.unwrap();
    let error = client.prompt_as::<Verdict>("Is it fine?").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Answer);
    assert!(error.to_string().contains("does not contain a JSON object"), "{error}");
    assert_eq!(api.requests().len(), 3);
}

#[tokio::test]
async fn a_session_of_one_answer_type_refuses_another() {
    let answer = json!({"value": "Fine"});
    let script = Script::new().rule(when(), reply().tool_use("StructuredOutput", answer));
    let (_api, options, _home) = api(script).await;
    let mut client = Client::connect(options.answers::<Verdict>()).await.unwrap();
    assert_eq!(client.prompt_as::<Verdict>("Is it fine?").await.unwrap(), Verdict::Fine);
    let error = client.prompt_as::<Vec<u32>>("Which lines?").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
}

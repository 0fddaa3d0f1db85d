//! A conversation with the embedded engine: every prompt gets its own answer, whatever else happens in the session.

use std::time::Duration;

use ostler::Client;
use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::json;

/// Far more than any step takes; only a step that hangs exceeds it.
const LIMIT: Duration = Duration::from_secs(60);

async fn client(script: Script, folder: &std::path::Path) -> (ScriptedApi, Client) {
    let api = ScriptedApi::start(script).await;
    let options = ostler::options()
        .cwd(folder)
        .env("ANTHROPIC_API_KEY", "key")
        .env("ANTHROPIC_BASE_URL", api.base_url())
        .env("HOME", folder.to_str().unwrap())
        .allow(["Bash"]);
    (api, Client::connect(options).await.unwrap())
}

async fn answer(client: &mut Client, prompt: &str) -> String {
    let result = tokio::time::timeout(LIMIT, client.prompt(prompt)).await.expect("it ends");
    result.unwrap().result.unwrap_or_default()
}

// Mutant: `pending::answers` returns true for every result; the second prompt got the report of the background command.
#[tokio::test(flavor = "multi_thread")]
async fn a_background_command_that_ends_between_prompts_does_not_shift_their_answers() {
    let folder = tempfile::tempdir().unwrap();
    let input = json!({"command": "true", "run_in_background": true, "description": "x"});
    let script = Script::new()
        .rule(
            when().prompt_contains("begin").has_tool_result(false),
            reply().tool_use("Bash", input),
        )
        .rule(when().prompt_contains("second"), reply().text("the second"))
        .rule(when().prompt_contains("third"), reply().text("the third"))
        .rule(when(), reply().text("something else"));
    let (api, mut client) = client(script, folder.path()).await;
    answer(&mut client, "begin").await;
    // The turn about the end of the command is over, but its result was not read yet.
    tokio::time::timeout(LIMIT, api.wait_for_requests(3)).await.expect("a turn for the command");
    assert_eq!(answer(&mut client, "second").await, "the second");
    assert_eq!(answer(&mut client, "third").await, "the third");
    client.close().await.unwrap();
}

// Mutant: as above; the second prompt got the answer to the first.
#[tokio::test(flavor = "multi_thread")]
async fn the_answer_to_a_cancelled_prompt_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new()
        .rule(when().prompt_contains("first"), reply().text("the first").hold("gate"))
        .rule(when().prompt_contains("second"), reply().text("the second"));
    let (api, mut client) = client(script, folder.path()).await;
    let given_up = tokio::select! {
        answer = client.prompt("first") => Some(answer),
        _ = api.wait_for_requests(1) => None,
    };
    assert!(given_up.is_none(), "the answer is held back");
    api.gate("gate").release();
    assert_eq!(answer(&mut client, "second").await, "the second");
}

//! Runs the example as a program against the scripted API, and checks the exports of the facade.

use std::path::PathBuf;

use ostler_testkit::{Script, ScriptedApi, Usage, reply, when};
use serde_json::json;
use tokio::process::Command;

use crate::mounts::Host;
use crate::stage::within;

/// Cargo puts examples next to the folder of the tests.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(2).unwrap().join("examples").join(name)
}

#[tokio::test]
async fn the_example_reviews_a_folder() {
    let answer =
        json!({"score": 7, "findings": [{"file": "main.rs", "line": 1, "remark": "empty"}]});
    let script = Script::new()
        .rule(
            when().prompt_contains("report at most 3 findings").turn(0),
            reply()
                .tool_use("mcp__ostler__owner", json!({"file": "main.rs"}))
                .tool_use("Bash", json!({"command": "echo '// fixed' >> project/main.rs"}))
                .usage(Usage::tokens(100, 20)),
        )
        .rule(
            when().tool_result_of("Bash"),
            reply().tool_use("StructuredOutput", answer).usage(Usage::tokens(150, 30)),
        );
    let api = ScriptedApi::start(script).await;
    let (host, home) =
        (Host::new(&[("src/main.rs", "fn main() {}\n")]), tempfile::tempdir().unwrap());
    let mut review = Command::new(program("review"));
    review.arg(host.path("src")).current_dir(home.path()).env_clear().kill_on_drop(true);
    review.env("HOME", home.path()).env("PATH", std::env::var_os("PATH").unwrap());
    review
        .env("ANTHROPIC_BASE_URL", api.base_url())
        .env("ANTHROPIC_API_KEY", "any")
        .env("IS_SANDBOX", "1");
    let output = within(review.output()).await.unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    let expected = "called mcp__ostler__owner\ncalled Bash\ncalled StructuredOutput\nscore 7\nmain.rs:1: empty\n\
        300 tokens\n--- a/project/main.rs\n+++ b/project/main.rs\n@@ -1,1 +1,2 @@\n fn main() {}\n+// fixed\n";
    assert_eq!(printed, expected);
    assert_eq!(std::fs::read_to_string(host.path("src/main.rs")).unwrap(), "fn main() {}\n");
}

#[test]
fn the_facade_exports_the_whole_api() {
    let prompt: ostler::prompts::Prompt<()> = crate::fake::prompt("go");
    assert_eq!(prompt.name(), "test/prompt");
    let _: fn(ostler::Options) -> ostler_prompt::Adapter = ostler::prompts::Adapter::new;
}

//! Costs of a start other than time: tokens of the first request, and connections before it.

use ostler_testkit::{Script, ScriptedApi, reply, when};

use crate::run::Ostler;

/// The limit for everything that a model reads before the user's first prompt.
const MAX_TOKENS: f64 = 8_000.0;

/// More tokens than any tokenizer makes of English and JSON.
fn most_tokens(text: &str) -> f64 {
    let by_length = text.chars().count() as f64 / 3.2;
    let by_words = text.split_whitespace().count() as f64 * 1.4;
    by_length.max(by_words)
}

#[tokio::test(flavor = "multi_thread")]
async fn system_prompt_and_tools_stay_within_8000_tokens() {
    let api = ScriptedApi::start(Script::new().rule(when(), reply().text("Hello."))).await;
    let ostler =
        Ostler::new().env("ANTHROPIC_API_KEY", "key").env("ANTHROPIC_BASE_URL", &api.base_url());
    assert_eq!(ostler.run(&["-p", "hello"]).code, Some(0));
    let requests = api.requests();
    let body = &requests[0].body;
    let (system, tools) = (body["system"].to_string(), body["tools"].to_string());
    // The real texts, not an empty request.
    assert!(system.len() > 200 && requests[0].tool_names().contains(&"Bash"), "{body}");
    let (system, tools) = (most_tokens(&system), most_tokens(&tools));
    assert!(system + tools <= MAX_TOKENS, "{system} of the system prompt, {tools} of the tools");
}

/// The program, with a library that logs its connections in a file.
#[cfg(target_os = "linux")]
fn overheard(api: &ScriptedApi) -> Ostler {
    let ostler = Ostler::new();
    let library = ostler.path("connections.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/connections.c");
    // Rust links with a C compiler, so one is installed.
    let mut compiler = std::process::Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).args([source, "-ldl"]);
    assert!(compiler.status().unwrap().success());
    let log = ostler.path("connections.log");
    ostler
        .env("LD_PRELOAD", library.to_str().unwrap())
        .env("CONNECTIONS", log.to_str().unwrap())
        .env("ANTHROPIC_API_KEY", "key")
        .env("ANTHROPIC_BASE_URL", &api.base_url())
}

/// The connections so far.
#[cfg(target_os = "linux")]
fn connections(ostler: &Ostler) -> Vec<String> {
    let text = std::fs::read_to_string(ostler.path("connections.log")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn there_are_no_connections_before_the_first_prompt_and_then_only_to_the_model() {
    let call = serde_json::json!({"command": "echo hello"});
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Bash", call))
        .rule(when().turn(1), reply().text("Done."));
    let api = ScriptedApi::start(script).await;
    let ostler = overheard(&api);
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["sessions"],
        &["explain", "Bash", "ls"],
        // Two sessions that start and receive no prompt.
        &[],
        &["-p", "--input-format", "stream-json", "--output-format", "stream-json"],
    ] {
        assert_eq!(ostler.run(arguments).code, Some(0), "{arguments:?}");
        assert_eq!(connections(&ostler), [""; 0], "{arguments:?}");
    }
    let settings = r#"{"permissions":{"allow":["Bash(echo:*)"]}}"#;
    let ran = ostler.run(&["-p", "--settings", settings, "say hello"]);
    assert_eq!(ran.stdout, "Done.\n", "{}", ran.stderr);
    let mut connections = connections(&ostler);
    connections.dedup();
    assert_eq!(connections, [api.address().to_string()]);
    let asked: Vec<_> =
        api.all_requests().iter().map(|one| format!("{} {}", one.method, one.path)).collect();
    assert_eq!(asked, ["POST /v1/messages", "POST /v1/messages"]);
}

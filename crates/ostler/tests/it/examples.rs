//! Runs the examples as programs, without a key, in a new home and a folder with two files.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use ostler_mcp::{CallOptions, Client, ClientOptions, Endpoint};
use serde_json::json;
use tokio::process::Command;

/// Only an example that hangs exceeds it.
const LIMIT: Duration = Duration::from_secs(120);

/// What an example prints.
async fn run(name: &str) -> String {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("work");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("apple.txt"), "red\n").unwrap();
    std::fs::write(folder.join("pear.txt"), "green\n").unwrap();
    let output = Command::new(program(name))
        .current_dir(&folder)
        .env_clear()
        .env("HOME", home.path())
        .env("OSTLER_OFFLINE", "1")
        .env("PATH", std::env::var_os("PATH").unwrap())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(LIMIT, output).await.unwrap().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{stdout}\n{stderr}", output.status);
    assert_eq!(stderr, "", "an example must not write to stderr\n{stdout}");
    stdout
}

/// The built program of an example. Cargo puts examples next to the folder of the tests.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let built = test.ancestors().nth(2).unwrap();
    let program = built.join("examples").join(name);
    assert!(
        program.is_file(),
        "{} is missing; `cargo test -p ostler` without `--test` builds it",
        program.display()
    );
    program
}

/// Fails unless `text` contains these parts in this order.
#[track_caller]
fn in_order(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let found = rest.find(part);
        let at = found
            .unwrap_or_else(|| panic!("{part:?} is missing or in the wrong place in:\n{text}"));
        rest = &rest[at + part.len()..];
    }
}

#[tokio::test]
async fn quick_start_says_what_is_in_the_folder() {
    let printed = run("quick_start").await;
    in_order(&printed, &["I list the files", "apple.txt"]);
    assert!(printed.contains("pear.txt"), "{printed}");
}

#[test]
fn the_quick_start_has_at_most_12_lines_and_the_documents_show_the_same_code() {
    let manifest = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(manifest.join(path)).unwrap();
    let example = read("examples/quick_start.rs");
    assert!(example.lines().count() <= 12, "{} lines", example.lines().count());
    let (_, code) = example.split_once("\n\n").unwrap();
    for document in ["README.md", "../../docs/sdks.md"] {
        assert!(read(document).contains(code.trim()), "{document} shows another quick start");
    }
    let rustdoc: String = code
        .trim()
        .lines()
        .map(|line| format!("//! {line}").trim_end().to_owned() + "\n")
        .collect();
    assert!(read("src/lib.rs").contains(&rustdoc), "src/lib.rs shows another quick start");
}

#[test]
fn every_example_is_run_by_a_test() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let run_here = include_str!("examples.rs");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned();
        let is_run =
            ["run", "program"].iter().any(|it| run_here.contains(&format!("{it}(\"{name}\")")));
        assert!(is_run, "no test runs the example {name}");
    }
}

#[tokio::test]
async fn streaming_shows_text_as_it_comes_and_the_calls_between() {
    let printed = run("streaming").await;
    in_order(
        &printed,
        &["I list the files", "[Glob {", "apple.txt", "[Glob {", "2 files", "turns, 0 $]"],
    );
}

#[tokio::test]
async fn conversation_remembers_between_prompts() {
    let printed = run("conversation").await;
    in_order(&printed, &["agent: I wrote notes.txt.", "agent: I read notes.txt.", "good morning"]);
}

#[tokio::test]
async fn permissions_are_asked_for_once_and_calls_are_changed_and_denied() {
    let printed = run("permissions").await;
    in_order(
        &printed,
        &[
            "> write one to a.txt\n? Write ",
            "I wrote a.txt.",
            "> write two to b.txt\nI wrote b.txt.",
            "> run `touch c.txt`\n`touch c.txt` printed nothing.",
            "> run `make`\n? Bash ",
            "printed:\n\n```\nmake\n",
            "> run `chmod 777 a.txt`\n? Bash ",
            "this folder is not for that",
        ],
    );
}

#[tokio::test]
async fn questions_are_answered() {
    let printed = run("questions").await;
    in_order(&printed, &["Which colour do you like? (red, green, blue)\n", "You chose blue."]);
}

#[tokio::test]
async fn hooks_guard_and_log() {
    let printed = run("hooks").await;
    in_order(
        &printed,
        &[
            "> run `echo hello`\nlog: Bash {\"command\":\"echo hello\"",
            "hello\n",
            "> run `echo secret`\n",
            "secrets stay where they are",
        ],
    );
    assert_eq!(printed.matches("log: ").count(), 1, "{printed}");
}

#[tokio::test]
async fn custom_tools_are_functions_of_the_program() {
    let printed = run("custom_tools").await;
    in_order(
        &printed,
        &[
            "celsius=21.5\nto_fahrenheit says: 70.7 °F",
            "celsius=-300\nThat did not work: nothing is that cold",
            "celsius=mild\nThat did not work: invalid arguments for `to_fahrenheit`: `celsius`: ",
        ],
    );
}

#[tokio::test]
async fn calls_of_subagents_are_shown_and_require_approval() {
    let printed = run("subagents").await;
    in_order(
        &printed,
        &[
            "agent calls Agent",
            "? a subagent wants Bash {\"command\":\"touch a.txt\"",
            "agent: The subagent reports:\n\n`touch a.txt` printed nothing.",
            "turns]",
        ],
    );
    assert!(printed.contains("  subagent calls Bash"), "{printed}");
}

#[tokio::test]
async fn the_mcp_server_example_works_with_our_client() {
    let server = Endpoint::program(program("mcp_server").to_str().unwrap(), [""; 0]);
    let connected = Client::connect("calc", server, ClientOptions::default());
    let client = tokio::time::timeout(LIMIT, connected).await.unwrap().unwrap();
    let sum = client.call_tool("add", json!({"a": 2, "b": 3}), CallOptions::default());
    assert_eq!(sum.await.unwrap().joined_text(), "5");
    let pi = client.read_resource("calc://pi").await.unwrap();
    assert_eq!(pi[0].text.as_deref(), Some("3.14159"));
    let what = [("what".to_owned(), "rain".to_owned())].into();
    let prompt = client.get_prompt("explain", what).await.unwrap();
    assert!(format!("{:?}", prompt.messages).contains("Explain rain to a child."), "{prompt:?}");
    client.close().await;
}

/// The official client with its own stdio transport.
const OFFICIAL_CLIENT: &str = r#"
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
const client = new Client({ name: "official", version: "1" });
await client.connect(new StdioClientTransport({ command: process.env.SERVER }));
const tools = (await client.listTools()).tools.map((tool) => tool.name);
const sum = await client.callTool({ name: "add", arguments: { a: 2, b: 3 } });
const pi = await client.readResource({ uri: "calc://pi" });
const prompt = await client.getPrompt({ name: "explain", arguments: { what: "rain" } });
console.log(JSON.stringify([tools, sum.content[0].text, pi.contents[0].text, prompt.messages[0].content.text]));
await client.close();
"#;

#[tokio::test]
#[ignore = "needs npm packages; run by cargo xtask test"]
async fn the_official_mcp_client_uses_the_server() {
    let peers =
        std::env::var_os("OSTLER_PEERS").expect("OSTLER_PEERS names a folder with node_modules");
    let mut node = Command::new("node");
    node.args(["--input-type=module", "--eval", OFFICIAL_CLIENT]).current_dir(peers);
    node.env("SERVER", program("mcp_server")).stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(LIMIT, node.output()).await.unwrap().unwrap();
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}{stderr}");
    let answers: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(answers, json!([["add"], "5", "3.14159", "Explain rain to a child."]));
}

#[tokio::test]
async fn structured_output_is_a_value() {
    let printed = run("structured_output").await;
    in_order(&printed, &["- ", ".txt\n- ", ".txt\n", "apple.txt"]);
    assert!(printed.starts_with("- "), "{printed}");
}

#[tokio::test]
async fn sessions_are_resumed_and_forked() {
    let printed = run("sessions").await;
    let expected = "a new session\nthe same session: true\nanother session: true\nthe copy again: true\nits title: Files\n";
    assert_eq!(printed, expected);
}

#[tokio::test]
async fn interrupt_stops_a_turn_and_the_session_continues() {
    let printed = run("interrupt").await;
    in_order(
        &printed,
        &["stopping it\n", "stopped: error_during_execution\n", "I found 2 files here."],
    );
}

#[tokio::test]
async fn background_work_is_started_and_its_end_is_reported() {
    let printed = run("background").await;
    in_order(
        &printed,
        &["started: ", "runs in the background now.", "ended: ", "agent: Something ended"],
    );
}

#[tokio::test]
async fn offline_tests_are_answered_from_a_recording() {
    let printed = run("offline_test").await;
    in_order(
        &printed,
        &[
            "recorded: Here is apple.txt:",
            "red",
            "replayed: Here is apple.txt:",
            "red",
            "replayed with its tools: Here is apple.txt:",
            "red",
            "noticed: ",
            "first difference is at messages[2].content[0].content",
        ],
    );
}

#[tokio::test]
async fn errors_come_with_advice() {
    let printed = run("errors").await;
    in_order(
        &printed,
        &[
            "no engine: ",
            "-> install an engine",
            "no folder: ",
            "no/such/folder",
            "-> correct the options",
            "too little: ",
            "-> allow more",
        ],
    );
}

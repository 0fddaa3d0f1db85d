//! Without a key nothing pretends to be a model: every entry that no person watches fails and says why.

use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::{Value, json};

use crate::run::{OFFLINE, Ostler};
use crate::serve_options::Served;
use crate::tmux::Window;

/// A folder without a key, in which the demo is not chosen.
fn stranger() -> Ostler {
    Ostler::new().env(OFFLINE, "0")
}

const WRITE: &str = "write \"hello\" to notes.txt";

// Mutant: the offline demo answers whenever there is no key.
#[test]
fn prompts_of_programs_and_scripts_fail_and_say_how_to_log_in() {
    let (text, json, frames) = (
        &["-p", WRITE][..],
        &["-p", "--output-format", "json", WRITE],
        &["-p", "--verbose", "--output-format", "stream-json", WRITE],
    );
    let named = &["-p", "--model", "opus", WRITE];
    for arguments in [text, json, frames, named] {
        let ostler = stranger().args(&["--permission-mode", "acceptEdits"]);
        let ran = ostler.run(arguments);
        assert_eq!(ran.code, Some(1), "{arguments:?}: {ran:?}");
        ran.shows(&["Not logged in", "ANTHROPIC_API_KEY"]);
        assert!(!ostler.path("notes.txt").exists(), "{arguments:?}");
    }
    // Not a terminal, so no user would see a banner.
    let ran = stranger().args(&["hello"]).type_lines(&[]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("Not logged in"), "{ran:?}");
    let ran = stranger().type_lines(&["hello"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("Not logged in"), "{ran:?}");
}

#[test]
fn a_host_gets_the_failure_as_a_message_and_as_the_result_and_the_session_answers_requests() {
    let initialize = json!({
        "type": "control_request", "request_id": "1", "request": {"subtype": "initialize"},
    });
    let prompt = json!({"type": "user", "message": {"role": "user", "content": "hello"}});
    let ran = stranger()
        .args(&[
            "-p",
            "--verbose",
            "--input-format",
            "stream-json",
            "--output-format",
            "stream-json",
        ])
        .type_lines(&[&initialize.to_string(), &prompt.to_string()]);
    let frames: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &str| frames.iter().find(|frame| frame["type"] == kind).unwrap().clone();
    assert_eq!(of("control_response")["response"]["subtype"], "success");
    let message = of("assistant");
    assert_eq!(message["error"], "authentication_failed");
    assert_eq!(message["message"]["model"], "<synthetic>");
    let result = of("result");
    assert_eq!((&result["subtype"], &result["is_error"]), (&json!("success"), &json!(true)));
    assert!(result["result"].as_str().unwrap().starts_with("Not logged in"), "{result}");
    assert_eq!(result["total_cost_usd"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_on_a_server_fails_and_the_operator_is_told_at_the_start() {
    let mut served = Served::furnished(Script::new(), &[], |ostler| ostler.env(OFFLINE, "0")).await;
    let session = served.ask("/sessions", Some(json!({}))).await;
    let runs = format!("/sessions/{}/runs", session["id"].as_str().unwrap());
    let run = served.ask(&runs, Some(json!({"prompt": WRITE}))).await;
    let path = format!("/runs/{}", run["id"].as_str().unwrap());
    assert_eq!(served.settled(&path, "state").await, "failed");
    let run = served.ask(&path, None).await;
    assert!(run["outcome"].to_string().contains("Not logged in"), "{run}");
    assert!(!served.ostler.path("notes.txt").exists());
    let errors = served.errors();
    assert!(errors.contains("not logged in") && errors.contains("--key-file"), "{errors}");
}

// Mutants: `offers_demo` is never set; the banner is left out when a prompt is on the command line.
#[test]
fn at_a_terminal_the_demo_answers_below_a_banner() {
    for arguments in [&[][..], &["hello"]] {
        let ostler = stranger();
        let window = Window::open(&ostler, 120, arguments);
        window.shows("You are not logged in, so the OFFLINE DEMO answers");
        if arguments.is_empty() {
            window.type_line("hello");
        }
        window.shows("offline demo, not a language model");
    }
}

// Mutant: the word is sent as a prompt.
#[tokio::test(flavor = "multi_thread")]
async fn the_name_of_a_command_that_does_not_exist_here_is_never_sent_to_the_model() {
    let api = ScriptedApi::start(Script::new().rule(when(), reply().text("Paid."))).await;
    let ostler =
        Ostler::new().env("ANTHROPIC_API_KEY", "key").env("ANTHROPIC_BASE_URL", &api.base_url());
    for arguments in [&["update"][..], &["plugin"], &["agents"], &["-p", "setup-token"]] {
        let ran = ostler.run(arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains("does not have"), "{}", ran.stderr);
    }
    assert_eq!(api.all_requests().len(), 0);
    ostler.run(&["-p", "--", "update"]).shows(&["Paid."]);
}

//! Questions about hosts that a command in the sandbox wants to reach.
//!
//! The host is always `localhost`, and a sandbox never connects to this machine: one that may be reached shows in the result
//! as one that leads here.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;

use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::{Value, json};

use crate::run::Ostler;
use crate::talk::Talk;

const MAY_REACH: &str = "it leads to";

/// Runs a command for each prompt and answers every question about a host with the next answer.
struct HostTalk {
    /// The hosts in questions.
    asked: Vec<Value>,
    /// The results of the commands.
    results: Vec<String>,
    attestation: Value,
    ostler: Ostler,
}

fn talk(commands: &[&str], sandbox: &Value, mode: &str, answers: &[Value]) -> HostTalk {
    let mut script = Script::new();
    for (number, command) in commands.iter().enumerate() {
        let bash = json!({"command": command, "description": "Try"});
        let said = format!("try {number}.");
        script = script
            .rule(when().turn(2 * number).prompt_contains(&said), reply().tool_use("Bash", bash));
    }
    let script = script.rule(when(), reply().text("Done."));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let api = runtime.block_on(ScriptedApi::start(script));
    let ostler = Ostler::new()
        .env("ANTHROPIC_API_KEY", "key")
        .env("ANTHROPIC_BASE_URL", &api.base_url())
        .env("IS_SANDBOX", "1");
    let settings = json!({"sandbox": sandbox}).to_string();
    let mode = format!("--permission-mode={mode}");
    let flags = ["--permission-prompt-tool=stdio", "--settings", &settings, &mode];
    let mut talk = Talk::with(&ostler, &flags);
    let mut answers = answers.iter();
    let (mut asked, mut results, mut attestation) = (Vec::new(), Vec::new(), Value::Null);
    for number in 0..commands.len() {
        talk.say(&format!("try {number}."), None);
        loop {
            let frame = talk.until(|frame| {
                frame["request"]["subtype"] == "can_use_tool" || frame["type"] == "result"
            });
            if frame["type"] == "result" {
                attestation = frame["sandbox"].clone();
                break;
            }
            asked.push(frame["request"].clone());
            let answer = answers.next().unwrap_or_else(|| panic!("not expected: {frame}"));
            talk.answer(&frame, answer.clone());
        }
        let body = api.requests().last().unwrap().body.to_string();
        results.push(body[body.rfind("tool_result").unwrap()..].to_owned());
    }
    assert_eq!(answers.next(), None, "fewer questions than expected: {asked:?}");
    talk.end();
    HostTalk { asked, results, attestation, ostler }
}

const FETCH: &str =
    "curl -sS --noproxy '' http://localhost/x; curl -sS --noproxy '' http://localhost:81/y; exit 1";

fn enabled() -> Value {
    json!({"enabled": true})
}

fn allow() -> Value {
    json!({"behavior": "allow", "updatedInput": {"host": "localhost"}})
}

// Mutants: the answer is kept after the command; a question per port; a no counts as a yes.
#[test]
fn a_new_host_is_asked_about_once_per_command() {
    let no = json!({"behavior": "deny", "message": "no"});
    let ran = talk(&[FETCH, FETCH], &enabled(), "default", &[allow(), no]);
    assert_eq!(ran.asked.len(), 2, "{:?}", ran.asked);
    let question = &ran.asked[0];
    assert_eq!(question["tool_name"], "SandboxNetworkAccess");
    assert_eq!(question["input"], json!({"host": "localhost"}));
    let rule = json!({"toolName": "WebFetch", "ruleContent": "domain:localhost"});
    assert_eq!(question["permission_suggestions"][0]["rules"], json!([rule]));
    assert!(ran.results[0].contains(MAY_REACH), "{}", ran.results[0]);
    assert!(!ran.results[0].contains("denied"), "{}", ran.results[0]);
    assert!(ran.results[1].contains("the user denied it"), "{}", ran.results[1]);
    assert!(!ran.results[1].contains(MAY_REACH), "{}", ran.results[1]);
    assert_eq!(ran.attestation["network"], "allow-list");
}

// Mutants: the updates of an answer are not applied; rules about `WebFetch` are not asked.
#[test]
fn a_rule_in_the_answer_holds_for_the_session_or_for_good() {
    for destination in ["session", "localSettings"] {
        let rules = json!([{"toolName": "WebFetch", "ruleContent": "domain:localhost"}]);
        let update = json!({"type": "addRules", "rules": rules, "behavior": "allow",
            "destination": destination});
        let mut always = allow();
        always["updatedPermissions"] = json!([update]);
        let ran = talk(&[FETCH, FETCH], &enabled(), "default", &[always]);
        for result in &ran.results {
            assert!(result.contains(MAY_REACH), "{destination}: {result}");
        }
        let kept = fs::read_to_string(ran.ostler.path(".claude/settings.local.json"));
        let is_kept = kept.is_ok_and(|text| text.contains("domain:localhost"));
        assert_eq!(is_kept, destination == "localSettings");
    }
}

// Mutants: `reach_any` is always true; a mode that asks nothing allows; `strictAllowlist` is ignored.
#[test]
fn without_a_question_no_new_host_is_reached() {
    let of = |network: Value| json!({"enabled": true, "network": network});
    let others = json!(["other.example.org"]);
    for (network, mode, attested) in [
        (json!({}), "bypassPermissions", "none"),
        (json!({}), "dontAsk", "none"),
        (json!({"allowedDomains": []}), "default", "none"),
        (json!({"allowedDomains": others}), "bypassPermissions", "allow-list"),
        (json!({"allowedDomains": others, "strictAllowlist": true}), "default", "allow-list"),
        (json!({"deniedDomains": ["localhost"]}), "default", "allow-list"),
    ] {
        let ran = talk(&[FETCH], &of(network.clone()), mode, &[]);
        let result = &ran.results[0];
        assert!(!result.contains(MAY_REACH), "{network} {mode}: {result}");
        assert_eq!(ran.attestation["network"], attested, "{network} {mode}");
    }
}

/// A proxy that answers every request itself, with the first line of the request.
fn own_proxy() -> (u16, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = move || {
        let mut lines = Vec::new();
        for _ in 0..2 {
            let (stream, _) = listener.accept().unwrap();
            let mut line = String::new();
            let mut reader = BufReader::new(&stream);
            reader.read_line(&mut line).unwrap();
            // Reads the rest of the head, so that closing does not reset the connection.
            while reader.by_ref().lines().next().is_some_and(|line| !line.unwrap().is_empty()) {}
            let head = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
            (&stream).write_all(format!("{head}by my own proxy\n").as_bytes()).unwrap();
            lines.push(line.trim_end().to_owned());
        }
        lines
    };
    (port, std::thread::spawn(serve))
}

// Mutants: the port is ignored; lists together with a port are ignored; a rule that denies a host is.
#[test]
fn a_proxy_of_the_user_decides_about_hosts() {
    let (port, proxy) = own_proxy();
    let of = |network: Value| json!({"enabled": true, "network": network});
    let fetch = "curl -sS http://one.example/x; curl -sS http://127.0.0.2:9/y --noproxy ''";
    // Nothing is asked, also in a mode that asks.
    let ran = talk(&[fetch], &of(json!({"httpProxyPort": port})), "default", &[]);
    assert!(ran.results[0].contains("by my own proxy\\nby my own proxy"), "{}", ran.results[0]);
    assert_eq!(ran.attestation["network"], "own-proxy");
    let lines = proxy.join().unwrap();
    assert_eq!(lines, ["GET http://one.example/x HTTP/1.1", "GET http://127.0.0.2:9/y HTTP/1.1"]);
    let gone = talk(&[fetch], &of(json!({"httpProxyPort": port})), "default", &[]);
    assert!(gone.results[0].contains(&format!("on port {port}")), "{}", gone.results[0]);
    for (settings, name) in [
        (
            json!({"sandbox": of(json!({"httpProxyPort": port, "allowedDomains": ["a.example"]}))}),
            "allowedDomains",
        ),
        (
            json!({"sandbox": of(json!({"socksProxyPort": port, "deniedDomains": []}))}),
            "deniedDomains",
        ),
        (
            json!({"sandbox": of(json!({"httpProxyPort": port})), "permissions": {"deny": ["WebFetch(domain:b.example)"]}}),
            "domain:b.example",
        ),
    ] {
        let ran = Ostler::new().run(&[
            "-p",
            "hi",
            "--model",
            "offline-demo",
            "--settings",
            &settings.to_string(),
        ]);
        assert_ne!(ran.code, Some(0), "{settings}");
        assert!(
            ran.stderr.contains(name) && ran.stderr.contains("your own proxy"),
            "{}",
            ran.stderr
        );
    }
}

// The proxy sees that the connection is gone, and drops the question.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_withdrawn_when_its_command_ends() {
    let bash = json!({"command": FETCH, "description": "Try", "timeout": 1_000});
    let script = Script::new().rule(when().turn(0), reply().tool_use("Bash", bash));
    let api = ScriptedApi::start(script.rule(when(), reply().text("Done."))).await;
    let ostler = Ostler::new()
        .env("ANTHROPIC_API_KEY", "key")
        .env("ANTHROPIC_BASE_URL", &api.base_url())
        .env("IS_SANDBOX", "1");
    let settings = json!({"sandbox": enabled()}).to_string();
    let flags = ["--permission-prompt-tool=stdio", "--settings", &settings];
    let mut talk = Talk::with(&ostler, &flags);
    talk.say("go", None);
    let question = talk.until(|frame| frame["request"]["subtype"] == "can_use_tool");
    let withdrawn =
        talk.until(|frame| frame["type"] == "control_cancel_request" || frame["type"] == "result");
    assert_eq!(withdrawn["request_id"], question["request_id"], "{withdrawn}");
    talk.result();
    talk.end();
}

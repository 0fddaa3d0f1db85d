//! Searches under permission rules that protect files.

use std::path::Path;
use std::sync::Arc;

use futures::future::BoxFuture;
use ostler_engine::model::{ModelError, Request};
use ostler_engine::permission::{Behavior, Policy, ReadGuard, Source};
use ostler_engine::tool::{ToolCx, ToolOutput, ToolSession};
use ostler_proto::api::Message;
use ostler_proto::permission::PermissionMode;
use serde_json::{Value, json};

use ostler_testkit::{Script, ScriptedApi, reply, when};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::session::Session;
use crate::whole::{self, Outcome};

#[derive(Debug)]
struct Ruled(Policy, ReadGuard);

impl ToolSession for Ruled {
    fn may_show(&self, path: &Path) -> bool {
        self.1.may_show(path)
    }

    fn names_host(&self, host: &str) -> bool {
        self.0.names_host(host)
    }

    fn ask_model(&self, _: Request) -> BoxFuture<'static, Result<Message, ModelError>> {
        unreachable!("a search of files asks no model")
    }
}

async fn run(session: &Session, rules: &[&str], tool: &str, input: Value) -> String {
    inside(session, rules, tool, input).await.content.text()
}

/// Runs a tool within a session, once it is permitted.
pub(crate) async fn inside(
    session: &Session,
    rules: &[&str],
    tool: &str,
    input: Value,
) -> ToolOutput {
    let mut policy = Policy::new(session.root(), PermissionMode::Default);
    for rule in rules {
        policy.add_rule(Behavior::Deny, rule.parse().unwrap(), Source::Project);
    }
    let guard = policy.read_guard();
    let prepared = session.prepare(tool, &input).unwrap();
    let cx = ToolCx { session: Some(Arc::new(Ruled(policy, guard))), ..session.cx() };
    (prepared.run)(cx).await.unwrap()
}

fn with_secrets() -> Session {
    let session = Session::new();
    session.file("a.txt", "KEY=public\n");
    session.file(".env", "KEY=secret\n");
    session.file("deep/.env", "KEY=other\n");
    session
}

#[tokio::test]
async fn a_search_leaves_out_protected_files_and_says_so() {
    let session = with_secrets();
    let grep = |pattern: &str| json!({ "pattern": pattern, "output_mode": "content" });
    let text = run(&session, &["Read(.env)"], "Grep", grep("KEY")).await;
    assert_eq!(text, "a.txt:1:KEY=public\n[2 files left out: permission rules guard them]\n");
    // The output must not show whether there is a match: that would reveal a secret character by character.
    for pattern in ["KEY=s", "KEY=x"] {
        let text = run(&session, &["Read(./.env)", "Read(deep)"], "Grep", grep(pattern)).await;
        assert_eq!(text, "No matches found.\n[2 files left out: permission rules guard them]\n");
    }
    let text = run(&session, &[], "Grep", grep("KEY=s")).await;
    assert_eq!(text, ".env:1:KEY=secret\n");
}

#[tokio::test]
async fn names_of_protected_files_are_left_out_too() {
    let session = with_secrets();
    let text = run(&session, &["Read(./.env)"], "Glob", json!({ "pattern": "**/.env" })).await;
    assert_eq!(text, "deep/.env\n[1 file left out: a permission rule guards it]\n");
}

/// Makes the model of a whole session call a tool once.
pub(crate) async fn call(session: &Session, rules: &[&str], tool: &str, input: Value) -> Outcome {
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use(tool, input))
        .rule(when().has_tool_result(true), reply().text("Done."));
    let api = ScriptedApi::start(script).await;
    whole::run(&session.root(), rules, whole::model(&api), "go").await
}

#[tokio::test]
async fn the_rules_of_a_session_apply_to_its_searches() {
    let session = with_secrets();
    let outcome = call(&session, &["deny Read(.env)"], "Grep", json!({ "pattern": "KEY" })).await;
    assert_eq!(outcome.text, "a.txt\n[2 files left out: permission rules guard them]\n");
}

#[tokio::test]
async fn the_rules_of_a_session_allow_hosts_by_exact_name_only() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 4096]).await;
        let answer = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 4\r\n\r\nhere";
        stream.write_all(answer.as_bytes()).await.unwrap();
    });
    let session = Session::new();
    let outcome = call(&session, &["allow WebFetch"], "WebFetch", json!({ "url": url })).await;
    assert!(
        outcome.is_error && outcome.text.contains("WebFetch(domain:127.0.0.1)"),
        "{}",
        outcome.text
    );
    let rules = ["allow WebFetch(domain:127.0.0.1)"];
    let outcome = call(&session, &rules, "WebFetch", json!({ "url": url })).await;
    assert!(outcome.text.ends_with("\nhere"), "{}", outcome.text);
    assert_eq!(outcome.structured["code"], 200);
}

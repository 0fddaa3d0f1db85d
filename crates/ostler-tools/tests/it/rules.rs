//! Searches under rules that guard files, as a session has them.

use std::path::Path;
use std::sync::Arc;

use futures::future::BoxFuture;
use ostler_engine::model::{ModelError, Request};
use ostler_engine::permission::{Behavior, Policy, Source};
use ostler_engine::tool::{Surroundings, ToolCx};
use ostler_proto::api::Message;
use ostler_proto::permission::PermissionMode;
use serde_json::{Value, json};

use crate::session::Session;

#[derive(Debug)]
struct Ruled(Policy);

impl Surroundings for Ruled {
    fn may_show(&self, path: &Path) -> bool {
        self.0.may_show(path)
    }

    fn names_host(&self, host: &str) -> bool {
        self.0.names_host(host)
    }

    fn ask_model(&self, _: Request) -> BoxFuture<'static, Result<Message, ModelError>> {
        unreachable!("a search of files asks no model")
    }
}

async fn run(session: &Session, rules: &[&str], tool: &str, input: Value) -> String {
    let mut policy = Policy::new(session.root(), PermissionMode::Default);
    for rule in rules {
        policy.add_rule(Behavior::Deny, rule.parse().unwrap(), Source::Project);
    }
    let prepared = session.prepare(tool, &input).unwrap();
    let cx = ToolCx { session: Some(Arc::new(Ruled(policy))), ..session.cx() };
    (prepared.run)(cx).await.unwrap().content.text()
}

fn with_secrets() -> Session {
    let session = Session::new();
    session.file("a.txt", "KEY=public\n");
    session.file(".env", "KEY=secret\n");
    session.file("deep/.env", "KEY=other\n");
    session
}

#[tokio::test]
async fn a_search_leaves_out_what_may_not_be_read_and_says_so() {
    let session = with_secrets();
    let grep = |pattern: &str| json!({ "pattern": pattern, "output_mode": "content" });
    let text = run(&session, &["Read(.env)"], "Grep", grep("KEY")).await;
    assert_eq!(text, "a.txt:1:KEY=public\n[2 files left out: permission rules guard them]\n");
    // Whether there is a match must not show either: that would tell a secret letter by letter.
    for pattern in ["KEY=s", "KEY=x"] {
        let text = run(&session, &["Read(./.env)", "Read(deep)"], "Grep", grep(pattern)).await;
        assert_eq!(text, "No matches found.\n[2 files left out: permission rules guard them]\n");
    }
    let text = run(&session, &[], "Grep", grep("KEY=s")).await;
    assert_eq!(text, ".env:1:KEY=secret\n");
}

#[tokio::test]
async fn names_of_guarded_files_are_left_out_too() {
    let session = with_secrets();
    let text = run(&session, &["Read(./.env)"], "Glob", json!({ "pattern": "**/.env" })).await;
    assert_eq!(text, "deep/.env\n[1 file left out: a permission rule guards it]\n");
}

//! File changes of agents, and rewinding them.

use ostler_server::config::Config;
use ostler_testkit::{Script, reply, when};
use reqwest::Method;
use serde_json::{Value, json};

use crate::desk::{Client, Desk, within};

/// Writes a file on the first prompt and edits it on the second.
fn writes(desk: &std::path::Path) -> Script {
    let path = desk.join("poem.txt").display().to_string();
    let write = json!({"file_path": path, "content": "roses\nare\nred\n"});
    let edit = json!({"file_path": path, "old_string": "red", "new_string": "blue\nand more"});
    Script::new()
        .rule(when().turn(0), reply().tool_use("Write", write))
        .rule(when().turn(2), reply().tool_use("Edit", edit))
        .rule(when(), reply().text("Done."))
}

async fn say(client: &Client, session: &str, prompt: &str) -> String {
    let run = client.prompt(session, prompt).await;
    client.until(&run, "completed").await;
    run
}

async fn begin(script: impl Fn(&std::path::Path) -> Script) -> (Desk, String) {
    // The script names files in the workspace, which exists only once the server has started.
    let skills =
        |config: &mut Config| config.skills = vec![config.workspace.join(".claude/skills")];
    let mut desk = Desk::with(Script::new(), skills).await;
    desk.api = ostler_testkit::ScriptedApi::start(script(desk.workspace())).await;
    desk.stop().await;
    desk.start().await;
    let made = json!({"permissionMode": "acceptEdits"});
    let session =
        desk.client().post("/api/sessions", made).await["id"].as_str().unwrap().to_owned();
    (desk, session)
}

async fn rewind(client: &Client, session: &str, before: &str, dry_run: bool) -> (u16, Value) {
    let path = format!("/api/sessions/{session}/rewind");
    let body = json!({"before": before, "dryRun": dry_run});
    let (status, answer) = client.ask(Method::POST, &path, Some(body)).await;
    (status.as_u16(), answer)
}

// Seen to fail when the files of a run are not stored with its end.
#[tokio::test]
async fn changes_are_listed_by_run_and_can_be_rewound() {
    let (mut desk, session) = begin(writes).await;
    let client = desk.client();
    let first = say(&client, &session, "write it").await;
    let second = say(&client, &session, "edit it").await;
    let poem = desk.workspace().join("poem.txt");
    assert_eq!(std::fs::read_to_string(&poem).unwrap(), "roses\nare\nblue\nand more\n");
    let path = format!("/api/sessions/{session}/changes");
    let changes = client.get(&path).await;
    assert_eq!((&changes["added"], &changes["removed"]), (&json!(5), &json!(1)));
    let runs = changes["runs"].as_array().unwrap();
    assert_eq!((&runs[0]["run"], &runs[1]["run"]), (&json!(first), &json!(second)));
    let (made, edited) = (&runs[0]["files"][0], &runs[1]["files"][0]);
    assert_eq!((&made["path"], &made["kind"]), (&json!("poem.txt"), &json!("created")));
    assert_eq!(
        (&edited["kind"], &edited["added"], &edited["removed"]),
        (&json!("edited"), &json!(2), &json!(1))
    );
    assert!(edited["diff"].as_str().unwrap().contains("-red\n+blue\n+and more\n"), "{edited}");

    // With a new engine that did not make the changes.
    desk.stop().await;
    desk.start().await;
    let client = desk.client();
    let (status, would) = rewind(&client, &session, &second, true).await;
    assert_eq!(
        (status, &would["insertions"], &would["deletions"]),
        (200, &json!(1), &json!(2)),
        "{would}"
    );
    assert!(would["files"][0].as_str().unwrap().ends_with("/poem.txt"));
    assert_eq!(
        std::fs::read_to_string(&poem).unwrap(),
        "roses\nare\nblue\nand more\n",
        "a dry run changes nothing"
    );
    let (status, done) = rewind(&client, &session, &second, false).await;
    assert_eq!((status, &done["dryRun"], &done["files"]), (200, &json!(false), &would["files"]));
    assert_eq!(std::fs::read_to_string(&poem).unwrap(), "roses\nare\nred\n");
    let log = client.log(&session).await;
    let notice = log.iter().find(|it| it["kind"] == "notice").unwrap();
    assert_eq!(notice["body"]["rewound"]["before"], json!(second));
    assert_eq!(rewind(&client, &session, &first, false).await.0, 200);
    assert!(!poem.exists(), "the file did not exist before the first prompt");
    desk.api.finish();
}

// Seen to fail when neither the hub nor the worker checks whether a run is active.
#[tokio::test]
async fn rewinding_is_refused_during_a_run_and_without_a_checkpoint() {
    let slow = |_: &std::path::Path| {
        let waits = reply().text("x").gate(1, "slow");
        Script::new()
            .rule(when().prompt_contains("slow"), waits)
            .rule(when(), reply().text("Fine."))
    };
    let (desk, session) = begin(slow).await;
    let (client, ann) = (desk.client(), desk.client_of("ann").await);
    let none = client.get(&format!("/api/sessions/{session}/changes")).await;
    assert_eq!(none, json!({"runs": [], "added": 0, "removed": 0}));
    let first = say(&client, &session, "hello").await;
    let running = client.prompt(&session, "slow").await;
    desk.api.gate("slow").reached().await;
    let (status, answer) = rewind(&client, &session, &first, false).await;
    assert_eq!((status, &answer["error"]["code"]), (409, &json!("run_in_progress")));
    let queued = client.prompt(&session, "never sent").await;
    client.post(&format!("/api/runs/{queued}/cancel"), json!({})).await;
    client.until(&queued, "cancelled").await;
    desk.api.gate("slow").release();
    client.until(&running, "completed").await;
    let (status, answer) = rewind(&client, &session, &queued, false).await;
    assert_eq!((status, &answer["error"]["code"]), (409, &json!("cannot_rewind")), "{answer}");
    let other = client.session().await;
    for (who, session, before, expected) in [
        (&client, &session, "run_nothing", 422),
        (&client, &other, first.as_str(), 422),
        (&ann, &session, first.as_str(), 404),
        (&client, &session, first.as_str(), 200),
    ] {
        let (status, answer) = rewind(who, session, before, true).await;
        assert_eq!(status, expected, "{before}: {answer}");
    }
    desk.api.finish();
}

/// A command that replaces every file of the workspace by a pipe, also those that the engine reads at its start, blocks
/// neither the session nor the server.
///
/// Mutant: `RealPath::open` without its check and without NONBLOCK; then this test does not end. `ostler-files` has a test for
/// each of the two alone.
#[tokio::test]
async fn files_that_became_pipes_block_no_door_of_the_server() {
    let replace = "find . -type f | while read -r file; do rm \"$file\"; mkfifo \"$file\"; done";
    let (desk, session) = begin(|desk| {
        let path = desk.join("poem.txt").display().to_string();
        let write = json!({"file_path": path, "content": "roses\n"});
        Script::new()
            .rule(when().any_text_contains("write it").turn(0), reply().tool_use("Write", write))
            .rule(when().turn(2), reply().tool_use("Bash", json!({"command": replace})))
            .rule(when(), reply().text("Done."))
    })
    .await;
    let client = desk.client();
    for name in ["CLAUDE.md", ".mcp.json", ".claude/settings.json", ".claude/skills/s/SKILL.md"] {
        let file = desk.workspace().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "{}").unwrap();
    }
    let skill = "---\nname: s\ndescription: Sings.\n---\nSing.\n";
    std::fs::write(desk.workspace().join(".claude/skills/s/SKILL.md"), skill).unwrap();
    let skills = client.get("/api/skills").await;
    assert!(skills.to_string().contains("Sings."), "the server reads it: {skills}");
    let first = say(&client, &session, "write it").await;
    let run = client.prompt(&session, "replace").await;
    let pending = client.pending().await;
    let path = format!("/api/approvals/{}/decision", pending["id"].as_str().unwrap());
    let body = json!({"approved": true, "digest": pending["digest"]});
    client.post(&path, body).await;
    client.until(&run, "completed").await;
    let is_pipe = |name: &str| {
        use std::os::unix::fs::FileTypeExt as _;
        desk.workspace().join(name).metadata().unwrap().file_type().is_fifo()
    };
    assert!(is_pipe("poem.txt") && is_pipe(".claude/settings.json"));
    for path in ["changes", "messages", "usage"] {
        let path = format!("/api/sessions/{session}/{path}");
        within(client.ask(Method::GET, &path, None)).await;
    }
    for path in ["/api/sessions", "/api/skills", "/api/spaces", "/api/doctor", "/api/commands"] {
        within(client.ask(Method::GET, path, None)).await;
    }
    within(rewind(&client, &session, &first, true)).await;
    within(rewind(&client, &session, &first, false)).await;
    // A new session starts in that folder, and the server still works.
    within(say(&client, &session, "and now")).await;
    let other = client.session().await;
    within(say(&client, &other, "hello")).await;
    let path = format!("/api/sessions/{session}");
    within(client.ask(Method::DELETE, &path, None)).await;
}

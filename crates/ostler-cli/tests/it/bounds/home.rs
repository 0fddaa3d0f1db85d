//! A home that is read-only or full: the run continues, and reports it.
//!
//! Both need their own file system: a small tmpfs in a mount namespace (`unshare`), for root or with user namespaces.

use std::fs;
use std::io::Write as _;
use std::process::Child;
use std::time::Instant;

use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::json;

use super::at;
use super::peak::{SERVER_LIMIT, add_row, current, measure};
use crate::run::{Ostler, PROGRAM, Ran};
use crate::serve_options::Served;

/// Starts the program with a tmpfs at its home that shell code prepares.
fn spawn(ostler: &Ostler, prepare: &str, arguments: &[&str]) -> Child {
    let home = ostler.path("no-home");
    fs::create_dir_all(&home).unwrap();
    let flags = if rustix::process::geteuid().is_root() { "-m" } else { "-rm" };
    let mount = format!(r#"mount -t tmpfs -o size=1m small "$HOME" && {prepare} && exec "$@""#);
    let wrapped = Ostler {
        program: "unshare".into(),
        folder: tempfile::tempdir().unwrap(),
        arguments: [flags, "sh", "-c", &mount, "sh", PROGRAM].map(str::to_owned).to_vec(),
        variables: ostler.variables.clone(),
    };
    // The home belongs to the program, whose folder outlives it.
    let wrapped = wrapped.env("HOME", home.to_str().unwrap());
    let mut child =
        wrapped.spawn(&[&["--cwd", ostler.folder.path().to_str().unwrap()], arguments].concat());
    child.stdin = None;
    child
}

/// Runs a prompt with one write; the model answers and the file exists.
async fn attack(name: &str, prepare: &str) -> Ran {
    let script = Script::new()
        .rule(
            when().turn(0),
            reply().tool_use("Write", json!({"file_path": "new.txt", "content": "x"})),
        )
        .rule(when(), reply().text("Done."));
    let api = ScriptedApi::start(script).await;
    let ostler = at(&api.base_url());
    let arguments = [
        "-p",
        "go",
        "--permission-mode",
        "acceptEdits",
        "--output-format",
        "stream-json",
        "--verbose",
    ];
    let child = spawn(&ostler, prepare, &arguments);
    let ran = tokio::task::block_in_place(|| measure(name, child));
    assert_eq!(ran.code, Some(0), "{name}: {:.1000} {:.1000}", ran.stdout, ran.stderr);
    assert_eq!(fs::read_to_string(ostler.path("new.txt")).unwrap(), "x", "{name}");
    ran
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_home_is_reported_and_the_run_continues() {
    let ran = attack("HOME is read-only", r#"mount -o remount,ro "$HOME""#).await;
    assert!(ran.stdout.contains("session_writes_lost"), "{:.2000} {:.500}", ran.stdout, ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_home_is_reported_and_the_run_continues() {
    let fill = r#"{ cat /dev/zero > "$HOME/filler" 2>/dev/null; true; }"#;
    let ran = attack("HOME is on a full disk", fill).await;
    assert!(ran.stdout.contains("session_writes_lost"), "{:.2000} {:.500}", ran.stdout, ran.stderr);
}

/// Makes the program start with a small file system at `disk`, which shell code prepares.
fn on_small_disk(mut ostler: Ostler, prepare: &str) -> Ostler {
    let flags = if rustix::process::geteuid().is_root() { "-m" } else { "-rm" };
    let mount = format!(
        r#"mkdir -p disk && mount -t tmpfs -o size=8m small "$PWD/disk" && {prepare} && exec "$@""#
    );
    ostler.program = "unshare".into();
    ostler.arguments = [flags, "sh", "-c", &mount, "sh", PROGRAM].map(str::to_owned).to_vec();
    ostler.env("ANTHROPIC_API_KEY", "key")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_reports_a_full_disk_and_continues_when_there_is_room() {
    let script = Script::new().rule(when(), reply().text("Fine."));
    let served =
        Served::furnished(script, &["--data", "disk/data"], |ostler| on_small_disk(ostler, "true"))
            .await;
    assert_eq!(served.run(json!({}), "go").await, "completed");
    // Only the server sees the file system, and others through its process.
    let disk = served.ostler.path("disk");
    let filler = format!("/proc/{}/root{}/filler", served.id(), disk.display());
    let mut file = fs::File::create(&filler).unwrap();
    for size in [1 << 16, 1 << 10, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
    let session = served.ask("/sessions", None).await["items"][0]["id"].clone();
    let url = format!("{}/api/sessions/{}/runs", served.base, session.as_str().unwrap());
    let ask = async || {
        let request = served.http.post(&url).bearer_auth(&served.token);
        let prompt = json!({"prompt": "x".repeat(50_000)});
        request.json(&prompt).send().await.unwrap().status().as_u16()
    };
    let begun = Instant::now();
    // A few prompts fit into the free pages of the database.
    let mut full = 202;
    for _ in 0..200 {
        full = ask().await;
        if full != 202 {
            break;
        }
    }
    fs::remove_file(&filler).unwrap();
    drop(file);
    let room = ask().await;
    let result = format!("{full}, with room again {room}");
    let peak = current(served.id());
    add_row("server: full disk", &result, begun.elapsed(), peak, SERVER_LIMIT);
    assert_eq!((full, room), (507, 202));
    assert_eq!(served.run(json!({}), "go").await, "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_start_on_a_full_disk_says_why() {
    let fill = "{ cat /dev/zero > disk/filler 2>/dev/null; true; }";
    let ostler = on_small_disk(Ostler::new(), fill);
    let mut child = ostler.spawn(&["serve", "--listen", "127.0.0.1:0", "--data", "disk/data"]);
    child.stdin = None;
    let ran = tokio::task::block_in_place(|| measure("server: start on a full disk", child));
    assert_eq!(ran.code, Some(1), "{} {}", ran.stdout, ran.stderr);
    assert!(
        ran.stderr.to_lowercase().contains("full") || ran.stderr.contains("No space left"),
        "{}",
        ran.stderr
    );
}

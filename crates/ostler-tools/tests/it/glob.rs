//! Files by name.

use std::fs::File;
use std::time::{Duration, SystemTime};

use ostler_engine::tool::Effect;
use serde_json::json;

use crate::session::{Session, make_pipe};

/// A file that was last changed `seconds` ago.
fn aged(session: &Session, name: &str, seconds: u64) {
    let file = File::options().write(true).open(session.file(name, "")).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
}

#[tokio::test]
async fn the_newest_files_come_first() {
    let session = Session::new();
    aged(&session, "old.rs", 300);
    aged(&session, "src/new.rs", 100);
    aged(&session, "src/deep/middle.rs", 200);
    aged(&session, "other.txt", 1);
    let structured = session.structured("Glob", json!({ "pattern": "**/*.rs" })).await;
    assert_eq!(structured["filenames"], json!(["src/new.rs", "src/deep/middle.rs", "old.rs"]));
    assert_eq!(structured["numFiles"], 3);
    assert_eq!(structured["truncated"], false);
}

#[tokio::test]
async fn a_star_does_not_match_across_folders() {
    let session = Session::new();
    session.file("a.rs", "");
    session.file("src/b.rs", "");
    session.file("src/deep/c.rs", "");
    assert_eq!(session.text("Glob", json!({ "pattern": "*.rs" })).await, "a.rs\n");
    assert_eq!(session.text("Glob", json!({ "pattern": "src/*.rs" })).await, "src/b.rs\n");
    assert_eq!(session.text("Glob", json!({ "pattern": "src/b.rs" })).await, "src/b.rs\n");
    assert_eq!(
        session.text("Glob", json!({ "pattern": "*/{deep,x}/c.rs" })).await,
        "src/deep/c.rs\n"
    );
}

#[tokio::test]
async fn ignored_files_are_left_out_unless_named() {
    let session = Session::new();
    session.file(".gitignore", "target/\n");
    session.file("target/a.rs", "");
    session.file(".git/b.rs", "");
    session.file(".hidden/c.rs", "");
    assert_eq!(session.text("Glob", json!({ "pattern": "**/*.rs" })).await, ".hidden/c.rs\n");
    assert_eq!(
        session.text("Glob", json!({ "pattern": "*.rs", "path": "target" })).await,
        "target/a.rs\n"
    );
}

// Mutant: everything but folders is listed.
#[tokio::test]
async fn pipes_sockets_and_folders_are_not_listed() {
    let session = Session::new();
    session.file("folder/file", "");
    make_pipe(&session.path("pipe"));
    let _socket = std::os::unix::net::UnixListener::bind(session.path("socket")).unwrap();
    std::os::unix::fs::symlink("folder/file", session.path("link")).unwrap();
    let output = session.structured("Glob", json!({ "pattern": "**/*" })).await;
    let mut names: Vec<_> = output["filenames"].as_array().unwrap().iter().collect();
    names.sort_by_key(|name| name.as_str());
    assert_eq!(names, ["folder/file", "link"]);
    // Without a folder to walk, a device is the only match.
    let text = session.text("Glob", json!({ "pattern": "nul[l]", "path": "/dev" })).await;
    assert_eq!(text, "No files found.\n");
}

#[tokio::test]
async fn too_many_files_are_cut_and_counted() {
    let session = Session::new();
    for n in 0..120 {
        session.file(&format!("{n}.txt"), "");
    }
    let output = session.run("Glob", json!({ "pattern": "*.txt" })).await.unwrap();
    assert!(
        output
            .content
            .text()
            .ends_with("[the 100 newest of 120 files; narrow the pattern to see others]\n")
    );
    let structured = output.structured.unwrap();
    assert_eq!(
        (&structured["truncated"], &structured["totalMatches"]),
        (&json!(true), &json!(120))
    );
}

#[tokio::test]
async fn no_matches_and_a_missing_folder_are_distinguished() {
    let session = Session::new();
    assert_eq!(session.text("Glob", json!({ "pattern": "*.rs" })).await, "No files found.\n");
    assert!(
        session
            .error("Glob", json!({ "pattern": "*", "path": "gone" }))
            .await
            .contains("does not exist")
    );
    assert!(session.error("Glob", json!({ "pattern": "a[" })).await.contains("not valid"));
}

#[test]
fn the_effect_is_the_folder_that_is_searched() {
    let session = Session::new();
    let effect = |pattern: &str| session.effect("Glob", json!({ "pattern": pattern }));
    assert_eq!(effect("**/*.rs"), Effect::Read(session.root()));
    assert_eq!(effect("src/x/*.rs"), Effect::Read(session.path("src/x")));
    assert_eq!(effect("/etc/*.conf"), Effect::Read("/etc".into()));
    assert_eq!(effect("../../../../../../../../../etc/*"), Effect::Read("/etc".into()));
    let effect = session.effect("Glob", json!({ "pattern": "*.rs", "path": "src" }));
    assert_eq!(effect, Effect::Read(session.path("src")));
}

//! Writing: new files, old files, links, and what is refused.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

use ostler_engine::tool::Effect;
use serde_json::json;

use crate::session::{Session, make_pipe};

#[tokio::test]
async fn a_new_file_is_created_with_its_folders() {
    let session = Session::new();
    let structured =
        session.structured("Write", json!({ "file_path": "a/b/c.txt", "content": "one\n" })).await;
    assert_eq!(session.content("a/b/c.txt"), "one\n");
    let expected = json!({
        "type": "create", "filePath": session.path("a/b/c.txt"), "content": "one\n",
        "structuredPatch": [], "originalFile": null, "userModified": false,
    });
    assert_eq!(structured, expected);
}

#[tokio::test]
async fn a_file_must_be_read_before_it_is_replaced() {
    let session = Session::new();
    session.file("a.txt", "one\n");
    let write = json!({ "file_path": "a.txt", "content": "two\n" });
    assert!(session.error("Write", write.clone()).await.contains("Read it first"));
    assert_eq!(session.content("a.txt"), "one\n");
    session.text("Read", json!({ "file_path": "a.txt" })).await;
    let structured = session.structured("Write", write).await;
    assert_eq!(session.content("a.txt"), "two\n");
    let hunk = json!({ "oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-one", "+two"] });
    assert_eq!(structured["type"], "update");
    assert_eq!(structured["originalFile"], "one\n");
    assert_eq!(structured["structuredPatch"], json!([hunk]));
}

#[tokio::test]
async fn a_file_that_changed_since_must_be_read_again() {
    let session = Session::new();
    session.file("a.txt", "one\n");
    session.text("Read", json!({ "file_path": "a.txt" })).await;
    session.file("a.txt", "six\n");
    let error = session.error("Write", json!({ "file_path": "a.txt", "content": "two\n" })).await;
    assert!(error.contains("has changed since"), "{error}");
    assert_eq!(session.content("a.txt"), "six\n");
}

#[tokio::test]
async fn a_file_read_by_one_session_counts_as_unread_in_another() {
    let (session, other) = (Session::new(), Session::new());
    let path = session.file("a.txt", "one\n");
    session.text("Read", json!({ "file_path": path })).await;
    assert!(
        other
            .error("Write", json!({ "file_path": path, "content": "" }))
            .await
            .contains("Read it first")
    );
}

#[tokio::test]
async fn a_written_file_need_not_be_read() {
    let session = Session::new();
    session.text("Write", json!({ "file_path": "a.txt", "content": "one\n" })).await;
    session.text("Write", json!({ "file_path": "a.txt", "content": "two\n" })).await;
    assert_eq!(session.content("a.txt"), "two\n");
}

#[tokio::test]
async fn an_existing_file_keeps_its_mode_and_a_new_one_gets_the_default() {
    let session = Session::new();
    let path = session.file("run.sh", "#!/bin/sh\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
    session.text("Read", json!({ "file_path": "run.sh" })).await;
    session.text("Write", json!({ "file_path": "run.sh", "content": "#!/bin/bash\n" })).await;
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o751);

    let usual = fs::metadata(session.file("usual", "")).unwrap().mode();
    session.text("Write", json!({ "file_path": "new", "content": "" })).await;
    assert_eq!(fs::metadata(session.path("new")).unwrap().mode(), usual);
}

#[tokio::test]
async fn an_existing_file_keeps_its_owner() {
    let session = Session::new();
    let path = session.file("a.txt", "one\n");
    // Only root can change the owner of a file.
    if chown(&path, Some(1234), Some(1234)).is_err() {
        return;
    }
    session.text("Read", json!({ "file_path": "a.txt" })).await;
    session.text("Write", json!({ "file_path": "a.txt", "content": "two\n" })).await;
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!((metadata.uid(), metadata.gid()), (1234, 1234));
}

#[tokio::test]
async fn a_link_is_followed_and_stays_a_link() {
    let session = Session::new();
    session.file("target.txt", "one\n");
    symlink("target.txt", session.path("link.txt")).unwrap();
    session.text("Read", json!({ "file_path": "target.txt" })).await;
    session.text("Write", json!({ "file_path": "link.txt", "content": "two\n" })).await;
    assert!(session.path("link.txt").is_symlink());
    assert_eq!(session.content("target.txt"), "two\n");
}

#[tokio::test]
async fn a_dangling_link_is_refused() {
    let session = Session::new();
    symlink("nowhere", session.path("link")).unwrap();
    let error = session.error("Write", json!({ "file_path": "link", "content": "" })).await;
    assert!(error.contains("leads nowhere"), "{error}");
}

#[tokio::test]
async fn folders_and_pipes_are_not_written_to() {
    let session = Session::new();
    make_pipe(&session.path("pipe"));
    assert!(
        session
            .error("Write", json!({ "file_path": "pipe", "content": "" }))
            .await
            .contains("pipe")
    );
    assert!(
        session.error("Write", json!({ "file_path": ".", "content": "" })).await.contains("folder")
    );
}

#[tokio::test]
async fn a_file_in_place_of_a_folder_is_reported() {
    let session = Session::new();
    session.file("a", "");
    let error = session.error("Write", json!({ "file_path": "a/b", "content": "" })).await;
    assert!(error.contains("Not a directory"), "{error}");
}

#[tokio::test]
async fn encoding_and_line_ends_of_the_file_are_kept() {
    let session = Session::new();
    let wide = session.file("wide.txt", [0xFE, 0xFF, 0, b'a']);
    let dos = session.file("dos.txt", "a\r\nb\r\n");
    for path in ["wide.txt", "dos.txt"] {
        session.text("Read", json!({ "file_path": path })).await;
        session.text("Write", json!({ "file_path": path, "content": "ä\nc\n" })).await;
    }
    assert_eq!(fs::read(wide).unwrap(), [0xFE, 0xFF, 0, 0xE4, 0, b'\n', 0, b'c', 0, b'\n']);
    assert_eq!(fs::read(dos).unwrap(), "ä\r\nc\r\n".as_bytes());
}

#[tokio::test]
async fn no_temporary_file_stays_behind() {
    let session = Session::new();
    session.text("Write", json!({ "file_path": "a.txt", "content": "one\n" })).await;
    assert_eq!(fs::read_dir(session.root()).unwrap().count(), 1);
}

#[test]
fn the_effect_is_the_absolute_path() {
    let session = Session::new();
    let effect = session.effect("Write", json!({ "file_path": "x/../a.txt", "content": "" }));
    assert_eq!(effect, Effect::Write(session.path("a.txt")));
}

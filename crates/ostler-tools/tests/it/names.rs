//! Files whose names are not UTF-8, which JSON cannot represent.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use serde_json::json;

use crate::session::Session;

fn with_odd_names() -> Session {
    let session = Session::new();
    let name = OsStr::from_bytes(b"caf\xe9.txt");
    fs::write(session.root().join(name), "needle\n").unwrap();
    let folder = session.root().join(OsStr::from_bytes(b"d\xffr"));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("inner.txt"), "needle\n").unwrap();
    session
}

#[tokio::test]
async fn searches_find_files_with_names_that_are_not_utf_8() {
    let session = with_odd_names();
    let text = session.text("Glob", json!({"pattern": "**/*.txt"})).await;
    assert!(text.contains("caf\u{fffd}.txt") && text.contains("d\u{fffd}r/inner.txt"), "{text}");
    let text = session.text("Grep", json!({"pattern": "needle", "output_mode": "content"})).await;
    assert!(text.contains("caf\u{fffd}.txt:1:needle"), "{text}");
    assert!(text.contains("d\u{fffd}r/inner.txt:1:needle"), "{text}");
    let output = session.structured("Grep", json!({"pattern": "needle"})).await;
    assert_eq!(output["numFiles"], 2, "{output}");
}

#[tokio::test]
async fn the_shell_reads_files_with_names_that_are_not_utf_8() {
    let session = with_odd_names();
    let text = session.text("Bash", json!({"command": "ls; cat caf*; cat d*/inner.txt"})).await;
    assert_eq!(text, "caf\u{fffd}.txt\nd\u{fffd}r\nneedle\nneedle");
    // The working directory is kept by its bytes.
    session.text("Bash", json!({"command": "cd d*"})).await;
    assert_eq!(session.text("Bash", json!({"command": "cat inner.txt"})).await, "needle");
}

#[tokio::test]
async fn reading_a_name_that_is_not_utf_8_explains_the_failure() {
    let session = with_odd_names();
    for tool_input in [
        ("Read", json!({"file_path": "caf\u{fffd}.txt"})),
        ("Edit", json!({"file_path": "caf\u{fffd}.txt", "old_string": "a", "new_string": "b"})),
    ] {
        let error = session.error(tool_input.0, tool_input.1).await;
        assert!(error.contains("not UTF-8") && error.contains("Bash"), "{error}");
    }
}

//! Files by content.

use std::os::unix::fs::symlink;

use ostler_engine::tool::Effect;
use serde_json::json;

use crate::session::{Session, make_pipe};

fn project() -> Session {
    let session = Session::new();
    session.file("a.rs", "fn one() {}\n// two\nfn three() {}\n");
    session.file("sub/b.py", "def One(): pass\n");
    session
}

#[tokio::test]
async fn file_names_are_the_default() {
    let session = project();
    let structured = session.structured("Grep", json!({ "pattern": "fn" })).await;
    assert_eq!(
        structured,
        json!({ "mode": "files_with_matches", "numFiles": 1, "filenames": ["a.rs"] })
    );
}

#[tokio::test]
async fn content_has_names_and_line_numbers() {
    let session = project();
    let input = json!({ "pattern": "fn \\w+", "output_mode": "content" });
    assert_eq!(session.text("Grep", input).await, "a.rs:1:fn one() {}\na.rs:3:fn three() {}\n");
    let input = json!({ "pattern": "fn \\w+", "output_mode": "content", "-n": false });
    assert_eq!(session.text("Grep", input).await, "a.rs:fn one() {}\na.rs:fn three() {}\n");
}

#[tokio::test]
async fn the_lines_of_one_file_do_not_repeat_its_name() {
    let session = project();
    let input = json!({ "pattern": "two", "path": "a.rs", "output_mode": "content", "-C": 1 });
    assert_eq!(session.text("Grep", input).await, "1-fn one() {}\n2:// two\n3-fn three() {}\n");
}

#[tokio::test]
async fn context_is_separated_where_lines_are_missing() {
    let session = Session::new();
    session.file("a", "x\n1\n2\nx\n3\n");
    session.file("b", "x\n");
    let input = json!({ "pattern": "x", "output_mode": "content", "-A": 1, "-n": false });
    assert_eq!(session.text("Grep", input).await, "a:x\na-1\n--\na:x\na-3\n--\nb:x\n");
}

#[tokio::test]
async fn counts_are_per_file_and_in_total() {
    let session = project();
    let output = session
        .run("Grep", json!({ "pattern": "one", "output_mode": "count", "-i": true }))
        .await
        .unwrap();
    assert_eq!(output.content.text(), "a.rs:1\nsub/b.py:1\n");
    assert_eq!(output.structured.unwrap()["numMatches"], 2);
}

#[tokio::test]
async fn files_are_chosen_by_glob_and_by_type() {
    let session = project();
    let names = |extra: serde_json::Value| {
        let mut input = json!({ "pattern": "(?i)one" });
        input.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        session.text("Grep", input)
    };
    assert_eq!(names(json!({ "glob": "*.py" })).await, "sub/b.py\n");
    assert_eq!(names(json!({ "glob": "!*.py" })).await, "a.rs\n");
    assert_eq!(names(json!({ "type": "rust" })).await, "a.rs\n");
    let error = session.error("Grep", json!({ "pattern": "x", "type": "klingon" })).await;
    assert!(error.contains("klingon"), "{error}");
}

#[tokio::test]
async fn matches_span_lines_only_on_request() {
    let session = project();
    let input = json!({ "pattern": "one.*three", "output_mode": "content" });
    assert_eq!(session.text("Grep", input).await, "No matches found.\n");
    let input = json!({ "pattern": "one.*three", "output_mode": "content", "multiline": true });
    assert_eq!(
        session.text("Grep", input).await,
        "a.rs:1:fn one() {}\na.rs:2:// two\na.rs:3:fn three() {}\n"
    );
    let error = session.error("Grep", json!({ "pattern": "one\\n" })).await;
    assert!(error.contains("set multiline"), "{error}");
}

#[tokio::test]
async fn a_limited_result_says_how_to_get_more() {
    let session = Session::new();
    session.file("a.txt", "x\n".repeat(9));
    let input = json!({ "pattern": "x", "output_mode": "content", "head_limit": 2, "offset": 3 });
    let output = session.run("Grep", input).await.unwrap();
    assert_eq!(
        output.content.text(),
        "a.txt:4:x\na.txt:5:x\n[2 shown; there are more: narrow the search or continue with offset 5]\n"
    );
    let structured = output.structured.unwrap();
    assert_eq!((&structured["appliedLimit"], &structured["appliedOffset"]), (&json!(2), &json!(3)));
}

#[tokio::test]
async fn long_lines_and_much_output_are_cut() {
    let session = Session::new();
    session.file("a.txt", format!("{}\n", "x".repeat(5_000)).repeat(400));
    let input = json!({ "pattern": "x", "output_mode": "content", "head_limit": 400 });
    let text = session.text("Grep", input).await;
    assert!(text.len() < 45_000 && text.contains("x [cut]\n") && text.contains("there are more"));
}

#[tokio::test]
async fn crlf_line_endings_do_not_hide_the_end_of_a_line() {
    let session = Session::new();
    session.file("a.txt", "one\r\ntwo\r\n");
    let input = json!({ "pattern": "one$", "output_mode": "content" });
    assert_eq!(session.text("Grep", input).await, "a.txt:1:one\n");
}

#[tokio::test]
async fn binary_files_ignored_files_pipes_and_links_are_skipped() {
    let session = Session::new();
    session.file("a.bin", b"needle\0");
    session.file(".gitignore", "ignored.txt\n");
    session.file("ignored.txt", "needle\n");
    session.file("utf16.txt", [0xFF, 0xFE, b'n', 0, b'e', 0, b'e', 0, b'd', 0, b'l', 0, b'e', 0]);
    make_pipe(&session.path("pipe"));
    symlink("ignored.txt", session.path("link.txt")).unwrap();
    assert_eq!(session.text("Grep", json!({ "pattern": "needle" })).await, "utf16.txt\n");
    assert_eq!(
        session.text("Grep", json!({ "pattern": "needle", "path": "link.txt" })).await,
        "link.txt\n"
    );
    assert!(
        session.error("Grep", json!({ "pattern": "x", "path": "pipe" })).await.contains("neither")
    );
}

#[tokio::test]
async fn an_invalid_pattern_or_path_is_named() {
    let session = project();
    assert!(
        session.error("Grep", json!({ "pattern": "(" })).await.contains("pattern is not valid")
    );
    assert!(
        session
            .error("Grep", json!({ "pattern": "x", "path": "gone" }))
            .await
            .contains("does not exist")
    );
}

#[test]
fn the_effect_is_the_path_that_is_searched() {
    let session = project();
    assert_eq!(session.effect("Grep", json!({ "pattern": "x" })), Effect::Read(session.root()));
    let effect = session.effect("Grep", json!({ "pattern": "x", "path": "sub/../../x" }));
    assert_eq!(effect, Effect::Read(session.root().parent().unwrap().join("x")));
}

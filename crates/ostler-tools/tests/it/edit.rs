//! Edits: exact, unique, and only of files that were read.

use std::fs;

use ostler_engine::tool::Effect;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::session::Session;

/// A session that has read `a.txt` with this content.
async fn with(content: impl AsRef<[u8]>) -> Session {
    let session = Session::new();
    session.file("a.txt", content);
    session.text("Read", json!({ "file_path": "a.txt" })).await;
    session
}

fn edit(old: &str, new: &str) -> Value {
    json!({ "file_path": "a.txt", "old_string": old, "new_string": new })
}

#[tokio::test]
async fn the_only_occurrence_is_replaced() {
    let session = with("a\nb\nc\nd\ne\nf\n").await;
    let structured = session.structured("Edit", edit("e", "E")).await;
    assert_eq!(session.content("a.txt"), "a\nb\nc\nd\nE\nf\n");
    let hunk = json!({
        "oldStart": 2, "oldLines": 5, "newStart": 2, "newLines": 5,
        "lines": [" b", " c", " d", "-e", "+E", " f"],
    });
    let expected = json!({
        "filePath": session.path("a.txt"), "oldString": "e", "newString": "E",
        "originalFile": "a\nb\nc\nd\ne\nf\n", "structuredPatch": [hunk],
        "userModified": false, "replaceAll": false,
    });
    assert_eq!(structured, expected);
}

#[tokio::test]
async fn several_occurrences_are_counted_with_their_lines() {
    let session = with("x\ny\nx x\n").await;
    let error = session.error("Edit", edit("x", "z")).await;
    assert!(error.contains("occurs 3 times, in lines 1, 3, 3."), "{error}");
}

#[tokio::test]
async fn all_occurrences_are_replaced_on_request() {
    let session = with("x\ny\nx x\n").await;
    let input =
        json!({ "file_path": "a.txt", "old_string": "x", "new_string": "z", "replace_all": true });
    session.text("Edit", input).await;
    assert_eq!(session.content("a.txt"), "z\ny\nz z\n");
}

#[tokio::test]
async fn missing_text_is_reported_with_the_nearest_line() {
    let session = with("fn main() {\n    let total = 1;\n}\n").await;
    let error = session.error("Edit", edit("let totals = 1;", "let n = 1;")).await;
    assert!(error.contains("is line 2:     let total = 1;"), "{error}");
    let error = session.error("Edit", edit("\tlet total = 1;\n}", "")).await;
    assert!(
        error.contains("Its first line is line 2, so white space or a later line differs"),
        "{error}"
    );
    let error = session.error("Edit", edit("qqqq", "")).await;
    assert!(error.contains("nor any similar line"), "{error}");
}

#[tokio::test]
async fn an_edit_that_changes_nothing_is_refused() {
    let session = with("a\n").await;
    assert!(session.error("Edit", edit("a", "a")).await.contains("the same"));
}

#[tokio::test]
async fn a_file_must_be_read_before_an_edit_and_again_after_another_program_changes_it() {
    let session = Session::new();
    session.file("a.txt", "one\n");
    assert!(session.error("Edit", edit("one", "two")).await.contains("Read it first"));
    session.text("Read", json!({ "file_path": "a.txt" })).await;
    session.text("Edit", edit("one", "two")).await;
    session.text("Edit", edit("two", "three")).await;
    session.file("a.txt", "three four\n");
    assert!(session.error("Edit", edit("three", "one")).await.contains("Read it again"));
}

#[tokio::test]
async fn an_empty_old_text_makes_a_new_file_but_never_overwrites_one() {
    let session = Session::new();
    let structured = session.structured("Edit", edit("", "one\n")).await;
    assert_eq!(session.content("a.txt"), "one\n");
    assert_eq!(structured["originalFile"], json!(null));
    assert!(session.error("Edit", edit("", "two\n")).await.contains("exists"));
    assert_eq!(session.content("a.txt"), "one\n");
}

#[tokio::test]
async fn a_missing_file_cannot_be_edited() {
    let session = Session::new();
    session.file("ab.txt", "");
    let error = session.error("Edit", edit("x", "y")).await;
    assert!(error.ends_with("does not exist. In the same folder: ab.txt."), "{error}");
}

#[tokio::test]
async fn line_endings_and_the_byte_order_mark_are_kept() {
    let session = with("\u{FEFF}one\r\ntwo\r\nthree\r\n").await;
    session.text("Edit", edit("one\ntwo", "1\n2\n2b")).await;
    session.text("Edit", edit("three", "3\n4")).await;
    assert_eq!(session.content("a.txt"), "\u{FEFF}1\r\n2\r\n2b\r\n3\r\n4\r\n");
}

#[tokio::test]
async fn a_file_with_mixed_line_endings_is_changed_only_at_the_edit() {
    let session = with("a\nb\nc\r\nd\n").await;
    session.text("Edit", edit("c\nd", "C\nD")).await;
    session.text("Edit", edit("a\nb", "A\nB")).await;
    assert_eq!(session.content("a.txt"), "A\nB\nC\r\nD\n");
}

#[tokio::test]
async fn utf_16_stays_utf_16() {
    let session = with([0xFF, 0xFE, b'h', 0, b'i', 0]).await;
    session.text("Edit", edit("i", "o")).await;
    assert_eq!(fs::read(session.path("a.txt")).unwrap(), [0xFF, 0xFE, b'h', 0, b'o', 0]);
}

#[tokio::test]
async fn text_in_an_unknown_encoding_is_not_edited() {
    let session = with(b"caf\xE9 one\n").await;
    assert!(session.error("Edit", edit("one", "two")).await.contains("would damage it"));
    assert_eq!(fs::read(session.path("a.txt")).unwrap(), b"caf\xE9 one\n");
}

#[tokio::test]
async fn a_missing_newline_at_the_end_is_marked_in_the_patch() {
    let session = with("one").await;
    let structured = session.structured("Edit", edit("one", "two")).await;
    let mark = "\\ No newline at end of file";
    assert_eq!(structured["structuredPatch"][0]["lines"], json!(["-one", mark, "+two", mark]));
}

#[test]
fn the_effect_is_the_absolute_path() {
    let session = Session::new();
    assert_eq!(session.effect("Edit", edit("a", "b")), Effect::Write(session.path("a.txt")));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn an_edit_replaces_the_text_or_leaves_the_file_unchanged(
        text in "[ab\nä]{0,20}",
        old in "[ab\nä]{0,3}",
        new in "[ab\nä]{0,3}",
        all in any::<bool>(),
    ) {
        let (result, after) = apply(&text, &old, &new, all);
        match result {
            Ok(()) if old.is_empty() => prop_assert_eq!(after, new),
            Ok(()) => {
                prop_assert!(all || text.matches(&old).count() == 1);
                prop_assert_eq!(after, text.replace(&old, &new));
            }
            Err(error) => {
                prop_assert_eq!(after, text);
                prop_assert!(!error.contains("broke down"), "{}", error);
            }
        }
    }

    #[test]
    fn an_edit_never_mixes_line_endings(
        lines in proptest::collection::vec("[ab]{1,3}", 1..8),
        old in "[ab\n]{1,3}",
        new in "[ab\n]{0,3}",
        all in any::<bool>(),
    ) {
        let (_, after) = apply(&(lines.join("\r\n") + "\r\n"), &old, &new, all);
        prop_assert_eq!(after.matches('\n').count(), after.matches("\r\n").count());
        prop_assert_eq!(after.matches('\r').count(), after.matches("\r\n").count());
    }
}

fn apply(text: &str, old: &str, new: &str, all: bool) -> (Result<(), String>, String) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let session = with(text).await;
        let input = json!({ "file_path": "a.txt", "old_string": old, "new_string": new, "replace_all": all });
        let result = session.run("Edit", input).await;
        (result.map(drop).map_err(|error| error.to_string()), session.content("a.txt"))
    })
}

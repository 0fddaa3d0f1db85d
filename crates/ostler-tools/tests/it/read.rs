//! Reading: windows, images, notebooks, and what is refused.

use std::io::Cursor;
use std::os::unix::fs::symlink;

use image::{DynamicImage, ImageFormat};
use ostler_engine::tool::Effect;
use ostler_proto::api::{Content, ContentBlock};
use proptest::prelude::*;
use serde_json::json;

use crate::session::{Session, make_pipe};

#[tokio::test]
async fn lines_come_with_their_numbers() {
    let session = Session::new();
    session.file("a.txt", "one\ntwo\n");
    assert_eq!(session.text("Read", json!({ "file_path": "a.txt" })).await, "1\tone\n2\ttwo\n");
}

#[tokio::test]
async fn the_structured_output_has_the_lines_without_numbers() {
    let session = Session::new();
    let path = session.file("a.txt", "one\ntwo\nthree\n");
    let structured =
        session.structured("Read", json!({ "file_path": "a.txt", "offset": 2, "limit": 1 })).await;
    let file = json!({ "filePath": path, "content": "two", "numLines": 1, "startLine": 2, "totalLines": 3 });
    assert_eq!(structured, json!({ "type": "text", "file": file }));
}

#[tokio::test]
async fn a_window_says_how_to_continue() {
    let session = Session::new();
    session.file("a.txt", "1\n2\n3\n4\n");
    let text = session.text("Read", json!({ "file_path": "a.txt", "offset": 2, "limit": 2 })).await;
    assert_eq!(text, "2\t2\n3\t3\n[lines 2 to 3 of 4; continue with offset 4]\n");
}

#[tokio::test]
async fn a_long_file_is_cut_and_says_so() {
    let session = Session::new();
    session.file("a.txt", "x\n".repeat(2_500));
    let text = session.text("Read", json!({ "file_path": "a.txt" })).await;
    assert!(text.ends_with("[lines 1 to 2000 of 2500; continue with offset 2001]\n"));
    session.file("b.txt", format!("{}\n", "y".repeat(1_000)).repeat(300));
    let text = session.text("Read", json!({ "file_path": "b.txt" })).await;
    assert!(text.ends_with("[lines 1 to 100 of 300, as much as fits; continue with offset 101]\n"));
}

#[tokio::test]
async fn a_long_line_is_cut_between_characters_and_says_so() {
    let session = Session::new();
    session.file("a.txt", format!("x{}\n", "ä".repeat(2_000)));
    let text = session.text("Read", json!({ "file_path": "a.txt" })).await;
    assert!(text.len() < 2_200 && text.contains("1 lines are cut after 2000 bytes"), "{text}");
}

#[tokio::test]
async fn an_offset_past_the_end_names_the_end() {
    let session = Session::new();
    session.file("a.txt", "one\n");
    let error = session.error("Read", json!({ "file_path": "a.txt", "offset": 9 })).await;
    assert!(error.ends_with("line 9 does not exist, the file has 1"), "{error}");
}

#[tokio::test]
async fn an_empty_file_is_called_empty() {
    let session = Session::new();
    session.file("a.txt", "");
    assert_eq!(
        session.text("Read", json!({ "file_path": "a.txt" })).await,
        "[the file is empty]\n"
    );
}

#[tokio::test]
async fn a_missing_file_is_reported_with_similar_names() {
    let session = Session::new();
    session.file("config.toml", "");
    session.file("README.md", "");
    let error = session.error("Read", json!({ "file_path": "Config.tml" })).await;
    assert!(error.ends_with("does not exist. In the same folder: config.toml."), "{error}");
}

#[tokio::test]
async fn folders_pipes_sockets_and_devices_are_refused_without_blocking() {
    let session = Session::new();
    make_pipe(&session.path("pipe"));
    let _socket = std::os::unix::net::UnixListener::bind(session.path("socket")).unwrap();
    symlink(session.path("pipe"), session.path("link")).unwrap();
    for (path, word) in [
        (".", "folder"),
        ("pipe", "pipe"),
        ("link", "pipe"),
        ("socket", "socket"),
        ("/dev/zero", "device"),
    ] {
        let error = session.error("Read", json!({ "file_path": path })).await;
        assert!(error.contains(word), "{path}: {error}");
    }
}

#[tokio::test]
async fn the_error_for_a_binary_file_suggests_an_alternative() {
    let session = Session::new();
    session.file("a.bin", [1, 0, 2]);
    assert!(
        session.error("Read", json!({ "file_path": "a.bin" })).await.contains("not a text file")
    );
}

#[tokio::test]
async fn the_error_for_a_huge_file_suggests_an_alternative() {
    let session = Session::new();
    std::fs::File::create(session.path("huge")).unwrap().set_len(1 << 40).unwrap();
    let error = session.error("Read", json!({ "file_path": "huge" })).await;
    assert!(error.contains("Grep"), "{error}");
}

#[tokio::test]
async fn utf_16_is_decoded_and_invalid_text_is_marked() {
    let session = Session::new();
    session.file("wide.txt", [0xFF, 0xFE, b'h', 0, b'i', 0]);
    session.file("latin.txt", b"caf\xE9\n");
    session.file("marked.txt", "\u{FEFF}hi\n");
    assert_eq!(
        session.text("Read", json!({ "file_path": "wide.txt" })).await,
        "1\thi\n[the file is UTF-16]\n"
    );
    let text = session.text("Read", json!({ "file_path": "latin.txt" })).await;
    assert!(text.starts_with("1\tcaf\u{FFFD}\n[not valid UTF-8"), "{text}");
    assert_eq!(session.text("Read", json!({ "file_path": "marked.txt" })).await, "1\thi\n");
}

#[tokio::test]
async fn a_small_image_is_sent_unchanged() {
    let session = Session::new();
    let bytes = picture(3, 2);
    session.file("a.png", &bytes);
    let output = session.run("Read", json!({ "file_path": "a.png" })).await.unwrap();
    let Content::Blocks(blocks) = &output.content else { panic!("{:?}", output.content) };
    assert!(matches!(blocks[..], [ContentBlock::Image(_)]));
    let file = &output.structured.unwrap()["file"];
    assert_eq!(file["type"], "image/png");
    assert_eq!(file["originalSize"], bytes.len());
    assert_eq!(file["dimensions"]["displayWidth"], 3);
}

#[tokio::test]
async fn a_large_image_is_scaled_down_with_a_note() {
    let session = Session::new();
    session.file("a.png", picture(3_000, 30));
    let output = session.run("Read", json!({ "file_path": "a.png" })).await.unwrap();
    assert_eq!(output.content.text(), "[shown with 2000 × 20 pixels; the file has 3000 × 30]");
}

// Mutant: `MAX_DECODED_BYTES` as large as it was, half a gigabyte.
#[tokio::test]
async fn an_image_that_decodes_to_too_much_is_refused() {
    let session = Session::new();
    // The header is enough to see it.
    let mut bytes = picture(30, 30);
    bytes[16..20].copy_from_slice(&12_000_u32.to_be_bytes());
    bytes[20..24].copy_from_slice(&12_000_u32.to_be_bytes());
    let mut sum = flate2::Crc::new();
    sum.update(&bytes[12..29]);
    bytes[29..33].copy_from_slice(&sum.sum().to_be_bytes());
    session.file("a.png", bytes);
    let error = session.error("Read", json!({ "file_path": "a.png" })).await;
    assert!(error.contains("too large to show") && error.contains("resize"), "{error}");
}

#[tokio::test]
async fn a_damaged_image_is_never_sent() {
    let session = Session::new();
    let mut bytes = picture(30, 30);
    bytes.truncate(60);
    session.file("a.png", bytes);
    let error = session.error("Read", json!({ "file_path": "a.png" })).await;
    assert!(error.contains("not a valid image"), "{error}");
}

#[tokio::test]
async fn a_notebook_is_shown_cell_by_cell() {
    let session = Session::new();
    let notebook = json!({
        "metadata": { "kernelspec": { "language": "julia" } },
        "cells": [
            { "cell_type": "markdown", "id": "m1", "source": ["# Title\n", "words"] },
            { "cell_type": "code", "source": "print(1)", "execution_count": 4, "outputs": [
                { "output_type": "stream", "text": ["1\n"] },
                { "output_type": "display_data", "data": { "image/png": "AAAA" } },
                { "output_type": "error", "ename": "ValueError", "evalue": "no" },
            ] },
        ],
    });
    session.file("a.ipynb", notebook.to_string());
    let output = session.run("Read", json!({ "file_path": "a.ipynb" })).await.unwrap();
    assert_eq!(
        output.content.text(),
        "[cell 1, markdown, id m1]\n# Title\nwords\n\n[cell 2, code, id cell-1]\nprint(1)\n[output]\n1\n[output]\n[image/png, not shown]\n[output]\nValueError: no\n\n"
    );
    assert_eq!(output.structured.unwrap()["file"]["cells"][1]["language"], "julia");
}

#[tokio::test]
async fn an_invalid_notebook_is_shown_as_text() {
    let session = Session::new();
    session.file("a.ipynb", "{ oops");
    assert_eq!(session.text("Read", json!({ "file_path": "a.ipynb" })).await, "1\t{ oops\n");
}

#[test]
fn the_effect_is_the_path_that_gets_opened() {
    let session = Session::new();
    let effect = |path: &str| session.effect("Read", json!({ "file_path": path }));
    assert_eq!(effect("sub/../a.txt"), Effect::Read(session.path("a.txt")));
    assert_eq!(effect("/etc/./passwd"), Effect::Read("/etc/passwd".into()));
    assert_eq!(effect("../../../../../../../../etc/passwd"), Effect::Read("/etc/passwd".into()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn adjacent_windows_are_the_whole_file(
        lines in proptest::collection::vec("[a-zä \t]{0,12}", 1..40),
        limit in 1..10_u64,
    ) {
        let session = Session::new();
        session.file("a.txt", lines.join("\n") + "\n");
        let mut seen = Vec::new();
        while seen.len() < lines.len() {
            let input = json!({ "file_path": "a.txt", "offset": seen.len() + 1, "limit": limit });
            let text = now(session.text("Read", input));
            let before = seen.len();
            seen.extend(text.lines().filter(|line| !line.starts_with('[')).map(|line| line.split_once('\t').unwrap().1.to_owned()));
            prop_assert!(seen.len() > before);
        }
        prop_assert_eq!(seen, lines);
    }

    #[test]
    fn no_contents_and_no_window_cause_a_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        offset in any::<Option<u64>>(),
        limit in any::<Option<u64>>(),
    ) {
        let session = Session::new();
        session.file("a", bytes);
        let result = now(session.run("Read", json!({ "file_path": "a", "offset": offset, "limit": limit })));
        if let Err(error) = result {
            prop_assert!(!error.to_string().contains("broke down"), "{}", error);
        }
    }
}

fn now<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

pub(crate) fn picture(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    DynamicImage::new_rgb8(width, height)
        .write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png)
        .unwrap();
    bytes
}

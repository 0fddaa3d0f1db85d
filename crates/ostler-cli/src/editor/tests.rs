//! What keys do to a prompt.

use super::*;
use crate::keys::Decoder;

/// Types into an empty editor; `|` in the expectation is the cursor.
fn check(typed: &str, expected: &str) {
    let mut editor = Editor::default();
    type_into(&mut editor, typed);
    assert_eq!(shown(&editor), expected, "after {typed:?}");
}

fn type_into(editor: &mut Editor, typed: &str) -> Vec<Step> {
    let strokes = Decoder::default().push(typed.as_bytes());
    strokes.into_iter().map(|stroke| editor.take(stroke)).collect()
}

fn shown(editor: &Editor) -> String {
    let (before, after) = editor.text.split_at(editor.cursor);
    format!("{before}|{after}")
}

const LEFT: &str = "\u{1b}[D";
const UP: &str = "\u{1b}[A";
const DOWN: &str = "\u{1b}[B";

#[test]
fn keys_move_and_change() {
    check("abc", "abc|");
    check(&format!("abc{LEFT}{LEFT}x"), "ax|bc");
    check(&format!("ab{LEFT}{LEFT}{LEFT}x"), "x|ab");
    check("ab\u{1b}[C\u{1b}[C", "ab|");
    check("one two\u{1}x", "x|one two");
    check("one two\u{1}\u{5}x", "one twox|");
    check("one two\u{17}", "one |");
    check("one two  \u{17}", "one |");
    check("one two\u{1b}b\u{1b}bx", "x|one two");
    check("one two\u{1}\u{1b}f", "one| two");
    check("one two\u{1}\u{1b}d", "| two");
    check("one two\u{15}", "|");
    check("one two\u{1b}b\u{b}", "one |");
    check("ab\u{7f}\u{7f}\u{7f}c", "c|");
    check("abc\u{1}\u{1b}[3~\u{4}", "|c");
    check("a\u{1b}[5~b\u{3}c", "abc|");
    check("", "|");
}

#[test]
fn the_cursor_moves_by_user_perceived_characters() {
    check("日本\u{7f}", "日|");
    check("e\u{301}x\u{7f}\u{7f}", "|");
    check("👩\u{200d}👩\u{200d}👧y\u{7f}\u{7f}", "|");
    check(&format!("ae\u{301}{LEFT}{LEFT}x"), "x|ae\u{301}");
    check("grüße über\u{17}", "grüße |");
    // A flag is two code points, and so are an emoji hand with its colour and a consonant with its vowel.
    check("🇩🇪🇫🇷\u{7f}", "🇩🇪|");
    check("a👍🏽\u{7f}", "a|");
    check("कि\u{7f}", "|");
    check("क्षx\u{7f}\u{7f}", "|");
    check("\u{1112}\u{1161}\u{11ab}x\u{7f}\u{7f}", "|");
    check(&format!("🇩🇪🇫🇷{LEFT}x"), "🇩🇪x|🇫🇷");
}

#[test]
fn several_lines_are_one_prompt() {
    check("one\\\rtwo", "one\ntwo|");
    check("one\u{1b}\rtwo\nthree", "one\ntwo\nthree|");
    check(&format!("one\ntw\nthree{UP}x"), "one\ntwx|\nthree");
    check(&format!("one\ntwo{UP}{DOWN}x"), "one\ntwox|");
    check("one\ntwo\u{1}x\u{1b}[F", "one\nxtwo|");
    check("a\u{1b}[200~b\rc\u{1b}[2Jd\u{7}\u{1b}[201~e", "ab\nc[2Jde|");
    let mut editor = Editor::default();
    let steps = type_into(&mut editor, "one\\\rtwo\r");
    assert_eq!(steps.last(), Some(&Step::Done("one\ntwo".to_owned())));
    assert!(editor.is_empty());
}

#[test]
fn earlier_prompts_can_be_recalled_and_the_unsent_text_is_not_lost() {
    let mut editor = Editor::default();
    for said in ["first", "second", "second", "  "] {
        editor.remember(said);
    }
    for (typed, expected) in [
        ("draft", "draft|"),
        (UP, "second|"),
        (UP, "first|"),
        (UP, "first|"),
        (DOWN, "second|"),
        (DOWN, "draft|"),
        (DOWN, "draft|"),
        ("\u{10}!", "second!|"),
    ] {
        type_into(&mut editor, typed);
        assert_eq!(shown(&editor), expected, "after {typed:?}");
    }
    assert_eq!(type_into(&mut editor, "\r"), [Step::Done("second!".to_owned())]);
    type_into(&mut editor, UP);
    assert_eq!(
        shown(&editor),
        "second|",
        "a recalled prompt that was changed does not change the history"
    );
}

#[test]
fn control_d_ends_the_input_only_if_the_text_is_empty() {
    let mut editor = Editor::default();
    assert_eq!(type_into(&mut editor, "a\u{4}"), [Step::Stay, Step::Stay]);
    assert_eq!(type_into(&mut editor, "\u{7f}\u{4}"), [Step::Stay, Step::End]);
}

#[test]
fn every_line_fits_and_the_cursor_follows_the_typed_text() {
    let mut editor = Editor::default();
    type_into(&mut editor, "abcdef日本語\tx\nnext line");
    for columns in 3..40 {
        let picture = editor.picture(columns);
        let room = columns - INDENT;
        // A character that is wider than the window has its own line.
        let fits =
            |line: &String| width(line) <= room || line.chars().count() == 1 || line == "    ";
        assert!(picture.lines.iter().all(fits), "{columns}: {picture:?}");
        assert_eq!(picture.lines.concat().replace("    ", "\t"), editor.text.replace('\n', ""));
        assert_eq!(picture.row, picture.lines.len() - 1);
        assert_eq!(picture.column, width(picture.lines.last().unwrap()) + INDENT);
    }
    for _ in 0..200 {
        editor.press(Key::Left);
    }
    let picture = editor.picture(10);
    assert_eq!((picture.row, picture.column), (0, INDENT));
}

#[test]
fn the_cursor_stays_visible_in_a_window_with_few_rows() {
    let mut editor = Editor::default();
    type_into(&mut editor, "1\n2\n3\n4\n5");
    let picture = editor.picture(20).within(2);
    assert_eq!((picture.lines, picture.row), (vec!["4".to_owned(), "5".to_owned()], 1));
    type_into(&mut editor, &UP.repeat(4));
    let picture = editor.picture(20).within(2);
    assert_eq!((picture.lines, picture.row), (vec!["1".to_owned(), "2".to_owned()], 0));
    assert_eq!(editor.picture(20).within(0).lines, ["1"]);
}

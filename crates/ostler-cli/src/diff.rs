//! Diffs of files in colour: of changes that were made, and of changes that a call would make.

use std::path::Path;

use anstyle::Style;
use ostler_proto::tool::{EditInput, PatchHunk, ToolInput, WriteInput};
use ostler_tools::patch;
use serde_json::Value;

use crate::screen::{DIM, GREEN, RED};
use crate::text::{clean, clipped, spelled, wrapped};

/// The largest file that is read for a preview, in bytes.
const LARGEST_FILE: u64 = 4 << 20;

/// What to do with a line that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Long {
    /// Cut it: the change is already made.
    Clip,
    /// Wrap it: the user decides about the change.
    Wrap,
}

/// The lines of a patch, numbered and in colour.
pub(crate) fn lines(hunks: &[PatchHunk], columns: usize, long: Long) -> Vec<String> {
    let last = hunks.iter().map(|hunk| hunk.new_start + hunk.new_lines).max().unwrap_or_default();
    let digits = last.to_string().len();
    let room = columns.saturating_sub(digits + 3).max(1);
    let mut shown = Vec::new();
    for (index, hunk) in hunks.iter().enumerate() {
        if index > 0 {
            shown.push(format!("{DIM}{:>digits$} ⋮{DIM:#}", ""));
        }
        let (mut old, mut new) = (hunk.old_start, hunk.new_start);
        for line in &hunk.lines {
            let mark = line.chars().next().unwrap_or(' ');
            let (number, style) = match mark {
                '+' => (new, GREEN),
                '-' => (old, RED),
                ' ' => (new, DIM),
                // Skip `\ No newline at end of file`.
                _ => continue,
            };
            old += u64::from(mark != '+');
            new += u64::from(mark != '-');
            shown.extend(line_of(&line[1..], mark, number, digits, style, room, long));
        }
    }
    shown
}

fn line_of(
    text: &str,
    mark: char,
    number: u64,
    digits: usize,
    style: Style,
    room: usize,
    long: Long,
) -> Vec<String> {
    let pieces = match long {
        Long::Clip => vec![clipped(&clean(text), room)],
        Long::Wrap => wrapped(&spelled(text), room),
    };
    let mut number = number.to_string();
    let lines = pieces.into_iter().map(|piece| {
        let gutter = format!("{:>digits$}", std::mem::take(&mut number));
        format!("{DIM}{gutter}{DIM:#} {style}{mark} {piece}{style:#}")
    });
    lines.collect()
}

/// The patch in a tool's structured result.
pub(crate) fn made(structured: &Value) -> Option<Vec<PatchHunk>> {
    let hunks = structured.get("structuredPatch")?.as_array()?;
    let content = structured.get("content").and_then(Value::as_str);
    match (hunks.is_empty(), content) {
        // A new file has no patch, only content.
        (true, Some(content)) => Some(patch::hunks("", content)),
        _ => hunks.iter().map(|hunk| serde_json::from_value(hunk.clone()).ok()).collect(),
    }
}

/// The patch that a call would make; `None` if the call does not change a file's text.
pub(crate) fn planned(tool: &str, input: &Value, cwd: &Path) -> Option<Vec<PatchHunk>> {
    let (before, after) = match ToolInput::parse(tool, input).ok()? {
        ToolInput::Edit(edit) => edited(&edit, cwd),
        ToolInput::Write(WriteInput { file_path, content, .. }) => {
            (text_of(&cwd.join(file_path)).unwrap_or_default(), content)
        }
        _ => return None,
    };
    Some(patch::hunks(&before, &after))
}

/// The file before and after. If the text to replace is not in the file, these are `old_string` and `new_string`; the
/// tool then reports the error.
fn edited(edit: &EditInput, cwd: &Path) -> (String, String) {
    let EditInput { file_path, old_string, new_string, replace_all, .. } = edit;
    // The tool handles line ends.
    let [old, new] = [old_string, new_string].map(|text| text.replace("\r\n", "\n"));
    match text_of(&cwd.join(file_path)).map(|text| text.replace("\r\n", "\n")) {
        Some(before) if !old.is_empty() && before.contains(&old) => {
            let n = if *replace_all == Some(true) { usize::MAX } else { 1 };
            let after = before.replacen(&old, &new, n);
            (before, after)
        }
        _ => (old, new),
    }
}

fn text_of(path: &Path) -> Option<String> {
    ostler_files::read_text(path, LARGEST_FILE).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn shown(hunks: &[PatchHunk], columns: usize, long: Long) -> Vec<String> {
        let lines = lines(hunks, columns, long);
        lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect()
    }

    #[test]
    fn lines_are_numbered_and_marked() {
        let hunks = patch::hunks("a\nb\nc\n", "a\nB\nc\n");
        assert_eq!(shown(&hunks, 80, Long::Clip), ["1   a", "2 - b", "2 + B", "3   c"]);
        let first = &lines(&hunks, 80, Long::Clip)[2];
        assert!(first.contains("\u{1b}[32m"), "{first:?}");
    }

    #[test]
    fn a_line_that_does_not_fit_is_cut_or_wrapped() {
        let hunks = patch::hunks("", "one two three\n");
        assert_eq!(shown(&hunks, 12, Long::Clip), ["1 + one two…"]);
        assert_eq!(shown(&hunks, 12, Long::Wrap), ["1 + one two", "  + three"]);
    }

    #[test]
    fn the_preview_of_an_edit_shows_the_lines_around_it() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), "one\r\ntwo\r\n").unwrap();
        let edit = json!({"file_path": "a", "old_string": "two", "new_string": "2"});
        let hunks = planned("Edit", &edit, folder.path()).unwrap();
        assert_eq!(shown(&hunks, 80, Long::Wrap), ["1   one", "2 - two", "2 + 2"]);
        let odd = json!({"file_path": "gone", "old_string": "x", "new_string": "y"});
        let hunks = planned("Edit", &odd, folder.path()).unwrap();
        assert_eq!(shown(&hunks, 80, Long::Wrap), ["1 - x", "1 + y"]);
        assert_eq!(planned("Bash", &json!({"command": "ls"}), folder.path()), None);
        assert_eq!(planned("Write", &json!({"content": 7}), folder.path()), None);
    }
}

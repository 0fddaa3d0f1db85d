//! The prompt while the user edits it: cursor, keys, history.
//!
//! Pure: keys go in, lines to draw come out.

use unicode_segmentation::UnicodeSegmentation as _;

use crate::keys::{Key, Stroke};
use crate::text::{clean, width};

/// Indentation of the lines, for the mark in front of the first one.
const INDENT: usize = 2;

/// The text, and the history of prompts.
#[derive(Debug, Default)]
pub(crate) struct Editor {
    text: String,
    /// In bytes, between two graphemes.
    cursor: usize,
    /// Earlier prompts, oldest first.
    history: Vec<String>,
    /// The index of the recalled prompt, and the text that was being written before.
    recalled: Option<(usize, String)>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Continue.
    Stay,
    /// Continue on an empty screen.
    Clear,
    /// Enter: this is the prompt.
    Done(String),
    /// Ctrl-D on an empty line: the input ends.
    End,
}

/// What to draw.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Picture {
    /// The lines without the indent, each at most as wide as requested.
    pub(crate) lines: Vec<String>,
    /// The cursor's line.
    pub(crate) row: usize,
    /// The cursor's column, with the indent.
    pub(crate) column: usize,
}

impl Editor {
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Discards the text.
    pub(crate) fn clear(&mut self) {
        self.set(String::new());
        self.recalled = None;
    }

    /// Adds a prompt to the history.
    pub(crate) fn remember(&mut self, text: &str) {
        if !text.trim().is_empty() && self.history.last().is_none_or(|last| last != text) {
            self.history.push(text.to_owned());
        }
    }

    pub(crate) fn take(&mut self, stroke: Stroke) -> Step {
        match stroke {
            Stroke::Key(key) => self.press(key),
            Stroke::Pasted(text) => {
                self.insert(&clean(&text));
                Step::Stay
            }
        }
    }

    pub(crate) fn press(&mut self, key: Key) -> Step {
        match key {
            Key::Letter(character) => self.insert(character.encode_utf8(&mut [0; 4])),
            Key::Tab => self.insert("\t"),
            Key::NewLine => self.insert("\n"),
            // As in a shell, a backslash at the end of a line continues the prompt on the next line.
            Key::Enter if self.text[..self.cursor].ends_with('\\') => {
                self.remove(self.cursor - 1, self.cursor);
                self.insert("\n");
            }
            Key::Enter => {
                let text = std::mem::take(&mut self.text);
                self.clear();
                return Step::Done(text);
            }
            Key::End if self.text.is_empty() => return Step::End,
            Key::Clear => return Step::Clear,
            Key::Left => self.cursor = self.before(self.cursor),
            Key::Right => self.cursor = self.after(self.cursor),
            Key::WordLeft => self.cursor = self.word_before(),
            Key::WordRight => self.cursor = self.word_after(),
            Key::Home => self.cursor = self.line_start(),
            Key::LineEnd => self.cursor = self.line_end(),
            Key::Up => self.up(),
            Key::Down => self.down(),
            Key::Backspace => self.remove(self.before(self.cursor), self.cursor),
            Key::Delete | Key::End => self.remove(self.cursor, self.after(self.cursor)),
            Key::DeleteWord => self.remove(self.word_before(), self.cursor),
            Key::DeleteNextWord => self.remove(self.cursor, self.word_after()),
            Key::DeleteToStart => self.remove(self.line_start(), self.cursor),
            Key::DeleteToEnd => self.remove(self.cursor, self.line_end()),
            Key::Escape | Key::Other => {}
        }
        Step::Stay
    }

    fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    fn remove(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.cursor = from;
    }

    fn set(&mut self, text: String) {
        self.cursor = text.len();
        self.text = text;
    }

    fn before(&self, at: usize) -> usize {
        graphemes(&self.text)
            .map(|(start, _)| start)
            .take_while(|start| *start < at)
            .last()
            .unwrap_or(0)
    }

    fn after(&self, at: usize) -> usize {
        graphemes(&self.text)
            .map(|(start, grapheme)| start + grapheme.len())
            .find(|end| *end > at)
            .unwrap_or(at)
    }

    fn word_before(&self) -> usize {
        let text = self.text[..self.cursor].trim_end_matches(|character| !is_word(character));
        text.trim_end_matches(is_word).len()
    }

    fn word_after(&self) -> usize {
        let rest = &self.text[self.cursor..];
        let word = rest.trim_start_matches(|character| !is_word(character));
        self.text.len() - word.trim_start_matches(is_word).len()
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    /// To the line above; from the first line, to the previous prompt of the history.
    fn up(&mut self) {
        let start = self.line_start();
        if start > 0 {
            let column = self.column();
            self.cursor = start - 1;
            return self.go_to_column(column);
        }
        let at = self.recalled.as_ref().map_or(self.history.len(), |(at, _)| *at);
        let Some(earlier) = at.checked_sub(1).and_then(|at| self.history.get(at)) else { return };
        let earlier = earlier.clone();
        let draft = self.recalled.take().map_or_else(|| self.text.clone(), |(_, draft)| draft);
        self.recalled = Some((at - 1, draft));
        self.set(earlier);
    }

    fn down(&mut self) {
        let end = self.line_end();
        if end < self.text.len() {
            let column = self.column();
            self.cursor = end + 1;
            return self.go_to_column(column);
        }
        let Some((at, draft)) = self.recalled.take() else { return };
        match self.history.get(at + 1).cloned() {
            Some(later) => {
                self.recalled = Some((at + 1, draft));
                self.set(later);
            }
            None => self.set(draft),
        }
    }

    /// How far the cursor is from the beginning of its line, in graphemes.
    fn column(&self) -> usize {
        graphemes(&self.text[self.line_start()..self.cursor]).count()
    }

    fn go_to_column(&mut self, column: usize) {
        let (start, end) = (self.line_start(), self.line_end());
        let line = &self.text[start..end];
        self.cursor = graphemes(line).nth(column).map_or(end, |(at, _)| start + at);
    }

    /// Wraps the text to this width, and finds the cursor.
    pub(crate) fn picture(&self, columns: usize) -> Picture {
        let room = columns.saturating_sub(INDENT).max(1);
        let mut lines = vec![String::new()];
        let mut used = 0;
        let mut cursor = None;
        for (at, grapheme) in graphemes(&self.text) {
            let shown = if grapheme == "\t" { "    " } else { grapheme };
            let needed = width(shown);
            if grapheme != "\n" && used + needed > room && used > 0 {
                lines.push(String::new());
                used = 0;
            }
            // Deleting text can leave the cursor inside a grapheme.
            if cursor.is_none() && at >= self.cursor {
                cursor = Some((lines.len() - 1, used));
            }
            if grapheme == "\n" {
                lines.push(String::new());
                used = 0;
            } else {
                lines.last_mut().expect("there is always a line").push_str(shown);
                used += needed;
            }
        }
        let (row, column) = cursor.unwrap_or((lines.len() - 1, used));
        Picture { lines, row, column: column + INDENT }
    }
}

impl Picture {
    /// The rows that fit a window of this height, including the cursor's row.
    pub(crate) fn within(mut self, rows: usize) -> Self {
        let rows = rows.max(1);
        let first = (self.row + 1).saturating_sub(rows);
        self.lines = self.lines.into_iter().skip(first).take(rows).collect();
        self.row -= first;
        self
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// User-perceived characters: an accent belongs to its base character, and a joined emoji is one.
fn graphemes(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.grapheme_indices(true)
}

#[cfg(test)]
mod tests;

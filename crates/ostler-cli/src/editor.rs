//! A prompt while it is written: where the cursor is, what a key does to the text, what was said before.
//!
//! Pure: keys go in, a picture comes out.

use unicode_segmentation::UnicodeSegmentation as _;

use crate::keys::{Key, Stroke};
use crate::text::{clean, width};

/// How far lines are indented, for the mark in front of the first.
const INDENT: usize = 2;

/// The text, and what was said before.
#[derive(Debug, Default)]
pub(crate) struct Editor {
    text: String,
    /// In bytes, between two letters.
    cursor: usize,
    /// What was said before, oldest first.
    history: Vec<String>,
    /// The place in the history that is shown, and what was being written before it was looked at.
    recalled: Option<(usize, String)>,
}

/// What a key led to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Go on.
    Stay,
    /// Go on, on a screen without anything else.
    Clear,
    /// This is what was written.
    Done(String),
    /// There will be nothing more.
    End,
}

/// What is to be seen.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Picture {
    /// The lines, each at most as wide as asked for; without the indent.
    pub(crate) lines: Vec<String>,
    /// The cursor's line among them.
    pub(crate) row: usize,
    /// The cursor's column, with the indent.
    pub(crate) column: usize,
}

impl Editor {
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Forgets what is being written.
    pub(crate) fn clear(&mut self) {
        self.set(String::new());
        self.recalled = None;
    }

    /// Remembers something said, for later.
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
            Key::Letter(letter) => self.insert(letter.encode_utf8(&mut [0; 4])),
            Key::Tab => self.insert("\t"),
            Key::NewLine => self.insert("\n"),
            // As in a shell, a line that ends in a backslash goes on.
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
        letters(&self.text)
            .map(|(start, _)| start)
            .take_while(|start| *start < at)
            .last()
            .unwrap_or(0)
    }

    fn after(&self, at: usize) -> usize {
        letters(&self.text)
            .map(|(start, letter)| start + letter.len())
            .find(|end| *end > at)
            .unwrap_or(at)
    }

    fn word_before(&self) -> usize {
        let text = self.text[..self.cursor].trim_end_matches(|letter| !is_word(letter));
        text.trim_end_matches(is_word).len()
    }

    fn word_after(&self) -> usize {
        let rest = &self.text[self.cursor..];
        let word = rest.trim_start_matches(|letter| !is_word(letter));
        self.text.len() - word.trim_start_matches(is_word).len()
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    /// To the line above; from the first one, to what was said before.
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

    /// How far from the beginning of its line the cursor stands.
    fn column(&self) -> usize {
        letters(&self.text[self.line_start()..self.cursor]).count()
    }

    fn go_to_column(&mut self, column: usize) {
        let (start, end) = (self.line_start(), self.line_end());
        let line = &self.text[start..end];
        self.cursor = letters(line).nth(column).map_or(end, |(at, _)| start + at);
    }

    /// The text in lines of this width at most, and where the cursor is.
    pub(crate) fn picture(&self, columns: usize) -> Picture {
        let room = columns.saturating_sub(INDENT).max(1);
        let mut lines = vec![String::new()];
        let mut used = 0;
        let mut cursor = None;
        for (at, letter) in letters(&self.text) {
            let shown = if letter == "\t" { "    " } else { letter };
            let needed = width(shown);
            if letter != "\n" && used + needed > room && used > 0 {
                lines.push(String::new());
                used = 0;
            }
            // Text that was removed may have left the cursor inside one of them.
            if cursor.is_none() && at >= self.cursor {
                cursor = Some((lines.len() - 1, used));
            }
            if letter == "\n" {
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
    /// As much of it as fits this many rows, with the cursor in it.
    pub(crate) fn within(mut self, rows: usize) -> Self {
        let rows = rows.max(1);
        let first = (self.row + 1).saturating_sub(rows);
        self.lines = self.lines.into_iter().skip(first).take(rows).collect();
        self.row -= first;
        self
    }
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// What people take for letters: with accents that follow them, and joined pictures as one.
fn letters(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.grapheme_indices(true)
}

#[cfg(test)]
mod tests;

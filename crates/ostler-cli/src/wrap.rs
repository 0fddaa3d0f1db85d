//! Wraps running text between words while it still arrives in pieces.
//!
//! Code is not wrapped (between fences, or indented), so that a copied line is the original line.

use crate::text::width;

/// The state between two pieces.
#[derive(Debug, Default)]
pub(crate) struct Wrap {
    /// Columns used in this line.
    column: usize,
    /// A word that may continue, with the space before it.
    word: String,
    /// This line so far, to distinguish code from prose.
    line: String,
    in_fence: bool,
}

impl Wrap {
    /// Adds a piece, and returns the text that can already be shown.
    pub(crate) fn push(&mut self, piece: &str, columns: usize) -> String {
        let mut shown = String::new();
        for character in piece.chars() {
            match character {
                '\n' => {
                    shown.push_str(&self.finish(columns));
                    shown.push('\n');
                    self.end_line();
                }
                ' ' => {
                    if !self.word.trim_start().is_empty() {
                        shown.push_str(&self.finish(columns));
                    }
                    self.word.push(' ');
                    self.line.push(' ');
                }
                character => {
                    self.word.push(character);
                    self.line.push(character);
                }
            }
        }
        if self.is_code() {
            shown.push_str(&self.finish(columns));
        }
        shown
    }

    /// Returns the word that may have continued.
    pub(crate) fn finish(&mut self, columns: usize) -> String {
        let word = std::mem::take(&mut self.word);
        let needed = width(&word);
        if self.column + needed <= columns || self.column == 0 || self.is_code() {
            self.column += needed;
            return word;
        }
        let word = word.trim_start();
        self.column = width(word);
        format!("\n{word}")
    }

    /// Begins a new line.
    pub(crate) fn end_line(&mut self) {
        if self.line.trim_start().starts_with("```") {
            self.in_fence = !self.in_fence;
        }
        self.column = 0;
        self.line.clear();
    }

    /// Begins a new text.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    fn is_code(&self) -> bool {
        self.in_fence || self.line.starts_with("    ") || self.line.starts_with('\t')
    }
}

#[cfg(test)]
mod tests {
    use super::Wrap;

    fn check(text: &str, columns: usize, expected: &str) {
        let characters = text.chars().map(String::from);
        for pieces in [vec![text.to_owned()], characters.collect()] {
            let mut wrap = Wrap::default();
            let mut shown: String = pieces.iter().map(|piece| wrap.push(piece, columns)).collect();
            shown.push_str(&wrap.finish(columns));
            assert_eq!(shown, expected, "in {} pieces", pieces.len());
        }
    }

    #[test]
    fn lines_break_between_words() {
        check("one two three", 8, "one two\nthree");
        check("one two\nthree", 80, "one two\nthree");
        check("one abcdefghijkl two", 8, "one\nabcdefghijkl\ntwo");
        check("- a\n  b", 8, "- a\n  b");
        check("", 8, "");
    }

    #[test]
    fn code_stays_as_it_is() {
        let code = "```\nlet a = a long line;\n```\nand on";
        check(code, 8, code);
        check("    four spaces of it", 8, "    four spaces of it");
    }
}

//! Matches a sentence against a form such as `replace {old:text} with|by {new:text} in [the] {path:path}`.
//!
//! A form is a sequence of parts: `a|b` is one of these words, `[a|b]` may be absent, `{name:kind}` captures words.
//! Shorter captures are tried first, and a form must match the whole sentence.

use std::ops::RangeInclusive;

use super::words::{PromptWord, typed};

/// The captures of a form, by name.
#[derive(Debug, Default)]
pub(super) struct FormMatch<'a> {
    source: &'a str,
    parts: Vec<(&'static str, &'a [PromptWord])>,
}

impl<'a> FormMatch<'a> {
    /// Matches a sentence against a form.
    pub(super) fn by(form: &'static str, words: &'a [PromptWord], source: &'a str) -> Option<Self> {
        let pieces: Vec<&'static str> = form.split_whitespace().collect();
        let mut caught = Self { source, parts: Vec::new() };
        caught.fits(&pieces, words).then_some(caught)
    }

    /// One word: a path.
    pub(super) fn word(&self, name: &str) -> Option<String> {
        self.words(name)?.first().map(|word| word.text.clone())
    }

    /// Text: the inside of the quotes, if the whole capture is quoted, and otherwise as typed.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        match self.words(name)? {
            [word] if word.quoted => Some(word.text.clone()),
            words => Some(typed(self.source, words).to_owned()),
        }
    }

    /// The same without the punctuation that ends the sentence rather than the text.
    pub(super) fn trimmed(&self, name: &str) -> Option<String> {
        match self.words(name)? {
            [word] => Some(word.text.clone()),
            words => {
                let tail = words.last().map_or(0, |word| word.tail.len());
                let text = typed(self.source, words);
                Some(text[..text.len() - tail].to_owned())
            }
        }
    }

    /// Several paths: `a`, `a and b`, `a, b and c`.
    pub(super) fn paths(&self, name: &str) -> Option<Vec<String>> {
        let words = self.words(name)?;
        Some(words.iter().filter(|word| word.key != "and").map(|word| word.text.clone()).collect())
    }

    /// A place: `in src`, `here`, or nothing. The inner option is the folder, if it is not the current one.
    pub(super) fn place(&self, name: &str) -> Option<Option<String>> {
        place(self.words(name)?)
    }

    /// Whether a colon precedes the word.
    pub(super) fn follows_colon(&self, word: &PromptWord) -> bool {
        self.source[..word.start].trim_end().ends_with(':')
    }

    /// The words of a capture.
    pub(super) fn words(&self, name: &str) -> Option<&'a [PromptWord]> {
        self.parts.iter().find(|(part, _)| *part == name).map(|(_, words)| *words)
    }

    fn fits(&mut self, pieces: &[&'static str], words: &'a [PromptWord]) -> bool {
        let Some((piece, pieces)) = pieces.split_first() else {
            return words.is_empty();
        };
        if let Some(catch) = piece.strip_prefix('{') {
            let (name, kind) = catch.trim_end_matches('}').split_once(':').unwrap_or((catch, ""));
            return lengths(kind, words.len(), pieces.is_empty()).any(|length| {
                let (taken, rest) = words.split_at(length);
                if !accepts(kind, taken) {
                    return false;
                }
                self.parts.push((name, taken));
                let fits = self.fits(pieces, rest);
                if !fits {
                    self.parts.pop();
                }
                fits
            });
        }
        let optional = piece.starts_with('[');
        let keys = piece.trim_start_matches('[').trim_end_matches(']');
        let taken = words.split_first().is_some_and(|(word, rest)| {
            !word.quoted && keys.split('|').any(|key| key == word.key) && self.fits(pieces, rest)
        });
        taken || optional && self.fits(pieces, words)
    }
}

/// How many words a capture may take. Most take a single one, and the last takes the rest, which saves attempts.
fn lengths(kind: &str, n_words: usize, is_last: bool) -> RangeInclusive<usize> {
    match kind {
        "path" | "file" | "named" | "quoted" | "glob" => 1..=n_words.min(1),
        _ if is_last => n_words..=n_words,
        _ => 0..=n_words,
    }
}

fn accepts(kind: &str, words: &[PromptWord]) -> bool {
    match kind {
        "text" => !words.is_empty(),
        "quoted" => matches!(words, [word] if word.quoted),
        "path" => matches!(words, [word] if is_path(word)),
        "file" => matches!(words, [word] if is_file(word)),
        "named" => matches!(words, [word] if is_file_name(word)),
        "paths" => is_list(words, is_path),
        "files" => is_list(words, is_file),
        "glob" => matches!(words, [word] if word.text.contains('*')),
        "where" => place(words).is_some(),
        "in" => !words.is_empty() && !is_bare(words) && place(words).is_some(),
        _ => false,
    }
}

/// Words that refer to something else, so they are never the name of a file.
const POINTERS: [&str; 18] = [
    "it", "this", "that", "these", "those", "them", "me", "you", "us", "the", "a", "an", "and",
    "or", "to", "in", "with", "what",
];

fn is_path(word: &PromptWord) -> bool {
    let named = !POINTERS.contains(&word.key.as_str()) && !word.text.starts_with('-');
    !word.text.trim().is_empty() && (word.quoted || named)
}

/// A path that cannot be an ordinary word: `notes.txt`, `src/main`, `LICENSE`, or anything in quotes.
fn is_file(word: &PromptWord) -> bool {
    let capital = word.text.chars().next().is_some_and(char::is_uppercase);
    is_path(word) && (word.quoted || word.text.contains(['.', '/', '\\', '~']) || capital)
}

/// A path that is more likely a file than a folder: `src/main.rs`, `LICENSE`.
fn is_file_name(word: &PromptWord) -> bool {
    let name = word.text.rsplit(['/', '\\']).next().unwrap_or_default();
    let capitals = name.chars().all(char::is_uppercase);
    is_path(word) && !name.is_empty() && (capitals || name.trim_matches('.').contains('.'))
}

fn is_list(words: &[PromptWord], is_item: fn(&PromptWord) -> bool) -> bool {
    let joined = |word: &PromptWord, next: &PromptWord| {
        word.tail == "," || word.key == "and" || next.key == "and"
    };
    words.iter().all(|word| word.key == "and" || is_item(word))
        && words.windows(2).all(|pair| joined(&pair[0], &pair[1]))
        && words.first().is_some_and(is_item)
        && words.last().is_some_and(is_item)
}

const HERE: [&str; 10] = [
    "folder",
    "directory",
    "dir",
    "project",
    "repository",
    "repo",
    "workspace",
    "here",
    "there",
    "files",
];

fn is_bare(words: &[PromptWord]) -> bool {
    let begins = ["in", "inside", "under", "of", "from", "at", "within", "here", "there"];
    words.first().is_none_or(|word| !begins.contains(&word.key.as_str()))
}

fn place(words: &[PromptWord]) -> Option<Option<String>> {
    let keys = |word: &&PromptWord, list: &[&str]| list.contains(&word.key.as_str());
    let skip = [
        "in", "inside", "under", "of", "from", "at", "within", "the", "this", "my", "our",
        "current", "all",
    ];
    let rest: Vec<&PromptWord> = words.iter().skip_while(|word| keys(word, &skip)).collect();
    let named: Vec<&&PromptWord> = rest.iter().filter(|word| !keys(word, &HERE)).collect();
    match named.as_slice() {
        [] if words.len() <= 4 => Some(None),
        [word] if rest.len() <= 2 && is_path(word) => Some(Some(word.text.clone())),
        _ => None,
    }
}

//! Words of a command without their quotes, and how much is known about their value.

use tree_sitter::Node;

use crate::text::{Hidden, hidden};

/// One word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The text without quotes if it is known; otherwise the text as written.
    pub text: String,
    /// How much is known about the text.
    pub kind: WordKind,
}

/// How much is known about a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WordKind {
    /// The word is exactly the text.
    Literal,
    /// The word is the text, in which a leading `~` stands for a home directory.
    Tilde,
    /// The text is a pattern that the shell replaces with file names.
    Glob,
    /// The word depends on variables, output or input.
    Unknown,
}

impl Word {
    /// A literal word.
    pub fn literal(text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: WordKind::Literal }
    }

    pub(crate) fn unknown(text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: WordKind::Unknown }
    }

    /// The text, if the word is literal.
    pub fn as_literal(&self) -> Option<&str> {
        (self.kind == WordKind::Literal).then_some(self.text.as_str())
    }
}

/// Reads a word from its node, without following substitutions.
pub(crate) fn read(node: Node<'_>, source: &str) -> Word {
    let mut text = String::new();
    let mut kind = WordKind::Literal;
    append(node, source, &mut text, &mut kind);
    // Parts that are plain separately may form an expansion together: `$` and `$`.
    let raw = slice(node, source);
    if raw.contains("$$") || (!raw.contains('\'') && hidden(&no_process(raw)) != Hidden::No) {
        kind = WordKind::Unknown;
    }
    if kind == WordKind::Unknown {
        return Word::unknown(slice(node, source));
    }
    // A pattern in braces becomes several words.
    if is_braced(node, source) {
        kind = kind.max(WordKind::Glob);
    }
    Word { text, kind }
}

pub(crate) fn slice<'s>(node: Node<'_>, source: &'s str) -> &'s str {
    source.get(node.byte_range()).unwrap_or_default()
}

fn append(node: Node<'_>, source: &str, text: &mut String, kind: &mut WordKind) {
    let raw = slice(node, source);
    match node.kind() {
        "word" | "number" | "file_descriptor" | "variable_name" if node.child_count() == 0 => {
            unescape(raw, text, kind);
        }
        "raw_string" => match raw.strip_prefix('\'').and_then(|raw| raw.strip_suffix('\'')) {
            Some(inside) => text.push_str(inside),
            None => *kind = WordKind::Unknown,
        },
        "string" => quoted(raw, text, kind),
        "concatenation" => {
            let mut at = node.start_byte();
            for index in 0..node.child_count() {
                let Some(child) = node.child(index) else { continue };
                // A backslash and a newline between two parts belong to neither of them.
                if source
                    .get(at..child.start_byte())
                    .is_none_or(|gap| !gap.replace("\\\n", "").is_empty())
                {
                    *kind = WordKind::Unknown;
                }
                at = child.end_byte();
                append(child, source, text, kind);
            }
        }
        "command_name" if node.child_count() == 1 => {
            if let Some(child) = node.child(0) {
                append(child, source, text, kind);
            }
        }
        // A dollar is literal only if nothing follows it.
        "$" if raw == "$" => {
            match source.get(node.end_byte()..).and_then(|rest| rest.chars().next()) {
                None | Some(' ' | '\t' | '\n' | ';' | '&' | '|' | ')') => text.push('$'),
                Some(_) => *kind = WordKind::Unknown,
            }
        }
        // Operators used as words: `test a == b`.
        "==" | "=~" if raw == node.kind() => text.push_str(raw),
        _ => *kind = WordKind::Unknown,
    }
}

/// Unquoted text.
fn unescape(raw: &str, text: &mut String, kind: &mut WordKind) {
    if hidden(raw) != Hidden::No {
        *kind = WordKind::Unknown;
        return;
    }
    if raw.starts_with('~') && text.is_empty() {
        *kind = (*kind).max(WordKind::Tilde);
    }
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('\n') => {}
                Some(escaped) => text.push(escaped),
                None => *kind = WordKind::Unknown,
            },
            '*' | '?' | '[' => {
                *kind = (*kind).max(WordKind::Glob);
                text.push(c);
            }
            // With their usual meaning, these characters would not be part of a word in the tree.
            '\'' | '"' | ';' | '&' | '|' | '(' | ')' | '<' | '>' | '\n' => {
                *kind = WordKind::Unknown
            }
            _ => text.push(c),
        }
    }
}

/// Text in double quotes.
fn quoted(raw: &str, text: &mut String, kind: &mut WordKind) {
    let inside = raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"'));
    let Some(inside) = inside.filter(|inside| hidden(&no_process(inside)) == Hidden::No) else {
        *kind = WordKind::Unknown;
        return;
    };
    let mut chars = inside.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.peek() {
                Some('\n') => {
                    chars.next();
                }
                Some('$' | '`' | '"' | '\\') => text.extend(chars.next()),
                _ => text.push('\\'),
            },
            '"' => *kind = WordKind::Unknown,
            _ => text.push(c),
        }
    }
}

/// Separates `<(` and `>(`, which are not process substitutions between double quotes.
pub(crate) fn no_process(text: &str) -> String {
    text.replace("<(", "< (").replace(">(", "> (")
}

/// Whether unquoted braces may turn this word into several.
fn is_braced(node: Node<'_>, source: &str) -> bool {
    let raw = slice(node, source);
    (raw.contains(',') || raw.contains("..")) && has_brace(node, source)
}

fn has_brace(node: Node<'_>, source: &str) -> bool {
    match node.kind() {
        "brace_expression" => true,
        "word" => slice(node, source).contains('{'),
        "concatenation" | "command_name" => (0..node.child_count())
            .filter_map(|index| node.child(index))
            .any(|child| has_brace(child, source)),
        _ => false,
    }
}

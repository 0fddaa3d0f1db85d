//! Splits a text into words; quoted text is one word.
//!
//! Words know their positions, so that several of them can be quoted exactly as typed.

/// One word of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PromptWord {
    /// As typed, without quotes, and without the punctuation after it.
    pub(super) text: String,
    /// In lower case, for comparison with rules. Empty for quoted words, which are never keywords.
    pub(super) key: String,
    /// Whether it was quoted.
    pub(super) quoted: bool,
    /// Whether it is the first of its line.
    pub(super) begins_line: bool,
    /// The punctuation after it, such as `,` or `?`.
    pub(super) tail: String,
    /// Where it begins in the text, quotes included.
    pub(super) start: usize,
    /// Where it ends, quotes included but the punctuation not.
    pub(super) end: usize,
}

/// Opening and closing quotes. The fence comes first, because it begins with a backtick.
const QUOTES: [(&str, &str); 9] = [
    ("```", "```"),
    ("`", "`"),
    ("\"", "\""),
    ("'", "'"),
    ("“", "”"),
    ("„", "“"),
    ("‘", "’"),
    ("‚", "‘"),
    ("«", "»"),
];

const PUNCTUATION: [char; 6] = [',', '.', ';', ':', '!', '?'];

/// The words of a text.
pub(super) fn words(text: &str) -> Vec<PromptWord> {
    let mut words: Vec<PromptWord> = Vec::new();
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let gap = rest.len() - rest.trim_start().len();
        let begins_line = words.is_empty() || rest[..gap].contains('\n');
        at += gap;
        if at == text.len() {
            return words;
        }
        let (word, next) = quoted(text, at).unwrap_or_else(|| plain(text, at));
        at = next;
        words.push(PromptWord { begins_line, ..word });
    }
}

/// The words as they were typed, from the first to the last of them.
pub(super) fn typed<'a>(text: &'a str, words: &[PromptWord]) -> &'a str {
    match (words.first(), words.last()) {
        (Some(first), Some(last)) => &text[first.start..last.end + last.tail.len()],
        _ => "",
    }
}

/// The quoted word that begins here, and where the text continues.
fn quoted(text: &str, start: usize) -> Option<(PromptWord, usize)> {
    let rest = &text[start..];
    let (open, close) = QUOTES.iter().find(|(open, _)| rest.starts_with(open))?;
    let inner = &rest[open.len()..];
    // A quote closes only at the end of a word: the apostrophe in 'don't' does not.
    let length = inner.match_indices(close).map(|(at, _)| at).find(|at| {
        let behind = &inner[at + close.len()..];
        behind.trim_start_matches(PUNCTUATION).chars().next().is_none_or(char::is_whitespace)
    })?;
    let content = if *open == "```" { fenced(&inner[..length]) } else { &inner[..length] };
    let end = start + open.len() + length + close.len();
    let tail = leading_punctuation(&text[end..]);
    let word = PromptWord {
        text: content.to_owned(),
        key: String::new(),
        quoted: true,
        begins_line: false,
        tail: tail.to_owned(),
        start,
        end,
    };
    Some((word, end + tail.len()))
}

/// The content of a code fence, without the line that may name its language.
fn fenced(inner: &str) -> &str {
    match inner.split_once('\n') {
        Some((first, rest)) if !first.trim().contains(char::is_whitespace) => rest,
        _ => inner,
    }
}

/// The unquoted word that begins here, and where the text continues.
fn plain(text: &str, start: usize) -> (PromptWord, usize) {
    let rest = &text[start..];
    let whole = &rest[..rest.find(char::is_whitespace).unwrap_or(rest.len())];
    let mut bare = whole.trim_end_matches(PUNCTUATION);
    // `.` and `..` are folders, and a lone colon is still a word.
    if bare.is_empty() || bare.ends_with('/') && whole.ends_with('.') {
        bare = whole;
    }
    let word = PromptWord {
        text: bare.to_owned(),
        key: bare.to_lowercase().replace('’', "'"),
        quoted: false,
        begins_line: false,
        tail: whole[bare.len()..].to_owned(),
        start,
        end: start + bare.len(),
    };
    (word, start + whole.len())
}

fn leading_punctuation(text: &str) -> &str {
    &text[..text.len() - text.trim_start_matches(PUNCTUATION).len()]
}

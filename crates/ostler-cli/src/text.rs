//! Text made safe for a terminal: without control characters, and fitted to a width.

use std::fmt::Write;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Removes control characters, so that text of a model or a file cannot control the terminal.
pub(crate) fn clean(text: &str) -> String {
    text.chars().filter(|character| !is_hidden(*character)).collect()
}

/// Escapes control characters visibly, for text that the user decides about and that must not hide anything.
pub(crate) fn spelled(text: &str) -> String {
    let mut spelled = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            hidden if is_hidden(hidden) || is_unseen(hidden) => {
                let _ = write!(spelled, "\\u{{{:x}}}", u32::from(hidden));
            }
            shown => spelled.push(shown),
        }
    }
    spelled
}

/// All arguments of a call, complete, line by line, because the user must see what to decide about.
pub(crate) fn arguments(input: &serde_json::Value) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, value) in input.as_object().into_iter().flatten() {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        lines.extend(spelled(&format!("{name}: {text}")).lines().map(str::to_owned));
    }
    lines
}

/// Characters that are invisible or look like a space. They are escaped in text that the user decides about; elsewhere
/// they may belong to the text, as in emoji made of several. `web/src/text/hidden.ts` has the same list.
const UNSEEN: [(u32, u32); 24] = [
    (0x0000, 0x0008),
    (0x000b, 0x001f),
    (0x007f, 0x00a0),
    (0x00ad, 0x00ad),
    (0x034f, 0x034f),
    (0x061c, 0x061c),
    (0x115f, 0x1160),
    (0x1680, 0x1680),
    (0x17b4, 0x17b5),
    (0x180b, 0x180f),
    (0x2000, 0x200f),
    (0x2028, 0x202f),
    (0x205f, 0x206f),
    (0x2800, 0x2800),
    (0x3000, 0x3000),
    (0x3164, 0x3164),
    (0xd800, 0xdfff),
    (0xfe00, 0xfe0f),
    (0xfeff, 0xfeff),
    (0xffa0, 0xffa0),
    (0xfff0, 0xfffb),
    (0x1bca0, 0x1bca3),
    (0x1d173, 0x1d17a),
    (0xe0000, 0xe0fff),
];

fn is_unseen(character: char) -> bool {
    UNSEEN.iter().any(|(from, to)| (*from..=*to).contains(&u32::from(character)))
}

/// Control characters, and characters that change the writing direction and make a line look different from what it is.
fn is_hidden(character: char) -> bool {
    let turns = matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || (character.is_control() && !matches!(character, '\n' | '\t'))
}

/// The width of a line, in columns.
pub(crate) fn width(line: &str) -> usize {
    line.width()
}

/// The line cut to this many columns; `…` marks the cut.
pub(crate) fn clipped(line: &str, columns: usize) -> String {
    let line = without_tabs(line);
    if line.width() <= columns {
        return line;
    }
    let (kept, _) = split(&line, columns.saturating_sub(1));
    format!("{kept}…")
}

/// The line wrapped to this width, between words where possible.
pub(crate) fn wrapped(line: &str, columns: usize) -> Vec<String> {
    let line = without_tabs(line);
    let mut rest = line.as_str();
    let mut lines = Vec::new();
    while rest.width() > columns {
        let (fits, _) = split(rest, columns.max(1));
        // A character may be wider than the line; take at least one.
        let fits = if fits.is_empty() { &rest[..first(rest)] } else { fits };
        let next_is_space = rest[fits.len()..].starts_with(' ');
        let at = match fits.trim_start().rfind(' ') {
            Some(space) if !next_is_space => fits.len() - fits.trim_start().len() + space + 1,
            _ => fits.len(),
        };
        lines.push(rest[..at].trim_end().to_owned());
        rest = rest[at..].trim_start_matches(' ');
    }
    if !rest.is_empty() || lines.is_empty() {
        lines.push(rest.to_owned());
    }
    lines
}

/// The beginning that fits this width, and the rest.
fn split(line: &str, columns: usize) -> (&str, &str) {
    let mut used = 0;
    for (at, character) in line.char_indices() {
        used += character.width().unwrap_or(0);
        if used > columns {
            return line.split_at(at);
        }
    }
    (line, "")
}

fn first(line: &str) -> usize {
    line.chars().next().map_or(0, char::len_utf8)
}

fn without_tabs(line: &str) -> String {
    line.replace('\t', "    ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_never_reach_the_terminal() {
        assert_eq!(clean("a\u{1b}[2Jb\r\u{7}\tc\n"), "a[2Jb\tc\n");
        assert_eq!(clean("rm \u{202e}txt.a\u{2066}"), "rm txt.a");
        assert_eq!(spelled("rm \u{202e}a\u{1b}"), "rm \\u{202e}a\\u{1b}");
        assert_eq!(spelled("a\u{a0}\u{200b}\u{e0041}\n"), "a\\u{a0}\\u{200b}\\u{e0041}\n");
    }

    #[test]
    fn a_clipped_line_fits_also_with_wide_characters() {
        assert_eq!(clipped("short", 5), "short");
        assert_eq!(clipped("longer", 5), "long…");
        assert_eq!(clipped("日本語", 5), "日本…");
        assert_eq!(clipped("日本語", 4), "日…");
        assert_eq!(clipped("a\tb", 9), "a    b");
        assert_eq!(clipped("abc", 0), "…");
    }

    #[test]
    fn wrapping_loses_no_word_and_fits() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("one two", 7), ["one two"]);
        assert_eq!(wrapped("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrapped("  indented words", 10), ["  indented", "words"]);
        assert_eq!(wrapped("", 3), [""]);
        assert_eq!(wrapped("日本", 1), ["日", "本"]);
        let long = "touch a && rm -rf /some/very/long/path/that/does/not/fit/anywhere";
        for columns in 1..80 {
            let lines = wrapped(long, columns);
            assert!(lines.iter().all(|line| width(line) <= columns), "{columns}: {lines:?}");
            let without_spaces = |text: &str| text.replace(' ', "");
            assert_eq!(without_spaces(&lines.concat()), without_spaces(long), "{columns}");
        }
    }

    // Mutant: a range that is changed in one of the lists.
    #[test]
    fn the_web_page_escapes_the_same_characters() {
        let page = include_str!("../../../web/src/text/hidden.ts");
        let list = page.split("HIDDEN: [number, number][] = [").nth(1).unwrap();
        let list = list.split("];").next().unwrap();
        let number = |text: &str| u32::from_str_radix(text.trim().trim_start_matches("0x"), 16);
        let pairs = list.split('[').filter_map(|pair| pair.split(']').next()?.split_once(','));
        let pairs: Vec<(u32, u32)> =
            pairs.map(|(from, to)| (number(from).unwrap(), number(to).unwrap())).collect();
        assert_eq!(pairs, UNSEEN);
    }
}

//! Checks of the text itself: characters and expansions that the syntax tree does not show.

/// Why a command's characters alone make it unclear.
pub(crate) fn odd_character(command: &str) -> Option<String> {
    command
        .chars()
        .find(|c| is_odd(*c))
        .map(|c| format!("it contains the character U+{:04X}", u32::from(c)))
}

/// Whether a backslash and a newline may join two words. The grammar and the shell differ in that case.
pub(crate) fn joins_lines(command: &str) -> bool {
    command.match_indices("\\\n").any(|(at, _)| !command[..at].ends_with([' ', '\t']))
}

/// Characters that the shell and the grammar may treat differently, and invisible characters.
fn is_odd(c: char) -> bool {
    match c {
        ' ' | '\t' | '\n' => false,
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{ad}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}' => true,
        c => c.is_control() || c.is_whitespace(),
    }
}

/// An expansion in text that the tree shows as plain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hidden {
    /// No expansion.
    No,
    /// A variable.
    Variable,
    /// An expansion that may run commands.
    Command,
}

/// Looks for expansions in a text. A backslash escapes the next character.
pub(crate) fn hidden(text: &str) -> Hidden {
    let mut found = Hidden::No;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                chars.next();
            }
            '`' => return Hidden::Command,
            '$' => match chars.peek() {
                Some('(' | '{' | '[') => return Hidden::Command,
                Some(next) if next.is_alphanumeric() || "_@*#?$!-".contains(*next) => {
                    found = Hidden::Variable;
                }
                _ => {}
            },
            '<' | '>' if chars.peek() == Some(&'(') => return Hidden::Command,
            _ => {}
        }
    }
    found
}

/// Whether this text is one unquoted word for a shell.
pub(crate) fn is_one_word(text: &str) -> bool {
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.next().is_none() => return false,
            ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' | '\'' | '"' => {
                return false;
            }
            _ => {}
        }
    }
    true
}

/// Whether `${…}` only reads and shortens a value. It must not contain quotes and expansions, because they mean
/// something else inside double quotes than outside, and no `=`, which would set the variable.
pub(crate) fn is_plain_expansion(text: &str) -> bool {
    let Some(inside) = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) else {
        return false;
    };
    let inside = inside.strip_prefix('#').filter(|rest| !rest.is_empty()).unwrap_or(inside);
    let end = inside.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let (name, rest) = inside.split_at(end.unwrap_or(inside.len()));
    if name.is_empty() {
        return matches!(inside, "@" | "*" | "?" | "$" | "!" | "-" | "#");
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./,:+@%^- *?#".contains(c);
    match rest.strip_prefix(':') {
        // The bounds of a substring are evaluated.
        Some(cut) if !cut.starts_with(['-', '?', '+']) => {
            cut.chars().all(|c| c.is_ascii_digit() || ": -".contains(c))
        }
        Some(rest) => rest.chars().all(|c| is_plain(c) || c == '?'),
        None => {
            rest.is_empty()
                || (rest.starts_with(['-', '+', '?', '#', '%', '/', '^', ','])
                    && rest.chars().all(is_plain))
        }
    }
}

/// Whether arithmetic uses numbers only. The value of a variable is evaluated as text, and can run commands.
pub(crate) fn is_plain_arithmetic(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_digit() || " \t+-*/%()<>=&|^!~?:,$".contains(c))
        && !text.strip_prefix('$').unwrap_or(text).contains('$')
}

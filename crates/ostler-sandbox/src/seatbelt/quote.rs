//! Paths as text of a profile: no path can end its own quotation marks.

use std::path::Path;

use crate::error::SandboxError;

/// A path in quotation marks.
///
/// # Errors
/// When it is not text, or contains control characters, whose meaning in a profile is not documented.
pub(super) fn quoted(path: &Path) -> Result<String, SandboxError> {
    let text = path.to_str().filter(|text| !text.contains(char::is_control));
    let text = text.ok_or_else(|| SandboxError::Path(path.to_owned()))?;
    let mut quoted = String::from("\"");
    for character in text.chars() {
        if matches!(character, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    quoted.push('"');
    Ok(quoted)
}

/// A regular expression for all spellings that mean the same path: file systems of macOS ignore the case of names. Characters
/// that could mean something else in it become wildcards, so that it matches too much rather than too little.
pub(super) fn spellings(path: &Path) -> String {
    let mut pattern = String::new();
    for character in path.to_string_lossy().chars() {
        match character {
            // Two characters of Unicode are the same as these if case is ignored.
            's' | 'S' => pattern.push_str("(s|S|\u{17f})"),
            'k' | 'K' => pattern.push_str("(k|K|\u{212a})"),
            other if other.is_ascii_alphabetic() => {
                let (lower, upper) = (other.to_ascii_lowercase(), other.to_ascii_uppercase());
                pattern.extend(['[', lower, upper, ']']);
            }
            plain if plain.is_ascii_digit() || matches!(plain, '/' | '_' | '-' | ' ') => {
                pattern.push(plain);
            }
            other if other.is_ascii() => pattern.push('.'),
            // Has several spellings of different lengths.
            _ => pattern.push_str(".+"),
        }
    }
    pattern
}

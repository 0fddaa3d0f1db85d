//! Keys: what bytes a terminal sends for them.

/// A key that was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Letter(char),
    Up,
    Down,
    Enter,
    Tab,
    Backspace,
    Escape,
    /// Ctrl-D.
    End,
    /// One that means nothing here.
    Other,
}

/// The keys behind what one read from the terminal brought. A terminal sends a key's bytes together.
pub(crate) fn decode(bytes: &[u8]) -> Vec<Key> {
    let text = String::from_utf8_lossy(bytes);
    let mut rest = text.as_ref();
    let mut keys = Vec::new();
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        keys.push(match letter {
            '\u{1b}' => {
                let (key, after) = escape(rest);
                rest = after;
                key
            }
            '\r' | '\n' => Key::Enter,
            '\t' => Key::Tab,
            '\u{7f}' | '\u{8}' => Key::Backspace,
            '\u{4}' => Key::End,
            control if control.is_control() => Key::Other,
            letter => Key::Letter(letter),
        });
    }
    keys
}

/// What follows an escape: a sequence such as `[A`, or nothing.
fn escape(rest: &str) -> (Key, &str) {
    let Some(body) = rest.strip_prefix(['[', 'O']) else {
        // Alt and a letter come as one press.
        let letter = rest.chars().next().map_or(0, char::len_utf8);
        return if rest.is_empty() { (Key::Escape, rest) } else { (Key::Other, &rest[letter..]) };
    };
    let end = body.find(|letter: char| ('@'..='~').contains(&letter));
    let Some(end) = end else { return (Key::Other, "") };
    let key = match &body[..=end] {
        "A" => Key::Up,
        "B" => Key::Down,
        _ => Key::Other,
    };
    (key, &body[end + 1..])
}

#[cfg(test)]
mod tests {
    use super::Key::*;
    use super::*;

    #[test]
    fn bytes_become_keys() {
        for (bytes, keys) in [
            ("y", vec![Letter('y')]),
            ("é", vec![Letter('é')]),
            ("\u{1b}[A\u{1b}OB", vec![Up, Down]),
            ("\u{1b}", vec![Escape]),
            ("\r", vec![Enter]),
            ("\t\u{7f}\u{4}", vec![Tab, Backspace, End]),
            // What is not known means nothing, as a whole: its letters are no answers.
            ("\u{1b}[3~", vec![Other]),
            ("\u{1b}[1;5A", vec![Other]),
            ("\u{1b}a", vec![Other]),
            ("\u{1b}[", vec![Other]),
            ("\u{1}", vec![Other]),
            ("", vec![]),
        ] {
            assert_eq!(decode(bytes.as_bytes()), keys, "{bytes:?}");
        }
    }
}

//! Decodes the bytes that a terminal sends into keys.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Letter(char),
    Up,
    Down,
    Left,
    Right,
    WordLeft,
    WordRight,
    /// To the beginning of the line.
    Home,
    /// To the end of the line.
    LineEnd,
    Enter,
    /// A new line that does not end the input: Alt-Enter, Ctrl-J.
    NewLine,
    Tab,
    Backspace,
    Delete,
    /// Ctrl-W: the word before the cursor.
    DeleteWord,
    /// Alt-D: the word after the cursor.
    DeleteNextWord,
    /// Ctrl-U.
    DeleteToStart,
    /// Ctrl-K.
    DeleteToEnd,
    /// Ctrl-L: clear the screen.
    Clear,
    Escape,
    /// Ctrl-D.
    End,
    /// A key without a function here.
    Other,
}

/// A key press or a paste.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stroke {
    Key(Key),
    /// Pasted text, in one piece.
    Pasted(String),
}

/// Decodes the bytes of one read. A terminal sends the bytes of a key together.
pub(crate) fn decode(bytes: &[u8]) -> Vec<Key> {
    let text = String::from_utf8_lossy(bytes);
    let mut rest = text.as_ref();
    let mut keys = Vec::new();
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        keys.push(match character {
            '\u{1b}' => {
                let (key, after) = escape(rest);
                rest = after;
                key
            }
            '\r' | '\n' => Key::Enter,
            '\t' => Key::Tab,
            '\u{7f}' | '\u{8}' => Key::Backspace,
            control if control.is_control() => with_control(control),
            character => Key::Letter(character),
        });
    }
    keys
}

/// A character pressed with Ctrl.
fn with_control(control: char) -> Key {
    match control {
        '\u{1}' => Key::Home,
        '\u{2}' => Key::Left,
        '\u{4}' => Key::End,
        '\u{5}' => Key::LineEnd,
        '\u{6}' => Key::Right,
        '\u{b}' => Key::DeleteToEnd,
        '\u{c}' => Key::Clear,
        '\u{e}' => Key::Down,
        '\u{10}' => Key::Up,
        '\u{15}' => Key::DeleteToStart,
        '\u{17}' => Key::DeleteWord,
        _ => Key::Other,
    }
}

/// Decodes what follows an escape: a sequence such as `[A`, a character pressed with Alt, or nothing.
fn escape(rest: &str) -> (Key, &str) {
    let Some(body) = rest.strip_prefix(['[', 'O']) else {
        let Some(character) = rest.chars().next() else { return (Key::Escape, rest) };
        let key = match character {
            '\r' | '\n' => Key::NewLine,
            '\u{7f}' | '\u{8}' => Key::DeleteWord,
            'b' => Key::WordLeft,
            'f' => Key::WordRight,
            'd' => Key::DeleteNextWord,
            _ => Key::Other,
        };
        return (key, &rest[character.len_utf8()..]);
    };
    let end = body.find(|character: char| ('@'..='~').contains(&character));
    let Some(end) = end else { return (Key::Other, "") };
    let key = match &body[..=end] {
        "A" => Key::Up,
        "B" => Key::Down,
        "C" => Key::Right,
        "D" => Key::Left,
        "H" | "1~" | "7~" => Key::Home,
        "F" | "4~" | "8~" => Key::LineEnd,
        "3~" => Key::Delete,
        "1;5C" | "1;3C" => Key::WordRight,
        "1;5D" | "1;3D" => Key::WordLeft,
        "3;5~" | "3;3~" => Key::DeleteNextWord,
        // Shift-Enter and Alt-Enter, on terminals that send them differently from Enter.
        "13;2u" | "13;3u" | "27;2;13~" => Key::NewLine,
        _ => Key::Other,
    };
    (key, &body[end + 1..])
}

const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";

/// Decodes bytes while the user types text. Keeps pastes together, and sequences that two reads have split.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// Bytes of an incomplete sequence.
    rest: Vec<u8>,
    pasting: bool,
}

impl Decoder {
    /// Whether a paste has begun and not ended.
    pub(crate) fn is_pasting(&self) -> bool {
        self.pasting
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) -> Vec<Stroke> {
        self.rest.extend_from_slice(chunk);
        let mut strokes = Vec::new();
        loop {
            let mark = if self.pasting { PASTE_ENDS } else { PASTE_BEGINS };
            let Some(at) = find(&self.rest, mark) else { break };
            let before: Vec<u8> = self.rest.drain(..at + mark.len()).take(at).collect();
            if self.pasting {
                strokes.push(Stroke::Pasted(pasted(&before)));
            } else {
                strokes.extend(typed(&before));
            }
            self.pasting = !self.pasting;
        }
        if !self.pasting {
            let complete = self.rest.len() - torn(&self.rest);
            strokes.extend(typed(&self.rest[..complete]));
            self.rest.drain(..complete);
        }
        strokes
    }
}

fn typed(bytes: &[u8]) -> Vec<Stroke> {
    // Enter is `\r` in this mode, and Ctrl-J is `\n`.
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let mut strokes = Vec::new();
    for line in lines {
        let (line, ends) = match line.strip_suffix(b"\n") {
            Some(line) => (line, true),
            None => (line, false),
        };
        strokes.extend(decode(line).into_iter().map(Stroke::Key));
        strokes.extend(ends.then_some(Stroke::Key(Key::NewLine)));
    }
    strokes
}

/// Terminals paste line ends as Enter.
fn pasted(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace("\r\n", "\n").replace('\r', "\n")
}

fn find(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    bytes.windows(mark.len()).position(|window| window == mark)
}

/// How many bytes at the end are an incomplete character or escape sequence.
fn torn(bytes: &[u8]) -> usize {
    if let Err(error) = std::str::from_utf8(bytes)
        && error.error_len().is_none()
    {
        return bytes.len() - error.valid_up_to();
    }
    let Some(at) = bytes.iter().rposition(|byte| *byte == 0x1b) else { return 0 };
    let is_torn = matches!(&bytes[at + 1..], [b'[', rest @ ..] if rest.iter().all(|byte| (0x20..0x40).contains(byte)));
    // An escape sequence is short. Anything longer is not one, and must not be buffered forever.
    if is_torn && bytes.len() - at < 16 { bytes.len() - at } else { 0 }
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
            ("\u{1b}[3~\u{1b}[1;5C\u{1b}b", vec![Delete, WordRight, WordLeft]),
            ("\u{1}\u{5}\u{17}", vec![Home, LineEnd, DeleteWord]),
            ("\u{1b}\r", vec![NewLine]),
            // An unknown sequence is one key without a function; its characters must not count as answers.
            ("\u{1b}[5~", vec![Other]),
            ("\u{1b}[1;5A", vec![Other]),
            ("\u{1b}a", vec![Other]),
            ("\u{1b}[", vec![Other]),
            ("\u{3}", vec![Other]),
            ("", vec![]),
        ] {
            assert_eq!(decode(bytes.as_bytes()), keys, "{bytes:?}");
        }
    }

    fn strokes(chunks: &[&[u8]]) -> Vec<Stroke> {
        let mut decoder = Decoder::default();
        chunks.iter().flat_map(|chunk| decoder.push(chunk)).collect()
    }

    #[test]
    fn a_paste_is_one_piece_wherever_two_reads_split_it() {
        let text = "a\u{1b}[200~é\r\nb\rc\u{1b}[D\u{1b}[201~\u{1b}[D日".as_bytes();
        let whole = strokes(&[text]);
        let pasted = Stroke::Pasted("é\nb\nc\u{1b}[D".to_owned());
        let key = Stroke::Key;
        assert_eq!(whole, [key(Letter('a')), pasted, key(Left), key(Letter('日'))]);
        // A read may end anywhere except right after an escape, which is a key by itself.
        for at in (1..text.len()).filter(|at| text[at - 1] != 0x1b) {
            assert_eq!(strokes(&[&text[..at], &text[at..]]), whole, "at {at}");
        }
    }

    #[test]
    fn no_typed_bytes_are_buffered_forever() {
        assert_eq!(strokes(&[b"\x1b[", &b"1".repeat(40)]).len(), 1);
        assert_eq!(strokes(&[b"\xff", b"a"]).last(), Some(&Stroke::Key(Letter('a'))));
        assert_eq!(strokes(&[b"\n"]), [Stroke::Key(NewLine)]);
        assert_eq!(strokes(&[b"\x1b"]), [Stroke::Key(Escape)]);
    }
}

//! Decodes and encodes the text of files, keeping encoding and line endings.

/// The most that `Read` shows of a file, in bytes: about 25,000 tokens.
pub(crate) const MAX_SHOWN_BYTES: usize = 100_000;

/// The text of a file.
pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) encoding: Encoding,
    /// Whether invalid bytes were replaced: such a text must not be written back.
    pub(crate) lossy: bool,
}

/// The encoding of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Encoding {
    #[default]
    Utf8,
    Utf8WithMark,
    Utf16Le,
    Utf16Be,
}

/// How far to search for a zero byte, which text never contains.
const SNIFFED: usize = 8 * 1024;

/// Decodes bytes; `None` if they are not text.
pub(crate) fn decode(bytes: &[u8]) -> Option<Text> {
    let (encoding, rest) = match bytes {
        [0xEF, 0xBB, 0xBF, rest @ ..] => (Encoding::Utf8WithMark, rest),
        [0xFF, 0xFE, rest @ ..] => (Encoding::Utf16Le, rest),
        [0xFE, 0xFF, rest @ ..] => (Encoding::Utf16Be, rest),
        _ => (Encoding::Utf8, bytes),
    };
    let (text, lossy) = match encoding {
        Encoding::Utf16Le => utf16(rest, u16::from_le_bytes),
        Encoding::Utf16Be => utf16(rest, u16::from_be_bytes),
        Encoding::Utf8 | Encoding::Utf8WithMark => {
            if rest.iter().take(SNIFFED).any(|byte| *byte == 0) {
                return None;
            }
            match std::str::from_utf8(rest) {
                Ok(text) => (text.to_owned(), false),
                Err(_) => (String::from_utf8_lossy(rest).into_owned(), true),
            }
        }
    };
    Some(Text { text, encoding, lossy })
}

/// Writes text as bytes.
pub(crate) fn encode(text: &str, encoding: Encoding) -> Vec<u8> {
    match encoding {
        Encoding::Utf8 => text.as_bytes().to_vec(),
        Encoding::Utf8WithMark => [&[0xEF, 0xBB, 0xBF], text.as_bytes()].concat(),
        Encoding::Utf16Le => {
            [0xFF, 0xFE].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect()
        }
        Encoding::Utf16Be => {
            [0xFE, 0xFF].into_iter().chain(text.encode_utf16().flat_map(u16::to_be_bytes)).collect()
        }
    }
}

/// Whether most lines end in CR LF.
pub(crate) fn is_crlf(text: &str) -> bool {
    text.matches("\r\n").count() * 2 > text.matches('\n').count()
}

/// The text with CR LF at the end of every line.
pub(crate) fn to_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// The start of a text, at most `max` bytes, cut between characters.
pub(crate) fn head(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> (String, bool) {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let mut lossy = !rest.is_empty();
    let text = char::decode_utf16(pairs.iter().map(|pair| unit(*pair)))
        .map(|char| {
            char.unwrap_or_else(|_| {
                lossy = true;
                char::REPLACEMENT_CHARACTER
            })
        })
        .collect();
    (text, lossy)
}

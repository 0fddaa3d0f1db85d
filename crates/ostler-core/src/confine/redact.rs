//! Removes secrets from everything that others read: logs, events, crash reports.
//!
//! This happens where text leaves the server, not where it is made, so code that logs need not consider it. Known
//! values are found in every usual encoding, unknown ones by their pattern.

use parking_lot::RwLock;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use ostler_secret::{Form, Secrets};
use serde_json::{Map, Value};

const HIDDEN: &str = "[redacted]";

/// Fields whose text is always a secret.
const SECRET_FIELDS: [&str; 14] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
    "x-api-key",
    "api-key",
    "apikey",
    "password",
    "passwd",
    "client-secret",
    "access-token",
    "refresh-token",
    "private-key",
    "auth-token",
];

/// Redacts secrets. Clones share the known values.
#[derive(Clone, Debug, Default)]
pub struct Redactor(pub(crate) Arc<RwLock<Secrets>>);

impl Redactor {
    /// Adds a known secret.
    pub fn add(&self, name: &str, value: &str) {
        self.0.write().add(name, value);
    }

    /// Adds those of these variables whose names sound like secrets.
    pub(crate) fn add_variables(&self, variables: impl IntoIterator<Item = (String, String)>) {
        let mut secrets = self.0.write();
        variables.into_iter().for_each(|(name, value)| secrets.add_variable(&name, &value));
    }

    /// Redacts a text.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let secrets = self.0.read();
        let found = secrets.find(text, Form::Plain);
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let found = found.into_iter().map(|(range, name)| (range, name.map(str::to_owned)));
        Cow::Owned(replaced(text, 0, found.collect()))
    }

    /// Redacts every text in a value, including names of fields.
    pub(crate) fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(clean) = self.text(text) {
                    *text = clean;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => self.fields(fields),
            _ => {}
        }
    }

    fn fields(&self, fields: &mut Map<String, Value>) {
        for (name, value) in fields.iter_mut() {
            match value {
                Value::String(text) if is_secret_field(name) && !text.is_empty() => {
                    HIDDEN.clone_into(text)
                }
                value => self.value(value),
            }
        }
        if fields.keys().any(|name| matches!(self.text(name), Cow::Owned(_))) {
            let old = std::mem::take(fields);
            fields.extend(
                old.into_iter().map(|(name, value)| (self.text(&name).into_owned(), value)),
            );
        }
    }

    /// A redactor for a text that arrives in pieces.
    pub(crate) fn pieces(&self) -> Pieces {
        Pieces { redactor: self.clone(), text: String::new(), shown: 0, swallows: false }
    }
}

/// How many bytes are held back at most; no secret is that long.
const MOST_HELD: usize = 16 << 10;

/// How many bytes of shown text are remembered: they may decide whether the text after them is a secret.
const CONTEXT: usize = 128;

/// Redacts a text that arrives in pieces: an end that may be the beginning of a secret waits for the next piece.
#[derive(Debug)]
pub(crate) struct Pieces {
    redactor: Redactor,
    /// The last part of the shown text, unredacted, and the text that is held back.
    text: String,
    /// How many bytes of it were shown.
    shown: usize,
    /// Whether the rest of a text that was too long to hold back is left out.
    swallows: bool,
}

impl Pieces {
    /// Adds a piece, and returns what can be shown now.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        let piece = if self.swallows {
            piece.trim_start_matches(|c: char| !c.is_whitespace())
        } else {
            piece
        };
        self.swallows &= piece.is_empty();
        self.text.push_str(piece);
        let secrets = self.redactor.0.read();
        let open = secrets.open_end(&self.text);
        drop(secrets);
        let end = (self.text.len() - open).max(self.shown);
        let mut shown = self.show(end);
        if self.text.len() - self.shown > MOST_HELD {
            shown.push_str(HIDDEN);
            self.text.truncate(self.shown);
            self.swallows = true;
        }
        self.forget();
        shown
    }

    /// Whether text is held back.
    pub(crate) fn is_holding(&self) -> bool {
        self.shown < self.text.len()
    }

    /// Returns the rest of the text.
    pub(crate) fn finish(mut self) -> String {
        self.show(self.text.len())
    }

    /// Redacts the next text up to `end`; the text shown before is context.
    fn show(&mut self, end: usize) -> String {
        let secrets = self.redactor.0.read();
        let found = secrets.find(&self.text[..end], Form::Plain).into_iter();
        let found = found.map(|(range, name)| (range, name.map(str::to_owned))).collect();
        drop(secrets);
        let clean = replaced(&self.text[..end], self.shown, found);
        self.shown = end;
        clean
    }

    /// Removes shown text that is no longer needed as context.
    fn forget(&mut self) {
        let cut = self.text.floor_char_boundary(self.shown.saturating_sub(CONTEXT));
        self.text.drain(..cut);
        self.shown -= cut;
    }
}

fn is_secret_field(name: &str) -> bool {
    let name = name.replace('_', "-");
    SECRET_FIELDS.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// The text from an offset, with placeholders for what was found. Overlapping ranges are removed together; the text
/// before the offset is not part of the result.
fn replaced(text: &str, from: usize, mut found: Vec<(Range<usize>, Option<String>)>) -> String {
    found.retain(|(range, _)| range.end > from);
    found.iter_mut().for_each(|(range, _)| range.start = range.start.max(from));
    // Of ranges with the same start, the one with a name comes first.
    found.sort_by_key(|(range, name)| (range.start, name.is_none()));
    let mut merged: Vec<(Range<usize>, Option<String>)> = Vec::new();
    for (range, name) in found {
        match merged.last_mut() {
            Some((last, known)) if range.start < last.end => {
                last.end = last.end.max(range.end);
                *known = known.take().or(name);
            }
            _ => merged.push((range, name)),
        }
    }
    let (mut clean, mut at) = (String::new(), from);
    for (range, name) in merged {
        clean.push_str(&text[at..range.start]);
        match name {
            Some(name) => clean.push_str(&format!("[redacted {name}]")),
            None => clean.push_str(HIDDEN),
        }
        at = range.end;
    }
    clean.push_str(&text[at..]);
    clean
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const CANARY: &str = "canary/7+secret&value";

    fn redactor() -> Redactor {
        let redactor = Redactor::default();
        redactor.add("CANARY", CANARY);
        redactor
    }

    // Seen to fail with a redactor that knows the plain spelling only, and with one that leaves overlaps alone.
    #[test]
    fn a_known_value_is_redacted_in_every_encoding() {
        let redactor = redactor();
        let base64 = |text: String| base64::engine::general_purpose::STANDARD.encode(text);
        for before in ["", "u:", "us:", "use:"] {
            let coded = base64(format!("{before}{CANARY}"));
            let clean = redactor.text(&coded).into_owned();
            assert!(clean.contains("[redacted CANARY]"), "{coded}: {clean}");
        }
        assert_eq!(redactor.text(&format!("key={CANARY}!")), "key=[redacted CANARY]!");
        assert_eq!(redactor.text("x?key=canary%2F7%2Bsecret%26value"), "x?key=[redacted CANARY]");
        let bearer = format!("Authorization: Bearer {CANARY}");
        assert!(!redactor.text(&bearer).contains("secret"), "{}", redactor.text(&bearer));
        assert!(matches!(redactor.text("nothing here"), Cow::Borrowed(_)));
        redactor.add("ONE", "abcdef123");
        redactor.add("TWO", "f123456789");
        assert_eq!(
            redactor.text("<abcdef123456789>"),
            "<[redacted ONE]>",
            "nothing of the second secret is left"
        );
    }

    #[test]
    fn all_texts_and_field_names_in_a_value_are_redacted() {
        let mut event = json!({
            "text": format!("a {CANARY} b"),
            "list": [{"deep": CANARY}],
            CANARY: 1,
            "headers": {"Authorization": "short", "X_Api_Key": "k", "accept": "x"},
            "password": "", "max_tokens": 5, "token_count": 3,
            "ours": format!("ostler_{}", "x".repeat(43)),
        });
        redactor().value(&mut event);
        assert_eq!(
            event,
            json!({
                "text": "a [redacted CANARY] b",
                "list": [{"deep": "[redacted CANARY]"}],
                "[redacted CANARY]": 1,
                "headers": {"Authorization": "[redacted]", "X_Api_Key": "[redacted]", "accept": "x"},
                "password": "", "max_tokens": 5, "token_count": 3,
                "ours": "[redacted]",
            })
        );
    }

    #[test]
    fn variables_are_recognised_as_secrets_by_their_names() {
        let redactor = Redactor::default();
        let variables = [("MY_TOKEN", "abcdefg"), ("LANG", "abcdefg2")];
        redactor.add_variables(variables.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(redactor.text("abcdefg abcdefg2"), "[redacted MY_TOKEN] [redacted MY_TOKEN]2");
    }

    #[test]
    fn an_endless_secret_is_not_held_back_for_ever() {
        let mut pieces = redactor().pieces();
        let mut shown = pieces.push("here: sk-");
        for _ in 0..40 {
            shown.push_str(&pieces.push(&"x".repeat(1_000)));
        }
        shown.push_str(&pieces.push("xx and on"));
        shown.push_str(&pieces.finish());
        assert_eq!(shown, "here: [redacted] and on");
    }

    /// The redacted text of pieces that are cut at these offsets.
    fn in_pieces(text: &str, cuts: Vec<usize>) -> String {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let (mut pieces, mut shown) = (redactor().pieces(), String::new());
        for pair in cuts.windows(2) {
            shown.push_str(&pieces.push(&text[pair[0]..pair[1]]));
        }
        shown.push_str(&pieces.finish());
        shown
    }

    proptest! {
        // Seen to fail when nothing is held back.
        #[test]
        fn a_known_secret_in_several_pieces_is_redacted(
            before in "[ac/ ]{0,9}", after in "[ay/ ]{0,9}", cuts in prop::collection::vec(0..60_usize, 0..8),
        ) {
            let text = format!("{before}{CANARY}{after}");
            let shown = in_pieces(&text, cuts);
            // The first characters may have been shown, because they could not be recognised yet.
            let hidden = format!("[redacted CANARY]{after}");
            let beginning = shown.strip_suffix(&hidden);
            prop_assert!(beginning.is_some(), "{shown}");
            let first = beginning.and_then(|it| it.strip_prefix(&before));
            prop_assert!(first.is_some_and(|it| it.len() < 3 && CANARY.starts_with(it)), "{shown}");
        }

        // Seen to fail when only known secrets are held back, and when a match is not held back until it ends.
        #[test]
        fn an_unknown_secret_in_several_pieces_is_redacted(
            before in "([a-z]{1,6} ){0,3}", after in "( [a-z]{1,6}){0,3}",
            which in 0..4_usize, cuts in prop::collection::vec(0..120_usize, 0..8),
        ) {
            let secret = "0a1B2c3D4e5F6g7H8i9J".repeat(2);
            let written = match which {
                0 => format!("sk-ant-{secret}"),
                1 => format!("Authorization: Bearer {secret}"),
                2 => format!("https://user:{secret}@example.org/x"),
                _ => format!("-----BEGIN PRIVATE KEY-----\n{secret}\n-----END PRIVATE KEY-----"),
            };
            let text = format!("{before}{written}{after}");
            let shown = in_pieces(&text, cuts);
            prop_assert!(!secret.as_bytes().windows(5).any(|part| {
                shown.contains(std::str::from_utf8(part).unwrap())
            }), "{shown}");
            prop_assert!(shown.starts_with(&before) && shown.ends_with(&after), "{shown}");
        }
    }
}

//! Finds secrets in text: API keys, tokens, and values of variables whose names suggest a secret.
//!
//! Recordings of the engine and logs of the server are read by other people. Both find secrets here and redact them
//! in their own ways.
#![warn(missing_docs)]

mod open;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use aho_corasick::AhoCorasick;
use regex::Regex;

/// The format of a text, which determines how a secret is escaped in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Plain text.
    Plain,
    /// The inside of a JSON string, where quotes and the like are escaped.
    Json,
}

impl Form {
    /// Escapes a text for this format.
    pub fn write(self, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Json => {
                let quoted = serde_json::Value::from(text).to_string();
                quoted[1..quoted.len() - 1].to_owned()
            }
        }
    }
}

/// Secrets known by value, each with its name.
#[derive(Clone, Default)]
pub struct Secrets {
    known: BTreeMap<String, String>,
    /// Finds all of them in one pass, per format; built on first use.
    plain: OnceLock<Finder>,
    json: OnceLock<Finder>,
}

#[derive(Clone)]
struct Finder {
    words: AhoCorasick,
    names: Vec<String>,
}

impl Finder {
    fn new(known: &BTreeMap<String, String>, form: Form) -> Self {
        let words: Vec<String> = known.keys().map(|value| form.write(value)).collect();
        let words = AhoCorasick::new(&words).expect("there are far fewer than a million secrets");
        Self { words, names: known.values().cloned().collect() }
    }
}

/// A shorter value would match everywhere.
const SHORTEST: usize = 6;
/// Fewer characters of a secret reveal nothing, and match many texts.
const LEAST: usize = 3;

impl Secrets {
    /// Adds a secret value, whatever its name.
    pub fn add(&mut self, name: &str, value: &str) {
        let value = value.trim();
        if value.len() < SHORTEST {
            return;
        }
        let known = self.known.len();
        for spelling in spellings(value) {
            self.known.entry(spelling).or_insert_with(|| name.to_owned());
        }
        // Callers add the same secrets repeatedly, which must cost nothing.
        if self.known.len() > known {
            (self.plain, self.json) = (OnceLock::new(), OnceLock::new());
        }
    }

    /// Adds an environment variable if its name suggests a secret.
    pub fn add_variable(&mut self, name: &str, value: &str) {
        // Paths to keys are not secrets, and neither are numbers such as `MAX_TOKENS`.
        let is_plain = value.starts_with(['/', '.', '~']) || value.parse::<f64>().is_ok();
        if sounds_secret(name) && !is_plain {
            self.add(name, value);
        }
    }

    /// How many bytes at the end of a text may be the start of a secret, or its continuation. A stream holds back
    /// that much until the next part arrives.
    pub fn open_end(&self, text: &str) -> usize {
        let open = self.known_open(text).max(open::end(text));
        if open == 0 {
            return 0;
        }
        // A secret is not cut in two by the start of another one in it.
        let whole = self.find(text, Form::Plain).into_iter().filter_map(|(range, _)| {
            let cut = text.len() - open;
            (range.start < cut && cut < range.end).then(|| text.len() - range.start)
        });
        whole.max().unwrap_or(open)
    }

    fn known_open(&self, text: &str) -> usize {
        let Some(&last) = text.as_bytes().last() else { return 0 };
        let begun = |known: &String| {
            let fits = |length: &usize| {
                known.as_bytes()[length - 1] == last
                    && text.as_bytes().ends_with(&known.as_bytes()[..*length])
            };
            // From the longest; never inside a character.
            (LEAST..known.len()).rev().filter(|length| known.is_char_boundary(*length)).find(fits)
        };
        self.known.keys().filter_map(begun).max().unwrap_or(0)
    }

    /// The secrets in a text, with their names.
    pub fn find(&self, text: &str, form: Form) -> Vec<(Range<usize>, Option<&str>)> {
        let finder = match form {
            Form::Plain => &self.plain,
            Form::Json => &self.json,
        };
        let Finder { words, names } = finder.get_or_init(|| Finder::new(&self.known, form));
        let mut found = Vec::new();
        // Overlapping matches too: the rest of one would reveal it.
        for word in words.find_overlapping_iter(text) {
            found.push((word.range(), Some(names[word.pattern().as_usize()].as_str())));
        }
        found.extend(patterns(text).into_iter().map(|range| (range, None)));
        found
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({} [redacted])", self.known.len())
    }
}

/// Whether a variable's name suggests a secret.
fn sounds_secret(name: &str) -> bool {
    const WORDS: [&str; 12] = [
        "KEY", "KEYS", "PASS", "PWD", "PAT", "AUTH", "COOKIE", "PRIVATE", "DSN", "JWT", "BEARER",
        "CREDS",
    ];
    const PARTS: [&str; 8] = [
        "APIKEY",
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "PASSPHRASE",
        "CREDENTIAL",
        "AUTHORIZATION",
    ];
    let name = name.to_ascii_uppercase();
    // The shell's current and previous directory.
    if name == "PWD" || name == "OLDPWD" {
        return false;
    }
    name.split('_').any(|word| WORDS.contains(&word))
        || PARTS.iter().any(|part| name.contains(part))
}

/// Patterns of secrets of any origin. A group is the secret; without one it is the whole match.
static LOOKS_SECRET: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let quote = r#"\\?["']?"#;
    let value = r"[A-Za-z0-9._~+/=-]{8,}";
    [
        r"\bsk-[A-Za-z0-9_-]{16,}".to_owned(),
        // This program's own: server tokens, codes and cookies.
        r"\bostler_[A-Za-z0-9_-]{43}".to_owned(),
        r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,})".to_owned(),
        r"\b(?:xox[abeprs]-[A-Za-z0-9-]{10,}|(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[A-Za-z0-9_-]{30,}|npm_[A-Za-z0-9]{30,})\b"
            .to_owned(),
        r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}".to_owned(),
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----".to_owned(),
        format!(
            r"(?i)\b(?:authorization|x-api-key|x-auth-token){quote}\s*[:=]\s*{quote}(?:(?:bearer|basic|token)\s+)?({value})"
        ),
        r"(?i)\b(?:bearer|basic)\s+([A-Za-z0-9._~+/=-]{20,})".to_owned(),
        r"://[^/\s:@]+:([^/\s:@]+)@".to_owned(),
    ]
    .iter()
    .map(|pattern| Regex::new(pattern).expect("the patterns are valid"))
    .collect()
});

fn patterns(text: &str) -> Vec<Range<usize>> {
    let found = LOOKS_SECRET.iter().flat_map(|pattern| {
        pattern.captures_iter(text).filter_map(|found| {
            let secret = found.get(1).or_else(|| found.get(0))?;
            Some(secret.start()..secret.end())
        })
    });
    found.collect()
}

fn percent_encoded(value: &str) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    let encode = |byte: &u8| match is_plain(byte) {
        true => char::from(*byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    value.as_bytes().iter().map(encode).collect()
}

/// Encodings of a value in requests, web pages and dumps.
fn spellings(value: &str) -> Vec<String> {
    let percent = percent_encoded(value);
    let hex: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut spellings =
        vec![value.to_owned(), lower_percent(&percent), percent, hex.to_uppercase(), hex];
    // In base64, up to two bytes at each end share a character with their neighbours, so the middle differs for each
    // offset in a group.
    for before in 0..3 {
        let coded = base64(value.as_bytes(), before);
        let is_telling = coded.len() >= SHORTEST;
        spellings.extend(
            [coded.replace('+', "-").replace('/', "_"), coded].into_iter().filter(|_| is_telling),
        );
    }
    spellings
}

/// `%3a` for `%3A`.
fn lower_percent(text: &str) -> String {
    let mut pieces = text.split('%');
    let mut lower = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (code, rest) = piece.split_at(2);
        lower.push_str(&format!("%{}{rest}", code.to_ascii_lowercase()));
    }
    lower
}

/// The base64 characters that encode only these bytes, at offset `before` in a group of three.
fn base64(bytes: &[u8], before: usize) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let padded: Vec<u8> = std::iter::repeat_n(0, before).chain(bytes.iter().copied()).collect();
    let mut text = String::new();
    for group in padded.chunks(3) {
        let byte = |number: usize| u32::from(group.get(number).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        // The rest of the last group shares its last character; the secret is found by what precedes it.
        for number in 0..(group.len() * 8 / 6) {
            let character = bits >> (18 - 6 * number) & 63;
            text.push(char::from(LETTERS[character as usize]));
        }
    }
    // Skips a character that also encodes preceding bytes.
    text.split_off((before * 8).div_ceil(6).min(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(secrets: &Secrets, text: &str) -> String {
        let mut ranges: Vec<_> =
            secrets.find(text, Form::Plain).into_iter().map(|(range, _)| range).collect();
        ranges.sort_by_key(|range| range.start);
        let mut text = text.to_owned();
        for range in ranges.into_iter().rev() {
            if range.end <= text.len() {
                text.replace_range(range, "*");
            }
        }
        text
    }

    #[test]
    fn a_known_value_is_found_in_every_spelling() {
        let mut secrets = Secrets::default();
        secrets.add("KEY", "p@ss/word");
        assert_eq!(redacted(&secrets, "a p@ss/word, p%40ss%2Fword"), "a *, *");
        assert_eq!(redacted(&secrets, "cEBzcy93b3Jk and word"), "* and word");
        // In the middle of a longer text, as in `user:p@ss/word` and `me:p@ss/word!`.
        assert_eq!(redacted(&secrets, "dXNlcjpwQHNzL3dvcmQ="), "dXNlcjp*Q=");
        assert_eq!(redacted(&secrets, "bWU6cEBzcy93b3JkIQ=="), "bWU6*IQ==");
        assert_eq!(
            redacted(&secrets, "70407373 2f776f7264 704073732f776f7264"),
            "70407373 2f776f7264 *"
        );
        assert_eq!(redacted(&secrets, "p%40ss%2fword"), "*");
        secrets.add("SHORT", "abc");
        assert_eq!(redacted(&secrets, "abc"), "abc");
        let quoted = "say \\\"hunter2\\\"";
        secrets.add("QUOTED", "\"hunter2\"");
        assert_eq!(secrets.find(quoted, Form::Json).len(), 1);
    }

    #[test]
    fn a_text_end_that_may_start_a_secret_is_recognised() {
        let mut secrets = Secrets::default();
        secrets.add("KEY", "hunter22");
        for (text, expected) in [
            ("it is hun", 3),
            ("hunter2", 7),
            ("hunter22", 0),
            ("", 0),
            ("the hu", 0),
            ("hunt it", 0),
        ] {
            assert_eq!(secrets.open_end(text), expected, "{text}");
        }
    }

    #[test]
    fn variables_are_secrets_if_their_names_suggest_it() {
        for (name, value, expected) in [
            ("MY_API_KEY", "value-1", true),
            ("GITHUB_TOKEN", "value-1", true),
            ("DB_PASSWORD", "value-1", true),
            ("PGPASSWORD", "value-1", true),
            ("CI_JOB_JWT", "value-1", true),
            ("MAX_OUTPUT_TOKENS", "3200000", false),
            ("SSH_AUTH_SOCK", "/tmp/agent", false),
            ("PWD", "somewhere", false),
            ("KEYBOARD", "german", false),
            ("PATH", "value-1", false),
        ] {
            let mut secrets = Secrets::default();
            secrets.add_variable(name, value);
            assert_eq!(!secrets.known.is_empty(), expected, "{name}");
        }
    }

    #[test]
    fn known_patterns_of_secrets_are_found() {
        let key = |text: &str| redacted(&Secrets::default(), text);
        assert_eq!(key(&format!("sk-ant-{}!", "x1".repeat(9))), "*!");
        assert_eq!(key("ghp_0123456789abcdefghij0123"), "*");
        assert_eq!(key(&format!("ostler_{}.", "a-Z_9".repeat(9).split_at(43).0)), "*.");
        assert_eq!(key("Authorization: Bearer abc.def-123"), "Authorization: Bearer *");
        assert_eq!(key(r#"{"x-api-key": "abcdefgh1"}"#), r#"{"x-api-key": "*"}"#);
        assert_eq!(
            key(r#"\"Authorization\": \"token abcdefgh1\""#),
            r#"\"Authorization\": \"token *\""#
        );
        assert_eq!(key("postgres://me:hush@db/x"), "postgres://me:*@db/x");
        assert_eq!(key("-----BEGIN RSA PRIVATE KEY-----\nx\n-----END RSA PRIVATE KEY-----."), "*.");
        for plain in ["the bearer of this note", "a task-list", "sk-short", "http://a:80/b@c"] {
            assert_eq!(key(plain), plain);
        }
    }
}

//! Replaces secrets, and values that differ from machine to machine, by names.
//!
//! A recording has `<ostler:cwd>` in place of the working directory, so that it can be replayed in another one; the
//! same for the home and the temporary folder. Secrets become `<ostler:secret NAME>` and are never restored.

use std::path::Path;
use std::sync::LazyLock;

use fancy_regex::Regex;
use ostler_secret::Secrets;

use super::edit::{Edit, Editor, Form, add};

/// The names for folders, and the secrets to redact.
#[derive(Clone, Debug, Default)]
pub struct RecordingRedactor {
    /// Paths and their names, longest first: one may be inside another.
    places: Vec<(String, &'static str)>,
    /// The path for each name on this machine.
    meant: Vec<(&'static str, String)>,
    secrets: Secrets,
}

impl RecordingRedactor {
    /// The names for the folders of a session. A home that is the root folder is ignored.
    pub fn new(cwd: &Path, home: Option<&Path>, temporary: &Path) -> Self {
        let named = [(Some(cwd), "cwd"), (home, "home"), (Some(temporary), "tmp")];
        let (mut places, mut meant) = (Vec::new(), Vec::new());
        for (path, name) in named {
            let Some(path) = path else { continue };
            meant.push((name, path.to_string_lossy().trim_end_matches('/').to_owned()));
            // A path through a link has two spellings.
            for path in [Some(path.to_owned()), path.canonicalize().ok()].into_iter().flatten() {
                let path = path.to_string_lossy().trim_end_matches('/').to_owned();
                if path.len() > 1 && !places.iter().any(|(known, _)| *known == path) {
                    places.push((path, name));
                }
            }
        }
        places.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        Self { places, meant, secrets: Secrets::default() }
    }

    /// Redacts a value, whatever it looks like.
    pub fn add_secret(&mut self, name: &str, value: &str) {
        self.secrets.add(name, value);
    }

    /// Redacts the value of a variable, if its name looks like that of a secret.
    pub fn add_variable(&mut self, name: &str, value: &str) {
        self.secrets.add_variable(name, value);
    }

    /// Replaces values by names.
    pub(crate) fn hiding(&self) -> RedactEditor<'_> {
        RedactEditor(self)
    }

    /// Replaces names by values, if this redactor wrote them.
    pub(crate) fn showing(&self) -> RestoreEditor<'_> {
        RestoreEditor(self)
    }
}

/// The prefix of every name.
pub(crate) const MARK: &str = "<ostler:";
/// Replaces the prefix itself where a text contains it.
const WRITTEN_MARK: &str = "<ostler:written ";

pub(crate) struct RedactEditor<'a>(&'a RecordingRedactor);

impl Editor for RedactEditor<'_> {
    fn edits(&self, text: &str, form: Form) -> Vec<Edit> {
        let mut edits = Vec::new();
        let mut secrets = self.0.secrets.find(text, form);
        // Named secrets first. Of two that begin at the same place, the longer one.
        secrets.sort_by_key(|(range, name)| (name.is_none(), range.start, usize::MAX - range.end));
        for (range, name) in secrets {
            let name = name.map(|name| format!(" {name}")).unwrap_or_default();
            add(&mut edits, Edit { range, text: format!("{MARK}secret{name}>") });
        }
        for (path, name) in &self.0.places {
            let written = form.write(path);
            for (at, _) in text.match_indices(&written) {
                let range = at..at + written.len();
                if is_whole_path(text, &range, form) {
                    add(&mut edits, Edit { range, text: format!("{MARK}{name}>") });
                }
            }
        }
        for (at, _) in text.match_indices(MARK) {
            add(&mut edits, Edit { range: at..at + MARK.len(), text: WRITTEN_MARK.to_owned() });
        }
        edits
    }
}

/// Whether the match is a whole path: `/code` is neither in `/codebase` nor in `/home/code`.
fn is_whole_path(text: &str, range: &std::ops::Range<usize>, form: Form) -> bool {
    let is_word =
        |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '~');
    let mut before = text[..range.start].chars().rev();
    let begins = match (before.next(), before.next()) {
        // `\n` in JSON is a line break.
        (Some('n' | 't' | 'r' | 'b' | 'f'), Some('\\')) => form == Form::Json,
        (Some(letter), _) => !is_word(letter),
        (None, _) => true,
    };
    let mut after = text[range.end..].chars();
    let ends = match (after.next(), after.next()) {
        (Some('.'), next) => !next.is_some_and(char::is_alphanumeric),
        (Some(letter), _) => !is_word(letter),
        (None, _) => true,
    };
    begins && ends
}

static NAMES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new("<ostler:(?:(cwd|home|tmp)>|written )").expect("our own pattern is a pattern")
});

pub(crate) struct RestoreEditor<'a>(&'a RecordingRedactor);

impl Editor for RestoreEditor<'_> {
    fn edits(&self, text: &str, form: Form) -> Vec<Edit> {
        let found = NAMES.captures_iter(text).filter_map(Result::ok);
        let shown = found.filter_map(|found| {
            let whole = found.get(0)?;
            let text = match found.get(1) {
                Some(name) => {
                    let is_it = |(known, _): &&(&str, String)| *known == name.as_str();
                    form.write(&self.0.meant.iter().find(is_it)?.1)
                }
                None => MARK.to_owned(),
            };
            Some(Edit { range: whole.start()..whole.end(), text })
        });
        shown.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::edit::edited;
    use super::*;

    fn redactor() -> RecordingRedactor {
        let path = Path::new;
        let mut redactor =
            RecordingRedactor::new(path("/h/me/code"), Some(path("/h/me")), path("/t"));
        redactor.add_variable("MY_TOKEN", "hunter22");
        redactor
    }

    fn check(text: &str, expected: &str) {
        let redactor = redactor();
        let hidden = edited(text, Form::Plain, &redactor.hiding());
        assert_eq!(hidden, expected);
        if !hidden.contains("secret") {
            assert_eq!(edited(&hidden, Form::Plain, &redactor.showing()), text);
        }
    }

    #[test]
    fn folders_are_replaced_by_names_and_restored() {
        check("cd /h/me/code/a && ls /h/me.", "cd <ostler:cwd>/a && ls <ostler:home>.");
        check("file:///t/x", "file://<ostler:tmp>/x");
        check("/h/me/codebase /x/t/y a/t", "<ostler:home>/codebase /x/t/y a/t");
        check("/h/me/code.bak /h/me-too", "<ostler:home>/code.bak /h/me-too");
    }

    #[test]
    fn a_name_that_a_text_contains_is_restored_unchanged() {
        check("the mark <ostler:cwd> is /h/me", "the mark <ostler:written cwd> is <ostler:home>");
        check("<ostler:written cwd>", "<ostler:written written cwd>");
    }

    #[test]
    fn secrets_are_redacted_and_never_restored() {
        check("it is hunter22!", "it is <ostler:secret MY_TOKEN>!");
        check("/h/me/hunter22", "<ostler:home>/<ostler:secret MY_TOKEN>");
        check("key sk-ant-abcdefgh12345678", "key <ostler:secret>");
    }

    #[test]
    fn paths_are_found_after_an_escaped_line_break() {
        let (redactor, text) = (redactor(), r#"{"text": "in\n/h/me/code"}"#);
        let hidden = edited(text, Form::Json, &redactor.hiding());
        assert_eq!(hidden, r#"{"text": "in\n<ostler:cwd>"}"#);
        assert_eq!(edited(&hidden, Form::Json, &redactor.showing()), text);
    }
}

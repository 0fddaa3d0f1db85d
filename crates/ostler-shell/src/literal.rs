//! The literal grammar: only its commands may run without approval.
//!
//! It contains simple commands joined by `&&`, `||`, `;` and `|`. Their words consist of allowed plain characters, text
//! in single quotes, and text in double quotes without expansions. Such a command means the same to every shell, so
//! nothing has to be guessed. Everything else (assignments, expansions, braces, here-documents, groups, loops) needs a
//! rule or the user's approval.
//!
//! There are two extensions, visible in the kind of a word: a pattern with `*` or `?` ([`WordKind::Glob`]), and `$NAME`
//! or `${NAME}` ([`WordKind::Unknown`]), which only rules accept.

use crate::word::{Word, WordKind};
use crate::{Assignment, Joint, Judged, LONGEST, Part, Redirect, table};

/// Why a command is outside the literal grammar.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct NotLiteral {
    /// The reason, for people.
    pub reason: String,
}

/// Parses a command in the literal grammar. Wrappers such as `timeout` are ordinary commands here.
///
/// # Errors
/// If the command contains anything else.
pub fn literal(command: &str) -> Result<Judged, NotLiteral> {
    if command.len() > LONGEST {
        return refuse("it is too long to be analysed");
    }
    let text = command.trim_matches([' ', '\t', '\n']);
    if text.contains('\n') {
        return refuse("it has more than one line");
    }
    if let Some(c) = text.chars().find(|c| is_invisible(*c)) {
        return refuse(format!("it contains the character U+{:04X}", u32::from(c)));
    }
    let mut reader = Reader { text, at: 0, found: Judged::default() };
    reader.list()?;
    Ok(reader.found)
}

/// Characters that are invisible, or that hide what runs.
pub(crate) fn is_invisible(c: char) -> bool {
    match c {
        ' ' | '\t' => false,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180b}'..='\u{180f}' => {
            true
        }
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' => true,
        '\u{e0000}'..='\u{e0fff}' => true,
        c => c.is_control() || c.is_whitespace(),
    }
}

fn refuse<T>(reason: impl Into<String>) -> Result<T, NotLiteral> {
    Err(NotLiteral { reason: reason.into() })
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    found: Judged,
}

/// One word, and how it is quoted.
struct Read {
    word: Word,
    /// Whether no part of it is quoted.
    is_bare: bool,
    /// How many characters precede the first quote or expansion.
    n_bare: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self, wanted: &str) -> bool {
        let is_there = self.rest().starts_with(wanted);
        if is_there {
            self.at += wanted.len();
        }
        is_there
    }

    fn skip_blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start_matches([' ', '\t']).len();
    }

    fn list(&mut self) -> Result<(), NotLiteral> {
        self.skip_blanks();
        if self.rest().is_empty() {
            return Ok(());
        }
        loop {
            self.command()?;
            // `|&` and `&` are not in this grammar; the next command would start with `&`.
            let joint = if self.take("&&") {
                Some(Joint::And)
            } else if self.take("||") {
                Some(Joint::Other)
            } else {
                self.take("|").then_some(Joint::Pipe)
            };
            let is_end = joint.is_none();
            if is_end && !self.take(";") {
                break;
            }
            self.found.joints.push(joint.unwrap_or(Joint::Other));
            self.skip_blanks();
            if is_end && self.rest().is_empty() {
                break;
            }
        }
        match self.peek() {
            None => Ok(()),
            Some(c) => refuse(format!("it contains `{c}` outside of quotes")),
        }
    }

    fn command(&mut self) -> Result<(), NotLiteral> {
        let start = self.at;
        let mut part = Part {
            argv: Vec::new(),
            assignments: Vec::new(),
            source: String::new(),
            only_starts: false,
        };
        let mut end = start;
        loop {
            self.skip_blanks();
            match self.peek() {
                None | Some(';' | '|') => break,
                Some('&') if !self.rest().starts_with("&>") => break,
                Some(_) if self.redirect()? => {}
                Some(_) => {
                    let read = self.word()?;
                    take_word(&mut part, read)?;
                }
            }
            end = self.at;
        }
        if part.argv.is_empty() {
            return refuse("a command in it has no name");
        }
        part.source = self.text.get(start..end).unwrap_or_default().to_owned();
        self.found.parts.push(part);
        Ok(())
    }

    /// Parses a redirection, if there is one here.
    fn redirect(&mut self) -> Result<bool, NotLiteral> {
        let start = self.at;
        let both = self.rest().starts_with("&>");
        if both || self.rest().starts_with(['0', '1', '2']) {
            self.at += 1;
        }
        if !self.rest().starts_with(['<', '>']) {
            self.at = start;
            return Ok(false);
        }
        let writes = self.take(">");
        if writes {
            if self.take("&") {
                return match (both, self.take("1") || self.take("2"), self.is_at_gap()) {
                    (false, true, true) => Ok(true),
                    _ => refuse("it redirects to a descriptor that is neither 1 nor 2"),
                };
            }
            self.take(">");
        } else {
            self.at += 1;
        }
        if self.rest().starts_with(['<', '>', '&', '|', '(']) {
            return refuse("it contains a here-document or another kind of redirection");
        }
        self.skip_blanks();
        if self.peek().is_none_or(|c| ";|&".contains(c)) {
            return refuse("a redirection has no file");
        }
        let Read { word: target, .. } = self.word()?;
        let Some(path) = target.as_literal() else {
            return refuse("the file of a redirection is not literal");
        };
        // Some paths have a meaning for the shell: `/dev/tcp/host/port` is a connection.
        let is_device = path.starts_with('/') && path.trim_start_matches('/').starts_with("dev/");
        if is_device && path != "/dev/null" || path.is_empty() {
            return refuse("it redirects to a device");
        }
        if path != "/dev/null" {
            self.found.redirects.push(Redirect { writes, target });
        }
        Ok(true)
    }

    fn is_behind_name(&self) -> bool {
        let before = self
            .text
            .get(..self.at)
            .and_then(|text| text.trim_end_matches(['~', '^']).chars().last());
        before.is_some_and(|c| c.is_ascii_alphanumeric())
    }

    fn is_at_gap(&self) -> bool {
        self.peek().is_none_or(|c| " \t;|&".contains(c))
    }

    fn word(&mut self) -> Result<Read, NotLiteral> {
        let start = self.at;
        let mut word = Word::literal("");
        let mut n_bare = None;
        let mut quotes_pattern = false;
        while let Some(c) = self.peek() {
            if " \t;|&".contains(c) {
                break;
            }
            if matches!(c, '\'' | '"' | '$') {
                n_bare.get_or_insert(word.text.len());
            }
            match c {
                '\'' => {
                    let inside = self.until('\'')?;
                    quotes_pattern |= inside.contains(['*', '?', '[', '\\']);
                    word.text.push_str(&inside);
                }
                '"' => self.double_quotes(&mut word, &mut quotes_pattern)?,
                '$' => self.variable(&mut word)?,
                '*' | '?' => {
                    word.kind = word.kind.max(WordKind::Glob);
                    word.text.push(c);
                    self.at += 1;
                }
                // After an alphanumeric character it is part of a name, as in `HEAD~1`, and not a home directory.
                c if is_plain(c) || c == '~' && self.is_behind_name() => {
                    word.text.push(c);
                    self.at += 1;
                }
                c => return refuse(format!("it contains `{c}` outside of quotes")),
            }
        }
        match word.kind {
            // A quoted `*` is literal; next to an unquoted one it would be mistaken for a pattern.
            WordKind::Glob if quotes_pattern || word.text.contains("**") => {
                return refuse("a pattern in it is too complicated");
            }
            WordKind::Unknown => {
                word.text = self.text.get(start..self.at).unwrap_or_default().to_owned();
            }
            _ => {}
        }
        let is_bare = n_bare.is_none();
        Ok(Read { n_bare: n_bare.unwrap_or(word.text.len()), word, is_bare })
    }

    /// The text between quotes. The reader is at the opening quote.
    fn until(&mut self, quote: char) -> Result<String, NotLiteral> {
        let inside = self.rest().get(1..).unwrap_or_default();
        let Some(end) = inside.find(quote) else { return refuse("a quote in it is not closed") };
        let inside = inside[..end].to_owned();
        self.at += end + 2;
        Ok(inside)
    }

    fn double_quotes(
        &mut self,
        word: &mut Word,
        quotes_pattern: &mut bool,
    ) -> Result<(), NotLiteral> {
        self.at += 1;
        while let Some(c) = self.peek() {
            match c {
                '"' => {
                    self.at += 1;
                    return Ok(());
                }
                '$' => self.variable(word)?,
                '`' | '\\' | '!' => return refuse(format!("it contains `{c}` in double quotes")),
                c => {
                    *quotes_pattern |= matches!(c, '*' | '?' | '[');
                    word.text.push(c);
                    self.at += c.len_utf8();
                }
            }
        }
        refuse("a quote in it is not closed")
    }

    /// `$NAME` and `${NAME}`, and no other expansion.
    fn variable(&mut self, word: &mut Word) -> Result<(), NotLiteral> {
        let rest = self.rest().get(1..).unwrap_or_default();
        let (name, is_braced) = match rest.strip_prefix('{') {
            Some(inside) => (inside.split('}').next().unwrap_or_default(), true),
            None => (leading_name(rest), false),
        };
        let is_closed = !is_braced || rest.len() > name.len() + 1;
        if name.is_empty() || leading_name(name) != name || !is_closed {
            return refuse("it contains an expansion");
        }
        word.kind = WordKind::Unknown;
        self.at += 1 + name.len() + if is_braced { 2 } else { 0 };
        Ok(())
    }
}

/// The variable name at the start of the text; otherwise empty.
fn leading_name(text: &str) -> &str {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let end = text.find(|c: char| !is_part(c)).unwrap_or(text.len());
    if text.starts_with(|c: char| c.is_ascii_digit()) { "" } else { &text[..end] }
}

/// Characters without a special meaning anywhere in a word. In addition to characters that shells expand, these are
/// left out: `~` (home directories), `#` (comments), `!` (history), `{` `}` `[` `]` (patterns), and everything outside
/// ASCII.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_./,:=+@%^-".contains(c)
}

/// Adds a word to a command: as a variable before its name, as its name, or as an argument.
fn take_word(part: &mut Part, read: Read) -> Result<(), NotLiteral> {
    let Read { word, is_bare, n_bare } = read;
    if !part.argv.is_empty() {
        part.argv.push(word);
        return Ok(());
    }
    // The text before the first quote decides whether it is an assignment.
    let name = leading_name(&word.text);
    if !name.is_empty() && name.len() < n_bare && word.text[name.len()..].starts_with('=') {
        if word.kind != WordKind::Literal || !table::is_safe_variable(name) {
            return refuse(format!("it sets the variable {name}"));
        }
        let value = Word::literal(&word.text[name.len() + 1..]);
        part.assignments.push(Assignment { name: name.to_owned(), value, exported: true });
        return Ok(());
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_./+-".contains(c);
    let is_plain_name = word.kind == WordKind::Literal
        && is_bare
        && word.text.chars().all(is_name)
        && word.text.starts_with(|c: char| c.is_ascii_alphanumeric() || "_./".contains(c));
    if !is_plain_name {
        return refuse(format!("the name of the command {} is not a plain word", word.text));
    }
    if table::RESERVED.contains(&word.text.as_str()) {
        return refuse(format!("it contains the keyword {}", word.text));
    }
    part.argv.push(word);
    Ok(())
}

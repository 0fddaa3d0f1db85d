//! Allow-lists of program options. An option that is not listed, or not written exactly as listed, is refused.

use crate::word::{Word, WordKind};

/// The options and operands that a program may get.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// Short options without a value; they may be joined.
    pub(crate) flags: &'static str,
    /// Short options with a value, joined or in the next word.
    pub(crate) values: &'static [(char, Value)],
    /// Long options. A name ending in `=` takes a joined value only.
    pub(crate) long: &'static [(&'static str, Option<Value>)],
    pub(crate) operands: Operands,
    pub(crate) most_operands: usize,
}

/// The type of an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// Digits, optionally with a sign and a unit.
    Number,
    /// `1,20` or `5,+3`.
    Lines,
    /// Text that is not a file name.
    Text,
    /// The pattern that would otherwise be the first operand.
    Pattern,
}

/// The meaning of the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operands {
    /// Text that is not a file name.
    Text,
    /// Files and folders.
    Paths,
    /// Files. Given a folder, the program would show its contents.
    Files,
    /// A pattern, then files and folders.
    PatternPaths,
}

/// The classified words of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sorted {
    /// Options as in the table, without their values.
    pub(crate) options: Vec<String>,
    pub(crate) operands: Vec<Word>,
    /// Whether an option contains the pattern.
    pub(crate) has_pattern: bool,
    /// Words that look like options and follow an operand: some programs treat them as operands.
    pub(crate) late: Vec<Word>,
}

impl Sorted {
    pub(crate) fn has(&self, options: &[&str]) -> bool {
        self.options.iter().any(|option| options.contains(&option.as_str()))
    }
}

impl Program {
    /// Classifies words as options and operands.
    pub(crate) fn sort(&self, words: &[Word]) -> Result<Sorted, String> {
        let mut sorted = Sorted::default();
        let mut words = words.iter();
        let mut only_operands = false;
        while let Some(word) = words.next() {
            let is_option = word.text.starts_with('-') && word.text.len() > 1 && !only_operands;
            if !is_option {
                sorted.operands.push(word.clone());
                continue;
            }
            let Some(text) = word.as_literal() else {
                return Err(format!("{} is not literal", word.text));
            };
            if !sorted.operands.is_empty() {
                sorted.late.push(word.clone());
            }
            if text == "--" {
                only_operands = true;
            } else if text.starts_with("--") {
                self.long(text, &mut words, &mut sorted)?;
            } else {
                self.cluster(text, &mut words, &mut sorted)?;
            }
        }
        if sorted.operands.len() > self.most_operands {
            return Err(format!("{} has too many operands", self.name));
        }
        Ok(sorted)
    }

    fn long<'w>(
        &self,
        text: &str,
        words: &mut impl Iterator<Item = &'w Word>,
        sorted: &mut Sorted,
    ) -> Result<(), String> {
        let (name, joined) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let rows = self.long.iter();
        let mut rows = rows.filter(|(row, _)| row.strip_suffix('=').unwrap_or(row) == name);
        let found = rows.find(|(row, value)| match (joined, value) {
            (Some(_), value) => value.is_some(),
            (None, value) => value.is_none() || !row.ends_with('='),
        });
        let Some((_, value)) = found else { return Err(self.unknown(text)) };
        sorted.options.push(name.to_owned());
        match (value, joined) {
            (None, _) => Ok(()),
            (Some(value), Some(text)) => self.check(*value, text, sorted),
            (Some(value), None) => self.next_value(*value, name, words, sorted),
        }
    }

    fn cluster<'w>(
        &self,
        text: &str,
        words: &mut impl Iterator<Item = &'w Word>,
        sorted: &mut Sorted,
    ) -> Result<(), String> {
        if self.long.iter().any(|(row, value)| *row == text && value.is_none()) {
            sorted.options.push(text.to_owned());
            return Ok(());
        }
        let flags = text.get(1..).unwrap_or_default();
        if flags.chars().all(|c| c.is_ascii_digit()) && self.flags.contains('#') {
            sorted.options.push("-#".to_owned());
            return Ok(());
        }
        for (at, character) in flags.char_indices() {
            sorted.options.push(format!("-{character}"));
            if character != '#' && self.flags.contains(character) {
                continue;
            }
            let Some((_, value)) = self.values.iter().find(|(known, _)| *known == character) else {
                return Err(self.unknown(text));
            };
            return match flags.get(at + character.len_utf8()..) {
                Some(joined) if !joined.is_empty() => self.check(*value, joined, sorted),
                _ => self.next_value(*value, text, words, sorted),
            };
        }
        Ok(())
    }

    fn next_value<'w>(
        &self,
        value: Value,
        option: &str,
        words: &mut impl Iterator<Item = &'w Word>,
        sorted: &mut Sorted,
    ) -> Result<(), String> {
        let word = words.next().filter(|word| word.kind == WordKind::Literal);
        match word {
            Some(word) => self.check(value, &word.text, sorted),
            None => {
                Err(format!("the value of the option {option} of {} is not literal", self.name))
            }
        }
    }

    fn check(&self, value: Value, text: &str, sorted: &mut Sorted) -> Result<(), String> {
        sorted.has_pattern |= value == Value::Pattern;
        match value {
            Value::Number if !is_number(text) => {
                Err(format!("{text} is not a number, which an option of {} needs", self.name))
            }
            Value::Lines if !text.chars().all(|c| c.is_ascii_digit() || ",+".contains(c)) => {
                Err(format!("{text} is not a range of line numbers"))
            }
            _ => Ok(()),
        }
    }

    fn unknown(&self, text: &str) -> String {
        format!("the option {text} of {} is not known to be harmless", self.name)
    }
}

/// `5`, `+5`, `-5`, `10k`.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let unit = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    unit.len() < digits.len()
        && matches!(unit, "" | "k" | "K" | "M" | "G" | "kB" | "KB" | "MB" | "GB")
}

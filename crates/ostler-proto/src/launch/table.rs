//! One row per argument of an engine: its name, its field of [`Launch`], how it is written and how it is
//! read.
//!
//! A row is in the file of its field, so that a new option is one field and one row.

use std::fmt::Display;
use std::marker::PhantomData;
use std::str::FromStr;

use serde_json::Value;

use super::Launch;
use super::rule_list::split_rules;
use crate::permission::PermissionMode;

/// An argument.
pub(super) struct Row {
    /// Its names without dashes; the first one is written.
    pub(super) names: &'static [&'static str],
    /// Whether it is a flag otherwise.
    pub(super) takes_value: bool,
    /// Writes it, if it is set.
    pub(super) write: fn(&Launch, &mut Arguments),
    /// Reads its values: at least one if it takes any. Lists are appended; of anything else the last one counts.
    pub(super) read: fn(&mut Launch, &[&str]) -> Result<(), String>,
}

/// The row of a field: `row!(Flag, "session-mirror", session_mirror)`.
macro_rules! row {
    ($kind:ty, $name:literal $(| $other:literal)?, $($field:ident).+) => {
        $crate::launch::table::Row {
            names: &[$name $(, $other)?],
            takes_value: <$kind as $crate::launch::table::Kind>::TAKES_VALUE,
            write: |launch, args| {
                <$kind as $crate::launch::table::Kind>::write(&launch.$($field).+, $name, args)
            },
            read: |launch, values| {
                <$kind as $crate::launch::table::Kind>::read(&mut launch.$($field).+, values)
            },
        }
    };
}

pub(super) use row;

/// How a field is written as an argument, and read from one.
pub(super) trait Kind {
    type Field;
    const TAKES_VALUE: bool = true;
    fn write(field: &Self::Field, name: &str, args: &mut Arguments);
    fn read(field: &mut Self::Field, values: &[&str]) -> Result<(), String>;
}

/// `--name`.
pub(super) struct Flag;

impl Kind for Flag {
    type Field = bool;
    const TAKES_VALUE: bool = false;

    fn write(field: &bool, name: &str, args: &mut Arguments) {
        args.flag(name, *field);
    }

    fn read(field: &mut bool, _: &[&str]) -> Result<(), String> {
        *field = true;
        Ok(())
    }
}

/// `--name=value`.
pub(super) struct One<T>(PhantomData<T>);

impl<T: Text> Kind for One<T> {
    type Field = Option<T>;

    fn write(field: &Option<T>, name: &str, args: &mut Arguments) {
        args.value(name, field.as_ref());
    }

    fn read(field: &mut Option<T>, values: &[&str]) -> Result<(), String> {
        *field = Some(T::read(last(values))?);
        Ok(())
    }
}

/// `--name value`, for arguments that read everything up to the next flag. The value begins with a brace, or is a path.
pub(super) struct Pair;

impl Kind for Pair {
    type Field = Option<String>;

    fn write(field: &Option<String>, name: &str, args: &mut Arguments) {
        if let Some(value) = field {
            args.pair(name, value);
        }
    }

    fn read(field: &mut Option<String>, values: &[&str]) -> Result<(), String> {
        One::<String>::read(field, values)
    }
}

/// `--name=one,two`.
pub(super) struct List;

impl Kind for List {
    type Field = Vec<String>;

    fn write(field: &Vec<String>, name: &str, args: &mut Arguments) {
        args.value(name, (!field.is_empty()).then(|| field.join(",")));
    }

    fn read(field: &mut Vec<String>, values: &[&str]) -> Result<(), String> {
        field.extend(values.iter().flat_map(|list| split_list(list)).map(str::to_owned));
        Ok(())
    }
}

/// `--name=Read,Bash(git log:*)`: a list of permission rules.
pub(super) struct RuleList;

impl Kind for RuleList {
    type Field = Vec<String>;

    fn write(field: &Vec<String>, name: &str, args: &mut Arguments) {
        List::write(field, name, args);
    }

    fn read(field: &mut Vec<String>, values: &[&str]) -> Result<(), String> {
        field.extend(split_rules(values.iter().copied()));
        Ok(())
    }
}

/// `--name=one --name=two`.
pub(super) struct Each;

impl Kind for Each {
    type Field = Vec<String>;

    fn write(field: &Vec<String>, name: &str, args: &mut Arguments) {
        field.iter().for_each(|value| args.value(name, Some(value)));
    }

    fn read(field: &mut Vec<String>, values: &[&str]) -> Result<(), String> {
        field.extend(values.iter().map(|value| (*value).to_owned()));
        Ok(())
    }
}

/// The value of an argument.
pub(super) trait Text: Display + Sized {
    /// # Errors
    /// Why it is not valid, as the end of a sentence that begins with the argument's name.
    fn read(text: &str) -> Result<Self, String>;
}

impl Text for String {
    fn read(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }
}

impl Text for u64 {
    fn read(text: &str) -> Result<Self, String> {
        number(text)
    }
}

impl Text for f64 {
    fn read(text: &str) -> Result<Self, String> {
        number(text)
    }
}

impl Text for Value {
    fn read(text: &str) -> Result<Self, String> {
        json(text)
    }
}

impl Text for PermissionMode {
    fn read(text: &str) -> Result<Self, String> {
        match Self::from(text) {
            Self::Other(_) | Self::Auto => Err(format!(
                "is {text:?}, but must be default, acceptEdits, plan, dontAsk or bypassPermissions"
            )),
            mode => Ok(mode),
        }
    }
}

fn number<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error| format!("is {text:?}, which is not a valid number: {error}"))
}

pub(super) fn json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| format!("is not valid JSON for it: {error}"))
}

/// The value that counts.
pub(super) fn last<'a>(values: &[&'a str]) -> &'a str {
    values.last().copied().unwrap_or_default()
}

/// The parts of a list with commas.
pub(super) fn split_list(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|part| !part.is_empty())
}

/// A command line under construction. Each value is in one argument with its flag, so that it cannot be taken for a
/// flag; no shell is involved.
#[derive(Default)]
pub(super) struct Arguments(pub(super) Vec<String>);

impl Arguments {
    pub(super) fn flag(&mut self, name: &str, is_set: bool) {
        if is_set {
            self.0.push(format!("--{name}"));
        }
    }

    pub(super) fn value(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.0.push(format!("--{name}={value}"));
        }
    }

    pub(super) fn pair(&mut self, name: &str, value: &str) {
        self.0.extend([format!("--{name}"), value.to_owned()]);
    }
}

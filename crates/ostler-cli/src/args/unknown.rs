//! Arguments of programs that are newer than this one.
//!
//! A program that starts this one may use flags that this version does not know. They are left out and reported on
//! standard error; otherwise every new flag would be fatal. A mistake of a person stays an error, because a person can
//! correct the command line.

use std::ffi::{OsStr, OsString};

use clap::{Arg, ArgAction, Command};

/// Arguments that clap can parse, and the flags that were left out.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Sorted {
    pub(super) arguments: Vec<OsString>,
    pub(super) unknown: Vec<String>,
}

/// Sorts the arguments of a program that sends frames. The first argument is the name of this program.
pub(super) fn sort(command: &Command, arguments: Vec<OsString>) -> Sorted {
    let mut sorted = Sorted::default();
    if !speaks_in_frames(&arguments) {
        sorted.arguments = arguments;
        return sorted;
    }
    let mut rest = arguments.into_iter().peekable();
    sorted.arguments.extend(rest.next());
    while let Some(argument) = rest.next() {
        let argument = long_form(command, &argument).unwrap_or(argument);
        let text = argument.to_string_lossy().into_owned();
        let Some(name) = text.strip_prefix("--").filter(|name| !name.is_empty()) else {
            // A prompt on the command line is not valid together with frames, nor is the value of an unknown flag.
            sorted.unknown.push(text);
            continue;
        };
        let (name, has_value) = match name.split_once('=') {
            Some((name, _)) => (name, true),
            None => (name, false),
        };
        match find(command, name) {
            None => {
                sorted.unknown.push(format!("--{name}"));
                let is_value = |next: &OsString| !next.to_string_lossy().starts_with('-');
                if !has_value {
                    rest.next_if(is_value);
                }
            }
            Some(flag) if !has_value && takes_one_value(flag) => {
                // Joined, so that clap does not take a value that begins with a dash for a flag.
                let mut joined = argument;
                if let Some(value) = rest.next() {
                    joined.push("=");
                    joined.push(value);
                }
                sorted.arguments.push(joined);
            }
            Some(flag) => {
                sorted.arguments.push(argument);
                let is_list = !has_value && flag.get_action().takes_values();
                let is_value = |next: &OsString| !next.to_string_lossy().starts_with('-');
                while let Some(value) = rest.next_if(|next| is_list && is_value(next)) {
                    sorted.arguments.push(value);
                }
            }
        }
    }
    sorted
}

/// Whether standard input has frames.
pub(super) fn speaks_in_frames(arguments: &[OsString]) -> bool {
    let is = |argument: Option<&OsString>, text: &str| {
        argument.map(OsString::as_os_str) == Some(OsStr::new(text))
    };
    (0..arguments.len()).any(|at| {
        is(arguments.get(at), "--input-format=stream-json")
            || is(arguments.get(at), "--input-format") && is(arguments.get(at + 1), "stream-json")
    })
}

/// `--print` for `-p`.
fn long_form(command: &Command, argument: &OsStr) -> Option<OsString> {
    let mut characters = argument.to_str()?.strip_prefix('-')?.chars();
    let (short, None) = (characters.next()?, characters.next()) else { return None };
    let flag = command.get_arguments().find(|flag| flag.get_short() == Some(short))?;
    Some(format!("--{}", flag.get_long()?).into())
}

fn find<'c>(command: &'c Command, name: &str) -> Option<&'c Arg> {
    let is_called = |arg: &&Arg| {
        let aliases = arg.get_all_aliases().unwrap_or_default();
        arg.get_long() == Some(name) || aliases.contains(&name)
    };
    command.get_arguments().find(is_called)
}

fn takes_one_value(flag: &Arg) -> bool {
    let takes = matches!(flag.get_action(), ArgAction::Set | ArgAction::Append);
    let values = flag.get_num_args();
    let is_one = values.is_none_or(|values| (values.min_values(), values.max_values()) == (1, 1));
    takes && is_one
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::args::Args;

    fn sorted(arguments: &[&str]) -> (Vec<String>, Vec<String>) {
        let all = ["ostler", "--input-format", "stream-json"].iter().chain(arguments);
        let mut command = Args::command();
        command.build();
        let Sorted { arguments, unknown } = sort(&command, all.map(OsString::from).collect());
        let texts = arguments[2..].iter().map(|text| text.to_string_lossy().into_owned());
        (texts.collect(), unknown)
    }

    fn check(arguments: &[&str], kept: &[&str], unknown: &[&str]) {
        let (kept_really, unknown_really) = sorted(arguments);
        assert_eq!(kept_really, kept, "{arguments:?}");
        assert_eq!(unknown_really, unknown, "{arguments:?}");
    }

    #[test]
    fn an_unknown_flag_is_left_out_with_its_value() {
        check(&["--new", "value", "--model", "m"], &["--model=m"], &["--new"]);
        check(&["--new=value", "--verbose"], &["--verbose"], &["--new"]);
        check(&["--new", "--verbose"], &["--verbose"], &["--new"]);
        check(&["-x", "stray"], &[], &["-x", "stray"]);
    }

    // Seen to fail without `long_form`.
    #[test]
    fn short_flags_are_known() {
        check(&["-p", "--verbose"], &["--print", "--verbose"], &[]);
        check(&["-r", "some-id"], &["--resume=some-id"], &[]);
        check(&["-c"], &["--continue"], &[]);
        check(&["-"], &[], &["-"]);
    }

    #[test]
    fn values_may_be_empty_or_begin_with_a_dash() {
        check(&["--system-prompt", ""], &["--system-prompt="], &[]);
        check(
            &["--append-system-prompt", "- be brief"],
            &["--append-system-prompt=- be brief"],
            &[],
        );
        check(&["--append-system-prompt=--x"], &["--append-system-prompt=--x"], &[]);
        check(&["--model"], &["--model"], &[]);
    }

    #[test]
    fn lists_and_flags_stay_as_they_are() {
        check(&["--allowedTools", "Read,Bash(ls:*)"], &["--allowedTools", "Read,Bash(ls:*)"], &[]);
        check(&["--tools", "", "--continue"], &["--tools", "", "--continue"], &[]);
        check(&["--setting-sources", "", "--debug"], &["--setting-sources", "", "--debug"], &[]);
        check(&["--debug", "--tools", "default"], &["--debug", "--tools", "default"], &[]);
    }

    #[test]
    fn unknown_flags_stay_errors_when_no_frames_come_in() {
        let arguments: Vec<OsString> = ["ostler", "--new", "hello"].map(OsString::from).into();
        let sorted = sort(&Args::command(), arguments.clone());
        assert_eq!(sorted, Sorted { arguments, unknown: Vec::new() });
    }
}

//! Every option of every command has an effect that a test shows: `tests/flags.txt` names the test.

use std::collections::BTreeMap;
use std::path::Path;

use clap::{Command, CommandFactory as _};

use super::Args;

const TABLE: &str = include_str!("../../tests/flags.txt");
/// Stands in place of a test: the option is only accepted for compatibility, and its help text says so.
const COMPATIBLE: &str = "compatible";

/// All options by command, with their help texts. An inherited option is listed at the command that declares it.
fn options() -> BTreeMap<(String, String), String> {
    let mut found = BTreeMap::new();
    collect("ostler", &Args::command(), &mut found);
    found
}

fn collect(path: &str, command: &Command, found: &mut BTreeMap<(String, String), String>) {
    for arg in command.get_arguments() {
        if let Some(long) = arg.get_long().filter(|long| !matches!(*long, "help" | "version")) {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            found.insert((path.to_owned(), format!("--{long}")), help);
        }
    }
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        collect(&format!("{path}/{}", below.get_name()), below, found);
    }
}

/// The rows of the table: command and option, and the rest of the line.
fn rows() -> BTreeMap<(String, String), Vec<&'static str>> {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let row = |line: &'static str| {
        let mut words = line.split(' ');
        let key = (words.next().unwrap().to_owned(), words.next().unwrap().to_owned());
        (key, words.collect())
    };
    lines.map(row).collect()
}

#[test]
fn every_option_is_in_the_table_and_nothing_else_is() {
    let (options, rows) = (options(), rows());
    let missing: Vec<_> = options.keys().filter(|key| !rows.contains_key(*key)).collect();
    assert!(
        missing.is_empty(),
        "add to tests/flags.txt which test shows the effect of {missing:?}"
    );
    let gone: Vec<_> = rows.keys().filter(|key| !options.contains_key(*key)).collect();
    assert!(
        gone.is_empty(),
        "these options no longer exist: remove them from tests/flags.txt: {gone:?}"
    );
}

#[test]
fn the_tests_named_in_the_table_exist_and_mention_their_options() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for ((command, option), words) in rows() {
        let case = format!("{command} {option}");
        let (file, test) = match words[..] {
            [COMPATIBLE] => {
                let help = &options()[&(command, option)];
                assert!(help.starts_with("Accepted for compatibility"), "{case}: {help}");
                continue;
            }
            [file, test, ..] => (file, test),
            _ => panic!("{case}: name a file and a test"),
        };
        let text = std::fs::read_to_string(crates.join(file)).expect(&case);
        let is_test =
            text.contains(&format!("\nfn {test}()")) || text.contains(&format!("fn {test}()"));
        assert!(is_test, "{case}: there is no test {test} in {file}");
        let word = words.get(2).copied().unwrap_or(&option);
        let is_there = text.contains(&format!("\"{word}"))
            || text.contains(&format!("{word} "))
            || text.contains(&format!("{word}\""));
        assert!(is_there, "{case}: {file} does not mention {word}");
    }
}

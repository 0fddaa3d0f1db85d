//! The table of attacks that the tests of `ostler-cli` made, with the time and the peak memory of each.
//!
//! Tests append rows to the file in an environment variable. `attacks.txt` next to the tests lists the required rows,
//! so that an attack that is no longer made is a failure.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::cargo;

/// The variable with the file that tests append their rows to.
const TABLE: &str = "OSTLER_ATTACK_TABLE";
/// The most seconds that an attack may take, on the slowest machine.
const TIME_LIMIT: f64 = 120.0;

/// A row: the attack, its result, how many seconds it took, and the memory of the process in kilobytes.
#[derive(Debug, PartialEq)]
struct Row {
    name: String,
    result: String,
    seconds: f64,
    peak: u64,
    limit: u64,
}

impl Row {
    /// From a line of five fields with tabs between them.
    fn parse(line: &str) -> Result<Self> {
        let fields: Vec<_> = line.split('\t').collect();
        let [name, result, seconds, peak, limit] = fields[..] else {
            anyhow::bail!("not a row of the table of attacks: {line:?}")
        };
        let number = |text: &str| text.parse().with_context(|| format!("a number in {line:?}"));
        let seconds = seconds.parse().with_context(|| format!("the seconds in {line:?}"))?;
        let (name, result) = (name.to_owned(), result.to_owned());
        Ok(Self { name, result, seconds, peak: number(peak)?, limit: number(limit)? })
    }
}

/// Starts an empty table; returns the variable for the tests.
pub(crate) fn begin() -> Result<(OsString, OsString)> {
    let table = table()?;
    if let Err(error) = fs::remove_file(&table)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        return Err(error).with_context(|| format!("removing {}", table.display()));
    }
    Ok((TABLE.into(), table.into()))
}

/// Next to this program, in cargo's target folder.
fn table() -> Result<PathBuf> {
    Ok(std::env::current_exe().context("finding this program")?.with_file_name("attacks.tsv"))
}

/// Prints the table. Returns whether every attack was made, and none took too long or too much memory.
pub(crate) fn check() -> Result<bool> {
    let text = fs::read_to_string(table()?).context("reading the table of attacks")?;
    let rows = text.lines().map(Row::parse).collect::<Result<Vec<_>>>()?;
    let list = cargo::root().join("crates/ostler-cli/tests/attacks.txt");
    let expected = fs::read_to_string(&list).with_context(|| list.display().to_string())?;
    let expected: Vec<_> = expected.lines().filter(|line| !line.trim().is_empty()).collect();
    ensure!(!expected.is_empty(), "{} names no attack", list.display());
    eprint!("{}", render(&rows));
    let problems = problems(&rows, &expected);
    for problem in &problems {
        eprintln!("attacks: {problem}");
    }
    Ok(problems.is_empty())
}

/// What is wrong with a table.
fn problems(rows: &[Row], expected: &[&str]) -> Vec<String> {
    let too_large = rows.iter().filter(|row| row.peak >= row.limit).map(|row| {
        format!("{} took {} MB, more than {} MB", row.name, row.peak / 1000, row.limit / 1000)
    });
    let too_long = rows.iter().filter(|row| row.seconds >= TIME_LIMIT);
    let too_long = too_long.map(|row| format!("{} took {:.0} s", row.name, row.seconds));
    let missing = expected.iter().filter(|name| !rows.iter().any(|row| row.name == **name));
    let missing = missing.map(|name| format!("{name}: was not made"));
    let unlisted = rows.iter().filter(|row| !expected.contains(&&*row.name));
    let unlisted = unlisted.map(|row| format!("{}: add it to attacks.txt", row.name));
    too_large.chain(too_long).chain(missing).chain(unlisted).collect()
}

/// One line for each row, sorted by name.
fn render(rows: &[Row]) -> String {
    let mut rows: Vec<_> = rows.iter().collect();
    rows.sort_by(|one, other| one.name.cmp(&other.name));
    let widest = |length: fn(&Row) -> usize| {
        rows.iter().map(|row| length(row)).fold("attack".len(), usize::max)
    };
    let (name, result) =
        (widest(|row| row.name.chars().count()), widest(|row| row.result.chars().count()));
    let mut text =
        format!("{:name$}  {:result$}  seconds  peak MB  limit MB\n", "attack", "result");
    for row in rows {
        text += &format!(
            "{:name$}  {:result$}  {:>7.1}  {:>7}  {:>8}\n",
            row.name,
            row.result,
            row.seconds,
            row.peak / 1000,
            row.limit / 1000
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Row, problems, render};

    fn row(line: &str) -> Row {
        Row::parse(line).unwrap()
    }

    #[test]
    fn rows_are_shown_in_order_with_megabytes() {
        let rows = [row("b\tended\t1.25\t45000\t200000"), row("a long one\tx\t10\t1200\t400000")];
        let expected = "attack      result  seconds  peak MB  limit MB\n\
                        a long one  x          10.0        1       400\n\
                        b           ended       1.2       45       200\n";
        assert_eq!(render(&rows), expected);
    }

    #[test]
    fn missing_unknown_slow_and_too_large_rows_are_problems() {
        let rows = [row("a\tx\t1\t1\t2"), row("b\tx\t1\t2000\t2000"), row("c\tx\t120\t1\t2")];
        let found = problems(&rows, &["a", "b", "d"]);
        let expected = [
            "b took 2 MB, more than 2 MB",
            "c took 120 s",
            "d: was not made",
            "c: add it to attacks.txt",
        ];
        assert_eq!(found, expected);
        assert_eq!(problems(&rows[..1], &["a"]), [""; 0]);
    }

    #[test]
    fn a_line_that_is_not_a_row_is_an_error() {
        for line in ["", "a\tb\t1\t1", "a\tb\tlong\t1\t2", "a\tb\t1\tmany\t2"] {
            assert!(Row::parse(line).is_err(), "{line}");
        }
    }
}

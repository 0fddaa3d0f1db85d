//! Replaces rustdoc while cargo tests the examples in the documentation, and also builds the documentation to check
//! its links. `cargo doc` finds the same, but compiles every dependency again.

use std::ffi::{OsStr, OsString};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::cargo;

/// The variable with the path of the real rustdoc.
const REAL: &str = "OSTLER_XTASK_RUSTDOC";

/// Makes cargo use this program as its rustdoc.
pub(crate) fn stand_in_for(cargo: &mut Command) -> Result<()> {
    let next_to_cargo = std::env::var_os("CARGO")
        .map(|cargo| std::path::Path::new(&cargo).with_file_name("rustdoc"));
    let real = next_to_cargo.filter(|path| path.is_file()).unwrap_or_else(|| "rustdoc".into());
    // A copy, because the build replaces this program. If it already has, the program has no name any more, and is
    // only reachable through the system.
    let me = std::env::current_exe().context("finding this program")?;
    let running = std::path::Path::new("/proc/self/exe");
    let source = if running.exists() { running } else { &me };
    let copy = me.with_file_name("xtask-rustdoc");
    std::fs::copy(source, &copy).with_context(|| format!("writing {}", copy.display()))?;
    cargo.env("RUSTDOC", copy).env(REAL, real);
    Ok(())
}

/// Acts as rustdoc; `None` if this program was started as itself.
pub(crate) fn as_rustdoc(args: &[OsString]) -> Option<Result<ExitCode>> {
    let real = std::env::var_os(REAL)?;
    Some(run(&real, args))
}

fn run(real: &OsStr, args: &[OsString]) -> Result<ExitCode> {
    if let Some(args) = writing(args) {
        let out = std::env::current_exe()?.with_file_name("xtask-doc");
        let mut rustdoc = Command::new(real);
        // Not on standard output, which has the test results.
        rustdoc.args(args).arg("--out-dir").arg(out).stdout(std::io::stderr());
        // Everything but writing the pages. It is not stable yet; with this variable rustdoc accepts it.
        rustdoc.args(["-Zunstable-options", "--check"]).env("RUSTC_BOOTSTRAP", "1");
        let status = cargo::status(&mut rustdoc)?;
        if !status.success() {
            return Ok(cargo::exit_code(status));
        }
    }
    Ok(cargo::exit_code(cargo::status(Command::new(real).args(args))?))
}

/// Converts arguments that test documentation into ones that build it; `None` for other arguments.
fn writing(args: &[OsString]) -> Option<Vec<OsString>> {
    if !args.iter().any(|arg| arg == "--test") {
        return None;
    }
    let mut writing = vec![OsString::from("-Dwarnings")];
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.to_str() {
            Some("--test" | "--no-run" | "--nocapture") => {}
            Some("--test-run-directory" | "--test-args" | "--test-runtool") => drop(args.next()),
            _ => writing.push(arg.clone()),
        }
    }
    Some(writing)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::writing;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn testing_examples_also_builds_the_documentation() {
        let test = words(
            "--crate-name a --test src/lib.rs --test-run-directory /p --extern b=b.rlib --test-args --quiet",
        );
        let expected = words("-Dwarnings --crate-name a src/lib.rs --extern b=b.rlib");
        assert_eq!(writing(&test), Some(expected));
        assert_eq!(writing(&words("-vV")), None);
    }
}

//! What a fresh machine may lack, put right where that is possible and explained where it is not.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::cargo;

/// A C compiler: Rust links with it, and some packages are partly C.
pub(crate) fn linker() -> Result<()> {
    if works("cc", &["--version"]) {
        return Ok(());
    }
    if is_root() && works("apt-get", &["--version"]) {
        eprintln!("installing build-essential: there is no C compiler…");
        let installed =
            apt(&["update"]) && apt(&["install", "--no-install-recommends", "build-essential"]);
        if installed && works("cc", &["--version"]) {
            return Ok(());
        }
    }
    bail!(
        "there is no C compiler; install one, on Debian or Ubuntu: sudo apt-get install build-essential"
    )
}

/// The formatter and the linter, which the smallest installation of Rust leaves out.
pub(crate) fn components() -> Result<()> {
    for (subcommand, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if quiet(&mut cargo::cargo(&[subcommand, "--version"])) {
            continue;
        }
        eprintln!("installing {component}…");
        if !quiet(Command::new("rustup").args(["component", "add", component])) {
            bail!("cargo {subcommand} is missing; install it: rustup component add {component}");
        }
    }
    Ok(())
}

/// Whether a program is there and starts.
pub(crate) fn works(program: &str, args: &[&str]) -> bool {
    quiet(Command::new(program).args(args))
}

fn quiet(command: &mut Command) -> bool {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn apt(args: &[&str]) -> bool {
    let mut command = Command::new("apt-get");
    command.args(["--yes", "--quiet"]).args(args).env("DEBIAN_FRONTEND", "noninteractive");
    // Standard output belongs to whatever is run in the end.
    let output = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    output.is_ok_and(|status| status.success())
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::works;

    #[test]
    fn a_program_that_is_not_there_does_not_work() {
        assert!(works("rustc", &["--version"]));
        assert!(!works("rustc", &["--no-such-option"]));
        assert!(!works("no-such-program-anywhere", &[]));
    }
}

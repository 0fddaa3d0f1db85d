//! What a fresh machine may lack, put right where that is possible and explained where it is not.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::cargo;

/// A C compiler: Rust links with it, and some packages are partly C.
pub(crate) fn linker() -> Result<()> {
    provide(&["cc", "--version"], "build-essential", "a C compiler")
}

/// A terminal that tests can type into and look at.
pub(crate) fn tmux() -> Result<()> {
    provide(&["tmux", "-V"], "tmux", "tmux, in which the tests drive the terminal")
}

/// A browser, in which the tests use the page.
pub(crate) fn chromium() -> Result<()> {
    provide(&["chromium", "--version"], "chromium", "Chromium, in which the page is tested")
}

/// Installs a package when `probe` does not run and this machine allows it.
fn provide(probe: &[&str], package: &str, what: &str) -> Result<()> {
    let is_there = || works(probe[0], &probe[1..]);
    if is_there() {
        return Ok(());
    }
    if let Some(apt) = Apt::find() {
        eprintln!("installing {package}: there is no {}…", probe[0]);
        let installed =
            apt.run(&["update"]) && apt.run(&["install", "--no-install-recommends", package]);
        if installed && is_there() {
            return Ok(());
        }
    }
    bail!("{what} is missing; install it, on Debian or Ubuntu: sudo apt-get install {package}")
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

/// Debian's installer, run as somebody who may.
struct Apt {
    /// Needed by everybody but root, and used only where it asks for no password.
    sudo: bool,
}

impl Apt {
    fn find() -> Option<Self> {
        if !works("apt-get", &["--version"]) {
            return None;
        }
        let sudo = !is_root();
        (!sudo || works("sudo", &["-n", "true"])).then_some(Self { sudo })
    }

    fn run(&self, args: &[&str]) -> bool {
        let words = if self.sudo { &["sudo", "-n", "env"][..] } else { &["env"] };
        let mut command = Command::new(words[0]);
        // `env`, because sudo does not pass the environment on.
        command.args(&words[1..]).args(["DEBIAN_FRONTEND=noninteractive", "apt-get"]);
        command.args(["--yes", "--quiet"]).args(args);
        // Standard output belongs to whatever is run in the end.
        let output = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
        output.is_ok_and(|status| status.success())
    }
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::{provide, works};

    #[test]
    fn a_program_that_is_not_there_does_not_work() {
        assert!(works("rustc", &["--version"]));
        assert!(!works("rustc", &["--no-such-option"]));
        assert!(!works("no-such-program-anywhere", &[]));
    }

    #[test]
    fn what_is_there_is_not_installed() {
        // No package of this name exists anywhere.
        provide(&["rustc", "--version"], "no-such-package-anywhere", "a compiler").unwrap();
    }
}

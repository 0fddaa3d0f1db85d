//! Installs what a fresh machine lacks, or explains how to.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::cargo;

/// A C compiler: Rust links with it, and some packages are partly C.
pub(crate) fn linker() -> Result<()> {
    provide(&["cc", "--version"], "build-essential", "a C compiler")
}

/// A terminal for tests to type into and read.
pub(crate) fn tmux() -> Result<()> {
    provide(&["tmux", "-V"], "tmux", "tmux, in which the tests drive the terminal")
}

/// What sandboxes are made with.
pub(crate) fn bubblewrap() -> Result<()> {
    provide(&["bwrap", "--version"], "bubblewrap", "bubblewrap, in which the tests run commands")
}

/// What containers are made with. With `runc`, because `crun` refuses machines that have control groups of both versions.
pub(crate) fn podman() -> Result<()> {
    let what = "podman, in which the tests run containers";
    provide(&["podman", "--version"], "podman runc catatonit", what)
}

/// What the vendor's sandbox needs in addition.
pub(crate) fn needs_of_vendor_sandbox() -> Result<()> {
    provide(&["socat", "-V"], "socat", "socat, which the vendor's sandbox needs")?;
    provide(&["rg", "--version"], "ripgrep", "ripgrep, which the vendor's sandbox needs")
}

/// A language for the attacks that the tests try in a sandbox.
pub(crate) fn python() -> Result<()> {
    provide(&["python3", "--version"], "python3", "Python, with which the tests attack the sandbox")
}

/// A browser for the tests of the page.
pub(crate) fn chromium() -> Result<()> {
    provide(&["chromium", "--version"], "chromium", "Chromium, in which the page is tested")
}

/// Installs packages, separated by spaces, if `probe` does not run and this machine allows it.
fn provide(probe: &[&str], package: &str, what: &str) -> Result<()> {
    let is_there = || works(probe[0], &probe[1..]);
    if is_there() {
        return Ok(());
    }
    if let Some(apt) = Apt::find() {
        eprintln!("installing {package}: {} is missing…", probe[0]);
        let mut install = vec!["install", "--no-install-recommends"];
        install.extend(package.split(' '));
        let installed = apt.run(&["update"]) && apt.run(&install);
        if installed && is_there() {
            return Ok(());
        }
    }
    bail!("{what} is missing; install it, on Debian or Ubuntu: sudo apt-get install {package}")
}

/// The formatter and the linter, which a minimal installation of Rust lacks.
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

/// Whether a program exists and starts.
pub(crate) fn works(program: &str, args: &[&str]) -> bool {
    quiet(Command::new(program).args(args))
}

fn quiet(command: &mut Command) -> bool {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Debian's installer, run with sufficient rights.
struct Apt {
    /// Needed unless the user is root, and used only if it needs no password.
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
        // Standard output is for the program that is run in the end.
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
    fn a_missing_program_does_not_work() {
        assert!(works("rustc", &["--version"]));
        assert!(!works("rustc", &["--no-such-option"]));
        assert!(!works("no-such-program-anywhere", &[]));
    }

    #[test]
    fn an_existing_program_is_not_installed() {
        // No package has this name.
        provide(&["rustc", "--version"], "no-such-package-anywhere", "a compiler").unwrap();
    }
}

//! `run`: builds the product and starts it; without arguments the server, which needs no key.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;

use crate::{cargo, setup, web};

pub(crate) fn run(args: &[OsString]) -> Result<ExitCode> {
    setup::linker()?;
    if is_server(args) {
        web::build_if_missing();
    }
    eprintln!("building ostler (the first time takes a few minutes)…");
    let mut command = cargo::cargo(&["run", "--quiet", "--package", "ostler-cli"]);
    command.args(["--bin", "ostler", "--manifest-path"]).arg(cargo::root().join("Cargo.toml"));
    command.arg("--").args(meant(args));
    // The agent works in the current folder, not at the top of this repository.
    command.current_dir(std::env::current_dir()?);
    replace(command)
}

fn is_server(args: &[OsString]) -> bool {
    args.first().is_none_or(|first| first == "serve")
}

/// The arguments for `ostler`.
fn meant(args: &[OsString]) -> Vec<OsString> {
    match args {
        [] => ["serve", "--show-token", "--show-code"].map(OsString::from).to_vec(),
        [chat, rest @ ..] if chat == "chat" => rest.to_vec(),
        args => args.to_vec(),
    }
}

/// Replaces this process with the command, so that signals and the exit code need not be forwarded.
#[cfg(unix)]
fn replace(mut command: std::process::Command) -> Result<ExitCode> {
    use std::os::unix::process::CommandExt;

    let error = command.exec();
    Err(anyhow::Error::new(error).context(format!("starting {}", command.get_program().display())))
}

#[cfg(not(unix))]
fn replace(mut command: std::process::Command) -> Result<ExitCode> {
    Ok(cargo::exit_code(cargo::status(&mut command)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_arguments_it_serves_and_everything_else_is_passed_on() {
        for (given, expected) in [
            ("", "serve --show-token --show-code"),
            ("chat", ""),
            ("chat --continue", "--continue"),
            ("serve --listen 127.0.0.1:0", "serve --listen 127.0.0.1:0"),
            ("-p chat", "-p chat"),
        ] {
            let given: Vec<OsString> = given.split_whitespace().map(OsString::from).collect();
            let expected: Vec<OsString> = expected.split_whitespace().map(OsString::from).collect();
            assert_eq!(meant(&given), expected);
        }
    }
}

//! `run`: builds the product and starts it; without arguments the server. Without a key it chooses the offline demo.

use std::ffi::OsString;
use std::path::PathBuf;
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
    if !has_key(|name| std::env::var_os(name)) {
        command.env("OSTLER_OFFLINE", "1");
    }
    // The agent works in the current folder, not at the top of this repository.
    command.current_dir(std::env::current_dir()?);
    replace(command)
}

fn is_server(args: &[OsString]) -> bool {
    args.first().is_none_or(|first| first == "serve")
}

/// Whether the user has a key: in the environment, or from a login with the vendor's program.
fn has_key(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    const NAMES: [&str; 4] =
        ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "OSTLER_OFFLINE"];
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let folder = set("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    let folder = folder.or_else(|| Some(PathBuf::from(set("HOME")?).join(".claude")));
    NAMES.iter().any(|name| set(name).is_some())
        || folder.is_some_and(|folder| folder.join(".credentials.json").is_file())
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

    // Mutant: the file of a login is not looked for.
    #[test]
    fn the_demo_is_chosen_only_if_the_user_has_no_key() {
        let folder = std::env::temp_dir().join(format!("ostler-run-{}", std::process::id()));
        std::fs::create_dir_all(folder.join(".claude")).unwrap();
        let home = folder.as_os_str().to_owned();
        let of = |given: Option<&str>| {
            has_key(|name| match name {
                "HOME" => Some(home.clone()),
                name if Some(name) == given => Some("x".into()),
                _ => None,
            })
        };
        assert!(!of(None));
        assert!(of(Some("ANTHROPIC_API_KEY")) && of(Some("CLAUDE_CODE_OAUTH_TOKEN")));
        std::fs::write(folder.join(".claude/.credentials.json"), "{}").unwrap();
        assert!(of(None));
        std::fs::remove_dir_all(&folder).unwrap();
    }

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

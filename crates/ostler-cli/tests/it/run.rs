//! Runs the program in a new folder, without the machine's keys.

use std::fs;
use std::io::Write;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_ostler");

/// Chooses the offline demo.
pub(crate) const OFFLINE: &str = "OSTLER_OFFLINE";
/// Variables with which a test uses another model.
const CREDENTIALS: [&str; 3] =
    ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"];

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: Option<i32>,
}

pub(crate) struct Ostler {
    /// Usually the tested program.
    pub(crate) program: std::path::PathBuf,
    pub(crate) folder: TempDir,
    pub(crate) arguments: Vec<String>,
    pub(crate) variables: Vec<(String, String)>,
}

impl Ostler {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("README.md"), "# A readme\n").unwrap();
        // Tests may run as root, in a container.
        let variables = vec![("IS_SANDBOX".to_owned(), "1".to_owned())];
        Self { program: PROGRAM.into(), folder, arguments: Vec::new(), variables }
    }

    pub(crate) fn args(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// Runs the program with additional arguments and without input.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        self.start(arguments, &[])
    }

    /// Types `lines`, ends the input and waits.
    pub(crate) fn type_lines(&self, lines: &[&str]) -> Ran {
        self.start(&[], lines)
    }

    fn start(&self, arguments: &[&str], lines: &[&str]) -> Ran {
        let mut child = self.spawn(arguments);
        let mut stdin = child.stdin.take().unwrap();
        for line in lines {
            // A program that ended early has closed its end; its output says why.
            let _ = writeln!(stdin, "{line}");
        }
        drop(stdin);
        Ran::of(child)
    }

    /// Starts the program with pipes for input and output.
    pub(crate) fn spawn(&self, arguments: &[&str]) -> Child {
        let mut command = Command::new(&self.program);
        self.furnish(&mut command);
        command
            .args(&self.arguments)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Gives a command the folder, and an environment without the machine's keys.
    pub(crate) fn furnish(&self, command: &mut Command) {
        command
            .current_dir(self.folder.path())
            .env("HOME", self.folder.path().join("no-home"))
            .env_remove("CLAUDE_CONFIG_DIR")
            .env_remove("ANTHROPIC_API_KEY")
            .env_remove("ANTHROPIC_AUTH_TOKEN")
            .env_remove("ANTHROPIC_BASE_URL")
            .env_remove("ANTHROPIC_MODEL")
            .env_remove("CLAUDE_CODE_OAUTH_TOKEN")
            .env_remove("NO_COLOR")
            .env_remove("CLICOLOR_FORCE")
            .envs(self.variables.clone());
        // Without a key the offline demo answers, because these tests choose it.
        let names: Vec<&str> = self.variables.iter().map(|(name, _)| name.as_str()).collect();
        if !names.iter().any(|name| CREDENTIALS.contains(name) || *name == OFFLINE) {
            command.env(OFFLINE, "1");
        }
    }
}

impl Ran {
    /// Waits for the end.
    pub(crate) fn of(child: Child) -> Self {
        let output = child.wait_with_output().unwrap();
        Self {
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code(),
        }
    }

    /// Fails unless all of `parts` were printed, in this order.
    pub(crate) fn shows(&self, parts: &[&str]) {
        let mut rest = self.stdout.as_str();
        for part in parts {
            let Some(at) = rest.find(part) else {
                panic!("{part:?} is missing in:\n{}\n{}", self.stdout, self.stderr);
            };
            rest = &rest[at + part.len()..];
        }
    }
}

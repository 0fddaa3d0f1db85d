//! The check command of a schedule, which decides whether the agent starts.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ostler_base::error::{ApiError, Fallible};
use ostler_process::{Confine, Group, PipedCommand};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::record::Check;

/// How many bytes of its output are used.
const LONGEST: u64 = 16 * 1024;
/// The variables of the server that it gets: none of them is a secret.
const VARIABLES: [&str; 7] = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "USER"];

/// The result of a check.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CheckOutcome {
    /// The agent starts; with the output.
    Wake(String),
    /// The agent does not start; with the reason.
    Sleep(String),
}

impl Check {
    /// # Errors
    /// When there is no command, or its time limit is invalid.
    pub(super) fn validate(&self) -> Fallible<()> {
        let example =
            "such as {\"command\": [\"/usr/local/bin/changed.sh\", \"src\"], \"seconds\": 60}";
        let wrong = |field: &str, what: &str| {
            Err(ApiError::invalid(format!("check.{field}"), what).hint(example))
        };
        if self.command.first().is_none_or(|program| program.trim().is_empty()) {
            return wrong("command", "the command needs a program, followed by its arguments");
        }
        if self.command.len() > 100 || self.command.iter().any(|word| word.contains('\0')) {
            return wrong(
                "command",
                "the command can have at most 100 arguments, and no zero bytes",
            );
        }
        if !(1..=300).contains(&self.seconds) {
            return wrong("seconds", "the time limit of a check must be between 1 and 300 seconds");
        }
        Ok(())
    }

    /// The program with links resolved. It must lie where no agent can write, because it runs without approval, as the
    /// server's user.
    ///
    /// # Errors
    /// When the path is not absolute or does not exist, the program is an interpreter that would run another file, or
    /// it is in one of `writable`.
    pub(super) fn resolve(&self, writable: &[PathBuf]) -> Fallible<PathBuf> {
        let said = self.command.first().map(PathBuf::from).unwrap_or_default();
        let refused = |why: &str| {
            let message = format!("the check {} {why}", said.display());
            let hint =
                "name a program by its absolute path, outside of all folders where agents work";
            Err(ApiError::invalid("check.command", message).hint(hint))
        };
        if !said.is_absolute() {
            return refused("is not an absolute path");
        }
        let Ok(real) = said.canonicalize() else { return refused("does not exist") };
        let touches = |folder: &PathBuf| {
            let folder = folder.canonicalize().unwrap_or_else(|_| folder.clone());
            real.starts_with(&folder) || said.starts_with(&folder)
        };
        if writable.iter().any(touches) {
            return refused("is in a folder where agents can write");
        }
        let names =
            [&said, &real].map(|path| path.file_name().unwrap_or_default().to_string_lossy());
        if names.iter().any(|name| is_interpreter(name)) {
            return refused("runs other files, which agents may be able to write");
        }
        Ok(real)
    }

    /// Runs the command in a folder, in a sandbox if there is one. After an error the agent does not start.
    pub(super) async fn run(
        &self,
        folder: &Path,
        about: &[(&str, String)],
        sandbox: Option<&dyn Confine>,
    ) -> CheckOutcome {
        let limit = Duration::from_secs(self.seconds);
        // On timeout the process is dropped, with everything it started.
        match tokio::time::timeout(limit, self.ask(folder, about, sandbox)).await {
            Ok(said) => said,
            Err(_) => CheckOutcome::Sleep(format!("the check took longer than {} s", self.seconds)),
        }
    }

    async fn ask(
        &self,
        folder: &Path,
        about: &[(&str, String)],
        boundary: Option<&dyn Confine>,
    ) -> CheckOutcome {
        let Some((program, arguments)) = self.command.split_first() else {
            return CheckOutcome::Sleep("the check has no command".to_owned());
        };
        let own = VARIABLES.iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
        let about = about.iter().map(|(name, value)| (name.into(), value.into()));
        let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
        let command = PipedCommand {
            program: Path::new(program),
            arguments: &arguments,
            folder,
            environment: own.chain(about).collect(),
            boundary,
        };
        let mut group = match Group::spawn_piped(command) {
            Ok(group) => group,
            Err(error) => {
                return CheckOutcome::Sleep(format!("the check {program} does not start: {error}"));
            }
        };
        // It has no input.
        drop(group.stdin());
        let (stdout, stderr) = (group.stdout(), group.stderr());
        let (printed, complained, ended) =
            tokio::join!(beginning(stdout), beginning(stderr), group.wait());
        match ended {
            Ok(status) if status.success() => CheckOutcome::Wake(printed),
            Ok(status) => {
                let said = if complained.trim().is_empty() { printed } else { complained };
                let said: String = said.trim().chars().take(300).collect();
                let colon = if said.is_empty() { "" } else { ": " };
                CheckOutcome::Sleep(format!("the check failed ({status}){colon}{said}"))
            }
            Err(error) => {
                CheckOutcome::Sleep(format!("the check {program} cannot be waited for: {error}"))
            }
        }
    }
}

/// Whether a program runs files named in its arguments.
fn is_interpreter(name: &str) -> bool {
    const KNOWN: [&str; 26] = [
        "sh", "bash", "dash", "zsh", "ksh", "fish", "busybox", "env", "xargs", "nice", "nohup",
        "setsid", "timeout", "sudo", "doas", "su", "perl", "ruby", "node", "deno", "bun", "php",
        "lua", "make", "awk", "find",
    ];
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    KNOWN.contains(&plain) || plain == "python" || plain == "pypy" || plain.ends_with("awk")
}

/// The beginning of the output; the rest is read too, so that the program does not block.
async fn beginning(from: Option<impl AsyncRead + Unpin>) -> String {
    let Some(from) = from else { return String::new() };
    let mut from = from.take(LONGEST);
    let mut bytes = Vec::new();
    // After a read error, the bytes read so far are used.
    let _ = from.read_to_end(&mut bytes).await;
    let _ = tokio::io::copy(&mut from.into_inner(), &mut tokio::io::sink()).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn said(words: &[&str]) -> CheckOutcome {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("here"), "").unwrap();
        let command = words.iter().map(|word| (*word).to_owned()).collect();
        let check = Check { command, seconds: 30, tell: true };
        check.run(folder.path(), &[("OSTLER_SCHEDULE", "s1".to_owned())], None).await
    }

    #[tokio::test]
    async fn only_exit_code_zero_starts_the_agent_and_the_output_is_returned() {
        assert_eq!(said(&["/bin/ls"]).await, CheckOutcome::Wake("here\n".to_owned()));
        assert_eq!(
            said(&["/bin/sh", "-c", "echo $OSTLER_SCHEDULE"]).await,
            CheckOutcome::Wake("s1\n".to_owned())
        );
        let CheckOutcome::Sleep(why) = said(&["/bin/sh", "-c", "echo nothing new; exit 3"]).await
        else {
            panic!("the check must fail")
        };
        assert!(why.contains("nothing new") && why.contains('3'), "{why}");
        let CheckOutcome::Sleep(why) = said(&["/no/such/program"]).await else {
            panic!("it must not start")
        };
        assert!(why.contains("/no/such/program"), "{why}");
        let CheckOutcome::Sleep(why) = said(&["/bin/sh", "-c", "kill -9 $$"]).await else {
            panic!("it was killed")
        };
        assert!(why.contains("signal"), "{why}");
    }

    #[tokio::test]
    async fn no_shell_interprets_the_arguments() {
        let spoken = said(&["/bin/echo", "$(id)", ";", "`id`", "$HOME"]).await;
        assert_eq!(spoken, CheckOutcome::Wake("$(id) ; `id` $HOME\n".to_owned()));
    }

    // Seen to fail without `env_clear`.
    #[tokio::test]
    async fn a_check_does_not_get_the_servers_variables() {
        let CheckOutcome::Wake(seen) = said(&["/usr/bin/env"]).await else {
            panic!("env succeeds")
        };
        assert!(!seen.contains("CARGO"), "{seen}");
        assert!(seen.contains("PATH="), "{seen}");
    }

    #[tokio::test]
    async fn long_output_is_cut_and_does_not_block() {
        let CheckOutcome::Wake(printed) = said(&["/bin/sh", "-c", "yes | head -n 100000"]).await
        else {
            panic!("it succeeds")
        };
        assert_eq!(printed.len() as u64, LONGEST);
    }

    #[tokio::test]
    async fn a_check_that_does_not_end_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let command = vec!["/bin/sleep".to_owned(), "600".to_owned()];
        let check = Check { command, seconds: 1, tell: false };
        let CheckOutcome::Sleep(why) = check.run(folder.path(), &[], None).await else {
            panic!("the check must time out")
        };
        assert!(why.contains("longer than 1 s"), "{why}");
    }
}

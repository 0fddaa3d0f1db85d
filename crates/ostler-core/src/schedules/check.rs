//! The command that decides whether an agent is woken.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use ostler_base::error::{ApiError, Fallible};
use ostler_process::Group;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::record::Check;

/// How much of what it prints is kept.
const LONGEST: u64 = 16 * 1024;
/// What it sees of the server's own variables: none of them is a secret.
const VARIABLES: [&str; 7] = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "USER"];

/// What it came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// The agent is woken; what was printed.
    Wake(String),
    /// It is not, for this reason.
    Sleep(String),
}

impl Check {
    /// # Errors
    /// When there is no command, or it takes too long.
    pub(super) fn validate(&self) -> Fallible<()> {
        let example =
            "such as {\"command\": [\"/usr/local/bin/changed.sh\", \"src\"], \"seconds\": 60}";
        let wrong = |field: &str, what: &str| {
            Err(ApiError::invalid(format!("check.{field}"), what).hint(example))
        };
        if self.command.first().is_none_or(|program| program.trim().is_empty()) {
            return wrong("command", "a command has a program, and then its arguments");
        }
        if self.command.len() > 100 || self.command.iter().any(|word| word.contains('\0')) {
            return wrong("command", "a command has at most 100 words, and no zero bytes");
        }
        if !(1..=300).contains(&self.seconds) {
            return wrong("seconds", "a check takes between 1 and 300 seconds");
        }
        Ok(())
    }

    /// The program with links resolved, which must lie where no agent writes: it runs without approval, as the server's user.
    ///
    /// # Errors
    /// When it is not an absolute path, not there, an interpreter that would run another file, or in one of `writable`.
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
        let Ok(real) = said.canonicalize() else { return refused("is not there") };
        let touches = |folder: &PathBuf| {
            let folder = folder.canonicalize().unwrap_or_else(|_| folder.clone());
            real.starts_with(&folder) || said.starts_with(&folder)
        };
        if writable.iter().any(touches) {
            return refused("lies where agents can write");
        }
        let names =
            [&said, &real].map(|path| path.file_name().unwrap_or_default().to_string_lossy());
        if names.iter().any(|name| is_interpreter(name)) {
            return refused("runs other files, which may lie where agents can write");
        }
        Ok(real)
    }

    /// Runs it in a folder. Whatever goes wrong lets the agent sleep.
    pub(super) async fn run(&self, folder: &Path, about: &[(&str, String)]) -> Said {
        let limit = Duration::from_secs(self.seconds);
        // When the time is over it is dropped, and takes along all it started.
        match tokio::time::timeout(limit, self.ask(folder, about)).await {
            Ok(said) => said,
            Err(_) => Said::Sleep(format!("the check took longer than {} s", self.seconds)),
        }
    }

    async fn ask(&self, folder: &Path, about: &[(&str, String)]) -> Said {
        let Some((program, arguments)) = self.command.split_first() else {
            return Said::Sleep("the check has no command".to_owned());
        };
        let mut command = ostler_process::command(program);
        command.args(arguments).current_dir(folder).env_clear();
        command.envs(VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.envs(about.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut group = match Group::spawn(command) {
            Ok(group) => group,
            Err(error) => {
                return Said::Sleep(format!("the check {program} does not start: {error}"));
            }
        };
        let (stdout, stderr) = (group.stdout(), group.stderr());
        let (printed, complained, ended) =
            tokio::join!(beginning(stdout), beginning(stderr), group.wait());
        match ended {
            Ok(status) if status.success() => Said::Wake(printed),
            Ok(status) => {
                let said = if complained.trim().is_empty() { printed } else { complained };
                let said: String = said.trim().chars().take(300).collect();
                let colon = if said.is_empty() { "" } else { ": " };
                Said::Sleep(format!("the check said no ({status}){colon}{said}"))
            }
            Err(error) => Said::Sleep(format!("the check {program} cannot be waited for: {error}")),
        }
    }
}

/// Programs that run what their arguments name.
fn is_interpreter(name: &str) -> bool {
    const KNOWN: [&str; 26] = [
        "sh", "bash", "dash", "zsh", "ksh", "fish", "busybox", "env", "xargs", "nice", "nohup",
        "setsid", "timeout", "sudo", "doas", "su", "perl", "ruby", "node", "deno", "bun", "php",
        "lua", "make", "awk", "find",
    ];
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    KNOWN.contains(&plain) || plain == "python" || plain == "pypy" || plain.ends_with("awk")
}

/// The beginning of what is printed; the rest is read too, so that nobody waits.
async fn beginning(from: Option<impl AsyncRead + Unpin>) -> String {
    let Some(from) = from else { return String::new() };
    let mut from = from.take(LONGEST);
    let mut bytes = Vec::new();
    // What came before an error is what there is.
    let _ = from.read_to_end(&mut bytes).await;
    let _ = tokio::io::copy(&mut from.into_inner(), &mut tokio::io::sink()).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn said(words: &[&str]) -> Said {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("here"), "").unwrap();
        let command = words.iter().map(|word| (*word).to_owned()).collect();
        let check = Check { command, seconds: 30, tell: true };
        check.run(folder.path(), &[("OSTLER_SCHEDULE", "s1".to_owned())]).await
    }

    #[tokio::test]
    async fn only_zero_wakes_the_agent_and_what_was_printed_is_kept() {
        assert_eq!(said(&["ls"]).await, Said::Wake("here\n".to_owned()));
        assert_eq!(
            said(&["sh", "-c", "echo $OSTLER_SCHEDULE"]).await,
            Said::Wake("s1\n".to_owned())
        );
        let Said::Sleep(why) = said(&["sh", "-c", "echo nothing new; exit 3"]).await else {
            panic!("it said no")
        };
        assert!(why.contains("nothing new") && why.contains('3'), "{why}");
        let Said::Sleep(why) = said(&["/no/such/program"]).await else { panic!("it cannot start") };
        assert!(why.contains("/no/such/program"), "{why}");
        let Said::Sleep(why) = said(&["sh", "-c", "kill -9 $$"]).await else {
            panic!("it was killed")
        };
        assert!(why.contains("signal"), "{why}");
    }

    #[tokio::test]
    async fn no_shell_reads_the_arguments() {
        let spoken = said(&["echo", "$(id)", ";", "`id`", "$HOME"]).await;
        assert_eq!(spoken, Said::Wake("$(id) ; `id` $HOME\n".to_owned()));
    }

    // Seen to fail without `env_clear`.
    #[tokio::test]
    async fn the_servers_variables_are_not_its_business() {
        let Said::Wake(seen) = said(&["env"]).await else { panic!("env ends well") };
        assert!(!seen.contains("CARGO"), "{seen}");
        assert!(seen.contains("PATH="), "{seen}");
    }

    #[tokio::test]
    async fn much_output_is_cut_and_nobody_waits_for_it() {
        let Said::Wake(printed) = said(&["sh", "-c", "yes | head -n 100000"]).await else {
            panic!("it ends well")
        };
        assert_eq!(printed.len() as u64, LONGEST);
    }

    #[tokio::test]
    async fn a_check_that_does_not_end_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let command = vec!["sleep".to_owned(), "600".to_owned()];
        let check = Check { command, seconds: 1, tell: false };
        let Said::Sleep(why) = check.run(folder.path(), &[]).await else { panic!("too long") };
        assert!(why.contains("longer than 1 s"), "{why}");
    }
}

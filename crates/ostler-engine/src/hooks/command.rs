//! Command hooks: the event as JSON on standard input, the answer by exit code and output.
//!
//! Exit code 0: the output is the answer, as JSON if it begins with `{`, else as text for the model where the event
//! takes some. Exit code 2: an objection, with the error output as its reason, where the event takes objections. Any
//! other code: the hook failed, which by the contract of command hooks is told to the user and otherwise ignored.
//! A first line `{"async":true}` means that the hook works on and nobody need wait.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use ostler_process::Group;
use ostler_proto::hook::{HookEvent, HookOutput};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdout, Command};
use tokio_util::task::AbortOnDropHandle;

use super::event;

/// The most of a hook's output that is read. An answer is short; a log does not belong here.
const MAX_OUTPUT: usize = 1024 * 1024;
/// How long output is awaited that something which left the hook's process group holds open.
const LINGER: Duration = Duration::from_secs(1);

/// What to run, and where.
pub(super) struct Program<'a> {
    pub(super) command: &'a str,
    /// With arguments it is a program, without a line for the shell.
    pub(super) args: Option<&'a [String]>,
    pub(super) cwd: &'a Path,
    pub(super) project: &'a Path,
    /// Variables beside those of this process.
    pub(super) env: &'a BTreeMap<String, String>,
}

/// A hook that runs. Dropping it ends it and all it started; so does the end of this process.
pub(super) struct Running {
    group: Group,
    stdout: Pipe<ChildStdout>,
    stderr: Pipe<ChildStderr>,
    _input: AbortOnDropHandle<()>,
}

/// What happens to a hook that runs.
pub(super) enum Step {
    /// It printed something.
    Output,
    /// It is over.
    Ended(ExitStatus),
}

impl Running {
    /// # Errors
    /// In words, when it cannot be started.
    pub(super) fn start(program: &Program<'_>, input: String) -> Result<Self, String> {
        let mut command = match program.args {
            Some(args) => {
                let mut command = Command::new(program.command);
                command.args(args);
                command
            }
            None => {
                let mut command = Command::new(shell());
                command.args(["-c", program.command]);
                command
            }
        };
        command
            .current_dir(program.cwd)
            .envs(program.env)
            .env("CLAUDE_PROJECT_DIR", program.project)
            .env("OSTLER", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut group = Group::spawn(command).map_err(|error| format!("cannot start: {error}"))?;
        let stdin = group.stdin();
        let write = async move {
            if let Some(mut stdin) = stdin {
                // A hook need not read what it is told.
                let _ = stdin.write_all(input.as_bytes()).await;
                let _ = stdin.write_all(b"\n").await;
            }
        };
        Ok(Self {
            stdout: Pipe::new(group.stdout()),
            stderr: Pipe::new(group.stderr()),
            group,
            _input: AbortOnDropHandle::new(tokio::spawn(write)),
        })
    }

    /// Waits for what happens next. Safe to drop and call again.
    ///
    /// # Errors
    /// In words, when the system does not tell how it ended.
    pub(super) async fn step(&mut self) -> Result<Step, String> {
        let status = tokio::select! {
            () = self.stdout.more(), if self.stdout.is_open() => return Ok(Step::Output),
            () = self.stderr.more(), if self.stderr.is_open() => return Ok(Step::Output),
            status = self.group.wait() => status,
        };
        // What it left running goes too, so that the pipes end.
        self.group.kill();
        let rest = async {
            while self.stdout.is_open() {
                self.stdout.more().await;
            }
            while self.stderr.is_open() {
                self.stderr.more().await;
            }
        };
        // Whatever left the group keeps its own company.
        let _ = tokio::time::timeout(LINGER, rest).await;
        status.map(Step::Ended).map_err(|error| format!("cannot be waited for: {error}"))
    }

    /// How long it may work on by itself, if its first line says that it does.
    pub(super) fn detaches(&self) -> Option<Duration> {
        /// Enough for a notification, and not so long that it is forgotten.
        const USUAL: Duration = Duration::from_secs(15);
        let output = self.stdout();
        let (line, _) = output.split_once('\n')?;
        let output: HookOutput = serde_json::from_str(line.trim()).ok()?;
        let limit = output.async_timeout.as_ref().map(|limit| limit.get() / 1000.0);
        output
            .is_detached()
            .then(|| limit.and_then(|limit| Duration::try_from_secs_f64(limit).ok()))
            .map(|limit| limit.unwrap_or(USUAL))
    }

    pub(super) fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.stdout.bytes).into_owned()
    }

    pub(super) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr.bytes).into_owned()
    }
}

/// What a command that ended says.
#[derive(Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "taken apart at once")]
pub(super) enum Said {
    /// An answer.
    Answer(HookOutput),
    /// A complaint that changes nothing.
    Complaint(String),
}

/// # Errors
/// In words, when the answer makes no sense.
pub(super) fn read(
    event: &HookEvent,
    status: ExitStatus,
    stdout: &str,
    stderr: &str,
) -> Result<Said, String> {
    let stderr = stderr.trim();
    match status.code() {
        Some(0) => answer(event, stdout.trim()).map(Said::Answer),
        Some(2) if event::takes_objections(event) => {
            let reason = if stderr.is_empty() { "a hook objects" } else { stderr };
            Ok(Said::Answer(HookOutput::block(reason)))
        }
        _ => Ok(Said::Complaint(format!("{status}: {stderr}"))),
    }
}

/// What the output of a hook that went well says.
///
/// # Errors
/// In words, when it looks like an answer and is none.
pub(super) fn answer(event: &HookEvent, text: &str) -> Result<HookOutput, String> {
    if text.starts_with('{') {
        return serde_json::from_str(text)
            .map_err(|error| format!("its answer is malformed: {error}"));
    }
    if !event::takes_text(event) || text.is_empty() {
        return Ok(HookOutput::none());
    }
    Ok(HookOutput::context(event, text).unwrap_or_else(|| {
        let said = serde_json::json!({"hookEventName": event, "additionalContext": text});
        serde_json::from_value(serde_json::json!({"hookSpecificOutput": said})).unwrap_or_default()
    }))
}

fn shell() -> &'static str {
    // By their full paths: what a project puts on PATH shall not stand in for the shell.
    let known = ["/bin/bash", "/usr/bin/bash"].into_iter().find(|shell| Path::new(shell).exists());
    known.unwrap_or("/bin/sh")
}

/// One output, as far as it came.
struct Pipe<R> {
    pipe: Option<R>,
    bytes: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Pipe<R> {
    fn new(pipe: Option<R>) -> Self {
        Self { pipe, bytes: Vec::new() }
    }

    fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Reads on. What is too much is read and forgotten, or the hook would wait for ever for somebody to read it.
    async fn more(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        let mut piece = [0; 8 * 1024];
        match pipe.read(&mut piece).await {
            Ok(n) if n > 0 => {
                let room = MAX_OUTPUT.saturating_sub(self.bytes.len());
                self.bytes.extend_from_slice(&piece[..n.min(room)]);
            }
            // What was read before an error is still worth having.
            _ => self.pipe = None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn exit(event: &HookEvent, code: i32) -> Said {
        read(event, ExitStatus::from_raw(code << 8), "", "why\n").unwrap()
    }

    #[test]
    fn exit_code_2_objects_only_where_somebody_listens() {
        for event in HookEvent::ALL {
            let objects = exit(event, 2) == Said::Answer(HookOutput::block("why"));
            assert_eq!(objects, event::takes_objections(event), "{event}");
            assert!(matches!(exit(event, 1), Said::Complaint(_)), "{event}");
        }
        assert!(!event::takes_objections(&HookEvent::SessionStart));
        assert!(event::takes_objections(&HookEvent::PreToolUse));
    }

    #[test]
    fn plain_output_is_context_only_where_the_event_takes_some() {
        for event in HookEvent::ALL {
            let output = answer(event, "it rains").unwrap();
            assert_eq!(output != HookOutput::none(), event::takes_text(event), "{event}");
        }
        assert!(answer(&HookEvent::Stop, "{not json").is_err());
    }
}

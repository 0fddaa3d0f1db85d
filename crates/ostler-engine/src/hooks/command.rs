//! Command hooks: the event as JSON on standard input, the answer by exit code and output.
//!
//! Exit code 0: the output is the answer, as JSON if it begins with `{`, else as text for the model where the event
//! takes some. Exit code 2: an objection where the event takes objections, with the reason in the JSON or the error
//! output. Any other code: JSON on the output is still the answer; without JSON the hook failed, which by the contract
//! of command hooks is reported to the user and otherwise ignored. A first line `{"async":true}` means that the hook
//! continues in the background.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use ostler_process::{Confine, Environment, Group, PipedCommand, shell};
use ostler_proto::hook::{HookDecision, HookEvent, HookOutput, HookSpecificOutput};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdout};
use tokio_util::task::AbortOnDropHandle;

use super::event;

/// The most bytes that are read of a hook's output. Answers are short; logs belong elsewhere.
const MAX_OUTPUT: usize = 1024 * 1024;
/// The longest first line that may say that the hook continues in the background.
const FIRST_LINE: usize = 4 * 1024;
/// How long to wait for output that a process outside the hook's process group holds open.
const LINGER: Duration = Duration::from_secs(1);

/// What to run, and where.
pub(super) struct Program<'a> {
    pub(super) command: &'a str,
    /// With arguments, `command` is a program; without, a line for the shell.
    pub(super) args: Option<&'a [String]>,
    pub(super) cwd: &'a Path,
    pub(super) project: &'a Path,
    pub(super) env: &'a Environment,
    /// What it stays inside.
    pub(super) boundary: Option<&'a dyn Confine>,
}

/// A running hook. Dropping it ends it and everything it started; so does the end of this process.
pub(super) struct RunningHook {
    group: Group,
    stdout: Pipe<ChildStdout>,
    stderr: Pipe<ChildStderr>,
    /// Whether its first line has been read.
    is_known: bool,
    _input: AbortOnDropHandle<()>,
}

/// An event of a running hook.
pub(super) enum CommandProgress {
    /// It printed something.
    Output,
    /// It is over.
    Ended(ExitStatus),
}

impl RunningHook {
    /// # Errors
    /// When it cannot be started.
    pub(super) fn start(program: &Program<'_>, input: String) -> Result<Self, String> {
        let mut environment = program.env.of_child();
        environment.insert("CLAUDE_PROJECT_DIR".into(), program.project.into());
        environment.insert("OSTLER".into(), "1".into());
        let (folder, boundary) = (program.cwd, program.boundary);
        let group = match program.args {
            Some(args) if boundary.is_some() => {
                let arguments: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
                let (program, arguments) = (Path::new(program.command), arguments.as_slice());
                Group::spawn_piped(PipedCommand {
                    program,
                    arguments,
                    folder,
                    environment,
                    boundary,
                })
            }
            Some(args) => {
                let mut command = ostler_process::command(program.command);
                command.args(args).current_dir(folder).env_clear().envs(environment);
                command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
                Group::spawn(command)
            }
            None => {
                let arguments = &["-c".as_ref(), program.command.as_ref()];
                let program = shell().as_ref();
                Group::spawn_piped(PipedCommand {
                    program,
                    arguments,
                    folder,
                    environment,
                    boundary,
                })
            }
        };
        let mut group = group.map_err(|error| format!("cannot start: {error}"))?;
        let stdin = group.stdin();
        let write = async move {
            if let Some(mut stdin) = stdin {
                // A hook need not read its input.
                let _ = stdin.write_all(input.as_bytes()).await;
                let _ = stdin.write_all(b"\n").await;
            }
        };
        Ok(Self {
            stdout: Pipe::new(group.stdout()),
            stderr: Pipe::new(group.stderr()),
            is_known: false,
            group,
            _input: AbortOnDropHandle::new(tokio::spawn(write)),
        })
    }

    /// Waits for the next event. Safe to drop and call again.
    ///
    /// # Errors
    /// When the system does not report how it ended.
    pub(super) async fn step(&mut self) -> Result<CommandProgress, String> {
        let status = tokio::select! {
            () = self.stdout.more(), if self.stdout.is_open() => return Ok(CommandProgress::Output),
            () = self.stderr.more(), if self.stderr.is_open() => return Ok(CommandProgress::Output),
            status = self.group.wait() => status,
        };
        // Processes that it left running are killed too, so that the pipes end.
        self.group.kill();
        let rest = async {
            while self.stdout.is_open() {
                self.stdout.more().await;
            }
            while self.stderr.is_open() {
                self.stderr.more().await;
            }
        };
        // Processes that left the group are not waited for longer.
        let _ = tokio::time::timeout(LINGER, rest).await;
        status.map(CommandProgress::Ended).map_err(|error| format!("cannot be waited for: {error}"))
    }

    /// How long it may continue in the background, if its first line says that it does. Reads that line once.
    pub(super) fn detaches(&mut self) -> Option<Duration> {
        /// Enough to send a notification.
        const USUAL: Duration = Duration::from_secs(15);
        if std::mem::replace(&mut self.is_known, true) {
            return None;
        }
        let bytes = &self.stdout.bytes;
        let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
            // A longer line does not say it.
            self.is_known = bytes.len() > FIRST_LINE;
            return None;
        };
        let output: HookOutput = serde_json::from_slice(&bytes[..end]).ok()?;
        let limit = output.async_timeout.as_ref().map(|limit| limit.get() / 1000.0);
        output
            .is_detached()
            .then(|| limit.and_then(|limit| Duration::try_from_secs_f64(limit).ok()))
            .map(|limit| limit.unwrap_or(USUAL))
    }

    /// How many bytes of its output are stored.
    pub(super) fn len(&self) -> usize {
        self.stdout.bytes.len() + self.stderr.bytes.len()
    }

    pub(super) fn stdout(&self) -> String {
        self.stdout.text()
    }

    pub(super) fn stderr(&self) -> String {
        self.stderr.text()
    }
}

/// The answer of a command that ended.
#[derive(Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "taken apart at once")]
pub(super) enum CommandReply {
    /// An answer.
    Answer(HookOutput),
    /// A complaint that changes nothing.
    Complaint(String),
}

/// Reads exit code and output; `objects`: exit code 2 is an objection.
///
/// # Errors
/// When the answer is malformed.
pub(super) fn read(
    event: &HookEvent,
    objects: bool,
    status: ExitStatus,
    stdout: &str,
    stderr: &str,
) -> Result<CommandReply, String> {
    let (stdout, stderr) = (stdout.trim(), stderr.trim());
    let is_json = stdout.starts_with('{');
    match status.code() {
        Some(0) => answer(event, stdout).map(CommandReply::Answer),
        Some(2) if objects => {
            // Its output cannot take the objection back, not even if it is malformed.
            let said = if is_json { answer(event, stdout).ok() } else { None };
            Ok(CommandReply::Answer(objection(said.unwrap_or_default(), stderr)))
        }
        // A complete answer counts, whatever happened afterwards.
        _ => {
            let said = if is_json { answer(event, stdout).ok() } else { None };
            let complaint = || CommandReply::Complaint(format!("{status}: {stderr}"));
            Ok(said.map_or_else(complaint, CommandReply::Answer))
        }
    }
}

/// Turns a hook's output into an objection, with the hook's reason if it has one.
fn objection(said: HookOutput, stderr: &str) -> HookOutput {
    let own = match &said.hook_specific_output {
        Some(HookSpecificOutput::PreToolUse(output)) => output.permission_decision_reason.clone(),
        _ => None,
    };
    let stderr = if stderr.is_empty() { "a hook objects" } else { stderr };
    let is_block = said.decision == Some(HookDecision::Block);
    let reason = said.reason.clone().filter(|_| is_block).or(own);
    let reason = Some(reason.unwrap_or_else(|| stderr.to_owned()));
    HookOutput { decision: Some(HookDecision::Block), reason, ..said }
}

/// Reads the output of a successful hook.
///
/// # Errors
/// When it begins like JSON and is not valid.
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

/// One output stream and what was read of it.
struct Pipe<R> {
    pipe: Option<R>,
    bytes: Vec<u8>,
    is_cut: bool,
}

impl<R: AsyncRead + Unpin> Pipe<R> {
    fn new(pipe: Option<R>) -> Self {
        Self { pipe, bytes: Vec::new(), is_cut: false }
    }

    /// As text; invalid UTF-8 is replaced.
    fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.bytes).into_owned();
        match self.is_cut {
            true => {
                format!("{text}\n[cut here: only {MAX_OUTPUT} bytes of a hook's output are read]")
            }
            false => text,
        }
    }

    fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Reads more. Bytes beyond the limit are read and dropped; otherwise the hook would block on a full pipe.
    async fn more(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        let mut piece = [0; 8 * 1024];
        match pipe.read(&mut piece).await {
            Ok(n) if n > 0 => {
                let room = MAX_OUTPUT.saturating_sub(self.bytes.len());
                self.bytes.extend_from_slice(&piece[..n.min(room)]);
                self.is_cut |= n > room;
            }
            // The bytes before an error are kept.
            _ => self.pipe = None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn exit(event: &HookEvent, code: i32, stdout: &str) -> CommandReply {
        let objects = event::takes_objections(event);
        read(event, objects, ExitStatus::from_raw(code << 8), stdout, "why\n").unwrap()
    }

    /// The events at which exit code 2 objects, as documented. At a permission question the documentation says that it
    /// has no effect; here it is a no, since a hook that objects to a permission does not want to give it.
    const OBJECTIONS: &[HookEvent] = &[
        HookEvent::PreToolUse,
        HookEvent::PostToolUse,
        HookEvent::PostToolUseFailure,
        HookEvent::PostToolBatch,
        HookEvent::UserPromptSubmit,
        HookEvent::UserPromptExpansion,
        HookEvent::Stop,
        HookEvent::SubagentStop,
        HookEvent::PreCompact,
        HookEvent::PreModelSwitch,
        HookEvent::PermissionRequest,
        HookEvent::TeammateIdle,
        HookEvent::TaskCreated,
        HookEvent::TaskCompleted,
        HookEvent::Elicitation,
        HookEvent::ElicitationResult,
        HookEvent::ConfigChange,
        HookEvent::WorktreeCreate,
    ];

    #[test]
    fn exit_code_2_is_an_objection_only_for_events_that_take_one() {
        for event in HookEvent::ALL {
            let objects = exit(event, 2, "") == CommandReply::Answer(HookOutput::block("why"));
            assert_eq!(objects, OBJECTIONS.contains(event), "{event}");
            assert!(matches!(exit(event, 1, ""), CommandReply::Complaint(_)), "{event}");
        }
    }

    #[test]
    fn no_output_takes_back_the_objection_of_exit_code_2() {
        let event = HookEvent::PreToolUse;
        let said = |stdout: &str| match exit(&event, 2, stdout) {
            CommandReply::Answer(output) => (output.decision, output.reason.unwrap()),
            complaint => panic!("{complaint:?}"),
        };
        let block = Some(HookDecision::Block);
        assert_eq!(said("{broken"), (block.clone(), "why".to_owned()));
        assert_eq!(said("fine"), (block.clone(), "why".to_owned()));
        let allow = serde_json::to_string(&HookOutput::allow()).unwrap();
        assert_eq!(said(&allow), (block.clone(), "why".to_owned()));
        let deny = serde_json::to_string(&HookOutput::deny("its own")).unwrap();
        assert_eq!(said(&deny), (block.clone(), "its own".to_owned()));
        let own = serde_json::to_string(&HookOutput::block("its own")).unwrap();
        assert_eq!(said(&own), (block, "its own".to_owned()));
    }

    #[test]
    fn an_answer_counts_whatever_the_exit_code() {
        let deny = HookOutput::deny("no");
        let text = serde_json::to_string(&deny).unwrap();
        assert_eq!(exit(&HookEvent::PreToolUse, 1, &text), CommandReply::Answer(deny));
        assert!(matches!(exit(&HookEvent::PreToolUse, 1, "{broken"), CommandReply::Complaint(_)));
        assert!(matches!(
            exit(&HookEvent::UserPromptSubmit, 1, "text"),
            CommandReply::Complaint(_)
        ));
    }

    #[test]
    fn plain_output_is_context_only_where_the_event_takes_context() {
        for event in HookEvent::ALL {
            let output = answer(event, "it rains").unwrap();
            assert_eq!(output != HookOutput::none(), event::takes_text(event), "{event}");
        }
        assert!(answer(&HookEvent::Stop, "{not json").is_err());
    }
}

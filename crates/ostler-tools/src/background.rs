//! Background commands: those that `Bash` starts with `run_in_background`, and those that the host moves to the
//! background while they run.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use ostler_engine::sandbox::Confinement;
use ostler_engine::scratch::Scratch;
use ostler_engine::tasks::{Task, TaskResult};
use ostler_engine::tool::{ToolCx, ToolError, ToolOutput};
use ostler_proto::build;
use ostler_proto::message::system::TaskOutcome;
use ostler_proto::tool::BashOutput;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::timeout;

use crate::process::{GRACE, Group, Pipes, cannot_run, code};

/// The size limit of the output file; later output is lost.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Starts a command in the background.
pub(crate) async fn start(
    cx: &ToolCx,
    cwd: &Path,
    command: &str,
    description: &str,
    confinement: &Confinement,
) -> Result<ToolOutput, ToolError> {
    cx.tasks.allowed()?;
    let cannot = |error: io::Error| cannot_run(cwd, &error);
    let mut group = Group::start(command, cwd, &cx.env, confinement).await.map_err(cannot)?;
    let pipes = group.pipes().map_err(cannot)?;
    let confinement = confinement.clone();
    let running = RunningCommand { group, pipes, written: String::new(), confinement };
    let task = leave(cx, cwd, command, description, running).await?;
    Ok(output(&task, None))
}

/// A running command, and its output so far.
pub(crate) struct RunningCommand {
    pub(crate) group: Group,
    pub(crate) pipes: Pipes,
    pub(crate) written: String,
    /// The sandbox that it runs in.
    pub(crate) confinement: Confinement,
}

/// Moves a command that a call waits for to the background.
pub(crate) async fn move_to_background(
    cx: &ToolCx,
    cwd: &Path,
    command: &str,
    description: &str,
    running: RunningCommand,
) -> Result<ToolOutput, ToolError> {
    let task = leave(cx, cwd, command, description, running).await?;
    Ok(output(&task, Some(true)))
}

/// Turns a command into a task.
async fn leave(
    cx: &ToolCx,
    cwd: &Path,
    command: &str,
    description: &str,
    running: RunningCommand,
) -> Result<Task, ToolError> {
    let cannot = |error: io::Error| cannot_run(cwd, &error);
    let task = Task::command(&cx.call, &cx.scratch, command, description).map_err(cannot)?;
    // Normally the folder is private and the name is new.
    let file = cx.scratch.create(&task.output_file).map_err(cannot)?;
    let mut log = Log { file, room: MAX_FILE_BYTES, scratch: cx.scratch.clone(), is_cut: false };
    if !running.written.is_empty() {
        let written = format!("{}\n", running.written);
        log.append(written.as_bytes(), written.len()).map_err(cannot)?;
    }
    let RunningCommand { group, pipes, confinement, .. } = running;
    let work = follow(group, pipes, log, description.to_owned(), confinement);
    cx.tasks.start(task.clone(), work).await?;
    Ok(task)
}

fn output(task: &Task, by_user: Option<bool>) -> ToolOutput {
    let structured = build!(BashOutput {
        is_image: Some(false),
        no_output_expected: Some(false),
        background_task_id: Some(task.id.clone()),
        backgrounded_by_user: by_user
    });
    let how = if by_user == Some(true) { ", where the user has put it," } else { "" };
    let text = format!(
        "[runs in the background{how} as task {}; its output goes to {}]",
        task.id,
        task.output_file.display()
    );
    ToolOutput::new(text, structured)
}

async fn follow(
    mut group: Group,
    mut pipes: Pipes,
    mut log: Log,
    description: String,
    confinement: Confinement,
) -> TaskResult {
    let failed = |error: io::Error| {
        TaskResult::new(TaskOutcome::Failed, format!("\"{description}\" was lost: {error}"))
    };
    let status = match copy(&mut group, &mut pipes, &mut log).await {
        Ok(()) => group.wait().await,
        Err(error) => Err(error),
    };
    match status {
        Ok(status) => {
            let (outcome, word) = match status.success() {
                true => (TaskOutcome::Completed, "completed"),
                false => (TaskOutcome::Failed, "failed"),
            };
            let code = code(status);
            // What limits it counts until its processes are gone.
            drop(group);
            let summary = format!("\"{description}\" {word} (exit code {code})");
            let limit = (!status.success()).then(|| limit(&confinement, code)).flatten();
            let summary = match limit {
                Some(reason) => {
                    let line = format!("\n{reason}\n");
                    // The summary says it anyway.
                    let _ = log.append(line.as_bytes(), line.len());
                    format!("{summary}. {reason}")
                }
                None => summary,
            };
            TaskResult::new(outcome, summary)
        }
        Err(error) => failed(error),
    }
}

/// A line about the limit of the sandbox that a command has reached. Its output is not read again, so nothing else is known.
fn limit(confinement: &Confinement, code: i32) -> Option<String> {
    match confinement {
        Confinement::None => None,
        Confinement::Inside { boundary, .. } => boundary.hint("", Some(code)),
    }
}

/// Copies the output of the command until it has ended or closed its pipes.
async fn copy(group: &mut Group, (stdout, stderr): &mut Pipes, log: &mut Log) -> io::Result<()> {
    let (mut from_stdout, mut from_stderr) = (vec![0; 8 * 1024], vec![0; 8 * 1024]);
    let (mut stdout_open, mut stderr_open) = (true, true);
    while stdout_open || stderr_open {
        tokio::select! {
            // Read all output before noticing the end.
            biased;
            n = stdout.read(&mut from_stdout), if stdout_open => {
                stdout_open = log.append(&from_stdout, n?)?;
            }
            n = stderr.read(&mut from_stderr), if stderr_open => {
                stderr_open = log.append(&from_stderr, n?)?;
            }
            status = group.wait() => {
                status?;
                // Leftover processes could hold the pipes open forever.
                group.kill();
                // A process that left the group may still hold a pipe; do not wait for its output.
                let rest = async {
                    drain(stdout, log).await?;
                    drain(stderr, log).await
                };
                return timeout(GRACE, rest).await.unwrap_or(Ok(()));
            }
        }
    }
    Ok(())
}

/// Reads what is left in a pipe.
async fn drain(pipe: &mut (impl AsyncRead + Unpin), log: &mut Log) -> io::Result<()> {
    let mut bytes = vec![0; 8 * 1024];
    loop {
        let n = pipe.read(&mut bytes).await?;
        if !log.append(&bytes, n)? {
            return Ok(());
        }
    }
}

/// The output file of a task.
struct Log {
    file: File,
    room: u64,
    /// The scratch folder whose quota the file uses.
    scratch: Scratch,
    /// The file ends with a note that output is missing.
    is_cut: bool,
}

impl Log {
    /// Appends the first `n` bytes; `false` if there are none, which is the end of a pipe.
    fn append(&mut self, bytes: &[u8], n: usize) -> io::Result<bool> {
        let wanted = if self.is_cut { 0 } else { self.room.min(n as u64) };
        let kept = usize::try_from(self.scratch.take_room(wanted)).unwrap_or(usize::MAX);
        // One short write into the page cache, in our own folder: a blocking thread would cost more.
        self.file.write_all(&bytes[..kept])?;
        self.room -= kept as u64;
        if kept < n && !std::mem::replace(&mut self.is_cut, true) {
            self.file.write_all(b"\n[the rest is not saved]\n")?;
        }
        Ok(n > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTE: &str = "\n[the rest is not saved]\n";

    /// The file of a task whose command writes `portion` three times.
    fn written(scratch: &Scratch, room: u64, portion: &[u8]) -> String {
        let path = scratch.folder().unwrap().join("task.output");
        let file = scratch.create(&path).unwrap();
        let mut log = Log { file, room, scratch: scratch.clone(), is_cut: false };
        (0..3).for_each(|_| assert!(log.append(portion, portion.len()).unwrap()));
        assert!(!log.append(portion, 0).unwrap(), "the end of a pipe");
        ostler_files::read_text(&path, 1000).unwrap()
    }

    // Mutant: `append` does not look at `room`.
    #[test]
    fn the_output_file_of_a_task_has_a_size_limit() {
        assert_eq!(written(&Scratch::default(), 100, b"12345"), "123451234512345");
        assert_eq!(written(&Scratch::default(), 15, b"12345"), "123451234512345");
        assert_eq!(written(&Scratch::default(), 7, b"12345"), format!("1234512{NOTE}"));
    }

    // Mutant: `append` without `take_room`.
    #[test]
    fn the_output_file_of_a_task_counts_for_the_sessions_quota() {
        let scratch = Scratch::default();
        let all = scratch.take_room(u64::MAX);
        assert!(all > 0);
        assert_eq!(written(&scratch, 100, b"12345"), NOTE);
        let scratch = Scratch::default();
        assert_eq!(scratch.take_room(all - 12), all - 12);
        assert_eq!(written(&scratch, 100, b"12345"), format!("123451234512{NOTE}"));
    }
}

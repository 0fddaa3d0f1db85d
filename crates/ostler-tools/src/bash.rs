//! `Bash`: runs a command line. Its processes end with it, see `process.rs`.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use std::{io, pin::pin};

use ostler_engine::sandbox::Confinement;
use ostler_engine::scratch::Scratch;
use ostler_engine::tool::{Effect, Tool, ToolCx, ToolError, ToolEvent, ToolOutput};
use ostler_proto::build;
use ostler_proto::tool::BashOutput;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::io::AsyncReadExt as _;
use tokio::time::{Instant, sleep};

use crate::background::{self, RunningCommand};
use crate::blocking::blocking;
use crate::output::Output;
use crate::process::{GRACE, Group, Pipes, cannot_run, code};
use crate::shell::{Shell, ShellCall};

#[derive(Default)]
pub(crate) struct Bash {
    shell: Shell,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// The command line.
    command: String,
    /// Milliseconds until it is ended: 120000 if absent, at most 600000.
    timeout: Option<u64>,
    /// What it does, in a few words, for the user.
    description: Option<String>,
    /// Continue while it runs. You are notified when it ends; see TaskOutput and TaskStop. Has no time limit.
    #[serde(default)]
    run_in_background: bool,
    /// Part of the published arguments; a call with it always requires approval.
    #[serde(default, rename = "dangerouslyDisableSandbox")]
    #[schemars(skip)]
    dangerously_disable_sandbox: Option<bool>,
    /// The folder for which permission was given; another call may change the shell's folder before this one runs.
    #[serde(skip)]
    start: OnceLock<PathBuf>,
}

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);
const MAX_TIMEOUT: Duration = Duration::from_secs(600);

impl Tool for Bash {
    const NAME: &'static str = "Bash";
    const DESCRIPTION: &'static str = "Runs a command line in a shell, without input or terminal. cd lasts for later \
        calls, variables do not. Processes left behind with & end with the command: use run_in_background. Long output is \
        cut and kept in a file. Prefer Read, Edit, Glob and Grep for files.";
    type Args = Args;

    fn effect(&self, cx: &ToolCx, args: &Args) -> Effect {
        let command = args.command.clone();
        // Relative paths depend on the folder an earlier call changed to: permissions must resolve them from there.
        let elsewhere = self.shell.elsewhere(&cx.cwd);
        args.start.get_or_init(|| elsewhere.clone().unwrap_or_else(|| cx.cwd.clone()));
        match elsewhere {
            Some(folder) => Effect::ExecuteIn { folder, command },
            None => Effect::Execute(command),
        }
    }

    async fn run(&self, cx: &ToolCx, args: Args) -> Result<ToolOutput, ToolError> {
        let start = args.start.into_inner().unwrap_or_else(|| cx.cwd.clone());
        let is_outside = args.dangerously_disable_sandbox == Some(true);
        let confinement = confinement(cx, &start, &args.command, is_outside).await?;
        if args.run_in_background {
            let description = args.description.as_deref().unwrap_or(&args.command);
            confinement.moved_to_background();
            return background::start(cx, &start, &args.command, description, &confinement).await;
        }
        let limit = time_limit(args.timeout);
        let cannot = |error: io::Error| cannot_run(&start, &error);
        let call = self.shell.call(cx, start.clone(), &confinement).map_err(cannot)?;
        let script = script(&args.command, &call);
        let started = Group::start(&script, &call.cwd, &cx.env, &confinement).await;
        let mut group = started.map_err(cannot)?;
        let mut pipes = group.pipes().map_err(cannot)?;
        let mut outputs = Outputs::new(&call, &cx.scratch);
        let promotion = cx.tasks.promotion(&cx.call);
        let end = tokio::select! {
            end = follow(&mut group, &mut pipes, &mut outputs, limit) => end.map_err(cannot)?,
            () = promotion.wanted() => {
                let description = args.description.as_deref().unwrap_or(&args.command);
                confinement.moved_to_background();
                let written = outputs.text();
                let running = RunningCommand { group, pipes, written, confinement };
                return background::move_to_background(cx, &start, &args.command, description, running).await;
            }
        };
        drop((group, promotion));

        let moved = self.shell.moved(&call);
        if let Some(to) = moved.clone() {
            // Hooks are only notified; the shell has changed its folder already.
            let _ = cx.announce(ToolEvent::Moved { from: call.cwd.clone(), to }).await;
        }
        let moved = moved.map(|cwd| format!("[the working directory is now {}]", cwd.display()));
        let notice = notice(&confinement).await.unwrap_or_default();
        let text = paragraphs(&[&outputs.text(), &moved.unwrap_or_default(), &notice]);
        let failure = match &end {
            End::Exited(status) if status.success() => return Ok(success(text, &outputs)),
            End::Exited(status) => format!("Exit code {}", code(*status)),
            End::TimedOut => format!("Ended because it took longer than {} ms.", limit.as_millis()),
        };
        let code = match end {
            End::Exited(status) => Some(code(status)),
            End::TimedOut => None,
        };
        let hint = hint(&confinement, &text, code).unwrap_or_default();
        Err(ToolError::Failed(paragraphs(&[&failure, &text, &hint])))
    }
}

/// How long a command may run, from the milliseconds that the model asks for.
fn time_limit(milliseconds: Option<u64>) -> Duration {
    milliseconds.map_or(DEFAULT_TIMEOUT, Duration::from_millis).min(MAX_TIMEOUT)
}

/// Whether a command runs in the sandbox. One that the user lets out does not.
async fn confinement(
    cx: &ToolCx,
    folder: &Path,
    command: &str,
    is_outside: bool,
) -> Result<Confinement, ToolError> {
    if is_outside || !cx.has_sandbox() {
        return Ok(Confinement::None);
    }
    let (cx, folder, command) = (cx.clone(), folder.to_owned(), command.to_owned());
    let found = blocking(move || Ok(cx.confinement(&folder, &command))).await?;
    found.map_err(|reason| ToolError::Failed(format!("The command did not run. {reason}")))
}

/// A line about the sandbox, if it may be the reason of a failure.
fn hint(confinement: &Confinement, text: &str, code: Option<i32>) -> Option<String> {
    match confinement {
        Confinement::None => None,
        Confinement::Inside { boundary, .. } => boundary.hint(text, code),
    }
}

/// What the user must know about a command that ran in the sandbox.
async fn notice(confinement: &Confinement) -> Option<String> {
    let Confinement::Inside { boundary, .. } = confinement else { return None };
    let boundary = Arc::clone(boundary);
    blocking(move || Ok(boundary.notice())).await.ok()?
}

/// Joins the texts that are not empty, one per line.
fn paragraphs(texts: &[&str]) -> String {
    let texts: Vec<&str> =
        texts.iter().map(|text| text.trim_end()).filter(|text| !text.is_empty()).collect();
    texts.join("\n")
}

/// An output for programs: without empty lines around it, as the vendor's program sends it.
fn trimmed_lines(text: &str) -> String {
    let text = text.trim_end();
    let first = text.find(|character: char| !character.is_whitespace()).unwrap_or(text.len());
    let begin = text[..first].rfind('\n').map_or(0, |at| at + 1);
    text[begin..].to_owned()
}

/// The command, and a trap that records its last folder if it is another one, so that `exit` does not skip it.
fn script(command: &str, ShellCall { cwd, cwd_note, .. }: &ShellCall) -> String {
    let quoted_path = |path: &Path| quoted(&path.display().to_string());
    let (start, note) = (quoted_path(cwd), quoted_path(cwd_note));
    let note = format!("[ \"$PWD\" = {start} ] || pwd -P >| {note}");
    format!("trap {} EXIT; {command}", quoted(&note))
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// What a command wrote.
struct Outputs {
    stdout: Output,
    stderr: Output,
}

impl Outputs {
    fn new(call: &ShellCall, scratch: &Scratch) -> Self {
        let output = |path: &Path| Output::new(path.to_owned(), scratch);
        Self { stdout: output(&call.stdout), stderr: output(&call.stderr) }
    }

    /// Stdout, then stderr, as the model reads them.
    fn text(&self) -> String {
        paragraphs(&[&self.stdout.text(), &self.stderr.text()])
    }
}

/// How a command ended.
enum End {
    Exited(ExitStatus),
    TimedOut,
}

/// The state of a command; each phase has its own timer.
#[derive(Clone, Copy, PartialEq)]
enum Phase {
    /// Until its timeout.
    Running,
    /// SIGTERM was sent.
    Ending,
    /// It has ended. Its pipes end too, unless a process that left the group holds them.
    Gone,
}

/// Collects the output until the command has ended and its pipes are closed, or the timeout.
async fn follow(
    group: &mut Group,
    (stdout, stderr): &mut Pipes,
    outputs: &mut Outputs,
    limit: Duration,
) -> io::Result<End> {
    let (mut from_stdout, mut from_stderr) = (vec![0; 16 * 1024], vec![0; 16 * 1024]);
    let (mut stdout_open, mut stderr_open) = (true, true);
    let mut alarm = pin!(sleep(limit));
    let mut phase = Phase::Running;
    let mut end = None;
    while phase != Phase::Gone || stdout_open || stderr_open {
        tokio::select! {
            n = stdout.read(&mut from_stdout), if stdout_open => {
                let n = n?;
                outputs.stdout.push(&from_stdout[..n]);
                stdout_open = n > 0;
            }
            n = stderr.read(&mut from_stderr), if stderr_open => {
                let n = n?;
                outputs.stderr.push(&from_stderr[..n]);
                stderr_open = n > 0;
            }
            status = group.wait(), if phase != Phase::Gone => {
                end.get_or_insert(End::Exited(status?));
                group.kill();
                phase = Phase::Gone;
                alarm.as_mut().reset(Instant::now() + GRACE);
            }
            () = &mut alarm => {
                match phase {
                    Phase::Running => {
                        end = Some(End::TimedOut);
                        group.terminate();
                        phase = Phase::Ending;
                    }
                    Phase::Ending => {
                        group.kill();
                        phase = Phase::Gone;
                    }
                    Phase::Gone => break,
                }
                alarm.as_mut().reset(Instant::now() + GRACE);
            }
        }
    }
    Ok(end.unwrap_or(End::TimedOut))
}

fn success(text: String, outputs: &Outputs) -> ToolOutput {
    let Outputs { stdout, stderr } = outputs;
    let whole = stdout.whole().or_else(|| stderr.whole());
    let structured = build!(BashOutput {
        stdout: trimmed_lines(&stdout.text()),
        stderr: trimmed_lines(&stderr.text()),
        is_image: Some(false),
        no_output_expected: Some(false),
        persisted_output_path: whole.map(|(path, _)| path.display().to_string()),
        persisted_output_size: whole.map(|(_, len)| len)
    });
    ToolOutput::new(if text.is_empty() { "[no output]".to_owned() } else { text }, structured)
}

#[cfg(test)]
mod tests {
    use super::{DEFAULT_TIMEOUT, MAX_TIMEOUT, time_limit, trimmed_lines};

    // Mutant: without `MAX_TIMEOUT`.
    #[test]
    fn every_command_has_a_time_limit_of_at_most_ten_minutes() {
        assert_eq!(time_limit(None), DEFAULT_TIMEOUT);
        assert_eq!(time_limit(Some(5)).as_millis(), 5);
        assert_eq!(time_limit(Some(600_001)), MAX_TIMEOUT);
        assert_eq!(time_limit(Some(u64::MAX)), MAX_TIMEOUT);
    }

    #[test]
    fn output_for_programs_has_no_empty_lines_around_it() {
        assert_eq!(trimmed_lines("\n\n  a  \nb  \n\n \n"), "  a  \nb");
        assert_eq!(trimmed_lines("a\n"), "a");
        assert_eq!(trimmed_lines(" \n"), "");
        assert_eq!(trimmed_lines(""), "");
    }
}

//! Command hooks: the event as JSON on standard input, the answer by exit code and output.
//!
//! Exit code 0: the output is the answer, as JSON if it begins with `{`, else as text for the model where the event
//! takes some. Exit code 2: an objection, with the error output as its reason. Any other code: the hook failed, which
//! by the contract of command hooks is told to the user and otherwise ignored.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use ostler_proto::hook::{HookEvent, HookOutput};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

/// The most of a hook's output that is read. An answer is short; a log does not belong here.
const MAX_OUTPUT: u64 = 1024 * 1024;

/// What came of a command.
#[expect(clippy::large_enum_variant, reason = "taken apart at once")]
pub(super) enum Ran {
    /// It answered.
    Answered(HookOutput),
    /// It failed in a way that is only told.
    Remarked(String),
}

/// Runs a command to its answer. Dropping the future ends it and all it started.
///
/// # Errors
/// In words, when it could not be run or its answer makes no sense.
pub(super) async fn run(
    command: &str,
    cwd: &Path,
    env: &BTreeMap<String, String>,
    event: &HookEvent,
    input: &str,
) -> Result<Ran, String> {
    let mut child = Command::new("/bin/sh")
        .args(["-c", command])
        .current_dir(cwd)
        .envs(env)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("cannot start: {error}"))?;
    let _group = Group(child.id());
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        if let Some(mut stdin) = stdin {
            // A hook need not read what it is told.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
    };
    let ((), stdout, stderr, status) =
        tokio::join!(write, read(stdout), read(stderr), child.wait());
    let status = status.map_err(|error| format!("cannot be waited for: {error}"))?;
    match status.code() {
        Some(0) => answer(event, stdout.trim()).map(Ran::Answered),
        Some(2) => {
            let reason = if stderr.trim().is_empty() { "a hook objects" } else { stderr.trim() };
            Ok(Ran::Answered(HookOutput::block(reason)))
        }
        _ => Ok(Ran::Remarked(format!("{status}: {}", stderr.trim()))),
    }
}

fn answer(event: &HookEvent, text: &str) -> Result<HookOutput, String> {
    if text.starts_with('{') {
        return serde_json::from_str(text)
            .map_err(|error| format!("its answer is malformed: {error}"));
    }
    let takes_text = matches!(event, HookEvent::UserPromptSubmit | HookEvent::SessionStart);
    let context =
        (takes_text && !text.is_empty()).then(|| HookOutput::context(event, text)).flatten();
    Ok(context.unwrap_or_default())
}

async fn read(pipe: Option<impl AsyncRead + Unpin>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        // What was read before an error is still worth having.
        let _ = (&mut pipe).take(MAX_OUTPUT).read_to_end(&mut bytes).await;
        // The rest is read and forgotten, or the hook would wait for ever for somebody to read it.
        let _ = tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Ends the hook's process group when the hook is done with, one way or the other.
struct Group(Option<u32>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(id) = self.0.and_then(|id| i32::try_from(id).ok()) {
            // It fails when nobody is left, which is as well.
            let _ = killpg(Pid::from_raw(id), Signal::SIGKILL);
        }
    }
}

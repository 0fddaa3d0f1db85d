//! Tool calls, recorded or replayed.
//!
//! A call that touches only the conversation always runs: the engine itself performs it, and its result does not
//! contain all its effects. A replayed call needs permission like any other.

use serde_json::Value;

use crate::record::{CallOutcome, Recorder, Recording, ReplayTools};
use crate::tool::{Effect, RunFuture, ToolError, ToolOutput};

/// These touch nothing outside themselves, but report on tasks that do.
const ABOUT_TASKS: [&str; 2] = ["TaskOutput", "TaskStop"];

/// A call that is permitted.
pub(crate) struct PermittedCall<'a> {
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) input: &'a Value,
    pub(crate) effect: &'a Effect,
}

/// Runs a call, or takes its result from the recording.
pub(crate) async fn run(
    recording: Option<&Recording>,
    call: PermittedCall<'_>,
    run: impl FnOnce() -> RunFuture,
) -> Result<ToolOutput, ToolError> {
    let is_inside = matches!(call.effect, Effect::Nothing | Effect::AskUser)
        && !ABOUT_TASKS.contains(&call.name);
    match recording {
        Some(Recording::Record(recorder)) if !is_inside => record(recorder, call, run()).await,
        Some(Recording::Replay(player))
            if !is_inside && player.tools() == ReplayTools::Recorded =>
        {
            player.call(call.id, call.name, call.input).await
        }
        _ => run().await,
    }
}

async fn record(
    recorder: &Recorder,
    call: PermittedCall<'_>,
    running: RunFuture,
) -> Result<ToolOutput, ToolError> {
    let mut take = CallRecorder { recorder, call, is_written: false };
    let result = running.await;
    take.write(CallOutcome::of(&result)).map_err(ToolError::Failed)?;
    result
}

/// A call that runs. It is recorded when it ends, in whatever way.
struct CallRecorder<'a> {
    recorder: &'a Recorder,
    call: PermittedCall<'a>,
    is_written: bool,
}

impl CallRecorder<'_> {
    fn write(&mut self, outcome: CallOutcome) -> Result<(), String> {
        if std::mem::replace(&mut self.is_written, true) {
            return Ok(());
        }
        let PermittedCall { id, name, input, .. } = self.call;
        self.recorder.write_call(id, name, input, outcome)
    }
}

impl Drop for CallRecorder<'_> {
    fn drop(&mut self) {
        // A stopped call does not report a full disk either.
        let _ = self.write(CallOutcome::Abandoned);
    }
}

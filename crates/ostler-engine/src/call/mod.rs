//! One tool call: read its input, decide whether it may run, run it, run hooks. Whatever happens, it has one result.

mod answer;
mod decision_source;
mod host_question;
mod nested;
mod permit;
mod progress;
mod prompt_tool;
mod question;
mod recorded;
mod server_sampling;

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use futures::FutureExt;
use ostler_proto::ToolUseId;
use ostler_proto::api::{Content, ContentBlock, INVALID_INPUT, ToolResultBlock, ToolUseBlock};
use ostler_proto::build;
use ostler_proto::hook::HookEvent;
use ostler_proto::message::ToolResultMeta;
use serde_json::{Value, json};

pub(crate) use self::answer::apply_updates;
use self::decision_source::DecisionSource;
pub(crate) use self::host_question::CommandAsker;
use self::permit::{Permit, Refusal};
use self::recorded::PermittedCall;
pub(crate) use self::server_sampling::sample;
use crate::drive::TurnContext;
use crate::hooks::verdict::Verdict;
use crate::hooks::{Event, Hooks};
use crate::permission::reduced_environment;
use crate::tool::{
    AnyTool, Effect, PermittedPath, Prepared, ProgressReporter, ToolCx, ToolError, ToolOutput,
};
use crate::turn::{INTERRUPTED_CALL, StopAfter};

/// The tools of a session by name.
pub(crate) type Tools = HashMap<String, Arc<dyn AnyTool>>;

/// A call's result, for the model and for programs.
#[derive(Debug)]
pub(crate) struct CallResult {
    pub(crate) block: ToolResultBlock,
    pub(crate) structured: Option<Value>,
    pub(crate) denied: bool,
    /// The host or a hook wants the whole turn to end.
    pub(crate) stop: Option<StopAfter>,
    /// Why a hook wants it to; the reason may be empty.
    pub(crate) stop_reason: Option<String>,
    /// Who decided whether it may run.
    pub(crate) meta: Option<ToolResultMeta>,
    /// What the model reads in addition, as a message of its own.
    pub(crate) follow_up: Option<String>,
}

impl CallResult {
    fn new(block: ToolResultBlock, structured: Option<Value>) -> Self {
        let (denied, stop, stop_reason, meta, follow_up) = (false, None, None, None, None);
        Self { block, structured, denied, stop, stop_reason, meta, follow_up }
    }
}

impl CallResult {
    /// The result with everything that the model reads in it, for calls outside of a conversation.
    pub(crate) fn in_one(mut self) -> Self {
        if let Some(text) = self.follow_up.take() {
            self.append(vec![text]);
        }
        self
    }

    /// Adds texts for the model to the content.
    fn append(&mut self, texts: Vec<String>) {
        let mut blocks = match self.block.content.take() {
            Some(Content::Blocks(blocks)) => blocks,
            Some(Content::Text(text)) => vec![ContentBlock::text(text)],
            None => Vec::new(),
        };
        blocks.extend(texts.into_iter().map(ContentBlock::text));
        self.block.content = Some(Content::Blocks(blocks));
    }
}

/// Whether a call may run in parallel with others. A call that cannot be read, or whose tool panics, runs alone, and
/// fails.
pub(crate) fn is_parallel(tools: &Tools, cx: &ToolCx, call: &ToolUseBlock) -> bool {
    let is_read_only = || {
        prepare(tools, cx, &call.name, &call.input)
            .is_ok_and(|prepared| prepared.effect.is_read_only())
    };
    std::panic::catch_unwind(AssertUnwindSafe(is_read_only)).unwrap_or(false)
}

/// Runs a call to its result. A panic anywhere on the way becomes an error result; a call whose permission was not
/// decided does not run.
pub(crate) async fn run(context: &TurnContext, call: ToolUseBlock) -> CallResult {
    let (id, name) = (call.id.clone(), call.name.clone());
    // On the heap: the future of a call is large, and this one is polled from deep within.
    match AssertUnwindSafe(Box::pin(perform(context, call))).catch_unwind().await {
        Ok(result) => result,
        Err(panic) => broken_call(id, &name, &*panic),
    }
}

/// The result of a call whose task panicked.
pub(crate) fn broken_call(
    id: ToolUseId,
    name: &str,
    panic: &(dyn std::any::Any + Send),
) -> CallResult {
    let call = build!(ToolUseBlock { id });
    failed(&call, broken(name, panic).to_string())
}

async fn perform(context: &TurnContext, call: ToolUseBlock) -> CallResult {
    let permit = match permit::permit(context, &call).await {
        Ok(permit) => permit,
        Err(Refusal::Mistake(message)) => {
            return failed(&call, format!("<tool_use_error>{message}</tool_use_error>"));
        }
        Err(Refusal::Denied { message, interrupt, by }) => {
            let stop = interrupt.then_some(StopAfter::Interrupt);
            let meta = Some(by.rejects(&call.id));
            return CallResult { denied: true, stop, meta, ..failed(&call, message) };
        }
        Err(Refusal::Stopped { message, reason }) => {
            let (stop, meta) =
                (Some(StopAfter::Hook), Some(DecisionSource::hook().rejects(&call.id)));
            let result = failed(&call, message);
            return CallResult { denied: true, stop, stop_reason: Some(reason), meta, ..result };
        }
    };
    let Permit { prepared, input, added_context, stop, by, is_harmless, path } = permit;
    let TurnContext { outbox, hooks, records, .. } = context;
    let mut cx = context.cx.clone();
    if is_harmless {
        cx.env = Arc::new(reduced_environment(&cx.env));
    }
    if let (Effect::Write(written), PermittedPath::Real(real)) = (&prepared.effect, &path) {
        records.checkpoint_file(outbox, written, real).await;
    }
    cx.permitted_path = path;
    let (progress, reports) = ProgressReporter::new();
    cx.progress = progress;
    let effect = prepared.effect.clone();
    let begun = Instant::now();
    let permitted =
        PermittedCall { id: call.id.as_str(), name: &call.name, input: &input, effect: &effect };
    let run = prepared.run;
    let running = recorded::run(records.recording.as_ref(), permitted, || run(cx.clone()));
    let running = AssertUnwindSafe(running).catch_unwind();
    let outcome = tokio::select! {
        outcome = running => outcome.unwrap_or_else(|panic| Err(broken(&call.name, &*panic))),
        // Dropping the future stops the tool; the turn has answered the call by then.
        () = cx.cancelled.cancelled() => return failed(&call, INTERRUPTED_CALL.to_owned()),
        never = progress::tell(outbox, &call, progress::pause(&cx.env), reports) => match never {},
    };
    let mut result = match outcome {
        Ok(output) => {
            if let Some(structured) = &output.structured {
                records.ledger.add_lines(structured);
            }
            succeeded(&call, output)
        }
        Err(error) => failed(&call, error.to_string()),
    };
    let instructions = nested::about(context, &call.name, &effect, &result).await;
    let added_context = added_context.into_iter().chain(instructions).collect();
    let duration = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let ran = FinishedCall { input: &input, effect: &effect, duration };
    let verdict = tell_hooks(hooks, &call, ran, &result).await;
    let stop_reason = verdict.stop.clone().or(stop);
    remark(&mut result, &call.name, added_context, verdict);
    let meta = Some(by.accepts(&call.id));
    let stop = stop_reason.as_ref().map(|_| StopAfter::Hook);
    CallResult { stop, stop_reason, meta, ..result }
}

/// A call that has run.
struct FinishedCall<'a> {
    input: &'a Value,
    effect: &'a Effect,
    /// In milliseconds.
    duration: u64,
}

/// Runs the hooks for the call's result.
async fn tell_hooks(
    hooks: &Hooks,
    call: &ToolUseBlock,
    ran: FinishedCall<'_>,
    result: &CallResult,
) -> Verdict {
    let FinishedCall { input, effect, duration } = ran;
    let mut fields = json!({
        "tool_name": call.name, "tool_input": input, "tool_use_id": call.id, "duration_ms": duration,
    });
    let event = if result.block.is_error == Some(true) {
        let text = result.block.content.as_ref().map(Content::text).unwrap_or_default();
        fields["error"] = json!(text);
        fields["is_interrupt"] = json!(false);
        HookEvent::PostToolUseFailure
    } else {
        fields["tool_response"] = result.structured.clone().unwrap_or_default();
        HookEvent::PostToolUse
    };
    let (tool, call, effect) = (Some(call.name.as_str()), Some(&call.id), Some(effect));
    let event = Event { event, tool, call, effect, fields };
    hooks.run(event).await
}

/// Adds the hooks' text for the model.
fn remark(result: &mut CallResult, tool: &str, before: Vec<String>, verdict: Verdict) {
    let of_server = verdict.updated_mcp_output.filter(|_| tool.starts_with("mcp__"));
    if let Some(output) = verdict.updated_output.or(of_server) {
        let text = output.as_str().map_or_else(|| output.to_string(), str::to_owned);
        result.block.content = Some(Content::Text(text));
        result.structured = Some(output);
    }
    let remarks: Vec<String> =
        before.into_iter().chain(verdict.context).chain(verdict.block).collect();
    if !remarks.is_empty() {
        result.append(remarks);
    }
}

fn succeeded(call: &ToolUseBlock, output: ToolOutput) -> CallResult {
    let ToolOutput { content, structured, follow_up } = output;
    let block = build!(ToolResultBlock { tool_use_id: call.id.clone(), content: Some(content) });
    CallResult { follow_up, ..CallResult::new(block, structured) }
}

fn failed(call: &ToolUseBlock, message: String) -> CallResult {
    let structured = Some(Value::String(format!("Error: {message}")));
    let block = build!(ToolResultBlock {
        tool_use_id: call.id.clone(),
        content: Some(Content::Text(message)),
        is_error: Some(true)
    });
    CallResult::new(block, structured)
}

fn prepare(tools: &Tools, cx: &ToolCx, name: &str, input: &Value) -> Result<Prepared, String> {
    let tool = tools.get(name).ok_or_else(|| format!("Error: No such tool available: {name}"))?;
    if let Some(written) = input.get(INVALID_INPUT) {
        let written = beginning_of(written);
        return Err(format!(
            "InputValidationError: {name}: the input is not a JSON object: {written}"
        ));
    }
    tool.clone().prepare(cx, input).map_err(|error| format!("InputValidationError: {error}"))
}

/// How much of malformed arguments the error repeats, in characters. The conversation has all of them already.
const MAX_QUOTED: usize = 1_000;

fn beginning_of(written: &Value) -> String {
    let written = written.as_str().map_or_else(|| written.to_string(), str::to_owned);
    match written.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{}… ({} bytes in all)", &written[..end], written.len()),
        None => written,
    }
}

fn broken(name: &str, panic: &(dyn std::any::Any + Send)) -> ToolError {
    let text = panic.downcast_ref::<&str>().copied().map(str::to_owned);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    ToolError::Failed(format!("the tool {name} failed with a panic, which is a bug in it: {text}"))
}

//! The hooks of a run: one denies calls, the others only observe.

use std::time::{Duration, Instant};

use ostler_sdk::hook::{
    EventInput, HookOutput, OnFailure, PostToolUseFailureInput, PostToolUseInput, PreToolUseInput,
    StopInput, UserPromptSubmitInput,
};
use ostler_sdk::proto::{AgentId, Num};
use ostler_sdk::{Hook, OptionsFor};
use serde_json::Value;

use crate::context::HookContext;
use crate::event::{Event, ToolInvoked};

/// The tool with which the model returns its answer.
const ANSWERS: &str = "StructuredOutput";

impl HookContext {
    /// Adds the hooks to a session, before the session's own hooks, and observes its messages. A context belongs to one
    /// session.
    #[must_use]
    pub fn attach<E>(&self, mut options: OptionsFor<E>) -> OptionsFor<E> {
        let mut all = all(self);
        all.append(&mut options.hooks);
        options.hooks = all;
        // Only partial messages report all tokens of a response.
        options.output.partial_messages = true;
        let choice = &options.session.choice;
        self.state().is_resumed = choice.go_on || choice.resume.is_some();
        let (context, before) = (self.clone(), options.engine.messages.take());
        options.on_message(move |message| {
            context.observe(message);
            if let Some(before) = &before {
                before(message);
            }
        })
    }
}

/// All hooks of a run.
pub(crate) fn all(context: &HookContext) -> Vec<Hook> {
    vec![
        watching(context, |context, _: UserPromptSubmitInput| {
            context.prompted();
            HookOutput::none()
        }),
        enforcing(context),
        watching(context, |context, call: PostToolUseInput| ran(&context, call)),
        watching(context, |context, call: PostToolUseFailureInput| failed(&context, call)),
        watching(context, |context, stop: StopInput| {
            let reason = stop.extra.get("stopReason").and_then(Value::as_str).map(str::to_owned);
            context.stopped(reason);
            HookOutput::none()
        }),
    ]
}

/// A hook that only observes. If it fails, the run continues.
fn watching<I: EventInput>(
    context: &HookContext,
    observe: fn(HookContext, I) -> HookOutput,
) -> Hook {
    let context = context.clone();
    let hook = Hook::new(move |input: I, _| {
        let begun = Instant::now();
        let output = observe(context.clone(), input);
        context.took(begun.elapsed());
        async move { output }
    });
    hook.on_failure(OnFailure::Continue)
}

/// Denies calls after the deadline and beyond the budget. If it fails, no call runs.
fn enforcing(context: &HookContext) -> Hook {
    let context = context.clone();
    let hook = Hook::new(move |call: PreToolUseInput, _| {
        let context = context.clone();
        async move {
            let begun = Instant::now();
            context.update_cost().await;
            let output = decide(&context, &call);
            context.took(begun.elapsed());
            output
        }
    });
    hook.on_failure(OnFailure::Block)
}

fn decide(context: &HookContext, call: &PreToolUseInput) -> HookOutput {
    // The answer is allowed in any case: without it everything that the run spent would be wasted.
    let objection = context.objection().filter(|_| call.tool_name != ANSWERS);
    match objection {
        Some(reason) => {
            context.denied();
            HookOutput::deny(reason)
        }
        None => {
            context.state().spans.tool_begins(call.tool_use_id.as_str(), &call.tool_name);
            HookOutput::none()
        }
    }
}

fn ran(context: &HookContext, call: PostToolUseInput) -> HookOutput {
    let is_answer = call.tool_name == ANSWERS && call.agent_id.is_none();
    if is_answer {
        context.answered(call.tool_input.clone());
    }
    publish_call(
        context,
        Call {
            id: call.tool_use_id.as_str().to_owned(),
            name: call.tool_name,
            params: call.tool_input,
            result: call.tool_response,
            success: true,
            agent: call.agent_id,
            duration: call.duration_ms,
        },
    );
    match is_answer && context.ends_turn_with_answer() {
        true => HookOutput::stop("the answer was given"),
        false => HookOutput::none(),
    }
}

fn failed(context: &HookContext, call: PostToolUseFailureInput) -> HookOutput {
    publish_call(
        context,
        Call {
            id: call.tool_use_id.as_str().to_owned(),
            name: call.tool_name,
            params: call.tool_input,
            result: Value::String(call.error),
            success: false,
            agent: call.agent_id,
            duration: call.duration_ms,
        },
    );
    HookOutput::none()
}

struct Call {
    id: String,
    name: String,
    params: Value,
    result: Value,
    success: bool,
    agent: Option<AgentId>,
    duration: Option<Num>,
}

/// Publishes a call, unless it was published already.
fn publish_call(context: &HookContext, call: Call) {
    if !context.is_new_call(&call.id) {
        return;
    }
    context.state().spans.tool_ends(&call.id, call.success);
    let milliseconds = call.duration.as_ref().map(Num::get);
    let duration = milliseconds.and_then(|it| Duration::try_from_secs_f64(it / 1000.0).ok());
    context.publish(Event::ToolInvoked(
        ToolInvoked {
            prompt_name: context.prompt_name().to_owned(),
            adapter: context.adapter_name().to_owned(),
            run_id: context.run_id().to_owned(),
            name: call.name,
            params: call.params,
            result: call.result,
            success: call.success,
            call_id: call.id,
            agent_id: call.agent.map(|agent| agent.to_string()),
            duration,
        }
        .into(),
    ));
}

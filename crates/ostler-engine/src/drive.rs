//! Drives a [`Turn`]: performs its outputs and feeds back what happened. The turn decides, not the driver.
//!
//! `turn_context.rs` is everything a turn runs with. `request.rs`, `response.rs`, `calls.rs` and `ending.rs` perform
//! the turn's outputs by subject; `server_tools.rs` adds the tools of MCP servers; `outcome.rs` is the result.

mod calls;
pub(crate) mod display;
mod ending;
pub(crate) mod model_switch;
mod open_stream;
mod outcome;
mod request;
mod response;
mod server_tools;
mod tool_session;
mod turn_context;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use futures::StreamExt;
use ostler_proto::Uuid;
use ostler_proto::api::{Accumulator, ContentBlock, ToolUseBlock};
use ostler_proto::hook::HookEvent;
use serde_json::Value;
use tokio::task::{self, JoinSet};

pub(crate) use self::ending::{CUT, REFUSED};
use self::open_stream::OpenStream;
pub(crate) use self::outcome::TurnOutcome;
pub(crate) use self::turn_context::{MAX_OUTPUT_TOKENS, TurnContext};
use crate::call::CallResult;
use crate::compact::Attempts;
use crate::ids::fresh_uuid;
use crate::model::{EventStream, ModelError, ModelEvent};
use crate::rescue::LentConversation;
use crate::response::ResponseHeader;
use crate::structured;
use crate::turn::ids::CallIds;
use crate::turn::{Ending, Input, Output, Turn};

/// Runs a turn to its end. If it panics, the conversation goes back to its lender.
pub(crate) async fn drive(
    context: &TurnContext,
    conversation: LentConversation,
    prompt: Vec<ContentBlock>,
) -> TurnOutcome {
    let needs_answer = context.tools.contains_key(structured::NAME);
    let request: Vec<_> = prompt.iter().filter_map(ContentBlock::as_text).collect();
    let request = request.join("\n");
    let tells_of_batch = context.hooks.any_for(&HookEvent::PostToolBatch);
    let ids = CallIds::of(&conversation);
    let mut turn = conversation.begin(|conversation| {
        Turn::new(conversation, prompt, context.limits.max_turns)
            .needing_answer(needs_answer)
            .going_on_after_answer(context.limits.goes_on_after_answer)
            .asking_after_tools(tells_of_batch)
    });
    let mut driver = Driver { tells_of_batch, ..Driver::new(context, request, ids) };
    loop {
        while let Some(output) = turn.poll() {
            match output {
                Output::AskModel { conversation, whole } => {
                    driver.ask_if_it_fits(conversation, whole, &mut turn).await
                }
                Output::RunTool(call) => driver.run(call),
                Output::Prompt(words) => driver.nudge(words.to_owned()).await,
                Output::Feedback(words) => {
                    driver.prompt(format!("Stop hook feedback:\n{words}")).await
                }
                Output::FollowUp(text) => driver.follow_up(&text).await,
                Output::MayStop { again } => turn.handle(driver.may_stop(again).await),
                Output::Overruled => driver.overruled().await,
                Output::MayGoOn => turn.handle(driver.may_continue().await),
                Output::Stopped(result) => driver.stopped(result).await,
                Output::Done(ending) => return driver.finish(ending, turn).await,
            }
        }
        tokio::select! {
            // An interruption comes first: it also ends tools, and their results must not start another round.
            biased;
            () = context.cx.cancelled.cancelled() => driver.interrupt(&mut turn).await,
            () = passed(driver.deadline) => turn.handle(Input::Deadline),
            event = next_event(&mut driver.stream) => driver.heard(event, &mut turn).await,
            Some(done) = driver.jobs.join_next_with_id() => driver.joined(done, &mut turn).await,
        }
    }
}

/// Waits until the time is up; for ever when there is no limit.
pub(crate) async fn passed(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// The next event of the response under way; waits for ever without one.
async fn next_event(stream: &mut Option<EventStream>) -> Option<Result<ModelEvent, ModelError>> {
    match stream {
        Some(stream) => stream.next().await,
        None => std::future::pending().await,
    }
}

struct Driver {
    /// Replaced when the tools of servers change.
    context: Arc<TurnContext>,
    /// The turn's id.
    id: Uuid,
    stream: Option<EventStream>,
    /// When the model was asked for the response under way.
    asked: Option<Instant>,
    response: Accumulator,
    /// What the host has seen of its events.
    shown: OpenStream,
    /// What every `assistant` message of the response has.
    frame: Option<ResponseHeader>,
    /// The API's id of the request under way.
    request_id: Option<String>,
    /// The answered prompts that no frame has named yet.
    answers: Vec<Uuid>,
    // Dropping the set aborts whatever still runs.
    jobs: JoinSet<(CallResult, Arc<ToolUseBlock>)>,
    /// The calls that run, by their task.
    running: HashMap<task::Id, Arc<ToolUseBlock>>,
    /// The ids of all calls of the conversation.
    ids: CallIds,
    /// The calls of the response that are done, for the input of hooks. Empty unless there is a hook for it.
    batch: Vec<Value>,
    /// Whether a hook is registered for the calls of a response.
    tells_of_batch: bool,
    /// When the time is up.
    deadline: Option<tokio::time::Instant>,
    /// The text of the prompt.
    request: String,
    attempts: Attempts,
    finished: TurnOutcome,
}

impl Driver {
    fn new(context: &TurnContext, request: String, ids: CallIds) -> Self {
        let now = tokio::time::Instant::now();
        let finished =
            TurnOutcome { n_user_messages: 1, ..TurnOutcome::new(Ending::Completed, Vec::new()) };
        Self {
            context: Arc::new(context.clone()),
            id: fresh_uuid(),
            stream: None,
            asked: None,
            response: Accumulator::default(),
            shown: OpenStream::default(),
            frame: None,
            request_id: None,
            answers: context.answering.to_vec(),
            jobs: JoinSet::new(),
            running: HashMap::new(),
            ids,
            batch: Vec::new(),
            tells_of_batch: false,
            deadline: context.deadline.or_else(|| now.checked_add(context.limits.timeout?)),
            request,
            attempts: Attempts::default(),
            finished,
        }
    }
}

//! Drives a [`Turn`]: performs what it asks for, feeds back what happened. Carries, does not decide.

pub(crate) mod display;
pub(crate) mod model_switch;
mod open_stream;
pub(crate) mod tool_session;
mod turn_context;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use futures::StreamExt;
use ostler_proto::api::{
    Accumulator, Content, ContentBlock, Folded, Message, StopReason, StreamEvent, ToolResultBlock,
    ToolUseBlock, Usage,
};
use ostler_proto::hook::HookEvent;
use ostler_proto::message::{AssistantError, PermissionDenial, ToolResultMeta};
use ostler_proto::{Extra, Uuid};
use serde_json::{Value, json};
use tokio::task::{self, JoinError, JoinSet};

use self::model_switch::tell_of_fallback;
use self::open_stream::OpenStream;
use self::tool_session::EngineToolSession;
pub(crate) use self::turn_context::{MAX_OUTPUT_TOKENS, TurnContext};
use crate::agents;
use crate::call::{self, CallResult};
use crate::compact::{self, Attempts, CompactError, CompactJob, CompactedConversation, Trigger};
use crate::hooks::Event;
use crate::ids::fresh_uuid;
use crate::limits::Limits;
use crate::model::ledger::{add_usage, count_tokens};
use crate::model::{ChatMessage, EventStream, ModelError, ModelEvent};
use crate::rescue::{LentConversation, LentTurn};
use crate::response::{ResponseHeader, ResponseTiming, StreamEventMeta};
use crate::structured;
use crate::tool::ToolCx;
use crate::turn::ids::CallIds;
use crate::turn::{
    Ending, INTERRUPTED, INTERRUPTED_TOOLS, Input, Limit, MAX_REFUSALS, Output, StopAfter,
    StopVerdict, Turn,
};

/// What a turn leaves behind.
#[derive(Debug)]
pub(crate) struct TurnOutcome {
    pub(crate) ending: Ending,
    pub(crate) conversation: Vec<ChatMessage>,
    /// The last text of the model.
    pub(crate) text: String,
    /// What the user was shown in its place.
    pub(crate) shown: Option<String>,
    /// The answer in the shape the host asked for.
    pub(crate) structured: Option<Value>,
    /// What was wrong with the last attempt at it.
    pub(crate) miss: Option<String>,
    /// Why a hook ended the turn.
    pub(crate) hook_stop_reason: Option<String>,
    pub(crate) stop_reason: Option<StopReason>,
    pub(crate) usage: Usage,
    pub(crate) denials: Vec<PermissionDenial>,
    /// User-role messages of the turn, as `num_turns` counts them.
    pub(crate) n_user_messages: u64,
    pub(crate) n_tool_calls: u64,
    /// How often a response was stopped as unsafe.
    pub(crate) n_safety_stops: u64,
    pub(crate) timing: ResponseTiming,
}

impl TurnOutcome {
    /// A turn in which nothing happened.
    pub(crate) fn new(ending: Ending, conversation: Vec<ChatMessage>) -> Self {
        Self {
            ending,
            conversation,
            text: String::new(),
            shown: None,
            structured: None,
            miss: None,
            hook_stop_reason: None,
            stop_reason: None,
            usage: Usage::default(),
            denials: Vec::new(),
            n_user_messages: 0,
            n_tool_calls: 0,
            n_safety_stops: 0,
            timing: ResponseTiming::default(),
        }
    }
}

/// Runs a turn to its end. Should it panic, the conversation goes back to whoever lent it.
pub(crate) async fn drive(
    context: &TurnContext,
    conversation: LentConversation,
    prompt: Vec<ContentBlock>,
) -> TurnOutcome {
    let needs_answer = context.tools.contains_key(structured::NAME);
    let request: Vec<_> = prompt.iter().filter_map(ContentBlock::as_text).collect();
    let request = request.join("\n");
    let tells_of_batch = context.host.hooks().any_for(&HookEvent::PostToolBatch);
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
                Output::MayStop { again } => turn.handle(driver.may_stop(again).await),
                Output::Overruled => driver.overruled().await,
                Output::MayGoOn => turn.handle(driver.may_go_on().await),
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
async fn passed(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// The next event of the response under way; waits for ever when there is none.
async fn next_event(stream: &mut Option<EventStream>) -> Option<Result<ModelEvent, ModelError>> {
    match stream {
        Some(stream) => stream.next().await,
        None => std::future::pending().await,
    }
}

struct Driver<'a> {
    context: &'a TurnContext,
    /// Names the turn.
    id: Uuid,
    stream: Option<EventStream>,
    /// When the model was asked for the response under way.
    asked: Option<Instant>,
    response: Accumulator,
    /// What the host has seen of its events.
    shown: OpenStream,
    /// What every `assistant` message of the response has.
    frame: Option<ResponseHeader>,
    /// The API's name for the request under way.
    request_id: Option<String>,
    /// The prompts that no frame has been said to answer yet.
    answers: Vec<Uuid>,
    // Dropping the set aborts whatever still runs.
    jobs: JoinSet<(CallResult, Arc<ToolUseBlock>)>,
    /// The calls that run, by their task.
    running: HashMap<task::Id, Arc<ToolUseBlock>>,
    /// The ids of all calls of the conversation.
    ids: CallIds,
    /// The calls of the response that are done, as hooks are told of them. Empty unless they want to know.
    batch: Vec<Value>,
    /// Whether hooks are told of the calls of a response.
    tells_of_batch: bool,
    /// When the time is up.
    deadline: Option<tokio::time::Instant>,
    /// What the user asked for, in words.
    request: String,
    attempts: Attempts,
    finished: TurnOutcome,
}

impl<'a> Driver<'a> {
    fn new(context: &'a TurnContext, request: String, ids: CallIds) -> Self {
        let now = tokio::time::Instant::now();
        let finished =
            TurnOutcome { n_user_messages: 1, ..TurnOutcome::new(Ending::Completed, Vec::new()) };
        Self {
            context,
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
            deadline: context.limits.timeout.and_then(|timeout| now.checked_add(timeout)),
            request,
            attempts: Attempts::default(),
            finished,
        }
    }

    async fn ask(&mut self, messages: Arc<Vec<ChatMessage>>, whole: bool) {
        self.context.host.tell_request(&self.context.answering).await;
        self.response = Accumulator::default();
        self.asked = Some(Instant::now());
        self.request_id = None;
        self.finished.timing.ask();
        self.attempts.ask();
        self.stream = Some(self.context.model.respond(self.context.request(messages, whole)));
    }

    /// Makes the conversation shorter, and returns what the turn is to hear; nothing when it stays as it is.
    async fn compact(&mut self, turn: &Turn, is_too_long: bool) -> Option<Input> {
        let TurnContext { host, cx, .. } = self.context;
        let (conversation, to) = (turn.conversation(), turn.unanswered());
        if to.0 == 0 {
            // The prompt is all there is.
            return None;
        }
        let is_answered = to == compact::cut::end(&conversation);
        let job = CompactJob {
            trigger: Trigger::Auto,
            conversation: &conversation,
            to,
            request: is_answered.then_some(self.request.as_str()),
            instructions: None,
            is_too_long,
        };
        let deadline = self.deadline;
        let stop = async {
            tokio::select! {
                () = cx.cancelled.cancelled() => {}
                () = passed(deadline) => {}
            }
        };
        // Rare and large: its place is not in every turn.
        match Box::pin(compact::compact(self.context, job, stop)).await {
            Ok(CompactedConversation { conversation, prompt_from, .. }) => {
                self.attempts.succeed();
                Some(Input::Compacted { conversation, prompt_from })
            }
            Err(CompactError::Stopped) if cx.cancelled.is_cancelled() => Some(Input::Interrupt),
            Err(CompactError::Stopped) => Some(Input::Deadline),
            Err(why) => {
                self.attempts.failed = true;
                let text = format!("The conversation was not compacted: {}", why.reason());
                host.inform(text, "warning", Some("compact_failed")).await;
                None
            }
        }
    }

    /// Asks the model, with a shorter conversation if this one would not fit.
    async fn ask_if_it_fits(
        &mut self,
        messages: Arc<Vec<ChatMessage>>,
        whole: bool,
        turn: &mut Turn,
    ) {
        if let Some(limit) = self.over_limit() {
            // Subagents have used up what is left, or earlier prompts: nothing more is paid for.
            turn.handle(Input::OverLimit(limit));
        } else if !whole && self.attempts.is_due(self.context, &messages) {
            match self.compact(turn, false).await {
                Some(input) => turn.handle(input),
                None => self.ask(messages, whole).await,
            }
        } else {
            self.ask(messages, whole).await;
        }
    }

    fn run(&mut self, call: ToolUseBlock) {
        let TurnContext { tools, cx, host, .. } = self.context.clone();
        let call = agents::by_name(&call, &tools);
        let session = Some(EngineToolSession::of(self.context));
        let cx = ToolCx { call: call.id.clone(), session, ..cx };
        let call = Arc::new(call);
        let job = {
            let call = Arc::clone(&call);
            async move { (call::run(&tools, cx, &host, (*call).clone()).await, call) }
        };
        let job = self.jobs.spawn(job);
        self.running.insert(job.id(), call);
    }

    /// Something from the model: an event, an error, or the end.
    async fn heard(&mut self, event: Option<Result<ModelEvent, ModelError>>, turn: &mut Turn) {
        match event {
            Some(Ok(ModelEvent::Stream(event))) => self.streamed(event, turn).await,
            Some(Ok(ModelEvent::Whole(message))) => self.whole(message, turn).await,
            Some(Ok(ModelEvent::Named(id))) => self.request_id = Some(id),
            Some(Ok(ModelEvent::Retry(retry))) => self.context.host.retrying(&retry).await,
            Some(Ok(ModelEvent::Fallback(fallback))) => {
                tell_of_fallback(self.context, &fallback);
                self.context.host.fell_back(fallback).await;
            }
            Some(Err(error)) => self.fail(error, turn).await,
            None => {
                self.fail(ModelError::Broken("it has no end".to_owned()), turn).await;
            }
        }
    }

    async fn streamed(&mut self, event: StreamEvent, turn: &mut Turn) {
        if let StreamEvent::MessageStart(start) = &event {
            self.frame = Some(ResponseHeader::new(&start.message, self.request_id.clone()));
        }
        let is_token = matches!(event, StreamEvent::ContentBlockDelta(_));
        let is_first = self.finished.timing.hear(is_token);
        let folded = match self.response.push(&event) {
            Ok(folded) => folded,
            Err(error) => return self.fail(ModelError::Broken(error.to_string()), turn).await,
        };
        self.shown.saw(&event);
        match folded {
            // What hooks may show otherwise is not shown before they have seen it.
            Folded::Nothing if display::is_text(&event) && display::is_judged(self.context) => {}
            Folded::Nothing => self.show(event, is_first).await,
            Folded::Block(block) => {
                // The finished block goes before the event that finishes it; hosts rely on it.
                self.block(block, Some(&event), turn).await;
                self.show(event, false).await;
            }
            Folded::Message(message) => {
                self.show(event, false).await;
                self.replied(&message, turn);
            }
        }
    }

    /// Lets a host that follows the response see an event of it.
    async fn show(&mut self, event: StreamEvent, is_first: bool) {
        if matches!(event, StreamEvent::ContentBlockDelta(_)) {
            self.finished.timing.show();
        }
        let begins = matches!(event, StreamEvent::MessageStart(_));
        let about = StreamEventMeta {
            message_id: self.message_id(),
            time_to_first: self.asked.filter(|_| begins).map(|asked| asked.elapsed()),
            answers: if is_first { self.context.answering.to_vec() } else { Vec::new() },
            abandoned_blocks: None,
        };
        self.context.host.stream(event, about).await;
    }

    fn message_id(&self) -> Option<String> {
        self.frame.as_ref().and_then(|frame| frame.message.id.clone())
    }

    /// A response that came in one piece.
    async fn whole(&mut self, message: Message, turn: &mut Turn) {
        self.frame = Some(ResponseHeader::new(&message, self.request_id.clone()));
        self.finished.timing.hear(true);
        for block in &message.content {
            self.block(block.clone(), None, turn).await;
        }
        self.replied(&message, turn);
    }

    /// The model has nothing more to say, or is not listened to any more.
    fn hang_up(&mut self) {
        self.stream = None;
        if let Some(asked) = self.asked.take() {
            self.context.host.ledger.add_time(asked.elapsed());
        }
    }

    fn replied(&mut self, message: &Message, turn: &mut Turn) {
        self.hang_up();
        let usage = message.usage.clone().unwrap_or_default();
        // The model that answered, which after a fallback is not the one that was asked.
        self.context.host.ledger.add(&message.model, &usage);
        self.context.context_usage.measure(&usage);
        if let Some(subagent) = &self.context.host.subagent {
            subagent.count(&usage);
        }
        count_tokens(&self.context.tokens, &usage);
        add_usage(&mut self.finished.usage, &usage);
        self.finished.stop_reason.clone_from(&message.stop_reason);
        if message.stop_reason == Some(StopReason::Refusal) {
            self.finished.n_safety_stops += 1;
            // Its end says why.
            self.frame = Some(ResponseHeader::new(message, self.request_id.clone()));
        }
        self.finished.timing.first_usage.get_or_insert(usage);
        let over = self.over_limit();
        turn.handle(Input::Replied { stop_reason: message.stop_reason.clone(), over });
    }

    /// The limit that is reached, if one is.
    fn over_limit(&self) -> Option<Limit> {
        let Limits { max_tokens, max_budget_usd, .. } = self.context.limits;
        let tokens = self.context.tokens.load(Ordering::Relaxed);
        let ledger = &self.context.host.ledger;
        let dollars =
            max_budget_usd.filter(|max| ledger.dollars() >= *max || ledger.unpriced().is_some());
        let tokens = max_tokens.filter(|max| tokens >= *max);
        dollars.map(|_| Limit::Dollars).or(tokens.map(|_| Limit::Tokens))
    }

    /// A finished block; `end` is the event that finishes it.
    async fn block(&mut self, mut block: ContentBlock, end: Option<&StreamEvent>, turn: &mut Turn) {
        self.ids.settle(&mut block);
        let shown = display::ask(self.context, &self.id, &block).await;
        if let Some(text) = block.as_text() {
            text.clone_into(&mut self.finished.text);
            self.finished.shown = shown.clone();
        }
        if let Some(text) = end.and_then(|end| display::delta(self.context, end, &block, &shown)) {
            self.show(text, false).await;
        }
        if let Some(frame) = &mut self.frame {
            frame.answers = std::mem::take(&mut self.answers);
            frame.call = match &block {
                ContentBlock::ToolUse(call) => display::of_call(self.context, call),
                _ => None,
            };
            self.finished.timing.show();
            match shown {
                Some(text) => self.context.host.say_otherwise(frame, block.clone(), text).await,
                None => self.context.host.say(frame, block.clone()).await,
            }
        }
        turn.handle(match block {
            ContentBlock::ToolUse(call) => {
                let meant = agents::by_name(&call, &self.context.tools);
                let parallel = call::is_parallel(&self.context.tools, &self.context.cx, &meant);
                Input::Called { call, parallel }
            }
            block => Input::Block(block),
        });
    }

    /// A task of a call has ended, also by a panic: the turn waits for a result of every call.
    async fn joined(
        &mut self,
        done: Result<(task::Id, (CallResult, Arc<ToolUseBlock>)), JoinError>,
        turn: &mut Turn,
    ) {
        match done {
            Ok((id, (result, call))) => {
                self.running.remove(&id);
                self.ran(result, &call, turn).await;
            }
            Err(error) => {
                // Calls catch their panics; what comes here has panicked while it was dropped.
                let Some(call) = self.running.remove(&error.id()) else { return };
                let why = match error.try_into_panic() {
                    Ok(panic) => panic,
                    Err(error) => Box::new(error.to_string()),
                };
                let result = call::broken_call(call.id.clone(), &call.name, &*why);
                self.ran(result, &call, turn).await;
            }
        }
    }

    async fn ran(&mut self, result: CallResult, call: &ToolUseBlock, turn: &mut Turn) {
        let ToolUseBlock { name: tool_name, input: tool_input, .. } = call;
        let CallResult { block, structured, denied, stop, stop_reason, meta } = result;
        self.stopped_by_hook(stop_reason);
        if self.tells_of_batch {
            self.batch.push(json!({
                "tool_name": tool_name, "tool_input": tool_input, "tool_use_id": block.tool_use_id,
                "tool_response": block.content,
            }));
        }
        self.finished.n_user_messages += 1;
        self.finished.n_tool_calls += 1;
        if denied {
            let tool_use_id = block.tool_use_id.clone();
            self.finished.denials.push(PermissionDenial {
                tool_name: tool_name.clone(),
                tool_use_id,
                tool_input: tool_input.clone(),
                extra: Extra::default(),
            });
        }
        self.context.host.say_result(block.clone(), structured, meta).await;
        let stop = match tool_name.as_str() {
            structured::NAME if block.is_error == Some(true) => {
                self.finished.miss = block.content.as_ref().map(Content::text);
                stop.or(Some(StopAfter::Miss))
            }
            structured::NAME => {
                self.finished.text = tool_input.to_string();
                self.finished.structured = Some(tool_input.clone());
                stop.or(Some(StopAfter::Answer))
            }
            _ => stop,
        };
        turn.handle(Input::ToolDone { result: block, stop });
    }

    /// A call that ends with the turn. Whatever runs is stopped first: nothing of a call comes after its result.
    async fn stopped(&mut self, result: ToolResultBlock) {
        self.jobs.shutdown().await;
        self.finished.n_user_messages += 1;
        let text = result.content.as_ref().map(Content::text).unwrap_or_default();
        let structured = json!(format!("Error: {text}"));
        let meta = ToolResultMeta {
            id: result.tool_use_id.clone(),
            non_execution_kind: Some("user-rejected".to_owned()),
            ..ToolResultMeta::default()
        };
        self.context.host.say_result(result, Some(structured), Some(meta)).await;
    }

    async fn fail(&mut self, error: ModelError, turn: &mut Turn) {
        self.hang_up();
        self.close_stream(false).await;
        if self.attempts.helps_against(self.context, &error)
            && let Some(input) = self.compact(turn, true).await
        {
            return turn.handle(input);
        }
        turn.handle(Input::Failed(error));
    }

    /// The response will not be finished: a host that follows its events sees an end of them all the same.
    async fn close_stream(&mut self, kept: bool) {
        for (event, abandoned) in self.shown.close(kept) {
            let about = StreamEventMeta {
                message_id: self.message_id(),
                abandoned_blocks: abandoned,
                ..StreamEventMeta::default()
            };
            self.context.host.stream(event, about).await;
        }
    }

    /// What the model said so far is kept: the user has read it.
    async fn interrupt(&mut self, turn: &mut Turn) {
        self.hang_up();
        let kept = self.response.unfinished_text().is_some();
        if let (Some(text), Some(frame)) = (self.response.unfinished_text(), &mut self.frame) {
            frame.answers = std::mem::take(&mut self.answers);
            text.clone_into(&mut self.finished.text);
            let block = ContentBlock::text(text);
            self.context.host.say_cut_short(frame, block.clone()).await;
            turn.handle(Input::Block(block));
        }
        self.close_stream(kept).await;
        turn.handle(Input::Interrupt);
    }

    /// Asks hooks whether the turn may end.
    async fn may_stop(&mut self, again: bool) -> Input {
        let TurnContext { host, cx, .. } = self.context;
        let mut fields = json!({
            "stop_hook_active": again,
            "last_assistant_message": self.finished.text,
            "background_tasks": cx.tasks.summary(),
            // Nothing here runs by a clock.
            "session_crons": [],
        });
        let event = match &host.agent {
            None => HookEvent::Stop,
            Some(agent) => {
                let path = host.transcript.as_ref().map(|transcript| transcript.path());
                fields["agent_id"] = json!(agent);
                fields["agent_type"] = json!(host.subagent.as_ref().map(|subagent| &subagent.kind));
                fields["agent_transcript_path"] = json!(path.unwrap_or_default());
                HookEvent::SubagentStop
            }
        };
        let hooks = host.hooks();
        let event = Event::new(event, fields);
        tokio::select! {
            // First, because the interruption also takes back what hooks are asked: that is no verdict of theirs.
            biased;
            () = cx.cancelled.cancelled() => Input::Interrupt,
            verdict = hooks.run(host, &cx.cwd, event) => {
                // What a hook wants the model to read, it shall still read in this turn.
                let words: Vec<_> = verdict.block.into_iter().chain(verdict.context).collect();
                self.stopped_by_hook(verdict.stop.clone());
                Input::StopVerdict(match verdict.stop {
                    None if !words.is_empty() => StopVerdict::GoOn(words.join("\n")),
                    _ => StopVerdict::Stop,
                })
            }
        }
    }

    /// Keeps what a hook said when it ended the turn.
    fn stopped_by_hook(&mut self, reason: Option<String>) {
        if let Some(reason) = reason.filter(|reason| !reason.trim().is_empty()) {
            self.finished.hook_stop_reason = Some(reason);
        }
    }

    /// Hooks will never let the turn end, it seems.
    async fn overruled(&mut self) {
        let text =
            format!("Stop hooks wanted the turn to go on {MAX_REFUSALS} times; it ends now.");
        self.context.host.inform(text, "warning", Some("stop_hooks_overruled")).await;
    }

    /// Asks hooks whether the results of a response may go to the model.
    async fn may_go_on(&mut self) -> Input {
        let TurnContext { host, cx, .. } = self.context;
        let fields = json!({"tool_calls": std::mem::take(&mut self.batch)});
        let hooks = host.hooks();
        tokio::select! {
            biased;
            () = cx.cancelled.cancelled() => Input::Interrupt,
            verdict = hooks.run(host, &cx.cwd, Event::new(HookEvent::PostToolBatch, fields)) => {
                let stop = verdict.stop.is_some() || verdict.block.is_some();
                self.stopped_by_hook(verdict.stop.or(verdict.block));
                Input::GoOnVerdict { context: verdict.context, stop }
            }
        }
    }

    /// Tells hooks that the turn failed. What they say changes nothing.
    async fn tell_of_failure(&mut self, error: AssistantError, details: String) {
        let TurnContext { host, cx, .. } = self.context;
        if host.agent.is_some() {
            return;
        }
        let fields = json!({
            "error": error, "error_details": details, "last_assistant_message": details,
        });
        let hooks = host.hooks();
        tokio::select! {
            _ = hooks.run(host, &cx.cwd, Event::new(HookEvent::StopFailure, fields)) => {}
            () = cx.cancelled.cancelled() => {}
        }
    }

    /// Says in the model's place why it has no answer.
    async fn apologise(&mut self, words: String, error: AssistantError) {
        self.context.host.say_error(words.clone(), error.clone()).await;
        self.tell_of_failure(error, words).await;
    }

    /// Words of the turn itself that make the model go on.
    async fn nudge(&mut self, words: String) {
        match self.refused().cloned() {
            Some(refused) => {
                self.finished.n_user_messages += 1;
                self.context.host.refused_once(&refused, words).await;
            }
            None => self.prompt(words).await,
        }
    }

    /// The response that was stopped as unsafe, if the newest one was.
    fn refused(&self) -> Option<&Message> {
        let was_refused = self.finished.stop_reason == Some(StopReason::Refusal);
        self.frame.as_ref().filter(|_| was_refused).map(|frame| &frame.message)
    }

    /// Something the turn itself says on the user's side.
    async fn prompt(&mut self, words: String) {
        self.finished.n_user_messages += 1;
        self.context.host.say_synthetic(words).await;
    }

    async fn finish(mut self, ending: Ending, turn: LentTurn) -> TurnOutcome {
        self.hang_up();
        self.close_stream(false).await;
        self.jobs.shutdown().await;
        let TurnContext { host, .. } = self.context;
        match &ending {
            Ending::Interrupted { in_tools } => {
                let marker = if *in_tools { INTERRUPTED_TOOLS } else { INTERRUPTED };
                self.finished.n_user_messages += 1;
                host.say_as_user(vec![ContentBlock::text(marker)]).await;
            }
            Ending::Failed(error) => {
                host.say_api_error(error).await;
                self.tell_of_failure(error.kind(), error.to_string()).await;
            }
            Ending::Refused => {
                let refused = self.refused().cloned().unwrap_or_default();
                host.refused(&refused, REFUSED).await;
                self.tell_of_failure(AssistantError::InvalidRequest, REFUSED.to_owned()).await;
            }
            Ending::MaxOutputTokens => {
                self.apologise(CUT.to_owned(), AssistantError::MaxOutputTokens).await
            }
            Ending::Completed
            | Ending::HookStopped
            | Ending::Blocked(_)
            | Ending::Command { .. }
            | Ending::MaxTurns
            | Ending::SchemaMissed
            | Ending::OverLimit(_) => {}
        }
        TurnOutcome { ending, conversation: turn.into_conversation(), ..self.finished }
    }
}

/// What the user reads when the model declined to answer.
pub(crate) const REFUSED: &str = "The model declined to answer this.";
/// What the user reads when the answer was cut once too often.
pub(crate) const CUT: &str = "The answer was longer than the model may write, also in pieces.";

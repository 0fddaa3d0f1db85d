//! [`Turn`]: from a prompt to its result, as a state machine without IO.
//!
//! The turn decides; `drive.rs` performs. It asks for a model call, starts tools as soon as their input is complete,
//! sends the results back in the order of the calls, and ends when the model has no more calls and no hook objects.
//!
//! Invariant: whatever happens, when the turn is done every call in the conversation has exactly one result.

mod calls;
pub(crate) mod ids;

use std::collections::VecDeque;
use std::sync::Arc;

use ostler_proto::api::{ContentBlock, Role, StopReason, ToolResultBlock, ToolUseBlock};

pub use self::calls::MAX_PARALLEL_CALLS;
use self::calls::{ABANDONED_CALL, Calls};
use crate::model::sayable::{self, is_sayable, is_thought};
use crate::model::{ChatMessage, ModelError};
pub use crate::model::{INTERRUPTED, INTERRUPTED_CALL, INTERRUPTED_TOOLS};

/// Sent to the model when the output limit cut its response.
pub const GO_ON: &str = "The output limit cut your answer. Go on exactly where it ended, without repeating \
    anything, and do the rest in smaller pieces.";
/// Sent to the model when its response was empty.
pub const SAY_SOMETHING: &str =
    "Your answer was empty. Say what you found or did, or what you need.";

/// Sent once to the model when the API stopped its response, which is removed from the conversation.
pub const STOPPED: &str = "Your last answer was stopped as unsafe and has been removed. Answer in another way if you \
    can; if not, say so.";

/// Replaces a prompt without content.
pub const EMPTY_PROMPT: &str = "(The user sent an empty message.)";

/// Sent to the model when it has not given the structured answer that the host asked for.
pub const USE_SCHEMA: &str = "Give your final answer now by calling StructuredOutput.";

/// After this many answers that do not fit the schema, the turn ends.
const MAX_MISSES: u32 = 5;
/// How often in a row hooks may refuse the end of a turn before it ends anyway.
pub const MAX_REFUSALS: u32 = 8;
/// How often a cut response is continued.
const MAX_CONTINUATIONS: u32 = 3;
/// How often a response that the API paused is sent back to be continued.
const MAX_PAUSES: u32 = 10;

/// Everything that can happen to a turn.
#[derive(Debug)]
pub enum Input {
    /// The model finished a block that is not a call.
    Block(ContentBlock),
    /// The model finished a call. `parallel`: it may run in parallel with others that may.
    Called {
        /// The call.
        call: ToolUseBlock,
        /// Whether it may run in parallel with others.
        parallel: bool,
    },
    /// The response is complete. `over`: a limit that its cost exceeded.
    Replied {
        /// Why the model stopped.
        stop_reason: Option<StopReason>,
        /// The limit that was reached, if one was.
        over: Option<Limit>,
    },
    /// The response failed.
    Failed(ModelError),
    /// A tool has a result.
    ToolDone {
        /// The result.
        result: ToolResultBlock,
        /// Whether the turn is to end with it.
        stop: Option<StopAfter>,
    },
    /// A call has text for the model that follows the results of all calls, as a message of its own.
    FollowUp(String),
    /// The answer to [`Output::MayStop`].
    StopVerdict(StopVerdict),
    /// The answer to [`Output::MayGoOn`].
    GoOnVerdict {
        /// Text for the model in addition to the results.
        context: Vec<String>,
        /// Whether the turn ends instead.
        stop: bool,
    },
    /// The conversation was compacted: the model is asked with this one instead.
    Compacted {
        /// The compacted conversation.
        conversation: Vec<ChatMessage>,
        /// Where in it the prompt begins that has no answer yet.
        prompt_from: (usize, usize),
    },
    /// Time is up.
    Deadline,
    /// A limit was reached before the model was asked.
    OverLimit(Limit),
    /// The user or a hook interrupts the turn.
    Interrupt,
}

/// Why a turn ends with a tool's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopAfter {
    /// The host denied a call and stops the turn at once.
    Interrupt,
    /// A hook wants the turn to end once the calls at hand are done.
    Hook,
    /// It is the answer the host asked for.
    Answer,
    /// It should have been that answer, but does not fit the schema.
    Miss,
}

/// Whether a finished turn may end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopVerdict {
    /// Yes.
    Stop,
    /// No: the model reads why, and continues.
    GoOn(String),
}

/// A limit that ends a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// On dollars.
    Dollars,
    /// On tokens.
    Tokens,
    /// On time.
    Time,
}

/// Everything a turn can ask for.
#[derive(Debug)]
pub enum Output {
    /// Ask the model to continue this conversation.
    AskModel {
        /// The conversation. Shared, not copied: it may be long, and the turn adds to it only once the answer is
        /// there and the request gone.
        conversation: Arc<Vec<ChatMessage>>,
        /// Whether to ask for the answer in one piece, after a stream that broke.
        whole: bool,
    },
    /// Run a tool. Its result is expected as [`Input::ToolDone`].
    RunTool(ToolUseBlock),
    /// The turn itself sends the model a text as a user message; hosts see it too.
    Prompt(&'static str),
    /// The same, with the text of a stop hook.
    Feedback(String),
    /// The same, with text of a call.
    FollowUp(String),
    /// Ask whether the turn may end; [`Input::StopVerdict`] is expected. `again`: it was refused before.
    MayStop {
        /// Whether it was refused before in this turn.
        again: bool,
    },
    /// The end was refused too often and comes anyway; the user must be notified.
    Overruled,
    /// All calls of a response are done: ask whether to continue; [`Input::GoOnVerdict`] is expected. Only with
    /// [`Turn::asking_after_tools`].
    MayGoOn,
    /// The turn ends before a call is done, and this is its result; hosts see it too.
    Stopped(ToolResultBlock),
    /// The turn is over. Calls that still run must be stopped; their results are ignored.
    Done(Ending),
}

/// How a turn ended.
#[derive(Debug)]
pub enum Ending {
    /// The model had no more calls.
    Completed,
    /// A hook ended it.
    HookStopped,
    /// A hook refused the prompt, with the text for the user.
    Blocked(String),
    /// It was interrupted.
    Interrupted {
        /// Whether tools were running or waiting.
        in_tools: bool,
    },
    /// A command was run in the model's place.
    Command {
        /// Its name.
        name: String,
        /// What it prints, or why it failed.
        outcome: Result<String, String>,
    },
    /// The limit on model calls was reached with calls still to answer.
    MaxTurns,
    /// Another limit was reached.
    OverLimit(Limit),
    /// The model did not give the structured answer that the host asked for.
    SchemaMissed,
    /// The output limit cut the answer too often.
    MaxOutputTokens,
    /// The model declined to answer.
    Refused,
    /// The model failed.
    Failed(ModelError),
}

impl Ending {
    /// The result of calls that were not done when the turn ended.
    fn words_for_calls(&self) -> &'static str {
        match self {
            Self::Interrupted { .. } => INTERRUPTED_CALL,
            Self::OverLimit(Limit::Time) => "Deadline exceeded",
            Self::OverLimit(Limit::Tokens) => "Token budget exhausted",
            Self::OverLimit(Limit::Dollars) => "Budget exhausted",
            _ => ABANDONED_CALL,
        }
    }
}

/// One turn of a conversation.
#[derive(Debug)]
pub struct Turn {
    /// Where this turn began: a number of messages, and a number of blocks of the last of them.
    before: (usize, usize),
    conversation: Arc<Vec<ChatMessage>>,
    /// The response under way.
    answer: Vec<ContentBlock>,
    calls: Calls,
    /// Texts that follow the results of the calls.
    follow_ups: Vec<String>,
    reply: Option<Option<StopReason>>,
    rounds: u64,
    max_rounds: Option<u64>,
    /// The host asked for a structured answer.
    needs_answer: bool,
    /// The answer does not end the turn.
    goes_on_after_answer: bool,
    /// Hooks are asked before results go to the model.
    asks_after_tools: bool,
    patience: Patience,
    outputs: VecDeque<Output>,
    done: bool,
}

/// Counts what the turn has tolerated so far.
#[derive(Debug, Default)]
struct Patience {
    continuations: u32,
    pauses: u32,
    was_empty: bool,
    was_refused: bool,
    was_broken: bool,
    stop_refused: bool,
    /// How often in a row the end was refused, without a call in between.
    refusals: u32,
    hook_stops: bool,
    answered: bool,
    misses: u32,
    was_reminded: bool,
}

impl Turn {
    /// A turn that answers `prompt` after `conversation`, with at most `max_rounds` model calls.
    pub fn new(
        conversation: Vec<ChatMessage>,
        prompt: Vec<ContentBlock>,
        max_rounds: Option<u64>,
    ) -> Self {
        let mut turn = Self {
            before: (conversation.len(), conversation.last().map_or(0, |last| last.content.len())),
            conversation: Arc::new(conversation),
            answer: Vec::new(),
            calls: Calls::default(),
            follow_ups: Vec::new(),
            reply: None,
            rounds: 0,
            max_rounds,
            needs_answer: false,
            goes_on_after_answer: false,
            asks_after_tools: false,
            patience: Patience::default(),
            outputs: VecDeque::new(),
            done: false,
        };
        let mut prompt = prompt;
        prompt.retain(is_sayable);
        if prompt.is_empty() {
            // The API refuses a message without content, but hosts may send one.
            prompt.push(ContentBlock::text(EMPTY_PROMPT));
        }
        turn.user_says(prompt);
        turn.ask_model(false);
        turn
    }

    /// The same, with a question ([`Output::MayGoOn`]) before the results of calls go to the model.
    #[must_use]
    pub fn asking_after_tools(mut self, asks: bool) -> Self {
        self.asks_after_tools = asks;
        self
    }

    /// The answer must come as a call of the tool made for it.
    #[must_use]
    pub fn needing_answer(mut self, needs_answer: bool) -> Self {
        self.needs_answer = needs_answer;
        self
    }

    /// The answer does not end the turn: the model continues until it makes no more calls.
    #[must_use]
    pub fn going_on_after_answer(mut self, goes_on: bool) -> Self {
        self.goes_on_after_answer = goes_on;
        self
    }

    /// Handles what happened. Anything after the end is ignored.
    pub fn handle(&mut self, input: Input) {
        if self.done {
            return;
        }
        match input {
            Input::Block(block) if !is_sayable(&block) => {}
            Input::Block(block) => self.answer.push(block),
            Input::Called { call, parallel } => {
                self.patience.refusals = 0;
                self.answer.push(ContentBlock::ToolUse(call.clone()));
                self.calls.push(call, parallel);
            }
            // The budget is spent: waiting calls do not run, running ones are stopped.
            Input::Replied { over: Some(limit), .. } => {
                return self.end(Ending::OverLimit(limit), None);
            }
            Input::Replied { stop_reason, over: None } => self.reply = Some(stop_reason),
            Input::FollowUp(text) => return self.follow_ups.push(text),
            Input::ToolDone { result, stop } => {
                self.calls.done(result);
                match stop {
                    Some(StopAfter::Interrupt) => return self.interrupt(),
                    Some(StopAfter::Hook) => self.patience.hook_stops = true,
                    Some(StopAfter::Answer) => self.patience.answered = true,
                    Some(StopAfter::Miss) => self.patience.misses += 1,
                    None => {}
                }
            }
            Input::StopVerdict(verdict) => return self.judged(verdict),
            Input::GoOnVerdict { stop: true, .. } => return self.end(Ending::HookStopped, None),
            Input::GoOnVerdict { context, stop: false } => {
                let context = context.into_iter().map(ContentBlock::text).collect();
                return self.next_round(|turn| turn.user_says(context));
            }
            Input::Failed(error) => return self.fail(error),
            Input::Compacted { conversation, prompt_from } => {
                self.conversation = Arc::new(conversation);
                self.before = prompt_from;
                self.rounds = self.rounds.saturating_sub(1);
                return self.ask_model(false);
            }
            Input::Deadline => return self.end(Ending::OverLimit(Limit::Time), None),
            Input::OverLimit(limit) => return self.end(Ending::OverLimit(limit), None),
            Input::Interrupt => return self.interrupt(),
        }
        self.go_on();
    }

    /// The next thing to do. `None` means: wait for an [`Input`].
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Where the prompt begins while the model has not answered it; afterwards the end of the conversation.
    pub fn unanswered(&self) -> (usize, usize) {
        match self.rounds {
            0 | 1 => self.before,
            _ => (
                self.conversation.len(),
                self.conversation.last().map_or(0, |last| last.content.len()),
            ),
        }
    }

    /// The conversation so far.
    pub fn conversation(&self) -> Arc<Vec<ChatMessage>> {
        Arc::clone(&self.conversation)
    }

    /// The conversation after the turn, in a valid state to continue.
    pub fn into_conversation(self) -> Vec<ChatMessage> {
        Arc::unwrap_or_clone(self.conversation)
    }

    /// The conversation of a turn that is abandoned, with a result for every call.
    pub(crate) fn abandon(mut self) -> Vec<ChatMessage> {
        if !self.done {
            self.close_round();
        }
        self.into_conversation()
    }

    fn go_on(&mut self) {
        self.outputs.extend(self.calls.start().into_iter().map(Output::RunTool));
        let Some(stop_reason) = self.reply.clone() else { return };
        if !self.calls.all_done() {
            return;
        }
        if self.patience.hook_stops {
            self.end(Ending::HookStopped, None);
        } else if self.patience.answered && !self.goes_on_after_answer {
            self.end(Ending::Completed, None);
        } else if self.patience.misses >= MAX_MISSES {
            self.end(Ending::SchemaMissed, None);
        } else if self.calls.is_empty() {
            self.finished(stop_reason);
        } else if self.asks_after_tools && self.has_rounds_left() {
            self.outputs.push_back(Output::MayGoOn);
        } else {
            self.next_round(|_| {});
        }
    }

    /// Asks the model once more, with the user content that `say` adds; ends the turn at the limit of rounds.
    fn next_round(&mut self, say: impl FnOnce(&mut Self)) {
        if self.has_rounds_left() {
            self.close_round();
            let follow_ups = self.follow_up();
            self.outputs.extend(follow_ups);
            say(self);
            self.ask_model(false);
        } else {
            self.end(Ending::MaxTurns, None);
        }
    }

    fn has_rounds_left(&self) -> bool {
        self.max_rounds.is_none_or(|max| self.rounds < max)
    }

    /// The response is complete and has no calls: decides whether the turn ends.
    fn finished(&mut self, stop_reason: Option<StopReason>) {
        let needs_answer = self.needs_answer && !self.patience.answered;
        match stop_reason {
            Some(StopReason::Refusal) => self.refused(),
            Some(StopReason::MaxTokens) if self.patience.continuations < MAX_CONTINUATIONS => {
                self.patience.continuations += 1;
                self.nudge(GO_ON);
            }
            Some(StopReason::MaxTokens) => self.end(Ending::MaxOutputTokens, None),
            Some(StopReason::PauseTurn) if self.patience.pauses < MAX_PAUSES => {
                self.patience.pauses += 1;
                if self.has_rounds_left() {
                    // The API requires the paused response back unchanged.
                    self.says_of_model();
                    self.ask_model(false);
                } else {
                    self.end(Ending::MaxTurns, None);
                }
            }
            _ if self.is_empty_answer() && !self.patience.was_empty && self.has_rounds_left() => {
                self.patience.was_empty = true;
                self.nudge(SAY_SOMETHING);
            }
            _ if needs_answer && !self.patience.was_reminded && self.has_rounds_left() => {
                self.patience.was_reminded = true;
                self.nudge(USE_SCHEMA);
            }
            // An end without the answer must not look like a success.
            _ if needs_answer => self.end(Ending::SchemaMissed, None),
            _ => self.outputs.push_back(Output::MayStop { again: self.patience.stop_refused }),
        }
    }

    /// Removes a response that was stopped as unsafe, because every later request would be stopped too, and tries once
    /// more.
    fn refused(&mut self) {
        self.answer.clear();
        if !self.patience.was_refused && self.has_rounds_left() {
            self.patience.was_refused = true;
            self.nudge(STOPPED);
        } else {
            self.end(Ending::Refused, None);
        }
    }

    fn judged(&mut self, verdict: StopVerdict) {
        match verdict {
            StopVerdict::Stop => self.end(Ending::Completed, None),
            StopVerdict::GoOn(_) if self.patience.refusals >= MAX_REFUSALS => {
                self.end(Ending::Completed, None);
                self.outputs.push_front(Output::Overruled);
            }
            StopVerdict::GoOn(feedback) => {
                self.patience.stop_refused = true;
                self.patience.refusals += 1;
                self.next_round(|turn| {
                    turn.user_says(vec![ContentBlock::text(feedback.as_str())]);
                    turn.outputs.push_back(Output::Feedback(feedback));
                });
            }
        }
    }

    /// Whether the response has neither text nor calls.
    fn is_empty_answer(&self) -> bool {
        self.answer.iter().all(is_thought)
    }

    /// Sends the model a text as a user message, and asks again.
    fn nudge(&mut self, words: &'static str) {
        self.next_round(|turn| {
            turn.user_says(vec![ContentBlock::text(words)]);
            turn.outputs.push_back(Output::Prompt(words));
        });
    }

    fn ask_model(&mut self, whole: bool) {
        self.rounds += 1;
        self.reply = None;
        self.outputs.push_back(Output::AskModel { conversation: self.conversation.clone(), whole });
    }

    /// Adds the texts of calls to the conversation, after their results; returns what hosts see of them.
    fn follow_up(&mut self) -> Vec<Output> {
        let texts = std::mem::take(&mut self.follow_ups);
        self.user_says(texts.iter().map(ContentBlock::text).collect());
        texts.into_iter().map(Output::FollowUp).collect()
    }

    /// Moves the response and its results into the conversation.
    fn close_round(&mut self) {
        sayable::tidy_end(&mut self.answer);
        self.says_of_model();
    }

    /// Moves the response without removing blocks that must not be at its end.
    fn says_of_model(&mut self) {
        // No call stays without a result, whatever the driver does.
        self.calls.stop(ABANDONED_CALL);
        let answer = std::mem::take(&mut self.answer);
        self.says(Role::Assistant, answer);
        let results = self.calls.take_results();
        self.user_says(results);
    }

    fn interrupt(&mut self) {
        let in_tools = !self.calls.is_empty();
        let marker = if in_tools { INTERRUPTED_TOOLS } else { INTERRUPTED };
        self.end(Ending::Interrupted { in_tools }, Some(marker));
    }

    fn fail(&mut self, error: ModelError) {
        if error.is_broken_stream() && !self.calls.is_empty() {
            // Calls were made, and some may have run: the received part counts as the response.
            self.reply = Some(None);
            return self.go_on();
        }
        if error.is_broken_stream() && !self.patience.was_broken {
            // No calls yet: the received part is dropped, and the model is asked once more, without a stream.
            self.patience.was_broken = true;
            self.answer.clear();
            self.rounds -= 1;
            return self.ask_model(true);
        }
        // The API would refuse every later request with this content too.
        if error.is_fault_of_request() && self.answer.is_empty() {
            if self.rounds == 1 {
                self.forget();
            } else {
                self.forget_results();
            }
        }
        self.end(Ending::Failed(error), None);
    }

    /// Empties the newest results. They must stay, because the API requires a result for every call.
    fn forget_results(&mut self) {
        let newest = Arc::make_mut(&mut self.conversation).last_mut();
        for block in newest.into_iter().flat_map(|said| &mut said.content) {
            if let ContentBlock::ToolResult(result) = block {
                sayable::refuse(result);
            }
        }
    }

    /// Removes everything this turn has added to the conversation.
    fn forget(&mut self) {
        let (n_messages, n_blocks) = self.before;
        let conversation = Arc::make_mut(&mut self.conversation);
        conversation.truncate(n_messages);
        if let Some(last) = conversation.last_mut() {
            last.content.truncate(n_blocks);
        }
    }

    fn end(&mut self, ending: Ending, marker: Option<&str>) {
        let stopped = self.calls.stop(ending.words_for_calls());
        self.close_round();
        let follow_ups = self.follow_up();
        if let Some(marker) = marker {
            self.user_says(vec![ContentBlock::text(marker)]);
        }
        self.outputs.clear();
        self.outputs.extend(stopped.into_iter().map(Output::Stopped));
        self.outputs.extend(follow_ups);
        self.outputs.push_back(Output::Done(ending));
        self.done = true;
    }

    fn user_says(&mut self, blocks: Vec<ContentBlock>) {
        self.says(Role::User, blocks);
    }

    /// Adds blocks; neighbouring messages of one role become one message, as the API treats them.
    fn says(&mut self, role: Role, blocks: Vec<ContentBlock>) {
        if blocks.is_empty() {
            return;
        }
        let conversation = Arc::make_mut(&mut self.conversation);
        match conversation.last_mut() {
            Some(last) if last.role == role => last.content.extend(blocks),
            _ => conversation.push(ChatMessage { role, content: blocks }),
        }
    }
}

#[cfg(test)]
mod tests;

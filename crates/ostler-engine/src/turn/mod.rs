//! [`Turn`]: from a prompt to its result, as a state machine without IO.
//!
//! The turn decides; `drive.rs` does. It asks for a model call, starts tools as soon as their input is complete, sends
//! the results back in the order of the calls, and ends when the model has no more calls and no hook objects.
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

/// Said when the output limit cut a response.
pub const GO_ON: &str = "The output limit cut your answer. Go on exactly where it ended, without repeating \
    anything, and do the rest in smaller pieces.";
/// Said when a response was empty.
pub const SAY_SOMETHING: &str =
    "Your answer was empty. Say what you found or did, or what you need.";

/// Said once when the API stopped a response; what it stopped is not sent back.
pub const STOPPED: &str = "Your last answer was stopped as unsafe and has been removed. Answer in another way if you \
    can; if not, say so.";

/// Stands for a prompt without content.
pub const EMPTY_PROMPT: &str = "(The user sent an empty message.)";

/// Said when the answer has not come in the shape the host asked for.
pub const USE_SCHEMA: &str = "Give your final answer now by calling StructuredOutput.";

/// How many answers of the wrong shape are too many.
const MAX_MISSES: u32 = 5;
/// How often in a row the end of a turn is refused before it ends all the same: what has not changed by then will not.
pub const MAX_REFUSALS: u32 = 8;
/// How often a cut response is taken up again.
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
    /// The response is complete. `over`: a limit that its cost went past.
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
    /// What came of [`Output::MayStop`].
    StopVerdict(StopVerdict),
    /// What came of [`Output::MayGoOn`].
    GoOnVerdict {
        /// What the model is to read in addition to the results.
        context: Vec<String>,
        /// Whether the turn ends instead.
        stop: bool,
    },
    /// The conversation was made shorter before it was answered: the model is asked with this one instead.
    Compacted {
        /// What is left of it.
        conversation: Vec<ChatMessage>,
        /// Where in it the prompt begins that has no answer yet.
        prompt_from: (usize, usize),
    },
    /// Time is up.
    Deadline,
    /// A limit was reached before the model was asked.
    OverLimit(Limit),
    /// The user or a hook wants it to stop.
    Interrupt,
}

/// Why a turn ends with a tool's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopAfter {
    /// The host said no and wants everything to stop, at once.
    Interrupt,
    /// A hook wants the turn to end once the calls at hand are done.
    Hook,
    /// It is the answer the host asked for.
    Answer,
    /// It should have been that answer, and does not fit.
    Miss,
}

/// Whether a turn that is finished may end.
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
    /// The turn itself says something to the model, on the user's side; hosts see it too.
    Prompt(&'static str),
    /// The same, with words of a stop hook.
    Feedback(String),
    /// Ask whether the turn may end; [`Input::StopVerdict`] is expected. `again`: it was refused before.
    MayStop {
        /// Whether it was refused before in this turn.
        again: bool,
    },
    /// The end was refused once too often, and comes all the same; the user is to know.
    Overruled,
    /// All calls of a response are done: ask whether to continue; [`Input::GoOnVerdict`] is expected. Only said to
    /// those who [want to be asked](Turn::asking_after_tools).
    MayGoOn,
    /// The turn ends before a call is done, and this is its result; hosts see it too.
    Stopped(ToolResultBlock),
    /// The turn is over. Whatever still runs is to be stopped; its results are no longer wanted.
    Done(Ending),
}

/// How a turn ended.
#[derive(Debug)]
pub enum Ending {
    /// The model had no more calls.
    Completed,
    /// A hook ended it.
    HookStopped,
    /// A hook refused the prompt; what the user reads.
    Blocked(String),
    /// It was interrupted; `in_tools` tells whether tools were running or waiting.
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
    /// The model did not give the answer in the shape the host asked for.
    SchemaMissed,
    /// The output limit cut the answer more often than it is taken up again.
    MaxOutputTokens,
    /// The model declined to answer.
    Refused,
    /// The model failed.
    Failed(ModelError),
}

impl Ending {
    /// What the model reads about calls that were not done by then.
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
    /// Where this turn began: after so many messages, and so many blocks of the last of them.
    before: (usize, usize),
    conversation: Arc<Vec<ChatMessage>>,
    /// The response under way.
    answer: Vec<ContentBlock>,
    calls: Calls,
    reply: Option<Option<StopReason>>,
    rounds: u64,
    max_rounds: Option<u64>,
    /// The host asked for an answer in a certain shape.
    needs_answer: bool,
    /// The answer does not end the turn.
    goes_on_after_answer: bool,
    /// Hooks are asked before results go to the model.
    asks_after_tools: bool,
    patience: Patience,
    outputs: VecDeque<Output>,
    done: bool,
}

/// What the turn has put up with so far.
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
            // The API takes no message without content, and hosts may send one.
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

    /// The answer is not the end: the model is asked on until it says nothing more to do.
    #[must_use]
    pub fn going_on_after_answer(mut self, goes_on: bool) -> Self {
        self.goes_on_after_answer = goes_on;
        self
    }

    /// Takes what happened. Anything after the end is ignored.
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
            // Money is spent: calls that wait are not run, those that run are stopped.
            Input::Replied { over: Some(limit), .. } => {
                return self.end(Ending::OverLimit(limit), None);
            }
            Input::Replied { stop_reason, over: None } => self.reply = Some(stop_reason),
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

    /// Where the prompt begins, until the model has answered it with something; the end of the conversation then.
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

    /// The conversation after the turn, fit to be continued.
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

    /// Asks the model once more, with what `say` adds on the user's side; ends the turn when it may not.
    fn next_round(&mut self, say: impl FnOnce(&mut Self)) {
        if self.has_rounds_left() {
            self.close_round();
            say(self);
            self.ask_model(false);
        } else {
            self.end(Ending::MaxTurns, None);
        }
    }

    fn has_rounds_left(&self) -> bool {
        self.max_rounds.is_none_or(|max| self.rounds < max)
    }

    /// The response is complete and calls for nothing: is that the end?
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
                    // The API wants its own words back, and nothing else.
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

    /// What was stopped does not stay: it would be stopped with every later request. One more try.
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

    /// Whether the response says and calls nothing.
    fn is_empty_answer(&self) -> bool {
        self.answer.iter().all(is_thought)
    }

    /// Says something to the model on the user's side, and asks again.
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

    /// Moves the response and its results into the conversation.
    fn close_round(&mut self) {
        sayable::tidy_end(&mut self.answer);
        self.says_of_model();
    }

    /// The same as it is, without a look at what may stand at its end.
    fn says_of_model(&mut self) {
        // No call is left open, whatever the driver does.
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
            // Calls were made, and some may have run: what has come so far counts as the response.
            self.reply = Some(None);
            return self.go_on();
        }
        if error.is_broken_stream() && !self.patience.was_broken {
            // Nothing was done yet: what was said is void, and the question is asked once more, without a stream.
            self.patience.was_broken = true;
            self.answer.clear();
            self.rounds -= 1;
            return self.ask_model(true);
        }
        // What the API refuses now it would refuse with every later request too.
        if error.is_fault_of_request() && self.answer.is_empty() {
            if self.rounds == 1 {
                self.forget();
            } else {
                self.forget_results();
            }
        }
        self.end(Ending::Failed(error), None);
    }

    /// Takes back what is in the newest results; that they are there the API insists on.
    fn forget_results(&mut self) {
        let newest = Arc::make_mut(&mut self.conversation).last_mut();
        for block in newest.into_iter().flat_map(|said| &mut said.content) {
            if let ContentBlock::ToolResult(result) = block {
                sayable::refuse(result);
            }
        }
    }

    /// Takes back everything this turn has added to the conversation.
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
        if let Some(marker) = marker {
            self.user_says(vec![ContentBlock::text(marker)]);
        }
        self.outputs.clear();
        self.outputs.extend(stopped.into_iter().map(Output::Stopped));
        self.outputs.push_back(Output::Done(ending));
        self.done = true;
    }

    fn user_says(&mut self, blocks: Vec<ContentBlock>) {
        self.says(Role::User, blocks);
    }

    /// Neighbouring messages of one side are one message, as the API sees them.
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

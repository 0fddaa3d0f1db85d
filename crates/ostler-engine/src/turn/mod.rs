//! [`Turn`]: from a prompt to its result, as a state machine without IO.
//!
//! The turn decides; `drive.rs` does. It asks for a model call, starts tools as soon as their input is complete, sends
//! the results back in the order of the calls, and ends when the model has no more calls and nobody objects.
//!
//! Invariant: whatever happens, when the turn is done every call in the conversation has exactly one result.

mod calls;

use std::collections::VecDeque;

use ostler_proto::api::{ContentBlock, Role, StopReason, ToolResultBlock, ToolUseBlock};

use self::calls::Calls;
pub use self::calls::INTERRUPTED_CALL;
use crate::model::{ModelError, Said};

/// Marks an interruption while the model spoke, in the words hosts look for.
pub const INTERRUPTED: &str = "[Request interrupted by user]";
/// Marks an interruption while tools ran.
pub const INTERRUPTED_TOOLS: &str = "[Request interrupted by user for tool use]";

/// Said when the output limit cut a response.
pub const GO_ON: &str = "The output limit cut your answer. Go on exactly where it ended, without repeating \
    anything, and do the rest in smaller pieces.";
/// Said when a response was empty.
pub const SAY_SOMETHING: &str =
    "Your answer was empty. Say what you found or did, or what you need.";

/// Said when the answer has not come in the shape the host asked for.
pub const USE_SCHEMA: &str = "Give your final answer now by calling StructuredOutput.";

/// How many answers of the wrong shape are too many.
const MAX_MISSES: u32 = 5;
/// How often a cut response is taken up again.
const MAX_CONTINUATIONS: u32 = 3;
/// How often a response that the API paused is sent back to go on.
const MAX_PAUSES: u32 = 10;

/// Everything that can happen to a turn.
#[derive(Debug)]
pub enum Input {
    /// The model finished a block that is not a call.
    Said(ContentBlock),
    /// The model finished a call. `parallel`: it may run beside others that may.
    Called {
        /// The call.
        call: ToolUseBlock,
        /// Whether it may run beside others.
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
        /// What the model is to read beside the results.
        context: Vec<String>,
        /// Whether the turn ends instead.
        stop: bool,
    },
    /// Time is up.
    Deadline,
    /// Somebody wants it to stop.
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
    /// No: the model is told why, and goes on.
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
#[expect(clippy::large_enum_variant, reason = "handed over once and taken apart at once")]
pub enum Output {
    /// Ask the model to go on with this conversation.
    AskModel {
        /// The conversation.
        conversation: Vec<Said>,
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
    /// All calls of a response are done: ask whether to go on; [`Input::GoOnVerdict`] is expected. Only said to
    /// those who [want to be asked](Turn::asking_after_tools).
    MayGoOn,
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
    /// A hook refused the prompt; what the user is told.
    Blocked(String),
    /// It was interrupted; `in_tools` tells whether tools were running or waiting.
    Interrupted {
        /// Whether tools were running or waiting.
        in_tools: bool,
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

/// One turn of a conversation.
#[derive(Debug)]
pub struct Turn {
    /// The conversation without this turn.
    before: Vec<Said>,
    conversation: Vec<Said>,
    /// The response under way.
    answer: Vec<ContentBlock>,
    calls: Calls,
    reply: Option<Option<StopReason>>,
    rounds: u64,
    max_rounds: Option<u64>,
    /// The host asked for an answer in a certain shape.
    needs_answer: bool,
    /// Somebody has a say before results go to the model.
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
    was_broken: bool,
    stop_refused: bool,
    hook_stops: bool,
    answered: bool,
    misses: u32,
    was_reminded: bool,
}

impl Turn {
    /// A turn that answers `prompt` after `conversation`, with at most `max_rounds` model calls.
    pub fn new(
        conversation: Vec<Said>,
        prompt: Vec<ContentBlock>,
        max_rounds: Option<u64>,
    ) -> Self {
        let mut turn = Self {
            before: conversation.clone(),
            conversation,
            answer: Vec::new(),
            calls: Calls::default(),
            reply: None,
            rounds: 0,
            max_rounds,
            needs_answer: false,
            asks_after_tools: false,
            patience: Patience::default(),
            outputs: VecDeque::new(),
            done: false,
        };
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

    /// Takes what happened. Anything after the end is ignored.
    pub fn handle(&mut self, input: Input) {
        if self.done {
            return;
        }
        match input {
            Input::Said(block) => self.answer.push(block),
            Input::Called { call, parallel } => {
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
                self.close_round();
                self.user_says(context.into_iter().map(ContentBlock::text).collect());
                return self.ask_model(false);
            }
            Input::Failed(error) => return self.fail(error),
            Input::Deadline => return self.end(Ending::OverLimit(Limit::Time), None),
            Input::Interrupt => return self.interrupt(),
        }
        self.go_on();
    }

    /// The next thing to do. `None` means: wait for an [`Input`].
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// The conversation after the turn, fit to be continued.
    pub fn into_conversation(self) -> Vec<Said> {
        self.conversation
    }

    fn go_on(&mut self) {
        self.outputs.extend(self.calls.start().into_iter().map(Output::RunTool));
        let Some(stop_reason) = self.reply.clone() else { return };
        if !self.calls.all_done() {
            return;
        }
        if self.patience.hook_stops {
            self.end(Ending::HookStopped, None);
        } else if self.patience.answered {
            self.end(Ending::Completed, None);
        } else if self.patience.misses >= MAX_MISSES {
            self.end(Ending::SchemaMissed, None);
        } else if self.calls.is_empty() {
            self.finished(stop_reason);
        } else if self.max_rounds.is_some_and(|max| self.rounds >= max) {
            self.end(Ending::MaxTurns, None);
        } else if self.asks_after_tools {
            self.outputs.push_back(Output::MayGoOn);
        } else {
            self.close_round();
            self.ask_model(false);
        }
    }

    /// The response is complete and calls for nothing: is that the end?
    fn finished(&mut self, stop_reason: Option<StopReason>) {
        match stop_reason {
            Some(StopReason::Refusal) => self.end(Ending::Refused, None),
            Some(StopReason::MaxTokens) if self.patience.continuations < MAX_CONTINUATIONS => {
                self.patience.continuations += 1;
                self.nudge(GO_ON);
            }
            Some(StopReason::MaxTokens) => self.end(Ending::MaxOutputTokens, None),
            Some(StopReason::PauseTurn) if self.patience.pauses < MAX_PAUSES => {
                // The API wants its own words back, and nothing else.
                self.patience.pauses += 1;
                self.close_round();
                self.ask_model(false);
            }
            _ if self.answer.is_empty() && !self.patience.was_empty => {
                self.patience.was_empty = true;
                self.nudge(SAY_SOMETHING);
            }
            _ if self.needs_answer && !self.patience.was_reminded => {
                self.patience.was_reminded = true;
                self.nudge(USE_SCHEMA);
            }
            _ => self.outputs.push_back(Output::MayStop { again: self.patience.stop_refused }),
        }
    }

    fn judged(&mut self, verdict: StopVerdict) {
        match verdict {
            StopVerdict::Stop => self.end(Ending::Completed, None),
            StopVerdict::GoOn(feedback) => {
                self.patience.stop_refused = true;
                self.close_round();
                self.user_says(vec![ContentBlock::text(feedback.as_str())]);
                self.outputs.push_back(Output::Feedback(feedback));
                self.ask_model(false);
            }
        }
    }

    /// Says something to the model on the user's side, and asks again.
    fn nudge(&mut self, words: &'static str) {
        self.close_round();
        self.user_says(vec![ContentBlock::text(words)]);
        self.outputs.push_back(Output::Prompt(words));
        self.ask_model(false);
    }

    fn ask_model(&mut self, whole: bool) {
        self.rounds += 1;
        self.reply = None;
        self.outputs.push_back(Output::AskModel { conversation: self.conversation.clone(), whole });
    }

    /// Moves the response and its results into the conversation.
    fn close_round(&mut self) {
        let answer = std::mem::take(&mut self.answer);
        if !answer.is_empty() {
            self.says(Role::Assistant, answer);
            let results = self.calls.take_results();
            self.user_says(results);
        }
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
        // A prompt the API refuses would be refused with every later request too: it is forgotten.
        if error.is_fault_of_request() && self.rounds == 1 && self.answer.is_empty() {
            self.conversation = std::mem::take(&mut self.before);
        }
        self.end(Ending::Failed(error), None);
    }

    fn end(&mut self, ending: Ending, marker: Option<&str>) {
        self.close_round();
        if let Some(marker) = marker {
            self.user_says(vec![ContentBlock::text(marker)]);
        }
        self.outputs.clear();
        self.outputs.push_back(Output::Done(ending));
        self.done = true;
    }

    fn user_says(&mut self, blocks: Vec<ContentBlock>) {
        self.says(Role::User, blocks);
    }

    /// Neighbouring messages of one side are one message, as the API sees them.
    fn says(&mut self, role: Role, blocks: Vec<ContentBlock>) {
        match self.conversation.last_mut() {
            _ if blocks.is_empty() => {}
            Some(last) if last.role == role => last.content.extend(blocks),
            _ => self.conversation.push(Said { role, content: blocks }),
        }
    }
}

#[cfg(test)]
mod tests;

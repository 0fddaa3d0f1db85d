//! The frames that begin and end a turn: `init` and `result`.

use std::time::{Duration, Instant, SystemTime};

use ostler_proto::api::{StopReason, Usage};
use ostler_proto::build;
use ostler_proto::frame::ToHost;
use ostler_proto::message::system::Init;
use ostler_proto::message::{ResultSubtype, System, TerminalReason, TurnResult};
use ostler_proto::{Extra, Num, Uuid};
use serde_json::json;

use crate::agents;
use crate::commands;
use crate::drive::{CUT, REFUSED, TurnContext, TurnOutcome};
use crate::ids::fresh_uuid;
use crate::model::ledger::{Ledger, whole_usage};
use crate::model::{ModelError, pricing};
use crate::response::ResponseTiming;
use crate::session::queue::Answers;
use crate::turn::{Ending, Limit};

/// `system`/`init`: what the turn works with.
pub(crate) fn init(context: &TurnContext) -> ToHost {
    let mut init = build!(Init {
        cwd: context.cx.cwd.display().to_string(),
        session_id: context.outbox.session_id.clone(),
        mcp_servers: context.servers.summary(),
        tools: context.specs.iter().map(|spec| listed_name(&spec.name)).collect(),
        model: context.asked_model(),
        permission_mode: context.permissions.mode(),
        api_key_source: context.key_source.as_deref().map(str::to_owned),
        original_cwd: Some(context.cx.cwd.display().to_string()),
        additional_directories: Some(directories(context)),
        // The answer to an interruption lists the queued prompts; the request may ask to remove them.
        capabilities: Some(vec![
            "interrupt_receipt_v1".to_owned(),
            "interrupt_cancel_queued_v1".to_owned(),
        ]),
        slash_commands: commands::names(&context.library),
        skills: Some(commands::skill_names(&context.library)),
        plugins: Some(context.library.plugin_list()),
        claude_code_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        ostler_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        output_style: Some(context.style.as_ref().to_owned()),
        agents: Some(agents::listed(&context.library).into_iter().map(|kind| kind.name).collect()),
        user_message_uuids: Some(context.answering.to_vec()).filter(|named| !named.is_empty()),
        uuid: fresh_uuid()
    });
    attest(context, &mut init.extra);
    ToHost::System(System::Init(Box::new(init)))
}

/// Adds what is enforced for commands, under the name `sandbox`; nothing without a sandbox.
fn attest(context: &TurnContext, extra: &mut Extra) {
    if let Some(sandbox) = &context.sandbox {
        extra.insert("sandbox", sandbox.attestation(&context.permissions.policy()));
    }
}

fn directories(context: &TurnContext) -> Vec<String> {
    context
        .permissions
        .policy()
        .directories()
        .map(|directory| directory.display().to_string())
        .collect()
}

/// The name of a tool in lists for hosts: the one for subagents has its older name there.
fn listed_name(tool: &str) -> String {
    if agents::is_name(tool) { agents::OLD_NAME.to_owned() } else { tool.to_owned() }
}

/// What the results of a session have in common.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    begun: Option<Instant>,
    answers: Answers,
    /// The models' time at the start of the turn.
    waited: Duration,
    n_results: u64,
}

impl Totals {
    /// How many turns have ended.
    pub(crate) fn n_results(&self) -> u64 {
        self.n_results
    }

    /// Notes that a turn begins.
    pub(crate) fn begin(&mut self, ledger: &Ledger, answers: Answers) {
        self.answers = answers;
        self.begun = Some(Instant::now());
        self.waited = ledger.time();
    }

    /// The id of the prompt that is being answered, if the host gave it one.
    pub(crate) fn prompt(&self) -> Option<Uuid> {
        self.answers.named.last().cloned()
    }

    /// `result` for a turn that came to its end.
    pub(crate) fn result(&mut self, context: &TurnContext, finished: TurnOutcome) -> ToHost {
        let times = Times::of(self.begun, &finished.timing);
        let mut result = build!(TurnResult {
            num_turns: finished.n_user_messages,
            stop_reason: finished.stop_reason,
            usage: whole_usage(finished.usage),
            permission_denials: finished.denials,
            structured_output: finished.structured,
            hook_stop_reason: finished.hook_stop_reason,
            safety_stops: Some(finished.n_safety_stops.into()),
            ..self.frame(context)
        });
        // A field of our own: how many questions the mode, rules and hooks answered for the user.
        let (asked, spared) = context.records.ledger.questions();
        if asked + spared > 0 {
            let counted = json!({"asked": asked, "spared": spared});
            result.extra.insert("permission_questions", counted);
        }
        attest(context, &mut result.extra);
        match finished.ending {
            Ending::Completed => {
                result.result = Some(finished.shown.unwrap_or(finished.text));
                result.terminal_reason = Some(TerminalReason::Completed);
            }
            Ending::HookStopped => {
                result.result = Some(String::new());
                result.terminal_reason = Some(TerminalReason::HookStopped);
            }
            Ending::Blocked(reason) => {
                result.result = Some(reason);
                result.terminal_reason = Some(TerminalReason::HookStopped);
            }
            Ending::Command { name, outcome } => {
                result.local_command = Some(name);
                result.is_error = outcome.is_err();
                result.result = Some(outcome.unwrap_or_else(|why| why));
            }
            Ending::Failed(error) => {
                // The turn itself succeeded; the text says how the API failed.
                result.is_error = true;
                result.terminal_reason = Some(match error.is_prompt_too_long() {
                    true => TerminalReason::PromptTooLong,
                    false => TerminalReason::ApiError,
                });
                if let ModelError::Status { status, .. } = &error {
                    result.api_error_status = Some(*status);
                }
                result.api_error_type = error.api_type().map(str::to_owned);
                // The same as in the message that was sent in the model's place.
                result.stop_reason = Some(StopReason::StopSequence);
                result.result = Some(error.to_string());
            }
            Ending::Interrupted { in_tools } => {
                fail(&mut result, ResultSubtype::ErrorDuringExecution, "The turn was interrupted.");
                let reason = if in_tools {
                    TerminalReason::AbortedTools
                } else {
                    TerminalReason::AbortedStreaming
                };
                result.terminal_reason = Some(reason);
            }
            Ending::MaxTurns => {
                let max = context.limits.max_turns.unwrap_or_default();
                let text = format!("Reached maximum number of turns ({max})");
                fail(&mut result, ResultSubtype::ErrorMaxTurns, &text);
                result.terminal_reason = Some(TerminalReason::MaxTurns);
            }
            Ending::SchemaMissed => {
                let text = missed(finished.miss.as_deref(), &finished.text);
                fail(&mut result, ResultSubtype::ErrorMaxStructuredOutputRetries, &text);
                result.terminal_reason = Some(TerminalReason::StructuredOutputRetryExhausted);
            }
            Ending::OverLimit(limit) => {
                // The protocol has one budget error; a field of our own names the limit. Time is not a budget there.
                let (subtype, word) = match limit {
                    Limit::Dollars => (ResultSubtype::ErrorMaxBudgetUsd, "usd"),
                    Limit::Tokens => (ResultSubtype::ErrorMaxBudgetUsd, "tokens"),
                    Limit::Time => (ResultSubtype::ErrorDuringExecution, "time"),
                };
                fail(&mut result, subtype, &over(limit, context));
                result.extra.insert("limit_reached", word);
                result.terminal_reason = Some(TerminalReason::BudgetExhausted);
            }
            Ending::Refused => apology(&mut result, REFUSED, TerminalReason::ModelError),
            Ending::MaxOutputTokens => apology(&mut result, CUT, TerminalReason::ModelError),
        }
        if let Some(times) = times.filter(|_| result.subtype == ResultSubtype::Success) {
            times.tell(&mut result);
        }
        ToHost::Result(Box::new(result))
    }

    /// `result` for a turn that panicked.
    pub(crate) fn broken(&mut self, context: &TurnContext, why: &str) -> ToHost {
        let mut result = self.frame(context);
        let text = format!("the turn failed with a panic, which is a bug in the engine: {why}");
        fail(&mut result, ResultSubtype::ErrorDuringExecution, &text);
        ToHost::Result(Box::new(result))
    }

    fn frame(&mut self, context: &TurnContext) -> TurnResult {
        let TurnContext { outbox, records, .. } = context;
        let elapsed = self.begun.take().map_or(Duration::ZERO, |begun| begun.elapsed());
        let index = self.n_results;
        self.n_results += 1;
        let Answers { named, origin } = std::mem::take(&mut self.answers);
        build!(TurnResult {
            duration_ms: Num::from(elapsed.as_millis() as u64),
            duration_api_ms: Num::from(
                records.ledger.time().saturating_sub(self.waited).as_millis() as u64,
            ),
            usage: whole_usage(Usage::default()),
            session_id: outbox.session_id.clone(),
            total_cost_usd: Num::from(records.ledger.dollars()),
            model_usage: records.ledger.models(),
            uuid: fresh_uuid(),
            result_index: Some(index),
            user_message_uuid: named.last().cloned(),
            user_message_uuids: Some(named).filter(|named| !named.is_empty()),
            origin
        })
    }
}

/// How long a turn took to its first request and to the first events of its answer.
struct Times {
    to_request: Duration,
    to_event: Duration,
    to_token: Option<Duration>,
    to_frame: Option<Duration>,
    request_sent: SystemTime,
    first_usage: Usage,
}

impl Times {
    /// `None` when the model was not asked, or never began to answer.
    fn of(begun: Option<Instant>, timing: &ResponseTiming) -> Option<Self> {
        let begun = begun?;
        let (asked, request_sent) = timing.asked?;
        let since = |moment: Instant| moment.saturating_duration_since(begun);
        Some(Self {
            to_request: since(asked),
            to_event: since(timing.first_event?),
            to_token: timing.first_token.map(since),
            to_frame: timing.first_frame.map(since),
            request_sent,
            first_usage: timing.first_usage.clone().unwrap_or_default(),
        })
    }

    fn tell(self, result: &mut TurnResult) {
        let number = |time: Duration| Num::from(time.as_millis() as u64);
        result.time_to_request_ms = Some(number(self.to_request));
        result.ttft_stream_ms = Some(number(self.to_event));
        result.ttft_ms = self.to_token.map(number);
        result.first_content_frame_ms = self.to_frame.map(number);
        // The other fields are for hosts that give their prompts ids.
        if result.user_message_uuid.is_some() {
            let sent = self.request_sent.duration_since(SystemTime::UNIX_EPOCH).ok();
            result.request_sent_wall_ms = sent.map(number);
            result.first_request_input_tokens = Some(self.first_usage.input_tokens.unwrap_or(0));
            result.first_request_cache_read_input_tokens =
                Some(self.first_usage.cache_read_input_tokens.unwrap_or(0));
        }
    }
}

/// The most characters of a model's text in an error.
const MAX_QUOTED: usize = 500;

/// Why there is no structured answer: what was wrong with the last attempt, or the model's text instead of one.
fn missed(miss: Option<&str>, text: &str) -> String {
    let shape = "The model did not give its answer in the required shape";
    let begin = |text: &str| text.trim().chars().take(MAX_QUOTED).collect::<String>();
    match (miss, text.trim()) {
        (Some(miss), _) => format!("{shape}: {}", begin(miss)),
        (None, "") => format!("{shape}: it never called StructuredOutput."),
        (None, text) => {
            format!("{shape}: it never called StructuredOutput. It said: {}", begin(text))
        }
    }
}

fn over(limit: Limit, context: &TurnContext) -> String {
    match limit {
        Limit::Dollars => {
            let limit = context.limits.max_budget_usd.unwrap_or_default();
            match context.records.ledger.unpriced() {
                Some(model) => pricing::no_price(&model, limit),
                None => format!("Reached maximum budget (${limit})"),
            }
        }
        Limit::Tokens => {
            format!(
                "Reached maximum number of tokens ({})",
                context.limits.max_tokens.unwrap_or_default()
            )
        }
        Limit::Time => {
            let seconds = context.limits.timeout.unwrap_or_default().as_secs_f64();
            format!("Reached the time limit ({seconds} s)")
        }
    }
}

/// A successful turn, except that the model has no answer.
fn apology(result: &mut TurnResult, text: &str, reason: TerminalReason) {
    result.is_error = true;
    result.result = Some(text.to_owned());
    result.terminal_reason = Some(reason);
}

fn fail(result: &mut TurnResult, subtype: ResultSubtype, error: &str) {
    result.subtype = subtype;
    result.is_error = true;
    result.errors = Some(vec![error.to_owned()]);
}

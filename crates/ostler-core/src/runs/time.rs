//! Time limits of a run, of the engine's silence, and of one tool call. The time stops while a user is asked.

use std::time::Duration;

use ostler::Message;
use ostler::proto::api::{Content, ContentBlock, ToolUseBlock};
use tokio::time::Instant;

use crate::config::Limits;
use crate::model::run::Failure;

/// Tools that work by calling others; each of those calls has its own time.
const AGENTS: [&str; 2] = ["Agent", "Task"];

/// The maximum time of a Bash command, and the time of one without its own limit.
const BASH_MOST: Duration = Duration::from_secs(600);
/// How long a tool of an MCP server counts as active if nothing else limits it: the time of the run.
const OTHER_MOST: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a call may take by its tool's own limit. It sends nothing meanwhile, but is alive.
fn own_limit(call: &ToolUseBlock) -> Duration {
    match call.name.as_str() {
        "Bash" => {
            let asked = call.input.get("timeout").and_then(serde_json::Value::as_u64);
            asked.map_or(BASH_MOST, Duration::from_millis).min(BASH_MOST)
        }
        name if name.starts_with("mcp__") => OTHER_MOST,
        _ => BASH_MOST,
    }
}

/// The time that is left.
struct Budget {
    left: Option<Duration>,
    /// Since when the time runs; `None` while it is stopped.
    since: Option<Instant>,
}

impl Budget {
    fn new(left: Option<Duration>, stands: bool) -> Self {
        Self { left, since: (!stands).then(Instant::now) }
    }

    fn stand(&mut self, stands: bool) {
        if !stands {
            self.since.get_or_insert_with(Instant::now);
        } else if let Some(since) = self.since.take() {
            self.left = self.left.map(|left| left.saturating_sub(since.elapsed()));
        }
    }

    fn end(&self) -> Option<Instant> {
        Some(self.since? + self.left?)
    }
}

/// A call that has no result yet.
struct Call {
    id: String,
    /// The call that started the subagent that made this call.
    parent: Option<String>,
    name: String,
    /// The operator's limit, if there is one.
    time: Budget,
    /// The tool's own limit.
    alive: Budget,
}

/// The remaining times of a run.
pub(super) struct Times {
    limits: Limits,
    run: Budget,
    silence: Budget,
    calls: Vec<Call>,
    stands: bool,
}

impl Times {
    pub(super) fn new(limits: Limits) -> Self {
        let (run, silence) = (Budget::new(limits.run, false), Budget::new(limits.stale, false));
        Self { limits, run, silence, calls: Vec::new(), stands: false }
    }

    /// Whether the time is stopped.
    pub(super) fn stands(&self) -> bool {
        self.stands
    }

    /// Stops or continues the time, while a user is asked.
    pub(super) fn stand(&mut self, stands: bool) {
        self.stands = stands;
        self.run.stand(stands);
        self.silence.stand(stands);
        for call in &mut self.calls {
            call.time.stand(stands);
            call.alive.stand(stands);
        }
    }

    /// Notes a message of the engine.
    pub(super) fn heard(&mut self, message: &Message) {
        self.silence = Budget::new(self.limits.stale, self.stands);
        match message {
            Message::Assistant(said) => {
                let parent = said.parent_tool_use_id.as_ref().map(ToString::to_string);
                said.message.content.iter().for_each(|block| self.begun(block, parent.as_ref()));
            }
            Message::User(said) => {
                let Some(Content::Blocks(blocks)) = &said.message.content else { return };
                for block in blocks {
                    let ContentBlock::ToolResult(result) = block else { continue };
                    // The calls of a subagent end with it, with or without results.
                    let ended = result.tool_use_id.as_str();
                    self.calls
                        .retain(|call| call.id != ended && call.parent.as_deref() != Some(ended));
                }
            }
            // The engine does not wait for open calls any more.
            Message::Result(_) => self.calls.clear(),
            _ => {}
        }
    }

    fn begun(&mut self, block: &ContentBlock, parent: Option<&String>) {
        let ContentBlock::ToolUse(call) = block else { return };
        if AGENTS.contains(&call.name.as_str()) {
            return;
        }
        let time = Budget::new(self.limits.tool, self.stands);
        let alive = Budget::new(Some(own_limit(call)), self.stands);
        let (id, parent) = (call.id.to_string(), parent.cloned());
        self.calls.push(Call { id, parent, name: call.name.clone(), time, alive });
    }

    /// When the silence is too long: counted from the last message, or from the time at which the last open call should
    /// have ended by its own limit.
    fn stale_at(&self) -> Option<Instant> {
        let stale = self.limits.stale?;
        let silent = self.silence.end()?;
        let working = self.calls.iter().filter_map(|call| call.alive.end()).max();
        Some(working.map_or(silent, |working| silent.max(working + stale)))
    }

    /// Waits until a limit is exceeded, and returns which.
    pub(super) async fn spent(&self) -> Failure {
        let fixed = [
            (self.run.end(), "run_timeout", "the run".to_owned(), self.limits.run),
            (self.stale_at(), "stale", "the silence of the engine".to_owned(), self.limits.stale),
        ];
        let calls = self.calls.iter().map(|call| {
            (call.time.end(), "tool_timeout", format!("the tool {}", call.name), self.limits.tool)
        });
        let all = fixed.into_iter().chain(calls);
        let first = all.filter_map(|(end, code, what, limit)| Some((end?, code, what, limit?)));
        let Some((end, code, what, limit)) = first.min_by_key(|(end, ..)| *end) else {
            return std::future::pending().await;
        };
        tokio::time::sleep_until(end).await;
        let seconds = limit.as_secs_f64();
        Failure::new(code, format!("{what} took longer than {seconds} s, so the run was ended"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn message(frame: Value) -> Message {
        let names = json!({"session_id": "s", "uuid": "00000000-0000-4000-8000-000000000000"});
        let mut frame = frame;
        frame.as_object_mut().unwrap().extend(names.as_object().unwrap().clone());
        Message::from_frame(serde_json::from_value(frame).unwrap()).unwrap()
    }

    fn calls(parent: Option<&str>, id: &str, name: &str) -> Message {
        let call = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
        let said = json!({"id": "m", "type": "message", "role": "assistant", "model": "x", "content": [call],
            "stop_reason": null, "stop_sequence": null, "usage": {}});
        message(json!({"type": "assistant", "parent_tool_use_id": parent, "message": said}))
    }

    fn answers(id: &str) -> Message {
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": "ok"});
        let said = json!({"role": "user", "content": [result]});
        message(json!({"type": "user", "parent_tool_use_id": null, "message": said}))
    }

    // Seen to fail when only its own result ends a call.
    #[test]
    fn a_call_ends_with_its_result_or_with_the_subagent_that_made_it() {
        let mut times =
            Times::new(Limits { tool: Some(Duration::from_secs(1)), ..Limits::default() });
        let open =
            |times: &Times| times.calls.iter().map(|call| call.id.clone()).collect::<Vec<_>>();
        times.heard(&calls(None, "agent", "Agent"));
        times.heard(&calls(Some("agent"), "inner", "Bash"));
        times.heard(&calls(None, "outer", "Bash"));
        assert_eq!(open(&times), ["inner", "outer"], "the calls of a subagent count separately");
        times.heard(&answers("agent"));
        assert_eq!(open(&times), ["outer"]);
        times.heard(&answers("outer"));
        assert!(open(&times).is_empty());
    }

    // Mutant: `stale_at` that looks at the silence only.
    #[tokio::test(start_paused = true)]
    async fn a_running_tool_does_not_count_as_a_silent_engine() {
        let minutes = |n: u64| Duration::from_secs(60 * n);
        let limits = Limits { stale: Some(minutes(10)), run: None, ..Limits::default() };
        let mut times = Times::new(limits);
        times.heard(&calls(None, "long", "Bash"));
        let waited = tokio::time::timeout(minutes(19), times.spent()).await;
        assert!(
            waited.is_err(),
            "a command may take 10 minutes, and then the engine 10 more: {waited:?}"
        );
        times.heard(&answers("long"));
        let failure = tokio::time::timeout(minutes(11), times.spent()).await.expect("silence");
        assert_eq!(failure.code, "stale");
        // A command that does not end by its own limit ends after a time limit anyway.
        times.heard(&calls(None, "hung", "Bash"));
        let failure =
            tokio::time::timeout(minutes(21), times.spent()).await.expect("the time is limited");
        assert_eq!(failure.code, "stale");
    }
}

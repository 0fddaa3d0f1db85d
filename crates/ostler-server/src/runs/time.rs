//! How long things may take: a run, the silence of its engine, one tool. Time stands still while somebody is asked.

use std::time::Duration;

use ostler::Message;
use ostler::proto::api::{Content, ContentBlock};
use tokio::time::Instant;

use super::record::Failure;
use crate::config::Limits;

/// Calls that work by calling others; each of those has its own time.
const AGENTS: [&str; 2] = ["Agent", "Task"];

/// The time that is left for something.
struct Budget {
    left: Option<Duration>,
    /// Since when it is spent; `None` while it stands still.
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
    /// The call that started the subagent whose it is.
    parent: Option<String>,
    name: String,
    time: Budget,
}

/// What a run may still take.
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

    /// Whether time stands still.
    pub(super) fn stands(&self) -> bool {
        self.stands
    }

    /// Whether somebody is asked.
    pub(super) fn stand(&mut self, stands: bool) {
        self.stands = stands;
        self.run.stand(stands);
        self.silence.stand(stands);
        for call in &mut self.calls {
            call.time.stand(stands);
        }
    }

    /// The engine has said something.
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
                    // With a subagent end its calls, whether or not it told of their results.
                    let ended = result.tool_use_id.as_str();
                    self.calls
                        .retain(|call| call.id != ended && call.parent.as_deref() != Some(ended));
                }
            }
            // Whatever it left open, it does not wait for it any more.
            Message::Result(_) => self.calls.clear(),
            _ => {}
        }
    }

    fn begun(&mut self, block: &ContentBlock, parent: Option<&String>) {
        let ContentBlock::ToolUse(call) = block else { return };
        if self.limits.tool.is_some() && !AGENTS.contains(&call.name.as_str()) {
            let time = Budget::new(self.limits.tool, self.stands);
            let (id, parent) = (call.id.to_string(), parent.cloned());
            self.calls.push(Call { id, parent, name: call.name.clone(), time });
        }
    }

    /// Waits until something has taken too long, and says what.
    pub(super) async fn spent(&self) -> Failure {
        let fixed = [
            (self.run.end(), "run_timeout", "the run".to_owned(), self.limits.run),
            (
                self.silence.end(),
                "stale",
                "the silence of the engine".to_owned(),
                self.limits.stale,
            ),
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

    // Seen to fail when only a result of its own ends a call.
    #[test]
    fn a_call_ends_with_its_result_or_with_the_subagent_that_made_it() {
        let mut times =
            Times::new(Limits { tool: Some(Duration::from_secs(1)), ..Limits::default() });
        let open =
            |times: &Times| times.calls.iter().map(|call| call.id.clone()).collect::<Vec<_>>();
        times.heard(&calls(None, "agent", "Agent"));
        times.heard(&calls(Some("agent"), "inner", "Bash"));
        times.heard(&calls(None, "outer", "Bash"));
        assert_eq!(open(&times), ["inner", "outer"], "subagents are no one call");
        times.heard(&answers("agent"));
        assert_eq!(open(&times), ["outer"]);
        times.heard(&answers("outer"));
        assert!(open(&times).is_empty());
    }
}

//! Adds up the usage of a run from the engine's messages: tokens, dollars, the time of its tools.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::Duration;

use ostler::Message;
use ostler::proto::api::{Content, ContentBlock, Usage};
use ostler::proto::message::{Assistant, TurnResult};
use tokio::time::Instant;

use super::edits::{Edits, FileChange};
use crate::model::tally::{Context, ModelUsed, Spent, Tokens, ToolUsed};

/// The usage of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Used {
    pub(super) models: Vec<ModelUsed>,
    pub(super) tools: Vec<ToolUsed>,
    pub(super) context: Option<Context>,
    /// The files that it changed.
    pub(super) files: Vec<FileChange>,
    /// Whether it changed more files.
    pub(super) more_files: bool,
}

impl Used {
    /// The usage of all models together.
    pub(super) fn spent(&self) -> Spent {
        let mut all = Spent::default();
        self.models.iter().for_each(|model| all.add(&model.spent));
        all
    }
}

/// One per worker. Engines count from their start, so the usage of a run is a difference.
#[derive(Default)]
pub(super) struct Meter {
    run: Option<String>,
    before: BTreeMap<String, Spent>,
    now: BTreeMap<String, Spent>,
    windows: HashMap<String, u64>,
    /// Responses that no result has counted yet, by their ids, with their models. A run that is cut off has only these;
    /// their cost is unknown.
    uncounted: HashMap<String, (String, Tokens)>,
    /// The model of the last response, and the tokens in its context, including the response.
    last: Option<(String, u64)>,
    open: HashMap<String, Call>,
    tools: BTreeMap<String, ToolUsed>,
    edits: Edits,
    /// How long users have been waited for, and since when.
    waited: Duration,
    waits_since: Option<Instant>,
}

/// A call that has no result yet.
struct Call {
    name: String,
    begun: Instant,
    /// The total waiting time when the call began.
    waited: Duration,
}

impl Meter {
    /// Notes that another engine starts, which counts from zero.
    pub(super) fn engine_starts(&mut self) {
        self.before.clear();
        self.now.clear();
    }

    pub(super) fn begin(&mut self, run: &str) {
        self.run = Some(run.to_owned());
        self.before = self.now.clone();
        self.last = None;
        self.uncounted.clear();
        self.open.clear();
        self.tools.clear();
        self.edits = Edits::default();
        self.waits_since = None;
    }

    /// Notes whether a user is being asked.
    pub(super) fn stand(&mut self, stands: bool) {
        if stands {
            self.waits_since.get_or_insert_with(Instant::now);
        } else if let Some(since) = self.waits_since.take() {
            self.waited += since.elapsed();
        }
    }

    pub(super) fn heard(&mut self, message: &Message, cwd: &Path) {
        self.edits.heard(message, cwd);
        match message {
            Message::Assistant(said) => self.said(said),
            Message::User(said) => {
                let Some(Content::Blocks(blocks)) = &said.message.content else { return };
                for block in blocks {
                    if let ContentBlock::ToolResult(result) = block {
                        self.ended(result.tool_use_id.as_str());
                    }
                }
            }
            Message::Result(result) => self.counted(result),
            _ => {}
        }
    }

    fn said(&mut self, said: &Assistant) {
        let waited = self.waited();
        for block in &said.message.content {
            let ContentBlock::ToolUse(call) = block else { continue };
            let begun = Call { name: call.name.clone(), begun: Instant::now(), waited };
            self.open.insert(call.id.to_string(), begun);
        }
        let Some(usage) = &said.message.usage else { return };
        let (model, used) = (said.message.model.clone(), filled(usage));
        if used == 0 {
            return;
        }
        if let Some(id) = &said.message.id {
            self.uncounted.insert(id.clone(), (model.clone(), tokens(usage)));
        }
        // A subagent has its own context window.
        if said.parent_tool_use_id.is_none() {
            self.last = Some((model, used));
        }
    }

    fn ended(&mut self, call: &str) {
        let Some(call) = self.open.remove(call) else { return };
        let waited = self.waited().saturating_sub(call.waited);
        let took = call.begun.elapsed().saturating_sub(waited);
        let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let name = call.name.clone();
        let tool = self.tools.entry(call.name).or_insert(ToolUsed { name, ..ToolUsed::default() });
        tool.count += 1;
        tool.total_ms += took;
        tool.longest_ms = tool.longest_ms.max(took);
    }

    fn waited(&self) -> Duration {
        self.waited + self.waits_since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    fn counted(&mut self, result: &TurnResult) {
        self.uncounted.clear();
        for (model, usage) in &result.model_usage {
            let tokens = Tokens {
                input: usage.input_tokens,
                output: usage.output_tokens,
                cache_read: usage.cache_read_input_tokens,
                cache_creation: usage.cache_creation_input_tokens,
            };
            let spent = Spent { cost_usd: usage.cost_usd.get(), tokens };
            self.now.insert(model.clone(), spent);
            if let Some(size) = usage.context_window {
                self.windows.insert(model.clone(), size);
            }
        }
    }

    /// Returns the usage of a run, if it is the observed one. `clean` redacts.
    pub(super) fn finish(&mut self, run: &str, clean: impl Fn(&str) -> String) -> Used {
        if self.run.as_deref() != Some(run) {
            return Used::default();
        }
        self.run = None;
        let model = |(model, now): (&String, &Spent)| {
            let before = self.before.get(model).copied().unwrap_or_default();
            let spent = now.since(&before);
            (spent != Spent::default()).then(|| ModelUsed { model: model.clone(), spent })
        };
        let mut models: Vec<ModelUsed> = self.now.iter().filter_map(model).collect();
        for (model, tokens) in std::mem::take(&mut self.uncounted).into_values() {
            let spent = Spent { cost_usd: 0.0, tokens };
            match models.iter_mut().find(|known| known.model == model) {
                Some(known) => known.spent.add(&spent),
                None => models.push(ModelUsed { model, spent }),
            }
        }
        let size = |model: &str| {
            let exact = self.windows.get(model).copied();
            // A single model may have an alias here.
            let only = (self.windows.len() == 1).then(|| self.windows.values().next().copied());
            exact.or_else(|| only.flatten())
        };
        let last = self.last.take();
        let context = last.map(|(model, used)| Context { used, size: size(&model) });
        let tools = std::mem::take(&mut self.tools).into_values().collect();
        let (files, more_files) = self.edits.finish(clean);
        Used { models, tools, context, files, more_files }
    }
}

fn tokens(usage: &Usage) -> Tokens {
    Tokens {
        input: usage.input_tokens.unwrap_or_default(),
        output: usage.output_tokens.unwrap_or_default(),
        cache_read: usage.cache_read_input_tokens.unwrap_or_default(),
        cache_creation: usage.cache_creation_input_tokens.unwrap_or_default(),
    }
}

/// The tokens of a response and of everything before it.
fn filled(usage: &Usage) -> u64 {
    let Tokens { input, output, cache_read, cache_creation } = tokens(usage);
    input + output + cache_read + cache_creation
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn message(mut frame: Value) -> Message {
        frame["session_id"] = json!("s");
        frame["uuid"] = json!("00000000-0000-4000-8000-000000000000");
        Message::from_frame(serde_json::from_value(frame).unwrap()).unwrap()
    }

    fn calls(id: &str, parent: Option<&str>, tokens: u64) -> Message {
        let call = json!({"type": "tool_use", "id": id, "name": "Bash", "input": {}});
        let usage = json!({"input_tokens": tokens, "output_tokens": 1});
        message(json!({"type": "assistant", "parent_tool_use_id": parent, "message": {"id": "m",
            "type": "message", "role": "assistant", "model": "big", "content": [call],
            "stop_reason": null, "stop_sequence": null, "usage": usage}}))
    }

    fn answers(id: &str) -> Message {
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": "ok"});
        message(json!({"type": "user", "parent_tool_use_id": null,
            "message": {"role": "user", "content": [result]}}))
    }

    fn ends(input: u64) -> Message {
        let used = json!({"inputTokens": input, "outputTokens": 0, "cacheReadInputTokens": 0,
            "cacheCreationInputTokens": 0, "webSearchRequests": 0, "costUSD": input as f64, "contextWindow": 1000});
        message(json!({"type": "result", "subtype": "success", "is_error": false, "duration_ms": 1,
            "duration_api_ms": 1, "num_turns": 1, "total_cost_usd": input, "usage": {},
            "modelUsage": {"big": used}, "permission_denials": []}))
    }

    // Seen to fail when the time of waiting for a user counts for the tool.
    #[tokio::test(start_paused = true)]
    async fn time_spent_waiting_for_users_does_not_count_for_a_tool() {
        let mut meter = Meter::default();
        let pass = |seconds| tokio::time::advance(Duration::from_secs(seconds));
        meter.begin("run");
        meter.heard(&calls("one", None, 5), Path::new("/"));
        pass(2).await;
        meter.stand(true);
        pass(100).await;
        meter.heard(&calls("two", None, 5), Path::new("/"));
        pass(50).await;
        meter.stand(false);
        pass(3).await;
        meter.heard(&answers("two"), Path::new("/"));
        pass(1).await;
        meter.heard(&answers("one"), Path::new("/"));
        meter.heard(&answers("nobody"), Path::new("/"));
        let [tool] = meter.finish("run", str::to_owned).tools.try_into().unwrap();
        assert_eq!((tool.count, tool.total_ms, tool.longest_ms), (2, 9_000, 6_000));
    }

    // Seen to fail when only results are counted.
    #[test]
    fn a_run_that_is_cut_off_counts_the_responses_it_received() {
        let mut meter = Meter::default();
        meter.begin("run");
        meter.heard(&ends(100), Path::new("/"));
        // Two blocks of one response.
        meter.heard(&calls("a", None, 40), Path::new("/"));
        meter.heard(&calls("b", None, 40), Path::new("/"));
        let used = meter.finish("run", str::to_owned);
        assert_eq!(used.spent().tokens.input, 140);
        assert_eq!(used.spent().cost_usd, 100.0, "the cost of the rest is unknown");
        meter.begin("next");
        assert_eq!(meter.finish("next", str::to_owned).models, []);
    }

    #[test]
    fn the_usage_of_a_run_is_the_difference_to_the_run_before() {
        let mut meter = Meter::default();
        let root = Path::new("/");
        meter.engine_starts();
        let mut used = |run: &str, total: u64| {
            meter.begin(run);
            meter.heard(&calls("a", None, 40), root);
            meter.heard(&calls("b", Some("a"), 900), root);
            meter.heard(&ends(total), root);
            assert_eq!(meter.finish("another", str::to_owned), Used::default());
            meter.finish(run, str::to_owned)
        };
        assert_eq!(used("one", 100).spent().tokens.input, 100);
        let second = used("two", 130);
        assert_eq!((second.spent().tokens.input, second.spent().cost_usd), (30, 30.0));
        let window = Context { used: 41, size: Some(1000) };
        assert_eq!(second.context, Some(window), "a subagent has its own context window");
    }
}

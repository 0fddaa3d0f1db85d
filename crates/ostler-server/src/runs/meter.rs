//! Watches what an engine says, and adds up what a run uses: tokens, dollars, the time of its tools.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::Duration;

use ostler::Message;
use ostler::proto::api::{Content, ContentBlock, Usage};
use ostler::proto::message::{Assistant, TurnResult};
use tokio::time::Instant;

use super::edits::{Edits, FileChange};
use super::tally::{Context, ModelUsed, Spent, Tokens, ToolUsed};

/// What a run used.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Used {
    pub(super) models: Vec<ModelUsed>,
    pub(super) tools: Vec<ToolUsed>,
    pub(super) context: Option<Context>,
    /// What it changed in files.
    pub(super) files: Vec<FileChange>,
    /// Whether there were more files.
    pub(super) more_files: bool,
}

impl Used {
    /// All models together.
    pub(super) fn spent(&self) -> Spent {
        let mut all = Spent::default();
        self.models.iter().for_each(|model| all.add(&model.spent));
        all
    }
}

/// One per worker. Engines count from their start, so what a run used is a difference.
#[derive(Default)]
pub(super) struct Meter {
    run: Option<String>,
    before: BTreeMap<String, Spent>,
    now: BTreeMap<String, Spent>,
    windows: HashMap<String, u64>,
    /// The model that spoke last, and what it had before it with what it said.
    last: Option<(String, u64)>,
    open: HashMap<String, Call>,
    tools: BTreeMap<String, ToolUsed>,
    edits: Edits,
    /// How long people were waited for, and since when they are.
    waited: Duration,
    waits_since: Option<Instant>,
}

/// A call that has no result yet.
struct Call {
    name: String,
    begun: Instant,
    /// How long people had been waited for by then.
    waited: Duration,
}

impl Meter {
    /// Another engine, which counts from nothing.
    pub(super) fn engine_starts(&mut self) {
        self.before.clear();
        self.now.clear();
    }

    pub(super) fn begin(&mut self, run: &str) {
        self.run = Some(run.to_owned());
        self.before = self.now.clone();
        self.last = None;
        self.open.clear();
        self.tools.clear();
        self.edits = Edits::default();
        self.waits_since = None;
    }

    /// Whether somebody is asked.
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
        // A subagent has a window of its own.
        if said.parent_tool_use_id.is_none()
            && let Some(usage) = &said.message.usage
        {
            let used = filled(usage);
            if used > 0 {
                self.last = Some((said.message.model.clone(), used));
            }
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

    /// What a run used, if it is the one that was watched. `clean` takes secrets out.
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
        let models = self.now.iter().filter_map(model).collect();
        let size = |model: &str| {
            let exact = self.windows.get(model).copied();
            // The only one there is goes by an alias, then.
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

/// How many tokens a response and all before it have.
fn filled(usage: &Usage) -> u64 {
    let parts = [
        usage.input_tokens,
        usage.cache_read_input_tokens,
        usage.cache_creation_input_tokens,
        usage.output_tokens,
    ];
    parts.into_iter().flatten().sum()
}

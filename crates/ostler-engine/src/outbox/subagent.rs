//! A subagent: which of its frames the host sees, and its progress.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use ostler_files::RealPath;
use ostler_proto::api::{ContentBlock, ToolUseBlock, Usage};
use ostler_proto::build;
use ostler_proto::frame::ToHost;
use ostler_proto::message::System;
use ostler_proto::message::system::TaskProgress;
use ostler_proto::{AgentId, SessionId, ToolUseId};
use serde_json::Value;

use crate::ids::fresh_uuid;
use crate::model::ledger::count_tokens;
use crate::tasks::{TaskCost, frames};

/// A subagent of a session.
#[derive(Debug)]
pub(crate) struct SubagentIdentity {
    pub(crate) id: AgentId,
    /// The call that started it.
    pub(crate) call: ToolUseId,
    pub(crate) kind: String,
    pub(crate) description: String,
    /// The conversation does not wait for it.
    in_background: AtomicBool,
    /// The host sees its text in addition to its calls.
    shows_text: AtomicBool,
    /// The file with its text, for `TaskOutput` and the host.
    pub(crate) output_file: PathBuf,
    begun: Instant,
    n_tool_calls: AtomicU64,
    tokens: AtomicU64,
    /// Its call is answered: the host receives no more frames of it.
    is_silent: AtomicBool,
}

impl SubagentIdentity {
    pub(crate) fn new(
        (id, call): (AgentId, ToolUseId),
        (kind, description): (&str, &str),
        in_background: bool,
        shows_text: bool,
        output_file: PathBuf,
    ) -> Self {
        Self {
            id,
            call,
            kind: kind.to_owned(),
            description: description.to_owned(),
            in_background: AtomicBool::new(in_background),
            shows_text: AtomicBool::new(shows_text),
            output_file,
            begun: Instant::now(),
            n_tool_calls: AtomicU64::new(0),
            tokens: AtomicU64::new(0),
            is_silent: AtomicBool::new(false),
        }
    }

    /// Whether it runs in the background.
    pub(crate) fn is_in_background(&self) -> bool {
        self.in_background.load(Ordering::Relaxed)
    }

    /// Moves it to the background; the host sees all of it from now on.
    pub(crate) fn put_behind(&self) {
        self.in_background.store(true, Ordering::Relaxed);
        self.shows_text.store(true, Ordering::Relaxed);
    }

    /// Its call no longer waits for it.
    pub(crate) fn silence(&self) {
        self.is_silent.store(true, Ordering::Relaxed);
    }

    /// Whether the host receives no more frames of it.
    pub(super) fn is_silent(&self) -> bool {
        self.is_silent.load(Ordering::Relaxed)
    }

    /// Counts a response.
    pub(crate) fn count(&self, usage: &Usage) {
        count_tokens(&self.tokens, usage);
    }

    /// Its cost so far.
    pub(crate) fn effort(&self) -> TaskCost {
        TaskCost {
            tokens: self.tokens.load(Ordering::Relaxed),
            n_tool_calls: self.n_tool_calls.load(Ordering::Relaxed),
            duration: self.begun.elapsed(),
        }
    }

    /// The frame as the host sees it; `None` when it does not.
    pub(crate) fn shown(&self, mut frame: ToHost) -> Option<ToHost> {
        match &mut frame {
            ToHost::Assistant(said) => {
                self.keep(&said.message.content);
                let is_talk = |block: &ContentBlock| !matches!(block, ContentBlock::ToolUse(_));
                if !self.shows_text.load(Ordering::Relaxed)
                    && said.message.content.iter().all(is_talk)
                {
                    return None;
                }
                said.subagent_type = Some(self.kind.clone());
                said.task_description = Some(self.description.clone());
            }
            ToHost::User(user) => {
                user.subagent_type = Some(self.kind.clone());
                user.task_description = Some(self.description.clone());
                user.tool_use_result = None;
            }
            _ => {}
        }
        (!self.is_silent()).then_some(frame)
    }

    /// Appends its text to the task's output file. A full disk does not stop it.
    fn keep(&self, blocks: &[ContentBlock]) {
        let words: String =
            blocks.iter().filter_map(ContentBlock::as_text).map(|it| format!("{it}\n")).collect();
        if !words.is_empty() {
            // One short write into the page cache, in a folder of our own.
            // A command may have replaced it by a pipe or a link.
            let file = RealPath::from_resolved(self.output_file.clone());
            if let Some(Ok(mut file)) = file.map(|file| file.append(0o600)) {
                let _ = std::io::Write::write_all(&mut file, words.as_bytes());
            }
        }
    }

    /// `task_progress`: its current call.
    pub(crate) fn progress(&self, session_id: &SessionId, call: &ToolUseBlock) -> ToHost {
        self.n_tool_calls.fetch_add(1, Ordering::Relaxed);
        let what = call.input.get("description").and_then(Value::as_str).unwrap_or(&call.name);
        ToHost::System(System::TaskProgress(build!(TaskProgress {
            task_id: self.id.as_str().into(),
            tool_use_id: Some(self.call.clone()),
            description: format!("Running {what}"),
            subagent_type: Some(self.kind.clone()),
            usage: frames::usage(self.effort()),
            last_tool_name: Some(call.name.clone()),
            session_id: session_id.clone(),
            uuid: fresh_uuid()
        })))
    }
}

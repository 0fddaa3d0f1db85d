//! What a page requests of the agent of its thread, and how the engine is set up for it.

use std::sync::Arc;

use async_trait::async_trait;
use ostler::Hook;
use ostler::hook::{HookOutput, PreToolUseInput};
use ostler_agui::input::Tool;
use ostler_base::error::Fallible;
use ostler_core::model::run::Session;
use ostler_core::records::Records;
use ostler_core::runs::options::{EngineParts, EngineSetup, add_to_prompt};
use serde::{Deserialize, Serialize};

use super::client_tool_calls::{ClientToolCalls, ThreadToolCalls};
use super::frontend_tools::FrontendTools;
use super::shared_state;
use super::thread::Thread;

/// The setup of a thread's engine. When it changes, another engine continues.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Page {
    /// The tools that the page runs.
    pub(super) tools: Vec<Tool>,
    /// Context for the agent.
    pub(super) surroundings: Option<String>,
    /// Whether there is a shared state.
    pub(super) shares_state: bool,
    /// The model that the page requests.
    pub(super) model: Option<String>,
    /// The tool of the page that is asked for approval; without one, runs end with questions.
    pub(super) asked_by: Option<String>,
    /// Whether the engine remembers nothing.
    pub(super) forgets: bool,
}

/// Sets up the engines of all threads.
pub struct Pages {
    pub(super) records: Records,
    pub(super) thread_tool_calls: Arc<ThreadToolCalls>,
}

impl Pages {
    pub fn new(records: Records, thread_tool_calls: Arc<ThreadToolCalls>) -> Self {
        Self { records, thread_tool_calls }
    }
}

#[async_trait]
impl EngineSetup for Pages {
    async fn set_up(&self, session: &Session, engine_parts: &mut EngineParts) -> Fallible<()> {
        let Some(thread) = Thread::find(&self.records, session).await? else { return Ok(()) };
        let tool_calls = self.thread_tool_calls.of(&session.id);
        thread.page.set_up(&tool_calls, engine_parts);
        // They live as long as the engine.
        engine_parts.guards.push(Box::new(tool_calls));
        Ok(())
    }
}

impl Page {
    fn set_up(&self, tool_calls: &ClientToolCalls, engine_parts: &mut EngineParts) {
        let mut options = std::mem::take(&mut engine_parts.options);
        let begins = tool_calls.clone();
        options = options.hook(Hook::new(move |_: PreToolUseInput, context| {
            if let Some(call) = &context.tool_use_id {
                begins.begin(call.to_string());
            }
            async { HookOutput::none() }
        }));
        let tools = FrontendTools::new(&self.tools);
        if !tools.is_empty() {
            let names = tools.names.keys().cloned().collect::<Vec<_>>();
            options = options.server(tools.server(tool_calls, &engine_parts.waiting)).allow(names);
        }
        if self.shares_state {
            options = options.server(shared_state::server(tool_calls)).allow([shared_state::TOOL]);
        }
        if let Some(model) = &self.model {
            options = options.model(model);
        }
        if let Some(name) = self.asked_by.as_ref().filter(|name| !tools.offers(name)) {
            engine_parts.nobody_asked =
                Some(format!("The user cannot be asked: the application has no tool `{name}`."));
        }
        options.session.ephemeral |= self.forgets;
        if let Some(surroundings) = &self.surroundings {
            add_to_prompt(&mut options, surroundings);
        }
        engine_parts.options = options;
    }
}

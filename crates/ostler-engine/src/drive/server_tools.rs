//! The tools, prompts and instructions of MCP servers in a context. They are added to what the context has without them,
//! before a turn and again before every request, if something has changed.

use std::sync::Arc;

use ostler_proto::build;
use ostler_proto::frame::ToHost;
use ostler_proto::message::System;
use ostler_proto::message::system::CommandsChanged;

use super::TurnContext;
use crate::agents;
use crate::call::Tools;
use crate::commands;
use crate::ids::fresh_uuid;
use crate::library::{Library, Sort};
use crate::mcp::{SearchMode, Servers, offer};
use crate::model::{ToolSpec, pricing};
use crate::outbox::Notice;

/// The context window of an unknown model.
const UNKNOWN_WINDOW: u64 = 200_000;

/// A context without the tools of servers, and the servers whose tools it gets.
#[derive(Clone)]
pub(crate) struct OfferBase {
    tools: Arc<Tools>,
    specs: Arc<Vec<ToolSpec>>,
    library: Arc<Library>,
    system: Arc<str>,
    sources: Vec<Servers>,
    /// The versions of the sources that the context has.
    versions: Vec<u64>,
}

impl OfferBase {
    /// The same without some of the tools.
    pub(crate) fn without_tools(&self, is_out: impl Fn(&str) -> bool) -> Self {
        let (mut tools, mut specs) = ((*self.tools).clone(), self.specs.to_vec());
        tools.retain(|name, _| !is_out(name));
        specs.retain(|spec| !is_out(&spec.name));
        Self { tools: Arc::new(tools), specs: Arc::new(specs), ..self.clone() }
    }

    fn versions_now(&self) -> Vec<u64> {
        self.sources.iter().map(Servers::version).collect()
    }
}

impl TurnContext {
    /// The same with the tools of the MCP servers. Waits for those that still connect, unless the turn is stopped.
    pub(crate) async fn with_server_tools(&self) -> Self {
        self.with_tools_of(&self.servers).await
    }

    /// The same with the tools and prompts of some servers.
    pub(crate) async fn with_tools_of(&self, servers: &Servers) -> Self {
        tokio::select! {
            () = servers.ready() => {}
            () = self.cx.cancelled.cancelled() => {}
        }
        let mut base = match &self.offer_base {
            Some(base) => (**base).clone(),
            None => OfferBase {
                tools: Arc::clone(&self.tools),
                specs: Arc::clone(&self.specs),
                library: Arc::clone(&self.library),
                system: Arc::clone(&self.system),
                sources: Vec::new(),
                versions: Vec::new(),
            },
        };
        if !base.sources.iter().any(|known| known.is(servers)) {
            base.sources.push(servers.clone());
        }
        let context = self.offering(base);
        context.tell_of_commands().await;
        context
    }

    /// The same with the tools that servers have now; `None` if nothing has changed. Waits for changed lists within bounds.
    pub(crate) async fn with_changed_tools(&self) -> Option<Self> {
        let base = self.offer_base.as_ref()?;
        for servers in &base.sources {
            servers.refresh().await;
        }
        if base.versions == base.versions_now() {
            return None;
        }
        let context = self.offering((**base).clone());
        context.tell_of_commands().await;
        Some(context)
    }

    fn offering(&self, mut base: OfferBase) -> Self {
        base.versions = base.versions_now();
        let policy = self.permissions.policy();
        let limit = self.limited_to.as_deref();
        // A built-in tool is not replaced by a server's; a tool that is denied altogether is not offered.
        let is_out = |name: &str| {
            base.tools.contains_key(name)
                || policy.denies_all_of(name)
                || limit.is_some_and(|definition| !agents::has_tool(definition, name))
        };
        let window = pricing::context_window(&self.asked_model()).unwrap_or(UNKNOWN_WINDOW);
        let mode = SearchMode::of(&self.cx.env, window);
        let offer = offer(&base.sources, &self.announced, is_out, mode);
        let mut tools = (*base.tools).clone();
        tools.extend(offer.tools);
        let mut specs = base.specs.to_vec();
        specs.extend(offer.specs);
        let mut library = Arc::clone(&base.library);
        for servers in &base.sources {
            let changes = servers.new_changes().into_iter();
            self.outbox.notify(changes.map(|content| Notice { content, level: "warning" }));
            let prompts = servers.commands();
            if !prompts.is_empty() {
                Arc::make_mut(&mut library).take_more(prompts);
            }
        }
        let system = match &*offer.instructions {
            "" => Arc::clone(&base.system),
            text => format!("{}\n\n{text}", base.system).trim_start().into(),
        };
        let (tools, specs) = (Arc::new(tools), Arc::new(specs));
        Self { tools, specs, library, system, offer_base: Some(Arc::new(base)), ..self.clone() }
    }

    /// Sends the list of commands if the prompts of servers are others than before.
    async fn tell_of_commands(&self) {
        if self.outbox.subagent.is_some() {
            return;
        }
        let prompts = self.library.commands.iter().filter(|it| it.sort == Sort::Prompt);
        let names = prompts.map(|command| command.name.clone()).collect();
        if self.announced.have_commands_changed(names) {
            let frame = build!(CommandsChanged {
                commands: commands::listed(&self.library),
                session_id: self.outbox.session_id.clone(),
                uuid: fresh_uuid()
            });
            self.outbox.send(ToHost::System(System::CommandsChanged(frame))).await;
        }
    }
}

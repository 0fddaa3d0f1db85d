//! Reads files and plugins again. The result holds from the next turn on.

use std::collections::{BTreeMap, BTreeSet};

use ostler_proto::RequestId;
use ostler_proto::build;
use ostler_proto::control::{AskEngine, ReloadPlugins, ReloadPluginsReply};
use ostler_proto::frame::ToHost;
use ostler_proto::mcp::McpServerConfig;
use ostler_proto::message::System;
use ostler_proto::message::system::CommandsChanged;
use serde_json::{Value, json};

use crate::agents;
use crate::commands;
use crate::hooks::registry;
use crate::ids::fresh_uuid;
use crate::library::{Library, Sort};
use crate::session::Session;
use crate::session::control::failure;
use crate::session::disk_requests::Offers;

/// The error code of a reload that must not happen during a turn.
const BUSY: &str = "reload_plugins_busy";

impl Session {
    /// Reloads skills and commands. The frame with the list precedes the answer.
    pub(in crate::session) async fn reload_skills(
        &mut self,
        offers: Offers,
    ) -> Result<Value, String> {
        self.use_offers(offers)?;
        let listed = commands::listed(&self.context.library);
        self.context
            .outbox
            .send(ToHost::System(System::CommandsChanged(build!(CommandsChanged {
                commands: listed,
                session_id: self.context.outbox.session_id.clone(),
                uuid: fresh_uuid()
            }))))
            .await;
        let skills = self.context.library.commands.iter().filter(|it| it.sort == Sort::Skill);
        let skills: Vec<_> = skills.map(|skill| skill.listed()).collect();
        Ok(json!({"skills": skills}))
    }

    pub(in crate::session) fn reload_styles(&mut self, offers: Offers) -> Result<Value, String> {
        self.use_offers(offers)?;
        Ok(json!({"available_output_styles": self.context.library.style_names()}))
    }

    /// Reloads plugins with their commands, agents, hooks and MCP servers.
    pub(in crate::session) async fn reload_plugins(
        &mut self,
        request_id: Option<RequestId>,
        reload: &ReloadPlugins,
    ) {
        let outbox = self.context.outbox.clone();
        if reload.refuse_if_busy == Some(true) && !self.turns.is_empty() {
            let error = "a turn is running; try again when it has ended".to_owned();
            let response = failure(request_id, error, Some(BUSY));
            return outbox.send(ToHost::ControlResponse(response)).await;
        }
        self.on_disk(request_id, AskEngine::ReloadPlugins(reload.clone())).await;
    }

    pub(in crate::session) fn reload_with(
        &mut self,
        reload: &ReloadPlugins,
        offers: Offers,
    ) -> Result<Value, String> {
        let n_problems = offers.library.problems.len();
        let impact =
            self.impact(&offers.library).filter(|_| reload.hold_on_cache_impact == Some(true));
        if impact.is_none() {
            self.use_offers(offers)?;
        }
        Ok(self.reloaded(n_problems, impact))
    }

    fn reloaded(&self, n_problems: usize, held: Option<Value>) -> Value {
        let status = self.context.servers.status();
        let reply = build!(ReloadPluginsReply {
            commands: commands::listed(&self.context.library),
            agents: agents::listed(&self.context.library),
            plugins: self.context.library.plugin_list(),
            mcp_servers: status
                .into_iter()
                .filter_map(|status| serde_json::from_value(status).ok())
                .collect(),
            error_count: n_problems as u64,
            held: held.as_ref().map(|_| true),
            cache_impact: held
        });
        json!(reply)
    }

    /// The servers that would be added and removed, which changes the beginning of every request; `None` for none.
    fn impact(&self, library: &Library) -> Option<Value> {
        let names = |library: &Library| servers(library).into_keys().collect::<BTreeSet<_>>();
        let (before, after) = (names(&self.setup.base.library), names(library));
        let added: Vec<_> = after.difference(&before).collect();
        let removed: Vec<_> = before.difference(&after).collect();
        (!added.is_empty() || !removed.is_empty()).then(|| {
            json!({"mcp_servers_added": added, "mcp_servers_removed": removed, "lsp_tool_change": null})
        })
    }

    /// Takes over a library that was read: all of it, or nothing.
    pub(in crate::session) fn use_offers(&mut self, offers: Offers) -> Result<(), String> {
        let Offers { library, brought, style_text } = offers;
        let hooks = registry::of_plugins(&library)?;
        self.context.hooks.replace_plugins(hooks);
        self.context.servers.set_plugins(&servers(&library));
        self.setup.base.library = library.into();
        self.setup.brought = brought;
        self.setup.style_text = style_text;
        self.context = self.setup.context();
        // A queued prompt may call a command that was unknown when it arrived.
        self.queue.find_commands(|prompt| commands::is_call(&self.context.library, prompt));
        Ok(())
    }
}

/// The MCP servers of all plugins.
fn servers(library: &Library) -> BTreeMap<String, McpServerConfig> {
    library.plugins.iter().flat_map(|plugin| plugin.servers.clone()).collect()
}

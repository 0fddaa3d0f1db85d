//! Agents in files (`agents/*.md`): a head with the agent's properties, and its system prompt.

use std::path::Path;

use ostler_proto::agent::{AgentDefinition, AgentMcpServer};
use serde_json::{Value, json};

use super::{Library, Origin, is_name, read, stem};
use crate::project_file::Boundary;
use ostler_skill::Document;

/// A kind of agent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AgentKind {
    /// Its name, as the model calls it.
    pub name: String,
    /// Description, tools, model and other properties.
    pub definition: AgentDefinition,
    /// Where it comes from.
    pub origin: Origin,
    /// Hooks that run while it works, in the format of settings.
    pub hooks: Option<Value>,
}

impl AgentKind {
    /// A kind of agent.
    pub fn new(name: impl Into<String>, definition: AgentDefinition, origin: Origin) -> Self {
        Self { name: name.into(), definition, origin, hooks: None }
    }
}

/// Which fields of a definition have no effect, as text for people.
pub fn without_effect(name: &str, definition: &AgentDefinition) -> Option<String> {
    let fields = [
        ("initialPrompt", definition.initial_prompt.is_some()),
        ("memory", definition.memory.is_some()),
        ("observer", definition.observer.is_some()),
        ("observerMessage", definition.observer_message.is_some()),
    ];
    let set: Vec<&str> = fields.iter().filter(|(_, is_set)| *is_set).map(|(it, _)| *it).collect();
    let fields = set.join(", ");
    (!set.is_empty()).then(|| {
        format!("the agent {name} is used without {fields}, which Ostler does not support")
    })
}

impl Library {
    pub(super) fn take_agent_files(&mut self, folder: &Path, origin: &Origin, boundary: &Boundary) {
        for (_, path) in self.markdown_files(folder, boundary) {
            match read(boundary, &path).and_then(|document| kind(&path, document, origin)) {
                Ok(kind) => {
                    let ignored = without_effect(&kind.name, &kind.definition);
                    ignored.into_iter().for_each(|reason| self.problem(&path, reason));
                    self.agents.insert(kind.name.clone(), kind);
                }
                Err(reason) => self.problem(&path, format!("the agent is left out: {reason}")),
            }
        }
    }
}

fn kind(path: &Path, document: Document, origin: &Origin) -> Result<AgentKind, String> {
    let Document { mut head, body } = document;
    let name = head.text("name").unwrap_or_else(|| stem(path).to_owned());
    if !is_name(&name) {
        return Err(format!("\"{name}\" is not a valid name; use letters, digits, - and _"));
    }
    if head.text("description").is_none() {
        return Err(
            "its head has no description; add one that says when to use the agent".to_owned()
        );
    }
    for list in ["tools", "disallowedTools", "skills"] {
        if let Some(words) = head.list(list) {
            // An agent that lists no tools has all of them.
            let is_all = list == "tools" && words == ["*"];
            head.0.insert(list.to_owned(), if is_all { Value::Null } else { json!(words) });
        }
    }
    let hooks = head.0.shift_remove("hooks").filter(|_| origin.is_trusted());
    head.0.retain(|name, value| !value.is_null() && !matches!(name.as_str(), "name" | "color"));
    head.0.insert("prompt".to_owned(), json!(body.trim()));
    let mut definition: AgentDefinition =
        serde_json::from_value(Value::Object(head.0)).map_err(|error| error.to_string())?;
    if !origin.is_trusted() {
        // A server is a program, and the user has not allowed this project to start any.
        let servers = definition.mcp_servers.iter_mut().flatten();
        let names_own = servers.into_iter().any(|it| matches!(it, AgentMcpServer::Own(_)));
        definition.mcp_servers = definition.mcp_servers.filter(|_| !names_own);
    }
    Ok(AgentKind { name: origin.name(&name), definition, origin: origin.clone(), hooks })
}

//! Which servers of a project's `.mcp.json` start: `enabledMcpjsonServers`, `disabledMcpjsonServers` and
//! `enableAllProjectMcpServers`.

use serde_json::{Map, Value};

/// The user's choices about the servers of `.mcp.json`. Those of several files add up, and a rejection always wins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct McpjsonChoices {
    /// All servers are approved, also those that are added later.
    pub all: bool,
    /// Approved servers.
    pub enabled: Vec<String>,
    /// Rejected servers.
    pub disabled: Vec<String>,
}

impl McpjsonChoices {
    /// Adds what a settings file, or an entry of `~/.claude.json`, approves. A value of another type approves nothing.
    pub fn approve(&mut self, from: &Map<String, Value>) {
        self.all |= from.get("enableAllProjectMcpServers") == Some(&Value::Bool(true));
        self.enabled.extend(names(from, "enabledMcpjsonServers").unwrap_or_default());
    }

    /// Adds what a settings file, or an entry of `~/.claude.json`, rejects.
    ///
    /// # Errors
    /// When its list is not a list of names: a rejection must not silently have no effect.
    pub fn reject(&mut self, from: &Map<String, Value>) -> Result<(), &'static str> {
        let names = names(from, "disabledMcpjsonServers");
        self.disabled.extend(names.ok_or("it is not a list of server names")?);
        Ok(())
    }

    /// Adds the choices of another place.
    pub fn add(&mut self, other: Self) {
        self.all |= other.all;
        self.enabled.extend(other.enabled);
        self.disabled.extend(other.disabled);
    }

    /// Whether a server may start.
    pub fn approves(&self, name: &str) -> bool {
        (self.all || self.enabled.iter().any(|it| it == name)) && !self.rejects(name)
    }

    /// Whether the user has decided against a server.
    pub fn rejects(&self, name: &str) -> bool {
        self.disabled.iter().any(|it| it == name)
    }
}

/// The names in a list, which may be missing; `None` if it has anything else in it.
fn names(from: &Map<String, Value>, key: &str) -> Option<Vec<String>> {
    match from.get(key) {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(list) => {
            let list = list.as_array()?.iter();
            list.map(|name| name.as_str().map(str::to_owned)).collect()
        }
    }
}

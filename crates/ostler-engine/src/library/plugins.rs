//! Plugins: folders that bundle agents, commands, skills, styles, hooks and servers, all of whose names begin with the
//! plugin's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ostler_proto::build;
use ostler_proto::mcp::McpServerConfig;
use ostler_proto::message::system::PluginInfo;
use serde::Deserialize;
use serde_json::Value;

use super::{Library, Origin, is_name};
use crate::interpolate::{self, Syntax};
use crate::project_file::{Boundary, Refusal};

/// The largest manifest, or file of one of its parts, in bytes.
const LONGEST_FILE: u64 = 1024 * 1024;

/// A plugin in use.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Plugin {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// Its version.
    pub version: Option<String>,
    /// Its hooks, in the format of settings.
    pub hooks: Option<Value>,
    /// Its MCP servers, by the names they have in the session.
    pub servers: BTreeMap<String, McpServerConfig>,
}

impl Plugin {
    pub(super) fn info(&self) -> PluginInfo {
        build!(PluginInfo {
            name: self.name.clone(),
            path: self.folder.display().to_string(),
            source: Some(format!("{}@inline", self.name)),
            version: self.version.clone()
        })
    }
}

/// A plugin's manifest, `.claude-plugin/plugin.json`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Manifest {
    name: Option<String>,
    version: Option<String>,
    commands: Option<Paths>,
    agents: Option<Paths>,
    skills: Option<Paths>,
    output_styles: Option<Paths>,
    hooks: Option<Value>,
    mcp_servers: Option<Value>,
}

/// Folders in addition to the usual one.
#[derive(Deserialize)]
#[serde(untagged)]
enum Paths {
    One(String),
    Several(Vec<String>),
}

impl Library {
    /// Adds a plugin. A malformed one is left out and reported.
    pub fn take_plugin(&mut self, folder: &Path) {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let folder = folder.as_path();
        let Manifest { name, version, commands, agents, skills, output_styles, hooks, mcp_servers } =
            match manifest(folder) {
                Ok(manifest) => manifest,
                Err(reason) => {
                    return self.problem(folder, format!("the plugin is left out: {reason}"));
                }
            };
        let of_folder = || folder.file_name().and_then(|it| it.to_str()).unwrap_or_default();
        let name = name.unwrap_or_else(|| of_folder().to_owned());
        if !is_name(&name) {
            let reason = format!("the plugin is left out: \"{name}\" is not a valid name");
            return self.problem(folder, reason);
        }
        if self.plugins.iter().any(|plugin| plugin.name == name) {
            return;
        }
        let origin = Origin::Plugin(name.clone(), folder.to_owned());
        let here = Boundary::default();
        for it in places(folder, "agents", agents) {
            self.take_agent_files(&it, &origin, &here);
        }
        for it in places(folder, "commands", commands) {
            self.take_commands(&it, &origin, &here);
        }
        for it in places(folder, "skills", skills) {
            self.take_skills(&it, &origin, &here);
        }
        for it in places(folder, "output-styles", output_styles) {
            self.take_styles(&it, &origin, &here);
        }
        let hooks = self.part(folder, "hooks/hooks.json", hooks);
        let servers = self.part(folder, ".mcp.json", mcp_servers);
        let plugin = Plugin {
            version,
            hooks: hooks.map(|mut hooks| hooks.get_mut("hooks").map_or(Value::Null, Value::take)),
            servers: self.servers(&name, folder, servers),
            folder: folder.to_owned(),
            name,
        };
        self.plugins.push(plugin);
    }

    /// A part of the plugin: in the manifest itself, in a file that it names, or at the usual place.
    fn part(&mut self, folder: &Path, usual: &str, said: Option<Value>) -> Option<Value> {
        let path = match said {
            Some(Value::String(path)) => inside(folder, &path)?,
            Some(value) => return Some(root_texts(value, folder)),
            None => folder.join(usual),
        };
        let text = match Boundary::default().read_text(&path, LONGEST_FILE) {
            Ok(text) => text,
            Err(Refusal::Missing) => return None,
            Err(refusal) => {
                self.problem(&path, refusal.to_string());
                return None;
            }
        };
        match serde_json::from_str(&text) {
            Ok(value) => Some(root_texts(value, folder)),
            Err(error) => {
                self.problem(&path, error.to_string());
                None
            }
        }
    }

    fn servers(
        &mut self,
        plugin: &str,
        folder: &Path,
        servers: Option<Value>,
    ) -> BTreeMap<String, McpServerConfig> {
        let Some(mut servers) = servers else { return BTreeMap::new() };
        // With or without `mcpServers` around it.
        if let Some(inner) = servers.get_mut("mcpServers") {
            servers = inner.take();
        }
        let Value::Object(servers) = servers else {
            self.problem(folder, "its MCP servers are left out: expected an object".to_owned());
            return BTreeMap::new();
        };
        let mut known = BTreeMap::new();
        for (name, entry) in servers {
            let config = serde_json::from_value(entry).map_err(|error| error.to_string());
            match config {
                Ok(McpServerConfig::Sdk(_)) => {
                    let reason = "the type sdk is not possible in a file";
                    self.problem(folder, format!("its MCP server {name} is left out: {reason}"));
                }
                Ok(config) => _ = known.insert(format!("plugin:{plugin}:{name}"), config),
                Err(error) => {
                    self.problem(folder, format!("its MCP server {name} is left out: {error}"));
                }
            }
        }
        known
    }
}

fn manifest(folder: &Path) -> Result<Manifest, String> {
    if !folder.is_dir() {
        return Err("there is no such folder".to_owned());
    }
    let path = folder.join(".claude-plugin/plugin.json");
    match Boundary::default().read_text(&path, LONGEST_FILE) {
        Ok(text) => serde_json::from_str(&text)
            .map_err(|error| format!(".claude-plugin/plugin.json is malformed: {error}")),
        Err(Refusal::Missing) => Ok(Manifest::default()),
        Err(refusal) => Err(format!(".claude-plugin/plugin.json: {refusal}")),
    }
}

/// The usual folder, and those that the manifest names.
fn places(folder: &Path, usual: &str, more: Option<Paths>) -> Vec<PathBuf> {
    let more = match more {
        None => Vec::new(),
        Some(Paths::One(path)) => vec![path],
        Some(Paths::Several(paths)) => paths,
    };
    let mut places = vec![folder.join(usual)];
    places.extend(more.iter().filter_map(|path| inside(folder, path)));
    places.dedup();
    places
}

/// A path that a plugin names; it cannot lead out of the plugin.
fn inside(folder: &Path, path: &str) -> Option<PathBuf> {
    let path = folder.join(path).canonicalize().ok()?;
    path.starts_with(folder).then_some(path)
}

fn root_texts(value: Value, folder: &Path) -> Value {
    interpolate::map_texts(value, &mut |text| rooted(text, folder))
}

/// Fills in the variable for the plugin's folder.
pub(super) fn rooted(text: &str, folder: &Path) -> String {
    interpolate::fill(text, Syntax::Braces, |name| {
        (name == "CLAUDE_PLUGIN_ROOT").then(|| folder.display().to_string())
    })
}

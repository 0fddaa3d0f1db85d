//! Settings files: their places, their contents, and their precedence.
//!
//! Lists of permissions of all files add up; of single values the most private wins, and the administrator's over all.
//! A file that cannot be read is an error and not an empty file: its deny rules would silently be gone.

mod file;
mod invalid;
mod keep;
mod load;
mod mcpjson;
mod sandbox;
mod server_url;
mod servers;
#[cfg(test)]
mod tests;
pub mod write;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ostler_proto::launch::ModelPrice;
use ostler_proto::permission::PermissionMode;
use ostler_proto::sandbox::SandboxSettings;
use serde_json::{Map, Value};

pub use self::file::{FilePermissions, FilePrice, FileSettings};
pub use self::keep::KeepError;
pub use self::keep::kept_in;
pub use self::load::{Sources, load};
pub use self::mcpjson::McpjsonChoices;
pub use self::servers::{ServerEntry, ServerLists};
use crate::permission::{Behavior, Policy, Rule, Source};

/// The places of settings files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folders {
    /// The user's folder: `$CLAUDE_CONFIG_DIR`, or `.claude` in the home directory.
    pub user: Option<PathBuf>,
    /// The project.
    pub project: PathBuf,
    /// The administrator's file.
    pub managed: Option<PathBuf>,
}

impl Folders {
    /// The folders for a project. Environment and home are parameters, not looked up.
    pub fn new(
        project: impl Into<PathBuf>,
        config_dir: Option<PathBuf>,
        home: Option<&Path>,
    ) -> Self {
        let user = config_dir.or_else(|| home.map(|home| home.join(".claude")));
        Self { user, project: project.into(), managed: None }
    }

    /// The folder of the administrator's files, `managed-settings.json` and `managed-mcp.json`.
    pub fn of_administrator() -> &'static Path {
        Path::new(match cfg!(target_os = "macos") {
            true => "/Library/Application Support/ClaudeCode",
            false => "/etc/claude-code",
        })
    }

    /// The settings file of a source, if it has one.
    pub fn file(&self, source: Source) -> Option<PathBuf> {
        match source {
            Source::User => self.user.as_ref().map(|folder| folder.join("settings.json")),
            Source::Project => Some(self.project.join(".claude/settings.json")),
            Source::Local => Some(self.project.join(".claude/settings.local.json")),
            Source::Managed => self.managed.clone(),
            _ => None,
        }
    }

    /// The text of the settings file of a source, if it exists and may be read.
    pub fn text(&self, source: Source, trusts_project: bool) -> Option<String> {
        let boundary = load::boundary(self, source, trusts_project);
        boundary.read_text(&self.file(source)?, load::LONGEST_FILE).ok()
    }
}

/// A problem in settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file, or a name for other sources.
    pub path: PathBuf,
    /// The place in it, such as `permissions.deny[2]`; empty for the whole.
    pub pointer: String,
    /// What is wrong.
    pub reason: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, pointer, reason } = self;
        match pointer.as_str() {
            "" | "." => write!(f, "{}: {reason}", path.display()),
            pointer => write!(f, "{}, at {pointer}: {reason}", path.display()),
        }
    }
}

/// Settings that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("settings cannot be used, so nothing is started: {}", .problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("; "))]
pub struct SettingsError {
    /// Everything that is wrong.
    pub problems: Vec<Problem>,
}

impl SettingsError {
    pub(crate) fn one(path: &Path, pointer: &str, reason: impl ToString) -> Self {
        let problem = Problem {
            path: path.to_owned(),
            pointer: pointer.to_owned(),
            reason: reason.to_string(),
        };
        Self { problems: vec![problem] }
    }
}

/// All settings of a session, joined.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Permission rules in the order of their sources.
    pub rules: Vec<(Behavior, Rule, Source)>,
    /// Further working directories.
    pub directories: Vec<(PathBuf, Source)>,
    /// The mode to start in.
    pub default_mode: Option<PermissionMode>,
    /// Hooks, as they are written in each file.
    pub hooks: Vec<(Source, Value)>,
    /// The sources that disable hooks; the disabled hooks are already left out.
    pub hooks_disabled_by: Vec<Source>,
    /// Variables for the session and its children.
    pub env: BTreeMap<String, String>,
    /// The model.
    pub model: Option<String>,
    /// Prices of models, by name.
    pub model_prices: BTreeMap<String, ModelPrice>,
    /// The sandbox of commands.
    pub sandbox: Option<SandboxSettings>,
    /// The style of answers.
    pub output_style: Option<String>,
    /// A command that prints the key for the API.
    pub api_key_helper: Option<String>,
    /// `bypassPermissions` is disabled.
    pub bypass_disabled: bool,
    /// The lists of allowed and denied MCP servers.
    pub server_lists: ServerLists,
    /// The choices about servers of the project's `.mcp.json`.
    pub mcpjson: McpjsonChoices,
    /// Everything else.
    pub extra: Map<String, Value>,
    /// What was left out, and why. Leaving it out allows nothing more.
    pub warnings: Vec<Problem>,
}

impl Settings {
    /// Adds the permissions of these settings to a policy.
    pub fn apply_to(&self, policy: &mut Policy) {
        for (behavior, rule, source) in &self.rules {
            policy.add_rule(*behavior, rule.clone(), *source);
        }
        for (directory, source) in &self.directories {
            policy.add_directory(directory, *source);
        }
        if let Some(mode) = &self.default_mode {
            policy.mode = mode.clone();
        }
        policy.bypass_available &= !self.bypass_disabled;
        policy.unsandboxed_forbidden |= self
            .sandbox
            .as_ref()
            .is_some_and(|sandbox| sandbox.allow_unsandboxed_commands == Some(false));
    }
}

//! Which servers of `.mcp.json` start.
//!
//! A file that comes with the project cannot approve the project's servers. Approvals count from the user's settings, from
//! `--settings`, from the administrator, from the user's `~/.claude.json`, and from the settings of a project that is
//! trusted (`--trust-project`). The vendor's program writes approvals into `.claude/settings.local.json`: they count if the
//! user accepted its question about trust, which is noted in `~/.claude.json`, and if git does not have that file, so
//! that it did not come with the project. A rejection counts from any file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ostler_engine::permission::Source;
use ostler_engine::project_file::Boundary;
use ostler_engine::settings::{Folders, McpjsonChoices, Problem, Settings};
use serde_json::{Map, Value};

use super::user_file::{UserFile, repository};
use super::{Approval, ConfiguredServer, LONGEST_FILE, Scope};

/// The largest index of a repository that is looked at, in bytes.
const LONGEST_INDEX: u64 = 64 * 1024 * 1024;

/// The choices of all files.
pub(super) struct Choices {
    choices: McpjsonChoices,
    /// The user's file cannot be read, so it is not known what it rejects.
    is_unknown: bool,
    of_user: super::user_file::ProjectEntry,
}

impl Choices {
    pub(super) fn of(folders: &Folders, settings: &Settings, of_user: &UserFile) -> Self {
        let mut choices = settings.mcpjson.clone();
        let entry = of_user.project();
        let of_dialog = entry.choices();
        choices.approve(&of_dialog);
        let mut is_unknown = of_user.is_unreadable || choices.reject(&of_dialog).is_err();
        if entry.has_trust_dialog_accepted == true
            && let Some(local) = local_settings(folders)
        {
            choices.approve(&local);
            is_unknown |= choices.reject(&local).is_err();
        }
        Self { choices, is_unknown, of_user: entry.clone() }
    }

    /// Whether a server of `.mcp.json` starts.
    pub(super) fn of_project(&self, name: &str) -> Approval {
        if self.choices.rejects(name) {
            Approval::Rejected
        } else if self.is_unknown || !self.choices.approves(name) {
            Approval::Pending
        } else if self.of_user.is_disabled(name) {
            Approval::Disabled
        } else {
            Approval::Approved
        }
    }
}

/// A warning about servers that wait for approval.
pub(super) fn waiting(servers: &[ConfiguredServer]) -> Option<Problem> {
    let waits = |it: &&ConfiguredServer| it.approval == Approval::Pending;
    let waiting: Vec<&ConfiguredServer> = servers.iter().filter(waits).collect();
    let path = waiting.first()?.file.clone();
    let mut names: Vec<&str> = waiting.iter().map(|server| server.name.as_str()).collect();
    names.dedup();
    debug_assert!(waiting.iter().all(|server| server.scope == Scope::Project));
    let reason = format!(
        "these servers are not started until you approve them: {}; put their names into enabledMcpjsonServers of your \
         own settings",
        names.join(", ")
    );
    Some(Problem { path, pointer: String::new(), reason })
}

/// The project's local settings, if they did not come with the project.
fn local_settings(folders: &Folders) -> Option<Map<String, Value>> {
    let path = folders.file(Source::Local)?;
    if is_tracked(&folders.project, &path) {
        return None;
    }
    let boundary = Boundary::inside(&folders.project, Arc::default());
    let text = boundary.read_text(&path, LONGEST_FILE).ok()?;
    serde_json::from_str(&text).ok()
}

/// Whether git has a file. Every doubt is a yes. No program is run, because a repository can name programs for git to run.
fn is_tracked(project: &Path, file: &Path) -> bool {
    let Some(root) = repository(project) else { return false };
    let Ok(name) = file.strip_prefix(root) else { return true };
    let git: PathBuf = root.join(".git");
    // A worktree, or a submodule: its index is elsewhere.
    if !git.is_dir() {
        return true;
    }
    let index = match ostler_files::read_bytes(&git.join("index"), LONGEST_INDEX) {
        Ok(index) => index,
        Err(error) => return error.kind() != std::io::ErrorKind::NotFound,
    };
    // Versions 2 and 3 have whole names; an index with the extension `link` has more entries elsewhere.
    let is_plain = index.starts_with(b"DIRC\0\0\0\x02") || index.starts_with(b"DIRC\0\0\0\x03");
    let has = |text: &[u8]| index.windows(text.len()).any(|part| part == text);
    !is_plain || has(b"link") || has(name.as_os_str().as_encoded_bytes())
}

//! What changes for commands that run in a sandbox: the sandbox holds where rules cannot see what a command does.

use std::path::{Path, PathBuf};

use super::command;
use super::policy::{ActiveRule, Policy};
use super::rule::{Behavior, Rule};
use super::shell::Shell;

/// How commands run in a sandbox.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SandboxPolicy {
    /// Whether commands inside need no approval.
    pub allows_commands: bool,
    /// The commands that run outside, as rules about `Bash`.
    pub excluded: Vec<Rule>,
}

/// The paths of deny rules that a sandbox can enforce.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeniedPaths {
    /// Must not be read.
    pub read: Vec<PathBuf>,
    /// Must not be changed.
    pub write: Vec<PathBuf>,
}

impl SandboxPolicy {
    /// A rule for an entry of `excludedCommands`: `docker` stands for every command that begins with this word.
    pub fn exclusion(entry: &str) -> Rule {
        let is_pattern = entry.contains('*');
        Rule::with("Bash", if is_pattern { entry.to_owned() } else { format!("{entry}:*") })
    }
}

impl Policy {
    /// Whether a command is excluded from the sandbox: certainly all of it, not only its beginning.
    pub fn runs_outside_sandbox(&self, folder: &Path, command: &str) -> bool {
        let Some(sandbox) = &self.sandbox else { return true };
        let rules: Vec<&Rule> = sandbox.excluded.iter().collect();
        !rules.is_empty() && command::is_covered(&Shell::starting_in(self, folder, command), &rules)
    }

    /// The paths that deny rules name without wildcards.
    pub fn denied_paths(&self) -> DeniedPaths {
        let mut denied = DeniedPaths::default();
        for kept in self.rules_of(Behavior::Deny) {
            let Some(path) = self.literal_path(kept) else { continue };
            match kept.rule.tool.as_str() {
                "Read" => denied.read.push(path),
                _ => denied.write.push(path),
            }
        }
        denied
    }

    /// Whether a sandbox enforces a rule, so that no command inside needs to be understood for it.
    pub(crate) fn is_enforced_by_sandbox(&self, kept: &ActiveRule) -> bool {
        self.sandbox.is_some() && self.literal_path(kept).is_some()
    }

    /// The one path that a rule about files names, or whose contents it names.
    fn literal_path(&self, kept: &ActiveRule) -> Option<PathBuf> {
        if !matches!(kept.rule.tool.as_str(), "Read" | "Edit" | "Write") {
            return None;
        }
        let content = kept.rule.content.as_deref()?;
        let content = content.strip_suffix("/**").unwrap_or(content);
        if content.contains(['*', '?', '[', '\\', '!']) {
            return None;
        }
        if let Some(path) = content.strip_prefix("//") {
            return Some(Path::new("/").join(path));
        }
        if let Some(path) = content.strip_prefix("~/") {
            return Some(self.home.as_ref()?.join(path));
        }
        if let Some(path) = content.strip_prefix('/') {
            return Some(self.base(kept.source).join(path));
        }
        // Without a slash before it a name holds at any depth.
        Some(self.cwd.join(content.strip_prefix("./")?))
    }
}

//! A session's policy: the mode, the rules and the directories. A value: a subagent gets a copy and can only narrow it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ostler_process::Environment;
use ostler_proto::permission::PermissionMode;

use super::decision::{CallFacts, Outcome};
use super::disk;
use super::environment::CommandEnvironment;
use super::matching::names_server_tool;
use super::path_forms::PathForms;
use super::rule::{Behavior, Rule, Source};
use super::sandbox::SandboxPolicy;

/// Decides on calls.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// The permission mode.
    pub mode: PermissionMode,
    /// The working directory.
    pub cwd: PathBuf,
    /// The user's home directory, for `~/`.
    pub home: Option<PathBuf>,
    /// The folder of the user's settings, for `/` in their rules.
    pub user_folder: Option<PathBuf>,
    /// The folder of the project's settings, for `/` in their rules.
    pub project: PathBuf,
    /// The session's own folder for long output, which it may read.
    pub scratch: Option<PathBuf>,
    /// Whether the user trusts the project's files. Only then does `git` run without approval, because a repository's
    /// configuration can start programs.
    pub trusts_project: bool,
    /// Folders of repositories that are trusted individually: `git` runs in them as in a trusted project. With links
    /// followed.
    pub trusted_repositories: Vec<PathBuf>,
    /// Whether `bypassPermissions` may be used at all.
    pub bypass_available: bool,
    /// The prefixes of the tools of MCP servers for which no mode allows more than the default one.
    pub pinned: BTreeSet<String>,
    /// Whether the settings forbid commands outside the sandbox, also if a rule allows them.
    pub unsandboxed_forbidden: bool,
    /// The sandbox of commands; `None` if they run without one.
    pub sandbox: Option<SandboxPolicy>,
    /// Lists of the only allowed calls of some tools.
    pub only: Vec<Vec<Rule>>,
    /// The environment that commands would get.
    pub(crate) environment: CommandEnvironment,
    rules: Vec<ActiveRule>,
    directories: Vec<(PathBuf, Source)>,
}

/// An active rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveRule {
    /// What it does.
    pub behavior: Behavior,
    /// The calls that it matches.
    pub rule: Rule,
    /// Where it comes from.
    pub source: Source,
}

impl ActiveRule {
    /// The name of the rule in a chain of steps.
    pub(crate) fn title(&self) -> String {
        format!("{} rule {} from {}", self.behavior.word(), self.rule, self.source)
    }
}

impl Policy {
    /// A policy without rules for a working directory, for commands with this process's own environment.
    pub fn new(cwd: impl Into<PathBuf>, mode: PermissionMode) -> Self {
        let cwd = cwd.into();
        Self {
            mode,
            home: std::env::home_dir(),
            user_folder: None,
            project: cwd.clone(),
            cwd,
            scratch: None,
            trusts_project: false,
            trusted_repositories: Vec::new(),
            bypass_available: false,
            pinned: BTreeSet::new(),
            unsandboxed_forbidden: false,
            sandbox: None,
            only: Vec::new(),
            environment: CommandEnvironment::of(&Environment::default()),
            rules: Vec::new(),
            directories: Vec::new(),
        }
    }

    /// Sets the environment of commands. It must be the real one, because the programs that names start depend on it.
    pub fn set_environment(&mut self, environment: &Environment) {
        self.environment = CommandEnvironment::of(environment);
    }

    /// Whether a call would require approval without rules and in the default mode.
    pub fn would_ask_by_default(&self, call: &CallFacts<'_>) -> bool {
        let bare = Self { mode: PermissionMode::Default, rules: Vec::new(), ..self.clone() };
        bare.decide(call).outcome == Outcome::Ask
    }

    /// Asks about a call without looking at the disk. `None` if that is not enough; then `ask` belongs on a thread that
    /// may block.
    pub fn without_disk<T>(
        &self,
        call: &CallFacts<'_>,
        ask: fn(&Self, &CallFacts<'_>) -> T,
    ) -> Option<T> {
        disk::without(|| ask(self, call))
    }

    /// Adds a rule, unless it exists.
    pub fn add_rule(&mut self, behavior: Behavior, rule: Rule, source: Source) {
        let kept = ActiveRule { behavior, rule, source };
        if !self.rules.contains(&kept) {
            self.rules.push(kept);
        }
    }

    /// Removes the rules of a behaviour and source that a predicate selects.
    pub fn remove_rules(
        &mut self,
        behavior: Behavior,
        source: Source,
        is_meant: impl Fn(&Rule) -> bool,
    ) {
        self.rules.retain(|kept| {
            kept.behavior != behavior || kept.source != source || !is_meant(&kept.rule)
        });
    }

    /// All rules, in the order they were added.
    pub fn rules(&self) -> &[ActiveRule] {
        &self.rules
    }

    pub(crate) fn rules_of(&self, behavior: Behavior) -> impl Iterator<Item = &ActiveRule> {
        self.rules.iter().filter(move |kept| kept.behavior == behavior)
    }

    /// The policy without allow rules that do not name a protected path: they cannot allow changing it.
    pub(crate) fn naming(&self, protected: &str) -> Self {
        let mut policy = self.clone();
        policy.rules.retain(|kept| kept.behavior != Behavior::Allow || kept.rule.names(protected));
        policy
    }

    /// Whether a rule denies every use of a tool, so that it is not offered to the model.
    pub fn denies_all_of(&self, tool: &str) -> bool {
        let mut rules = self.rules_of(Behavior::Deny).filter(|kept| kept.rule.content.is_none());
        rules.any(|kept| names_server_tool(&kept.rule.tool, tool))
    }

    /// Adds a working directory.
    pub fn add_directory(&mut self, directory: impl AsRef<Path>, source: Source) {
        let directory = self.absolute(directory.as_ref());
        if !self.directories.contains(&(directory.clone(), source)) {
            self.directories.push((directory, source));
        }
    }

    /// Removes a working directory.
    pub fn remove_directory(&mut self, directory: impl AsRef<Path>, source: Source) {
        let directory = self.absolute(directory.as_ref());
        self.directories.retain(|(kept, from)| *kept != directory || *from != source);
    }

    /// Removes all working directories of a source.
    pub fn remove_directories(&mut self, source: Source) {
        self.directories.retain(|(_, from)| *from != source);
    }

    /// The working directories in addition to the main one.
    pub fn directories(&self) -> impl Iterator<Item = &Path> {
        self.directories.iter().map(|(directory, _)| directory.as_path())
    }

    /// The additional working directories with their sources.
    pub fn kept_directories(&self) -> impl Iterator<Item = (&Path, Source)> {
        self.directories.iter().map(|(directory, source)| (directory.as_path(), *source))
    }

    /// Removes all rules of a source.
    pub fn forget(&mut self, source: Source) {
        self.rules.retain(|kept| kept.source != source);
    }

    /// All working directories.
    pub fn working_directories(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(self.cwd.as_path()).chain(self.directories())
    }

    /// Whether a path is in the session's own folder for long output.
    pub(crate) fn is_put_aside(&self, place: &PathForms) -> bool {
        self.scratch.as_deref().is_some_and(|folder| place.is_inside(folder))
    }

    /// The folder that `/` at the beginning of a rule from this source means.
    pub(crate) fn base(&self, source: Source) -> &Path {
        match source {
            Source::User => self.user_folder.as_deref().unwrap_or(&self.cwd),
            Source::Project | Source::Local => &self.project,
            _ => &self.cwd,
        }
    }

    fn absolute(&self, path: &Path) -> PathBuf {
        match (path.strip_prefix("~"), &self.home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => self.cwd.join(path),
        }
    }

    /// Whether a rule allows requests to exactly this host: `WebFetch(domain:localhost)`, not a domain above it.
    pub fn names_host(&self, host: &str) -> bool {
        self.rules_of(Behavior::Allow).filter(|kept| kept.rule.tool == "WebFetch").any(|kept| {
            let domain = kept.rule.content.as_deref().and_then(|it| it.strip_prefix("domain:"));
            domain.is_some_and(|domain| domain.eq_ignore_ascii_case(host))
        })
    }

    /// The mode for a tool: that of the session, unless its server is pinned to the default mode.
    pub(crate) fn mode_for(&self, tool: &str) -> PermissionMode {
        let mode = self.effective_mode();
        let is_freer =
            matches!(mode, PermissionMode::BypassPermissions | PermissionMode::AcceptEdits);
        let is_pinned = || self.pinned.iter().any(|beginning| tool.starts_with(beginning));
        if is_freer && is_pinned() { PermissionMode::Default } else { mode }
    }

    /// The effective mode: the default one if the chosen mode is not available.
    pub fn effective_mode(&self) -> PermissionMode {
        match &self.mode {
            PermissionMode::BypassPermissions if !self.bypass_available => PermissionMode::Default,
            mode => mode.clone(),
        }
    }
}

//! What changes for commands that run in a sandbox: the sandbox holds where rules cannot see what a command does.

use std::path::{Path, PathBuf};

use ostler_proto::control::DecisionReasonType as Kind;
use ostler_proto::permission::PermissionMode;
use serde_json::json;

use super::command;
use super::decision::{CallFacts, Decision, Outcome, Trail};
use super::effect::Effect;
use super::matching::{Match, ResolvedCall, matches};
use super::policy::{ActiveRule, Policy};
use super::rule::{Behavior, Rule, Source};
use super::shell::Shell;
use super::suggest;

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

/// Domains that rules about `WebFetch` name. They hold for commands in the sandbox too, each with its subdomains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleDomains {
    /// Those that an allow rule names.
    pub allowed: Vec<String>,
    /// Those that a deny rule names.
    pub denied: Vec<String>,
}

/// The tool whose rules name domains.
const FETCH: &str = "WebFetch";

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

    /// The domains that rules about `WebFetch` name. `is_strict`: without those that the project's settings or answers of
    /// this session allow.
    pub fn rule_domains(&self, is_strict: bool) -> RuleDomains {
        let is_added = |kept: &ActiveRule| {
            matches!(kept.source, Source::Project | Source::Local | Source::Session)
        };
        let domain = |kept| domain_of(kept).map(str::to_owned);
        let allowing = self.rules_of(Behavior::Allow);
        RuleDomains {
            allowed: allowing
                .filter(|kept| !is_strict || !is_added(kept))
                .filter_map(domain)
                .collect(),
            denied: self.rules_of(Behavior::Deny).filter_map(domain).collect(),
        }
    }

    /// Decides whether a command in the sandbox may connect to a host that the settings do not name. No mode allows it:
    /// one that asks nothing denies it.
    pub fn decide_host(&self, host: &str) -> Decision {
        let is_ipv6 = host.contains(':');
        let url = if is_ipv6 { format!("https://[{host}]/") } else { format!("https://{host}/") };
        let (input, effect) = (json!({"url": url}), Effect::Fetch(url));
        let seen =
            ResolvedCall::new(self, CallFacts { tool: FETCH, input: &input, effect: &effect });
        let mut trail = Trail::default();
        for (behavior, outcome, verb) in [
            (Behavior::Deny, Outcome::Deny, "forbids it"),
            (Behavior::Ask, Outcome::Ask, "requires approval"),
            (Behavior::Allow, Outcome::Allow, "allows it"),
        ] {
            for kept in self.rules_of(behavior).filter(|kept| domain_of(kept).is_some()) {
                if matches(self, &kept.rule, behavior, kept.source, &seen) == Match::Yes {
                    trail.note(kept.title(), "matches");
                    let reason = format!("{} {verb}", kept.title());
                    return trail.end(outcome, Kind::Rule, reason);
                }
                trail.note(kept.title(), "does not match");
            }
        }
        let mode = self.effective_mode();
        trail.note("mode", mode.to_string());
        match mode {
            PermissionMode::Default | PermissionMode::AcceptEdits | PermissionMode::Plan => {
                let reason = format!("no setting and no rule names {host}");
                let decision = trail.end(Outcome::Ask, Kind::Unspecified, reason);
                let suggestions = suggest::suggestions(self, &seen, &decision);
                Decision { suggestions, ..decision }
            }
            mode => {
                let reason =
                    format!("no setting and no rule names {host}, and mode {mode} does not ask");
                trail.end(Outcome::Deny, Kind::Mode, reason)
            }
        }
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

/// The domain that a rule about `WebFetch` names.
fn domain_of(kept: &ActiveRule) -> Option<&str> {
    let is_fetch = kept.rule.tool == FETCH;
    is_fetch.then_some(kept.rule.content.as_deref()?)?.strip_prefix("domain:")
}

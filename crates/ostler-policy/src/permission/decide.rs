//! The order in which a call is decided.
//!
//! 1. Denials: deny rules, the policy of an MCP server for its tool.
//! 2. Questions in every mode: questions for a person, ask rules, the policy of an MCP server for its tool.
//! 3. `plan`, which changes nothing.
//! 4. Calls that no rule and no mode can allow: leaving the sandbox, removing everything.
//! 5. `bypassPermissions`, which asks nothing.
//! 6. Allow rules; for a protected path only those that name it.
//! 7. The mode and the effect; otherwise: ask.
//!
//! Accesses the disk only to follow links.

use std::cell::Cell;
use std::path::PathBuf;

use ostler_files::RealPath;
use ostler_proto::control::DecisionReasonType as Kind;
use ostler_proto::permission::PermissionMode;
use serde_json::Value;

use super::command;
use super::decision::{CallFacts, Decision, Outcome, Trail};
use super::effect::{Effect, ServerToolPolicy};
use super::matching::{Match, ResolvedCall, matches, names_tool};
use super::policy::{ActiveRule, Policy};
use super::rule::{Behavior, Rule, Source};
use super::shell::Access;
use super::suggest;

impl Policy {
    /// Decides on a call.
    pub fn decide(&self, call: &CallFacts<'_>) -> Decision {
        let seen = ResolvedCall::new(self, *call);
        let mut decision =
            DecisionBuilder { policy: self, seen: &seen, trail: Trail::default(), doubt: None }
                .judge();
        if decision.outcome == Outcome::Ask {
            decision.suggestions = suggest::suggestions(self, &seen, &decision);
        }
        let resolved = seen.place.and_then(|place| place.resolved);
        decision.real_path = resolved.and_then(RealPath::from_resolved);
        decision
    }
}

struct DecisionBuilder<'a> {
    policy: &'a Policy,
    seen: &'a ResolvedCall<'a>,
    trail: Trail,
    /// Why it is unknown whether a deny or ask rule matches the call.
    doubt: Option<String>,
}

impl DecisionBuilder<'_> {
    fn judge(mut self) -> Decision {
        let mode = self.mode();
        if let Some(kept) = self.first_match(Behavior::Deny) {
            let reason = format!("{} forbids it", kept.title());
            return self.end(Outcome::Deny, Kind::Rule, reason);
        }
        if let Some(reason) = self.left_out() {
            self.trail.note("the agent's list of tools", reason.clone());
            return self.end(Outcome::Deny, Kind::Rule, reason);
        }
        let of_server = self.server_policy();
        if of_server == ServerToolPolicy::AlwaysDeny {
            let reason = "the configuration of its MCP server denies this tool";
            return self.end(Outcome::Deny, Kind::Rule, reason);
        }
        if *self.seen.call.effect == Effect::AskUser {
            self.trail.note("the tool", "needs an answer from a person");
            return self.ask(Kind::Unspecified, "the question is for the user");
        }
        if let Some(kept) = self.first_match(Behavior::Ask) {
            let reason = format!("{} requires approval", kept.title());
            return self.ask(Kind::Rule, reason);
        }
        if let Some(doubt) = self.doubt.take() {
            self.trail.note("rules that deny or ask", doubt.clone());
            return self.ask(Kind::Rule, doubt);
        }
        if of_server == ServerToolPolicy::AlwaysAsk {
            let reason = "the configuration of its MCP server requires approval for this tool";
            return self.ask(Kind::Rule, reason);
        }
        if mode == PermissionMode::Plan
            && let Some(change) = self.change()
        {
            return self.end(
                Outcome::Deny,
                Kind::Mode,
                format!("plan mode changes nothing: {change}"),
            );
        }
        if self.wants_no_sandbox() {
            return self.outside_sandbox();
        }
        if let Some(shell) = &self.seen.shell
            && let Some(reason) = command::destroys(self.policy, shell)
        {
            self.trail.note("the command", reason.clone());
            return self.ask(Kind::SafetyCheck, reason);
        }
        if mode == PermissionMode::BypassPermissions {
            return self.end(Outcome::Allow, Kind::Mode, "mode bypassPermissions asks nothing");
        }
        if let Some(kept) = self.allowing_rule() {
            let reason = format!("{} allows it", kept.title());
            return self.end(Outcome::Allow, Kind::Rule, reason);
        }
        if of_server == ServerToolPolicy::AlwaysAllow {
            let reason = "the configuration of its MCP server allows this tool";
            return self.end(Outcome::Allow, Kind::Rule, reason);
        }
        self.by_effect(&mode)
    }

    fn mode(&mut self) -> PermissionMode {
        let mode = self.policy.mode_for(self.seen.call.tool);
        if mode == self.policy.mode {
            self.trail.note("mode", mode.to_string());
        } else if mode != self.policy.effective_mode() {
            self.trail.note(
                format!("mode {}", self.policy.mode),
                "does not hold for this server; default does",
            );
        } else {
            self.trail
                .note(format!("mode {}", self.policy.mode), "is not available here; default holds");
        }
        mode
    }

    /// The first rule of a behaviour that matches the call; the others are noted.
    fn first_match(&mut self, behavior: Behavior) -> Option<ActiveRule> {
        for kept in self.policy.rules_of(behavior) {
            match matches(self.policy, &kept.rule, behavior, kept.source, self.seen) {
                Match::Yes => {
                    self.trail.note(kept.title(), "matches");
                    return Some(kept.clone());
                }
                Match::No => self.trail.note(kept.title(), "does not match"),
                Match::Maybe(_)
                    if self.is_inside_sandbox() && self.policy.is_enforced_by_sandbox(kept) =>
                {
                    self.trail.note(kept.title(), "may match; the sandbox enforces it");
                }
                Match::Maybe(reason) => {
                    self.trail.note(kept.title(), format!("may match: {reason}"));
                    self.doubt.get_or_insert(format!("{} may match it: {reason}", kept.title()));
                }
            }
        }
        None
    }

    /// The rule that allows the call as a whole. It must name a protected path to allow it.
    fn allowing_rule(&mut self) -> Option<ActiveRule> {
        let protected = self.protected();
        for kept in self.policy.rules_of(Behavior::Allow) {
            // Commands are allowed part by part, later.
            let is_whole = kept.rule.content.is_none();
            match matches(self.policy, &kept.rule, Behavior::Allow, kept.source, self.seen) {
                Match::Yes => match protected {
                    Some(name) if !kept.rule.names(name) => {
                        self.trail.note(
                            kept.title(),
                            format!("matches, but does not name {name}, which is protected"),
                        );
                    }
                    _ => {
                        self.trail.note(kept.title(), "matches");
                        return Some(kept.clone());
                    }
                },
                _ if self.seen.shell.is_some() && !is_whole => {}
                _ => self.trail.note(kept.title(), "does not match"),
            }
        }
        None
    }

    /// The protected path that the call would change, by a tool or by a command.
    fn protected(&self) -> Option<&'static str> {
        let home = self.policy.home.as_deref();
        if let (Effect::Write(_), Some(place)) = (self.seen.call.effect, &self.seen.place) {
            return place.protected(home);
        }
        let found = Cell::new(None);
        self.seen.shell.as_ref()?.touches(Access::Writes, |place| {
            found.set(found.get().or(place.protected(home)));
            false
        });
        found.get()
    }

    /// Why a list of tools with content does not include the call.
    fn left_out(&self) -> Option<String> {
        self.policy.only.iter().find_map(|list| {
            let rules: Vec<&Rule> =
                list.iter().filter(|rule| names_tool(&rule.tool, self.seen)).collect();
            let covers = |rule: &&Rule| match &self.seen.shell {
                Some(shell) => command::is_covered(shell, &rules),
                None => {
                    matches(self.policy, rule, Behavior::Allow, Source::Session, self.seen)
                        == Match::Yes
                }
            };
            if rules.is_empty() || rules.iter().any(covers) {
                return None;
            }
            let names: Vec<String> = rules.iter().map(|rule| rule.to_string()).collect();
            Some(format!("the agent may only use {}", names.join(", ")))
        })
    }

    /// The policy of the MCP server's configuration for the tool.
    fn server_policy(&self) -> ServerToolPolicy {
        match self.seen.call.effect {
            Effect::Outside { policy, .. } => *policy,
            _ => ServerToolPolicy::Unset,
        }
    }

    /// Decides on a command that would run outside the sandbox: no rule and no mode can allow it.
    fn outside_sandbox(mut self) -> Decision {
        self.trail.note("the command", "would run outside the sandbox");
        if self.policy.unsandboxed_forbidden {
            let reason = "it would run outside the sandbox, which the settings forbid \
                          (sandbox.allowUnsandboxedCommands is false); run it without dangerouslyDisableSandbox";
            return self.end(Outcome::Deny, Kind::SandboxOverride, reason);
        }
        self.ask(Kind::SandboxOverride, "it would run outside the sandbox")
    }

    /// Whether the call is a command that runs in the sandbox.
    fn is_inside_sandbox(&self) -> bool {
        let (Some(shell), Some(sandbox)) = (&self.seen.shell, &self.policy.sandbox) else {
            return false;
        };
        let excluded: Vec<&Rule> = sandbox.excluded.iter().collect();
        let is_excluded = !excluded.is_empty() && command::is_covered(shell, &excluded);
        !self.wants_no_sandbox() && !is_excluded
    }

    /// Whether commands in the sandbox need no approval. Plan mode changes nothing, also not inside.
    fn sandbox_allows(&self, mode: &PermissionMode) -> bool {
        let sandbox = self.policy.sandbox.as_ref();
        *mode != PermissionMode::Plan
            && sandbox.is_some_and(|sandbox| sandbox.allows_commands)
            && self.is_inside_sandbox()
    }

    fn wants_no_sandbox(&self) -> bool {
        self.seen.call.input.get("dangerouslyDisableSandbox").and_then(Value::as_bool) == Some(true)
    }

    /// What a call would change, where that is known.
    fn change(&self) -> Option<String> {
        match (self.seen.call.effect, &self.seen.shell) {
            (Effect::Write(path), _) => Some(format!("it changes {}", path.display())),
            (_, Some(shell)) => command::change(shell),
            (Effect::Outside { changes: true, .. }, _) => {
                Some("the MCP server does not say that this tool only reads".to_owned())
            }
            _ => None,
        }
    }

    /// Decides by mode and effect when no rule matches.
    fn by_effect(self, mode: &PermissionMode) -> Decision {
        if self.seen.call.tool.starts_with("mcp__") {
            return self.reaches_outside();
        }
        match self.seen.call.effect {
            Effect::Nothing => self.end(
                Outcome::Allow,
                Kind::Unspecified,
                "it touches nothing outside the conversation",
            ),
            Effect::Read(path) => self.read(path.clone()),
            Effect::Write(path) => self.write(path.clone(), mode),
            Effect::Execute(_) | Effect::ExecuteIn { .. } => self.execute(mode),
            Effect::Fetch(_) | Effect::Search(_) | Effect::Outside { .. } => self.reaches_outside(),
            Effect::AskUser => self.ask(Kind::Unspecified, "the question is for the user"),
        }
    }

    fn reaches_outside(mut self) -> Decision {
        self.trail.note("the tool", "reaches outside, and no rule allows it");
        let reason = format!("{} reaches outside", self.seen.call.tool);
        self.ask(Kind::Unspecified, reason)
    }

    fn read(mut self, path: PathBuf) -> Decision {
        if self.is_inside() {
            self.trail.note("the path", "is inside the working directories");
            return self.end(
                Outcome::Allow,
                Kind::WorkingDir,
                "reading inside the working directories is allowed",
            );
        }
        if self.seen.place.as_ref().is_some_and(|place| self.policy.is_put_aside(place)) {
            self.trail.note("the path", "is in the session's own folder");
            let reason = "the session may read its own files";
            return self.end(Outcome::Allow, Kind::WorkingDir, reason);
        }
        self.outside(path)
    }

    fn write(mut self, path: PathBuf, mode: &PermissionMode) -> Decision {
        let is_inside = self.is_inside();
        if !is_inside && self.protected().is_none() {
            return self.outside(path);
        }
        let is = if is_inside { "is inside" } else { "is outside" };
        self.trail.note("the path", format!("{is} the working directories"));
        if let Some(name) = self.protected() {
            let reason = protected_reason(name);
            return Decision { blocked_path: Some(path), ..self.ask(Kind::SafetyCheck, reason) };
        }
        if *mode == PermissionMode::AcceptEdits {
            return self.end(
                Outcome::Allow,
                Kind::Mode,
                "mode acceptEdits allows changes inside the working directories",
            );
        }
        let reason = format!("it changes {}", path.display());
        Decision { blocked_path: Some(path), ..self.ask(Kind::Mode, reason) }
    }

    fn outside(mut self, path: PathBuf) -> Decision {
        let place = self.seen.place.as_ref();
        let leads =
            place.and_then(|place| place.resolved.clone()).filter(|resolved| *resolved != path);
        let where_to = match leads {
            Some(resolved) => {
                format!("leads to {}, outside the working directories", resolved.display())
            }
            None => "is outside the working directories".to_owned(),
        };
        self.trail.note("the path", where_to);
        let reason = format!("{} is outside the working directories", path.display());
        Decision { blocked_path: Some(path), ..self.ask(Kind::WorkingDir, reason) }
    }

    fn execute(mut self, mode: &PermissionMode) -> Decision {
        let Some(shell) = &self.seen.shell else {
            return self.ask(Kind::Unspecified, "it runs a command");
        };
        let protected = self.protected();
        // Rules that allow the parts must also name a protected path.
        let naming = protected.map(|name| self.policy.naming(name));
        let policy = naming.as_ref().unwrap_or(self.policy);
        let verdicts = command::verdicts(policy, shell, *mode == PermissionMode::AcceptEdits);
        let is_harmless = !verdicts.iter().any(|verdict| verdict.by_rule);
        let mut refused = None;
        for verdict in verdicts {
            self.trail.note(verdict.what.clone(), verdict.why.clone());
            if !verdict.is_allowed {
                refused.get_or_insert(verdict);
            }
        }
        match refused {
            None => {
                let reason = "every part of the command is allowed";
                let decision = self.end(Outcome::Allow, Kind::SubcommandResults, reason);
                Decision { is_harmless, ..decision }
            }
            Some(_) if self.sandbox_allows(mode) => {
                self.trail.note("the sandbox", "holds for this command, whatever it does");
                self.end(Outcome::Allow, Kind::Unspecified, "the command runs in the sandbox")
            }
            Some(verdict) => {
                let (kind, reason) = match protected {
                    Some(name) => (Kind::SafetyCheck, protected_reason(name)),
                    None => (Kind::SubcommandResults, format!("{}: {}", verdict.what, verdict.why)),
                };
                Decision { blocked_path: verdict.path, ..self.ask(kind, reason) }
            }
        }
    }

    fn is_inside(&self) -> bool {
        let place = self.seen.place.as_ref();
        place.is_some_and(|place| {
            self.policy.working_directories().any(|folder| place.is_inside(folder))
        })
    }

    /// Ends with a question, or with a denial in a mode without questions.
    fn ask(mut self, kind: Kind, reason: impl Into<String>) -> Decision {
        let reason = reason.into();
        let is_question = *self.seen.call.effect == Effect::AskUser;
        match self.policy.effective_mode() {
            PermissionMode::DontAsk => {
                self.trail.note("mode dontAsk", "denies instead of asking");
                self.end(
                    Outcome::Deny,
                    Kind::Mode,
                    format!("this mode does not ask the user: {reason}"),
                )
            }
            // `auto` needs a classifier that does not exist here; an unknown mode must not allow more than a known one.
            mode @ (PermissionMode::Auto | PermissionMode::Other(_)) if !is_question => {
                self.trail
                    .note(format!("mode {mode}"), "is not supported and denies instead of asking");
                self.end(
                    Outcome::Deny,
                    Kind::Mode,
                    format!("mode {mode} is not supported: {reason}"),
                )
            }
            _ => self.end(Outcome::Ask, kind, reason),
        }
    }

    fn end(self, outcome: Outcome, kind: Kind, reason: impl Into<String>) -> Decision {
        self.trail.end(outcome, kind, reason)
    }
}

fn protected_reason(name: &str) -> String {
    format!("{name} affects what runs later; changing it requires approval")
}

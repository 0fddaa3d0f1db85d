//! The order in which a call is judged.
//!
//! Deny rules, questions for a person, ask rules, the mode that asks nothing, the mode that changes nothing, allow
//! rules, what the mode and the effect say, and at last: ask. Looks at the disk only to follow links.

use std::path::PathBuf;

use ostler_proto::control::DecisionReasonType as Kind;
use ostler_proto::permission::PermissionMode;
use serde_json::Value;

use super::command;
use super::decision::{CallFacts, Decision, Outcome, Trail};
use super::matching::{Match, Seen, matches};
use super::policy::{KeptRule, Policy};
use super::rule::Behavior;
use super::suggest;
use crate::tool::Effect;

impl Policy {
    /// Decides on a call.
    pub fn decide(&self, call: &CallFacts<'_>) -> Decision {
        let seen = Seen::new(self, *call);
        let mut decision =
            Judge { policy: self, seen: &seen, trail: Trail::default(), doubt: None }.judge();
        if decision.outcome == Outcome::Ask {
            decision.suggestions = suggest::suggestions(self, &seen, &decision);
        }
        decision
    }
}

struct Judge<'a> {
    policy: &'a Policy,
    seen: &'a Seen<'a>,
    trail: Trail,
    /// Why it cannot be told whether a rule that narrows speaks of the call.
    doubt: Option<String>,
}

impl Judge<'_> {
    fn judge(mut self) -> Decision {
        let mode = self.mode();
        if let Some(kept) = self.first_match(Behavior::Deny) {
            let reason = format!("{} forbids it", kept.title());
            return self.end(Outcome::Deny, Kind::Rule, reason);
        }
        if *self.seen.call.effect == Effect::AskUser {
            self.trail.note("the tool", "needs an answer from a person");
            return self.ask(Kind::Unspecified, "the question is for the user");
        }
        if let Some(kept) = self.first_match(Behavior::Ask) {
            let reason = format!("{} says to ask", kept.title());
            return self.ask(Kind::Rule, reason);
        }
        if let Some(doubt) = self.doubt.take() {
            self.trail.note("rules that deny or ask", doubt.clone());
            return self.ask(Kind::Rule, doubt);
        }
        if mode == PermissionMode::BypassPermissions {
            // The one thing that no mode means.
            if let Some(shell) = &self.seen.shell
                && let Some(reason) = command::destroys(self.policy, shell)
            {
                self.trail.note("the command", reason.clone());
                return self.ask(Kind::SafetyCheck, reason);
            }
            return self.end(Outcome::Allow, Kind::Mode, "mode bypassPermissions asks nothing");
        }
        if self.wants_no_sandbox() {
            return self.ask(Kind::SandboxOverride, "it is to run outside the sandbox");
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
        if let Some(kept) = self.allowing_rule() {
            let reason = format!("{} allows it", kept.title());
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

    /// The first rule of a behaviour that speaks of the call; the others are noted.
    fn first_match(&mut self, behavior: Behavior) -> Option<KeptRule> {
        for kept in self.policy.rules_of(behavior) {
            match matches(self.policy, &kept.rule, behavior, kept.source, self.seen) {
                Match::Yes => {
                    self.trail.note(kept.title(), "matches");
                    return Some(kept.clone());
                }
                Match::No => self.trail.note(kept.title(), "does not match"),
                Match::Maybe(reason) => {
                    self.trail.note(kept.title(), format!("may match: {reason}"));
                    self.doubt.get_or_insert(format!("{} may speak of it: {reason}", kept.title()));
                }
            }
        }
        None
    }

    /// The rule that allows the call as a whole. What is protected must be named by the rule.
    fn allowing_rule(&mut self) -> Option<KeptRule> {
        let place =
            self.seen.place.as_ref().filter(|_| matches!(self.seen.call.effect, Effect::Write(_)));
        let protected = place.and_then(|place| place.protected(self.policy.home.as_deref()));
        for kept in self.policy.rules_of(Behavior::Allow) {
            // Commands are allowed part by part, later.
            let is_whole = kept.rule.content.is_none();
            match matches(self.policy, &kept.rule, Behavior::Allow, kept.source, self.seen) {
                Match::Yes => match protected {
                    Some(name)
                        if !kept
                            .rule
                            .content
                            .as_deref()
                            .is_some_and(|content| content.contains(name)) =>
                    {
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

    fn wants_no_sandbox(&self) -> bool {
        self.seen.call.input.get("dangerouslyDisableSandbox").and_then(Value::as_bool) == Some(true)
    }

    /// What a call would change, where that is known.
    fn change(&self) -> Option<String> {
        match (self.seen.call.effect, &self.seen.shell) {
            (Effect::Write(path), _) => Some(format!("it changes {}", path.display())),
            (_, Some(shell)) => command::change(shell),
            _ => None,
        }
    }

    /// What mode and effect say when no rule does.
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
            let reason = "the session may read what it put aside";
            return self.end(Outcome::Allow, Kind::WorkingDir, reason);
        }
        self.outside(path)
    }

    fn write(mut self, path: PathBuf, mode: &PermissionMode) -> Decision {
        if !self.is_inside() {
            return self.outside(path);
        }
        self.trail.note("the path", "is inside the working directories");
        let protected =
            self.seen.place.as_ref().and_then(|place| place.protected(self.policy.home.as_deref()));
        if let Some(name) = protected {
            let reason = format!("{name} decides about what runs later; it is not changed unasked");
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
        let verdicts = command::verdicts(self.policy, shell, *mode == PermissionMode::AcceptEdits);
        let mut refused = None;
        for verdict in verdicts {
            self.trail.note(verdict.what.clone(), verdict.why.clone());
            if !verdict.is_allowed {
                refused.get_or_insert(verdict);
            }
        }
        match refused {
            None => self.end(
                Outcome::Allow,
                Kind::SubcommandResults,
                "every part of the command is allowed",
            ),
            Some(verdict) => {
                let reason = format!("{}: {}", verdict.what, verdict.why);
                Decision { blocked_path: verdict.path, ..self.ask(Kind::SubcommandResults, reason) }
            }
        }
    }

    fn is_inside(&self) -> bool {
        let place = self.seen.place.as_ref();
        place.is_some_and(|place| {
            self.policy.working_directories().any(|folder| place.is_inside(folder))
        })
    }

    /// Ends with a question, or with a no where nobody is to be asked.
    fn ask(mut self, kind: Kind, reason: impl Into<String>) -> Decision {
        let reason = reason.into();
        let is_question = *self.seen.call.effect == Effect::AskUser;
        match self.policy.effective_mode() {
            PermissionMode::DontAsk => {
                self.trail.note("mode dontAsk", "turns a question into a no");
                self.end(Outcome::Deny, Kind::Mode, format!("nobody is to be asked: {reason}"))
            }
            // `auto` needs a classifier that is not there; an unknown mode must not be wider than a known one.
            mode @ (PermissionMode::Auto | PermissionMode::Other(_)) if !is_question => {
                self.trail.note(
                    format!("mode {mode}"),
                    "is not supported and turns a question into a no",
                );
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

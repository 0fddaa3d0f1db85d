//! Selects the hooks for an event.

use std::path::Path;

use ostler_proto::hook::HookEvent;

use super::registry::{Hook, Kind};
use super::{Event, Hooks, event};
use crate::disk::on_disk;
use crate::model::pricing;
use crate::permission::{Behavior, CallFacts, Match, ResolvedCall, Rule, Source, matches};

impl Hooks {
    /// The hooks for an event that is not about a call.
    pub(super) fn due(&self, event: &Event<'_>) -> Vec<Hook> {
        let hooks = self.list.now();
        // A hook with a condition on calls is not for other events.
        each_once(named_for(&hooks, event).filter(|hook| hook.condition.is_none()))
    }

    /// The hooks for an event that may be about a call.
    pub(super) async fn due_for_call(&self, event: &Event<'_>) -> Vec<Hook> {
        let (Some(tool), Some(input)) = (event.tool, event.fields.get("tool_input")) else {
            return self.due(event);
        };
        let hooks = self.list.now();
        let rules = named_for(&hooks, event).filter_map(|hook| hook.condition.clone());
        let rules: Vec<Rule> = rules.collect();
        let Some(effect) = event.effect.filter(|_| !rules.is_empty()) else {
            // If the effect is unknown, the hook runs and can decide by itself.
            return each_once(named_for(&hooks, event));
        };
        let (policy, tool) = (self.scope.permissions.policy(), tool.to_owned());
        let (input, effect) = (input.clone(), effect.clone());
        // Paths are resolved for it.
        let fitting = on_disk(move || {
            let call = CallFacts { tool: &tool, input: &input, effect: &effect };
            let call = ResolvedCall::new(&policy, call);
            let fits = |rule: &Rule| {
                matches(&policy, rule, Behavior::Deny, Source::Session, &call) != Match::No
            };
            rules.into_iter().filter(fits).collect::<Vec<_>>()
        })
        .await;
        let fits = |hook: &&Hook| {
            hook.condition.as_ref().is_none_or(|condition| fitting.contains(condition))
        };
        each_once(named_for(&hooks, event).filter(fits))
    }
}

/// The hooks for an event whose matcher fits it.
fn named_for<'h>(hooks: &'h [Hook], event: &Event<'_>) -> impl Iterator<Item = &'h Hook> + use<'h> {
    let (kind, subject) = (event.event.clone(), subject(event));
    hooks.iter().filter(move |hook| hook.is_for(&kind, subject.as_deref()))
}

/// The value that matchers are compared with.
pub(super) fn subject(event: &Event<'_>) -> Option<String> {
    let subject = event.fields.get(event::subject(&event.event)?)?.as_str()?;
    match event.event {
        HookEvent::FileChanged => Some(Path::new(subject).file_name()?.to_string_lossy().into()),
        // All spellings of a model count as one. For an unknown model, every hook that might object runs.
        HookEvent::PreModelSwitch => pricing::family(subject).map(|family| family.name.to_owned()),
        HookEvent::PostModelSwitch => {
            Some(pricing::family(subject).map_or(subject, |family| family.name).to_owned())
        }
        _ => Some(subject.to_owned()),
    }
}

/// The same hook only once, however many files name it.
fn each_once<'h>(hooks: impl Iterator<Item = &'h Hook>) -> Vec<Hook> {
    let mut due: Vec<Hook> = Vec::new();
    for hook in hooks {
        let is_known = !matches!(hook.kind, Kind::Callback(_))
            && due.iter().any(|known| known.kind == hook.kind);
        if !is_known && hook.take_turn() {
            due.push(hook.clone());
        }
    }
    due
}

//! The permission rules that the answers "this session" and "always" would add.

use ostler_engine::permission::Rule;
use ostler_proto::control::CanUseTool;
use ostler_proto::permission::{
    PermissionBehavior, PermissionDestination, PermissionMode, PermissionUpdate,
};

/// Alternatives from the narrowest to the widest; one is current.
#[derive(Debug, Default)]
pub(crate) struct Offers {
    alternatives: Vec<Vec<PermissionUpdate>>,
    current: usize,
    /// Whether "always" can be offered.
    pub(crate) may_be_kept: bool,
}

impl Offers {
    /// The engine's suggestions. A change that cannot be described as text is not offered.
    pub(crate) fn of(request: &CanUseTool) -> Self {
        let suggested = request.permission_suggestions.iter().flatten();
        let shown = suggested.filter(|update| words(update).is_some()).cloned();
        // Each rule is an alternative. A mode and a folder only help together.
        let (rules, others): (Vec<_>, Vec<_>) =
            shown.partition(|update| matches!(update, PermissionUpdate::AddRules(_)));
        let mut alternatives: Vec<_> = rules.into_iter().map(|rule| vec![rule]).collect();
        alternatives.extend(Some(others).filter(|others| !others.is_empty()));
        let may_be_kept = request.suppress_always_allow_rule != Some(true);
        Self { alternatives, current: 0, may_be_kept }
    }

    /// The current alternative as text.
    pub(crate) fn words(&self) -> Option<String> {
        self.words_of(self.current)
    }

    /// The next alternative as text, if there are several.
    pub(crate) fn next_words(&self) -> Option<String> {
        if self.alternatives.len() < 2 { None } else { self.words_of(self.after()) }
    }

    /// Makes the next alternative current.
    pub(crate) fn turn(&mut self) {
        self.current = self.after();
    }

    /// The changes of the current alternative, for this destination.
    pub(crate) fn updates(&self, destination: &PermissionDestination) -> Vec<PermissionUpdate> {
        let mut updates = self.alternatives.get(self.current).cloned().unwrap_or_default();
        for update in &mut updates {
            match update {
                PermissionUpdate::AddRules(update) => update.destination = destination.clone(),
                PermissionUpdate::SetMode(update) => update.destination = destination.clone(),
                PermissionUpdate::AddDirectories(update) => {
                    update.destination = destination.clone();
                }
                _ => {}
            }
        }
        updates
    }

    fn after(&self) -> usize {
        (self.current + 1) % self.alternatives.len().max(1)
    }

    fn words_of(&self, index: usize) -> Option<String> {
        let words: Vec<_> = self.alternatives.get(index)?.iter().filter_map(words).collect();
        Some(words.join(", "))
    }
}

/// A change that widens permissions, as text; `None` for every other change.
fn words(update: &PermissionUpdate) -> Option<String> {
    match update {
        PermissionUpdate::AddRules(update) if update.behavior == PermissionBehavior::Allow => {
            let rules: Result<Vec<_>, _> = update.rules.iter().map(Rule::from_wire).collect();
            let rules: Vec<_> = rules.ok()?.iter().map(Rule::to_string).collect();
            (!rules.is_empty()).then(|| rules.join(", "))
        }
        PermissionUpdate::SetMode(update) => match &update.mode {
            PermissionMode::AcceptEdits => {
                Some("mode acceptEdits (all edits in this folder)".to_owned())
            }
            _ => None,
        },
        PermissionUpdate::AddDirectories(update) => {
            Some(format!("folder {}", update.directories.join(", ")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn offers(suggestions: serde_json::Value) -> Offers {
        let request =
            json!({"tool_name": "Bash", "input": {}, "permission_suggestions": suggestions});
        Offers::of(&serde_json::from_value(request).unwrap())
    }

    #[test]
    fn rules_are_alternatives_and_a_mode_goes_with_its_folder() {
        let rule = |content: &str| {
            json!({"type": "addRules", "behavior": "allow", "destination": "localSettings",
            "rules": [{"toolName": "Bash", "ruleContent": content}]})
        };
        let mode = json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"});
        let folder =
            json!({"type": "addDirectories", "directories": ["/x"], "destination": "session"});
        let mut offers = offers(json!([rule("touch a"), rule("touch:*"), mode, folder]));
        assert_eq!(offers.words().unwrap(), "Bash(touch a)");
        assert_eq!(offers.next_words().unwrap(), "Bash(touch:*)");
        offers.turn();
        let updates = offers.updates(&PermissionDestination::Session);
        let sent = serde_json::to_value(&updates).unwrap();
        assert_eq!(sent[0]["rules"][0]["ruleContent"], "touch:*");
        assert_eq!(sent[0]["destination"], "session");
        offers.turn();
        assert!(offers.words().unwrap().ends_with("folder /x"), "{:?}", offers.words());
        assert_eq!(offers.updates(&PermissionDestination::LocalSettings).len(), 2);
        offers.turn();
        assert_eq!(offers.words().unwrap(), "Bash(touch a)", "and round again");
    }

    #[test]
    fn unknown_changes_and_changes_that_do_not_allow_are_not_offered() {
        for odd in [
            json!([]),
            json!([{"type": "conquer", "destination": "session"}]),
            json!([{"type": "setMode", "mode": "bypassPermissions", "destination": "session"}]),
            json!([{"type": "addRules", "behavior": "deny", "rules": [{"toolName": "Bash"}], "destination": "session"}]),
            json!([{"type": "addRules", "behavior": "allow", "rules": [], "destination": "session"}]),
            json!([{"type": "addRules", "behavior": "allow", "rules": [{"toolName": "("}], "destination": "session"}]),
        ] {
            let offers = offers(odd.clone());
            assert_eq!((offers.words(), offers.next_words()), (None, None), "{odd}");
            assert_eq!(offers.updates(&PermissionDestination::Session), [], "{odd}");
        }
    }
}

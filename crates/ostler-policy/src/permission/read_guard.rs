//! The files that a search may show, for tools that find files by themselves.

use std::path::Path;

use super::matching::PathRule;
use super::path_forms::PathForms;
use super::policy::Policy;
use super::rule::Behavior;

/// The rules that forbid reading files, prepared for many files.
#[derive(Debug, Default)]
pub struct ReadGuard(Vec<PathRule>);

impl Policy {
    /// The current rules that forbid reading files: deny rules and ask rules, because a search of many files does not
    /// ask about each.
    pub fn read_guard(&self) -> ReadGuard {
        let narrowing = self.rules_of(Behavior::Deny).chain(self.rules_of(Behavior::Ask));
        let about_reading = narrowing.filter(|kept| kept.rule.tool == "Read");
        let rules = about_reading.map(|kept| PathRule::new(self, &kept.rule, true, kept.source));
        ReadGuard(rules.collect())
    }

    /// The rules about files that must not be read, for files that the engine itself sends to the model. A rule about
    /// the whole tool `Read` restricts the model's tools, and not the user's instructions.
    pub fn file_guard(&self) -> ReadGuard {
        let narrowing = self.rules_of(Behavior::Deny).chain(self.rules_of(Behavior::Ask));
        let named =
            narrowing.filter(|kept| kept.rule.tool == "Read" && kept.rule.content.is_some());
        let rules = named.map(|kept| PathRule::new(self, &kept.rule, true, kept.source));
        ReadGuard(rules.collect())
    }
}

impl ReadGuard {
    /// Whether a search may show the contents of this file. The path is absolute.
    pub fn may_show(&self, path: &Path) -> bool {
        // Most policies have no rules about reading, and then no access to the disk is needed.
        if self.0.is_empty() {
            return true;
        }
        let place = PathForms::of(path);
        !self.0.iter().any(|rule| rule.covers(&place))
    }
}

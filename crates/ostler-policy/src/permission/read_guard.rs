//! Which files a search may show, for tools that find files themselves.

use std::path::Path;

use super::matching::PathRule;
use super::path_forms::PathForms;
use super::policy::Policy;
use super::rule::Behavior;

/// The rules that keep files from being read, ready to be asked about many of them.
#[derive(Debug, Default)]
pub struct ReadGuard(Vec<PathRule>);

impl Policy {
    /// What keeps files from being read, as the rules stand now: those that deny it, and those that say to ask first,
    /// for a search of many files asks about none of them.
    pub fn read_guard(&self) -> ReadGuard {
        let narrowing = self.rules_of(Behavior::Deny).chain(self.rules_of(Behavior::Ask));
        let about_reading = narrowing.filter(|kept| kept.rule.tool == "Read");
        let rules = about_reading.map(|kept| PathRule::new(self, &kept.rule, true, kept.source));
        ReadGuard(rules.collect())
    }

    /// The rules that name files which must not be read, for text that the engine itself puts before the model. A rule
    /// about the tool `Read` as a whole says which tools the model has, and nothing about the user's instructions.
    pub fn file_guard(&self) -> ReadGuard {
        let narrowing = self.rules_of(Behavior::Deny).chain(self.rules_of(Behavior::Ask));
        let named =
            narrowing.filter(|kept| kept.rule.tool == "Read" && kept.rule.content.is_some());
        let rules = named.map(|kept| PathRule::new(self, &kept.rule, true, kept.source));
        ReadGuard(rules.collect())
    }
}

impl ReadGuard {
    /// Whether a search that finds this file may show what is in it. The path is absolute.
    pub fn may_show(&self, path: &Path) -> bool {
        // Most policies say nothing about reading, and then the disk need not be looked at.
        if self.0.is_empty() {
            return true;
        }
        let place = PathForms::of(path);
        !self.0.iter().any(|rule| rule.covers(&place))
    }
}

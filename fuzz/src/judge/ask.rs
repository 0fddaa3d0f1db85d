//! Asking the judge: one command, several settings.

use std::path::Path;

use ostler_engine::permission::{
    Behavior, CallFacts, Outcome, Policy, Source, effect_of, input_of,
};
use ostler_proto::permission::PermissionMode;

/// What surrounds a question.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    /// Its name in reports.
    pub(super) name: &'static str,
    /// Whether the user trusts the project.
    pub(super) trusted: bool,
    /// Whether a rule denies reading `.env`.
    pub(super) denies: bool,
    mode: fn() -> PermissionMode,
}

/// All settings. The first allows most.
pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        name: "default mode, trusted",
        trusted: true,
        denies: false,
        mode: || PermissionMode::Default,
    },
    Setting {
        name: "default mode, untrusted",
        trusted: false,
        denies: false,
        mode: || PermissionMode::Default,
    },
    Setting {
        name: "default mode, trusted, deny Read(.env)",
        trusted: true,
        denies: true,
        mode: || PermissionMode::Default,
    },
    Setting {
        name: "plan mode, trusted, deny Read(.env)",
        trusted: true,
        denies: true,
        mode: || PermissionMode::Plan,
    },
    Setting {
        name: "dontAsk mode, trusted, deny Read(.env)",
        trusted: true,
        denies: true,
        mode: || PermissionMode::DontAsk,
    },
];

/// Policies for one project in every setting.
#[derive(Debug)]
pub(super) struct Judge(Vec<(Setting, Policy)>);

impl Judge {
    /// Policies for a project.
    pub(super) fn new(project: &Path, home: &Path) -> Self {
        Self(SETTINGS.iter().map(|setting| (*setting, policy(project, home, setting))).collect())
    }

    /// Whether the setting that allows most lets a command run without a question.
    pub(super) fn allows(&self, command: &str) -> bool {
        self.0.first().is_some_and(|(_, policy)| allows(policy, command))
    }

    /// Every setting in which a command runs without a question.
    pub(super) fn allowing(&self, command: &str) -> Vec<Setting> {
        let allowing = self.0.iter().filter(|(_, policy)| allows(policy, command));
        allowing.map(|(setting, _)| *setting).collect()
    }
}

fn policy(project: &Path, home: &Path, setting: &Setting) -> Policy {
    let mut policy = Policy::new(project, (setting.mode)());
    policy.home = Some(home.to_owned());
    policy.trusts_project = setting.trusted;
    if setting.denies {
        for rule in ["Read(.env)", "Read(conf/.env)", "Read(d2/.env)"] {
            let rule = rule.parse().expect("the rule is well formed");
            policy.add_rule(Behavior::Deny, rule, Source::Project);
        }
    }
    policy
}

fn allows(policy: &Policy, command: &str) -> bool {
    let input = input_of("Bash", command);
    // A command that is JSON would be taken for the arguments themselves.
    if input.get("command").and_then(|it| it.as_str()) != Some(command) {
        return false;
    }
    let effect = effect_of("Bash", &input, &policy.cwd);
    policy.decide(&CallFacts { tool: "Bash", input: &input, effect: &effect }).outcome
        == Outcome::Allow
}

//! Asks for the permission decision on one command in several settings.

use std::path::Path;

use ostler_policy::permission::{Behavior, CallFacts, Effect, Outcome, Policy, Source};
use ostler_process::Environment;
use ostler_proto::permission::PermissionMode;
use serde_json::json;

/// What surrounds a question.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    /// Its name in reports.
    pub(super) name: &'static str,
    /// Whether the user trusts the project.
    pub(super) trusted: bool,
    /// Whether a rule denies reading `.env`.
    pub(super) denies: bool,
    /// Whether files in the project may be changed.
    pub(super) edits: bool,
    mode: fn() -> PermissionMode,
}

/// All settings. The first allows most.
pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        name: "default mode, trusted",
        trusted: true,
        denies: false,
        edits: false,
        mode: || PermissionMode::Default,
    },
    Setting {
        name: "default mode, untrusted",
        trusted: false,
        denies: false,
        edits: false,
        mode: || PermissionMode::Default,
    },
    Setting {
        name: "default mode, trusted, deny Read(.env)",
        trusted: true,
        denies: true,
        edits: false,
        mode: || PermissionMode::Default,
    },
    Setting {
        name: "plan mode, trusted, deny Read(.env)",
        trusted: true,
        denies: true,
        edits: false,
        mode: || PermissionMode::Plan,
    },
    Setting {
        name: "dontAsk mode, trusted, deny Read(.env)",
        trusted: true,
        denies: true,
        edits: false,
        mode: || PermissionMode::DontAsk,
    },
];

/// Settings in which files in the project may be changed.
pub(super) const EDIT_SETTINGS: &[Setting] = &[
    Setting {
        name: "acceptEdits mode, trusted",
        trusted: true,
        denies: false,
        edits: true,
        mode: || PermissionMode::AcceptEdits,
    },
    Setting {
        name: "acceptEdits mode, trusted, deny Read(.env)",
        trusted: true,
        denies: true,
        edits: true,
        mode: || PermissionMode::AcceptEdits,
    },
];

/// Policies for one project in every setting.
#[derive(Debug)]
pub(super) struct Judge {
    reading: Vec<(Setting, Policy)>,
    editing: Vec<(Setting, Policy)>,
}

impl Judge {
    /// Policies for a project.
    pub(super) fn new(project: &Path, home: &Path) -> Self {
        let of = |settings: &[Setting]| {
            settings.iter().map(|setting| (*setting, policy(project, home, setting))).collect()
        };
        Self { reading: of(SETTINGS), editing: of(EDIT_SETTINGS) }
    }

    /// Whether the most permissive setting lets a command run without approval.
    pub(super) fn allows(&self, command: &str) -> bool {
        self.reading.first().is_some_and(|(_, policy)| allows(policy, command))
    }

    /// Every setting in which a command runs without approval.
    pub(super) fn allowing(&self, command: &str) -> Vec<Setting> {
        allowing(&self.reading, command)
    }

    /// The same where files in the project may be changed.
    pub(super) fn allowing_edits(&self, command: &str) -> Vec<Setting> {
        allowing(&self.editing, command)
    }
}

fn allowing(policies: &[(Setting, Policy)], command: &str) -> Vec<Setting> {
    let allowing = policies.iter().filter(|(_, policy)| allows(policy, command));
    allowing.map(|(setting, _)| *setting).collect()
}

fn policy(project: &Path, home: &Path, setting: &Setting) -> Policy {
    let mut policy = Policy::new(project, (setting.mode)());
    policy.home = Some(home.to_owned());
    // As commands run, see `run.rs`.
    let variables = [("PATH", "/usr/bin:/bin".to_owned()), ("HOME", home.display().to_string())];
    policy.set_environment(&Environment { replaces: true, ..Environment::from(variables) });
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
    let (input, effect) = (json!({"command": command}), Effect::Execute(command.to_owned()));
    policy.decide(&CallFacts { tool: "Bash", input: &input, effect: &effect }).outcome
        == Outcome::Allow
}

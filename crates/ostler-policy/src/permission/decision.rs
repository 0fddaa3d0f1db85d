//! The input and the result of a permission decision.

use std::fmt;
use std::path::PathBuf;

use ostler_files::RealPath;
use ostler_proto::control::DecisionReasonType;
use ostler_proto::permission::PermissionUpdate;
use serde_json::{Value, json};

use super::effect::Effect;

/// The parts of a call that permissions are decided on.
#[derive(Clone, Copy, Debug)]
pub struct CallFacts<'c> {
    /// The tool's name.
    pub tool: &'c str,
    /// Its arguments.
    pub input: &'c Value,
    /// What it would touch.
    pub effect: &'c Effect,
}

/// Whether a call may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Run it.
    Allow,
    /// Ask the host first.
    Ask,
    /// Do not run it.
    Deny,
}

/// The outcome for one call, and how it came about.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// May it run?
    pub outcome: Outcome,
    /// Everything that was checked, in order; the last step decided.
    pub chain: Vec<Step>,
    /// The deciding step as text.
    pub reason: String,
    /// Its kind, for the wire.
    pub reason_type: DecisionReasonType,
    /// The path that prevented it.
    pub blocked_path: Option<PathBuf>,
    /// Changes that would make the question unnecessary next time.
    pub suggestions: Vec<PermissionUpdate>,
    /// A command runs because it is known to be harmless, and not because a rule, a user or the mode allows it. It then
    /// runs with a reduced environment.
    pub is_harmless: bool,
    /// The path of the effect with links followed, on which it was decided. `None` for other effects, and for a path
    /// that leads nowhere.
    pub real_path: Option<RealPath>,
}

impl Decision {
    /// Whether a rule may answer this question in future. Not if an ask rule, a protected path, a safety check or the
    /// sandbox is the reason: these are asked about every time.
    pub fn can_be_granted(&self) -> bool {
        use DecisionReasonType::{Hook, Rule, SafetyCheck, SandboxOverride};
        !matches!(self.reason_type, Rule | SafetyCheck | SandboxOverride | Hook)
    }
}

/// One step of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What was checked: `deny rule Bash(rm:*) from project settings`.
    pub looked_at: String,
    /// The result: `does not match`.
    pub result: String,
}

impl Step {
    /// The step of PreToolUse hooks.
    pub fn hooks(result: impl Into<String>) -> Self {
        Self { looked_at: "PreToolUse hooks".to_owned(), result: result.into() }
    }

    /// The step in the protocol's format.
    pub fn to_json(&self) -> Value {
        json!({"looked_at": self.looked_at, "result": self.result})
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.looked_at, self.result)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        })
    }
}

/// Further steps are counted, not stored.
const MOST_STEPS: usize = 100;

/// Collects the steps of a decision.
#[derive(Debug, Default)]
pub(crate) struct Trail {
    steps: Vec<Step>,
    n_more: usize,
}

impl Trail {
    pub(crate) fn note(&mut self, looked_at: impl Into<String>, result: impl Into<String>) {
        if self.steps.len() < MOST_STEPS {
            self.steps.push(Step { looked_at: looked_at.into(), result: result.into() });
        } else {
            self.n_more += 1;
        }
    }

    /// The decision that these steps led to.
    pub(crate) fn end(
        mut self,
        outcome: Outcome,
        reason_type: DecisionReasonType,
        reason: impl Into<String>,
    ) -> Decision {
        if self.n_more > 0 {
            let looked_at = format!("{} more rules", self.n_more);
            self.steps.push(Step { looked_at, result: "not listed here".to_owned() });
        }
        let reason = reason.into();
        let step =
            Step { looked_at: "decision".to_owned(), result: format!("{outcome}: {reason}") };
        self.steps.push(step);
        let chain = self.steps;
        Decision {
            outcome,
            chain,
            reason,
            reason_type,
            blocked_path: None,
            suggestions: Vec::new(),
            is_harmless: false,
            real_path: None,
        }
    }
}

//! Restrictions of a subagent in addition to those of its parent. They can only remove permissions.

use ostler_proto::permission::PermissionMode;

use super::policy::Policy;
use super::rule::{Behavior, Rule, Source};

/// The restrictions of a policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Narrowing {
    /// The requested mode, used only if it is stricter.
    pub mode: Option<PermissionMode>,
    /// Denied calls.
    pub deny: Vec<Rule>,
    /// The only allowed calls of their tools: `Bash(git:*)` in a list of tools. Every list must cover a call.
    pub only: Vec<Vec<Rule>>,
}

impl Policy {
    /// The policy with these restrictions.
    pub fn narrowed(mut self, narrowing: &Narrowing) -> Self {
        if let Some(wanted) = &narrowing.mode
            && is_narrower(wanted, &self.effective_mode())
        {
            self.mode = wanted.clone();
        }
        for rule in &narrowing.deny {
            self.add_rule(Behavior::Deny, rule.clone(), Source::Session);
        }
        self.only.extend(narrowing.only.iter().cloned());
        self
    }
}

/// Whether everything that runs in `mode` also runs in `than`. Modes that cannot be compared are not narrower.
fn is_narrower(mode: &PermissionMode, than: &PermissionMode) -> bool {
    use PermissionMode::{AcceptEdits, BypassPermissions, Default, DontAsk, Other, Plan};
    match than {
        BypassPermissions => matches!(mode, AcceptEdits | Default | DontAsk | Plan | Other(_)),
        AcceptEdits => matches!(mode, Default | DontAsk | Plan | Other(_)),
        Default => matches!(mode, DontAsk | Plan | Other(_)),
        // `dontAsk` may not ask, `plan` may not change anything: they cannot be compared.
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subagents_mode_is_used_only_if_it_is_stricter() {
        use PermissionMode::{AcceptEdits, BypassPermissions, Default, DontAsk, Other, Plan};
        for (parent, wanted, holds) in [
            (Default, AcceptEdits, Default),
            (Default, BypassPermissions, Default),
            (Default, Plan, Plan),
            (AcceptEdits, Default, Default),
            (BypassPermissions, AcceptEdits, AcceptEdits),
            (BypassPermissions, Other("odd".into()), Other("odd".into())),
            (Plan, Other("odd".into()), Plan),
            (Plan, Default, Plan),
            (Plan, DontAsk, Plan),
            (DontAsk, Plan, DontAsk),
        ] {
            let mut policy = Policy::new("/", parent.clone());
            policy.bypass_available = true;
            let narrowing = Narrowing { mode: Some(wanted.clone()), ..Narrowing::default() };
            assert_eq!(policy.narrowed(&narrowing).mode, holds, "{parent} and {wanted}");
        }
    }

    #[test]
    fn calls_denied_to_a_subagent_stay_allowed_to_its_parent() {
        let policy = Policy::new("/", PermissionMode::Default);
        let deny = vec![Rule::with("Bash", "rm:*")];
        let narrowed = policy.clone().narrowed(&Narrowing { deny, ..Narrowing::default() });
        assert_eq!((policy.rules().len(), narrowed.rules().len()), (0, 1));
        assert_eq!(narrowed.rules()[0].behavior, Behavior::Deny);
    }
}

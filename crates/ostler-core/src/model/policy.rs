//! The policy of a space: the defaults of its sessions, and their limits.

use ostler::engine::coverage;
use ostler::options::ToolSet;
use ostler::{Options, PermissionMode};
use ostler_base::error::{ApiError, Fallible, shown};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::Config;

const MOST_RULES: usize = 200;
const LONGEST_RULE: usize = 1_000;

/// What agents of a space may do. A field that is absent has the server's default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Policy {
    /// The most permissive mode. Sessions begin with it, and may request a stricter one. `default`, `acceptEdits`,
    /// `plan`, `dontAsk`, or `bypassPermissions` where the operator allows it.
    #[schemars(with = "Option<String>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<PermissionMode>,
    /// The model; sessions cannot use another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The available built-in tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Rules for calls that need no approval: `Bash(git log:*)`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<String>,
    /// Rules for calls that never run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) denied: Vec<String>,
}

impl Policy {
    /// Refuses an invalid policy, and one that the server does not allow.
    pub fn check(&self, config: &Config) -> Fallible<()> {
        if let Some(mode) = &self.permission_mode {
            if width(mode).is_none() {
                let modes = "default, acceptEdits, plan, dontAsk or bypassPermissions";
                let message = format!("the permission mode must be {modes}");
                return Err(ApiError::invalid("policy.permissionMode", message));
            }
            if !config.permits(mode) {
                let message = "this server does not allow bypassPermissions";
                return Err(ApiError::forbidden("bypass_not_allowed", message)
                    .hint("ask the operator for --allow-bypass, or use another permission mode"));
            }
        }
        if self.model.as_deref().is_some_and(|model| model.trim().is_empty()) {
            return Err(ApiError::invalid("policy.model", "the model needs a name"));
        }
        let tools = self.tools.iter().flatten();
        let lists = [("allowed", &self.allowed), ("denied", &self.denied)];
        let rules =
            lists.into_iter().flat_map(|(field, list)| list.iter().map(move |r| (field, r)));
        for (field, rule) in rules.chain(tools.map(|tool| ("tools", tool))) {
            if !is_rule(rule, field != "tools") {
                let message = format!("{} is not a valid tool or rule", shown(rule));
                return Err(ApiError::invalid(format!("policy.{field}"), message)
                    .hint("write a tool as Read, a rule as Bash(git log:*)"));
            }
        }
        let n_rules = self.allowed.len() + self.denied.len() + self.tools.iter().flatten().count();
        if n_rules > MOST_RULES {
            let message = format!("a policy can have at most {MOST_RULES} tools and rules");
            return Err(ApiError::invalid("policy", message));
        }
        Ok(())
    }

    /// The mode of a session that requests one.
    pub fn mode(&self, asked: Option<PermissionMode>) -> Fallible<Option<PermissionMode>> {
        match (&self.permission_mode, asked) {
            (Some(most), Some(asked)) if is_wider(&asked, most) => {
                let message = format!("in this space the most permissive mode is {}", word(most));
                Err(ApiError::forbidden("wider_than_space", message).field("permissionMode"))
            }
            (most, asked) => Ok(asked.or_else(|| most.clone())),
        }
    }

    /// The model of a session that requests one.
    pub fn model(&self, asked: Option<String>) -> Fallible<Option<String>> {
        match (&self.model, asked) {
            (Some(only), Some(asked)) if asked != *only => {
                let message = format!("in this space the model is {}", shown(only));
                Err(ApiError::forbidden("wider_than_space", message).field("model"))
            }
            (only, asked) => Ok(only.clone().or(asked)),
        }
    }

    /// The rules that allow every use of a tool. They make approval unnecessary even where agents must ask.
    pub(crate) fn whole_tools(&self) -> Vec<&str> {
        let is_whole = |rule: &&String| {
            coverage::parse(rule).is_none_or(|rule| coverage::is_whole_tool(&rule))
        };
        self.allowed.iter().filter(is_whole).map(String::as_str).collect()
    }

    /// The same policy without the rules that allow every use of a tool.
    pub(crate) fn without_whole_tools(&self) -> Self {
        let whole = self.whole_tools();
        let is_kept = |rule: &&String| !whole.contains(&rule.as_str());
        Self { allowed: self.allowed.iter().filter(is_kept).cloned().collect(), ..self.clone() }
    }

    /// Of the rules that a skill lists as approved, those that this policy allows as well: by the same rule, or by the
    /// whole tool.
    pub fn approved(&self, of_skill: Vec<String>) -> Vec<String> {
        let tool = |rule: &str| rule.split('(').next().unwrap_or_default().trim().to_owned();
        let is_allowed =
            |rule: &String| self.allowed.iter().any(|own| own == rule || *own == tool(rule));
        of_skill.into_iter().filter(is_allowed).collect()
    }

    /// Makes options at least as strict as this policy.
    pub(crate) fn narrow(&self, options: &mut Options) {
        let permissions = &mut options.permissions;
        if let Some(most) = &self.permission_mode {
            if is_wider(&permissions.mode, most) {
                permissions.mode = most.clone();
            }
            if permissions.mode != PermissionMode::BypassPermissions {
                permissions.allow_dangerously_skip_permissions = false;
            }
            if *most == PermissionMode::Plan {
                // Approving a plan would leave the mode.
                permissions.disallowed.push("ExitPlanMode".to_owned());
            }
        }
        permissions.allowed.extend(self.allowed.iter().cloned());
        permissions.disallowed.extend(self.denied.iter().cloned());
        if let Some(model) = &self.model {
            options.model.name = Some(model.clone());
            options.model.fallback = None;
        }
        if let Some(most) = &self.tools {
            let kept = match options.tools.base.take() {
                Some(ToolSet::Only(wanted)) => {
                    wanted.into_iter().filter(|tool| most.contains(tool)).collect()
                }
                _ => most.clone(),
            };
            options.tools.base = Some(ToolSet::Only(kept));
        }
    }
}

/// How permissive a mode is; `None` for an unknown one.
fn width(mode: &PermissionMode) -> Option<u8> {
    match mode {
        PermissionMode::Plan => Some(0),
        PermissionMode::DontAsk => Some(1),
        PermissionMode::Default => Some(2),
        PermissionMode::AcceptEdits => Some(3),
        PermissionMode::BypassPermissions => Some(4),
        _ => None,
    }
}

/// An unknown mode counts as the most permissive when requested, and as the strictest as a limit.
fn is_wider(mode: &PermissionMode, most: &PermissionMode) -> bool {
    width(mode).unwrap_or(u8::MAX) > width(most).unwrap_or(0)
}

fn word(mode: &PermissionMode) -> String {
    let word = serde_json::to_value(mode).ok();
    word.and_then(|word| Some(word.as_str()?.to_owned())).unwrap_or_default()
}

/// Whether this looks like a rule. Only the engine knows its meaning.
fn is_rule(text: &str, takes_content: bool) -> bool {
    let (tool, content) = match text.split_once('(') {
        Some((tool, rest)) => (tool, rest.strip_suffix(')')),
        None => (text, Some("-")),
    };
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '*');
    text.len() <= LONGEST_RULE
        && !tool.is_empty()
        && tool.chars().all(is_fine)
        && content.is_some_and(|content| !content.is_empty())
        && (takes_content || !text.contains('('))
        && !text.contains(|c: char| c.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(mode: PermissionMode) -> Policy {
        Policy { permission_mode: Some(mode), ..Policy::default() }
    }

    // Seen to fail with `mode` that accepts any requested mode.
    #[test]
    fn a_session_is_at_least_as_strict_as_its_space() {
        use PermissionMode::{AcceptEdits, BypassPermissions, Default as Usual, DontAsk, Plan};
        let strict = policy(Usual);
        assert_eq!(strict.mode(None).unwrap(), Some(Usual));
        for mode in [Plan, DontAsk, Usual] {
            assert_eq!(strict.mode(Some(mode.clone())).unwrap(), Some(mode));
        }
        for mode in [AcceptEdits, BypassPermissions] {
            assert_eq!(strict.mode(Some(mode)).unwrap_err().status(), 403);
        }
        assert_eq!(Policy::default().mode(Some(AcceptEdits)).unwrap(), Some(AcceptEdits));
        let one = Policy { model: Some("m".to_owned()), ..Policy::default() };
        assert_eq!(one.model(None).unwrap().as_deref(), Some("m"));
        assert_eq!(one.model(Some("m".to_owned())).unwrap().as_deref(), Some("m"));
        assert_eq!(one.model(Some("other".to_owned())).unwrap_err().status(), 403);
    }

    // Seen to fail with `narrow` that leaves the mode, the tools or the flag alone.
    #[test]
    fn the_policy_of_the_space_overrides_options() {
        let mut options = Options::new().permission_mode(PermissionMode::BypassPermissions);
        options.permissions.allow_dangerously_skip_permissions = true;
        options.tools.base = Some(ToolSet::Only(vec!["Read".to_owned(), "Bash".to_owned()]));
        let mut strict = policy(PermissionMode::Plan);
        strict.tools = Some(vec!["Read".to_owned(), "Grep".to_owned()]);
        strict.denied = vec!["WebFetch".to_owned()];
        strict.narrow(&mut options);
        assert_eq!(options.permissions.mode, PermissionMode::Plan);
        assert!(!options.permissions.allow_dangerously_skip_permissions);
        assert_eq!(options.tools.base, Some(ToolSet::Only(vec!["Read".to_owned()])));
        assert_eq!(options.permissions.disallowed, ["ExitPlanMode", "WebFetch"]);
        let mut free = Options::new();
        strict.narrow(&mut free);
        assert_eq!(free.tools.base, Some(ToolSet::Only(strict.tools.clone().unwrap())));
    }

    #[test]
    fn invalid_rules_are_refused() {
        for rule in ["Read", "Bash(git log:*)", "mcp__x__*", "Read(//etc/**)"] {
            assert!(is_rule(rule, true), "{rule}");
        }
        for rule in ["", "(x)", "Bash(", "Bash()", "Bash(x", "a b", "Bash(a\nb)", "../x"] {
            assert!(!is_rule(rule, true), "{rule}");
        }
        assert!(!is_rule("Bash(x)", false));
    }
}

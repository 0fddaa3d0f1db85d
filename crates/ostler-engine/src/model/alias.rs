//! Short names for models: `haiku`, `sonnet`, `opus`, `fable`. Pure.

/// What the short names stand for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Aliases {
    /// Short names and what they stand for.
    names: Vec<(&'static str, String)>,
    /// The model of all subagents, whatever their kind says.
    subagents: Option<String>,
}

const KNOWN: &[(&str, &str, &str)] = &[
    ("haiku", "claude-haiku-5-5", "ANTHROPIC_DEFAULT_HAIKU_MODEL"),
    ("sonnet", "claude-sonnet-5-5", "ANTHROPIC_DEFAULT_SONNET_MODEL"),
    ("opus", "claude-opus-5-5", "ANTHROPIC_DEFAULT_OPUS_MODEL"),
    ("fable", "claude-fable-5-1", "ANTHROPIC_DEFAULT_FABLE_MODEL"),
];

impl Default for Aliases {
    fn default() -> Self {
        Self::from_env(|_| None)
    }
}

impl Aliases {
    /// As an environment has them.
    pub fn from_env(env: impl Fn(&str) -> Option<String>) -> Self {
        let said = |variable: &str| env(variable).filter(|name| !name.is_empty());
        let full = |(short, usual, variable): &(&'static str, &str, &str)| {
            (*short, said(variable).unwrap_or_else(|| (*usual).to_owned()))
        };
        Self {
            names: KNOWN.iter().map(full).collect(),
            subagents: said("CLAUDE_CODE_SUBAGENT_MODEL"),
        }
    }

    /// The full name of a model that somebody wants in place of `inherited`.
    pub fn full_name(&self, wanted: Option<&str>, inherited: &str) -> String {
        let wanted = wanted.map(str::trim).filter(|it| !matches!(*it, "" | "inherit" | "default"));
        let Some(wanted) = wanted else { return inherited.to_owned() };
        match self.names.iter().find(|(short, _)| *short == wanted) {
            // Whoever works with one of that family has chosen which.
            Some((short, _)) if inherited.contains(short) => inherited.to_owned(),
            Some((_, full)) => full.clone(),
            None => wanted.to_owned(),
        }
    }

    /// The same for a subagent.
    pub(crate) fn of_subagent(&self, wanted: Option<&str>, inherited: &str) -> String {
        self.full_name(self.subagents.as_deref().or(wanted), inherited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_looked_up_and_others_taken_as_they_are() {
        let aliases = Aliases::default();
        let name = |wanted| aliases.full_name(wanted, "claude-sonnet-4-5");
        assert_eq!(name(None), "claude-sonnet-4-5");
        assert_eq!(name(Some("inherit")), "claude-sonnet-4-5");
        assert_eq!(name(Some("sonnet")), "claude-sonnet-4-5", "one of the family is in use");
        assert_eq!(name(Some("haiku")), "claude-haiku-5-5");
        assert_eq!(name(Some("claude-opus-4-1")), "claude-opus-4-1");
    }

    #[test]
    fn the_environment_has_the_last_word() {
        let env = |name: &str| match name {
            "ANTHROPIC_DEFAULT_HAIKU_MODEL" => Some("small".to_owned()),
            "CLAUDE_CODE_SUBAGENT_MODEL" => Some("haiku".to_owned()),
            _ => None,
        };
        let aliases = Aliases::from_env(env);
        assert_eq!(aliases.full_name(Some("haiku"), "x"), "small");
        assert_eq!(aliases.of_subagent(Some("opus"), "x"), "small");
    }
}

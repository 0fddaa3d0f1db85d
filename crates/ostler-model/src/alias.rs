//! Short names for models: `haiku`, `sonnet`, `opus`, `fable`, `best`. Pure.

use super::pricing;

/// The short names of models and their full names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Aliases {
    /// Short names and full names.
    names: Vec<(&'static str, String)>,
    /// The model of all subagents, whatever their kind says.
    subagents: Option<String>,
    /// The model that is used unless another one is chosen.
    usual: String,
}

/// A name for two models: Opus in plan mode, Sonnet otherwise.
pub const OPUSPLAN: &str = "opusplan";

/// A suffix of a model's name: with a context window of a million tokens.
pub(crate) const LARGE_CONTEXT: &str = "[1m]";

/// A model's name as the API knows it.
pub(crate) fn without_suffix(model: &str) -> &str {
    model.strip_suffix(LARGE_CONTEXT).unwrap_or(model)
}

fn is_family(model: &str, short: &str) -> bool {
    model != OPUSPLAN && model.contains(short)
}

/// As the vendor's program 2.1.325 translates them.
const KNOWN: &[(&str, &str, &str)] = &[
    ("haiku", "claude-haiku-5-5", "ANTHROPIC_DEFAULT_HAIKU_MODEL"),
    ("sonnet", "claude-sonnet-5-5", "ANTHROPIC_DEFAULT_SONNET_MODEL"),
    ("opus", "claude-opus-5-5", "ANTHROPIC_DEFAULT_OPUS_MODEL"),
    ("fable", "claude-fable-5-2", "ANTHROPIC_DEFAULT_FABLE_MODEL"),
    ("best", "claude-opus-5-5", "ANTHROPIC_DEFAULT_OPUS_MODEL"),
];
/// The family of the model that is used unless another one is chosen.
const USUAL: &str = "opus";

impl Default for Aliases {
    fn default() -> Self {
        Self::from_env(|_| None)
    }
}

impl Aliases {
    /// Reads the environment variables for short names.
    pub fn from_env(env: impl Fn(&str) -> Option<String>) -> Self {
        let said = |variable: &str| env(variable).filter(|name| !name.is_empty());
        let full = |(short, usual, variable): &(&'static str, &str, &str)| {
            (*short, said(variable).unwrap_or_else(|| (*usual).to_owned()))
        };
        let names: Vec<_> = KNOWN.iter().map(full).collect();
        let usual = said("ANTHROPIC_DEFAULT_MODEL").unwrap_or_else(|| USUAL.to_owned());
        let subagents = said("CLAUDE_CODE_SUBAGENT_MODEL");
        let mut aliases = Self { names, subagents, usual: String::new() };
        aliases.usual = aliases.full_name(Some(&usual), "");
        aliases
    }

    /// The full name of the model that is used unless another one is chosen.
    pub fn usual(&self) -> &str {
        &self.usual
    }

    /// The full name of a requested model, in place of `inherited`. `sonnet[1m]` is the same model with the large
    /// context window; [`OPUSPLAN`] stays as it is: which model it means depends on the mode.
    pub fn full_name(&self, wanted: Option<&str>, inherited: &str) -> String {
        let wanted = wanted.map(str::trim).filter(|it| !matches!(*it, "" | "inherit" | "default"));
        let Some(wanted) = wanted else { return inherited.to_owned() };
        let (name, suffix) = match wanted.strip_suffix(LARGE_CONTEXT) {
            Some(name) => (name, LARGE_CONTEXT),
            None => (wanted, ""),
        };
        let inherited = without_suffix(inherited);
        let full = match self.names.iter().find(|(short, _)| *short == name) {
            // A session that uses a model of that family keeps it.
            Some((short, _)) if is_family(inherited, short) => inherited,
            Some((_, full)) => full,
            None => name,
        };
        // Newer models have the large window anyway.
        let is_large = pricing::family(full)
            .is_some_and(|family| family.context_window >= pricing::LARGE_WINDOW);
        match full.ends_with(LARGE_CONTEXT) || is_large {
            true => full.to_owned(),
            false => format!("{full}{suffix}"),
        }
    }

    /// The model to ask: [`OPUSPLAN`] is Opus while the agent plans, and Sonnet otherwise.
    pub fn for_mode(&self, model: &str, is_planning: bool) -> String {
        let (name, suffix) = match model.strip_suffix(LARGE_CONTEXT) {
            Some(name) => (name, LARGE_CONTEXT),
            None => (model, ""),
        };
        if name != OPUSPLAN {
            return model.to_owned();
        }
        let short = if is_planning { "opus" } else { "sonnet" };
        self.full_name(Some(&format!("{short}{suffix}")), "")
    }

    /// All models that may be asked under a full name.
    pub fn meant_by(&self, model: &str) -> Vec<String> {
        let mut models = vec![self.for_mode(model, false), self.for_mode(model, true)];
        models.dedup();
        models
    }

    /// The full name of a model for a subagent.
    pub fn of_subagent(&self, wanted: Option<&str>, inherited: &str) -> String {
        self.full_name(self.subagents.as_deref().or(wanted), inherited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_looked_up_and_other_names_stay() {
        let aliases = Aliases::default();
        let name = |wanted| aliases.full_name(wanted, "claude-sonnet-4-5");
        assert_eq!(name(None), "claude-sonnet-4-5");
        assert_eq!(name(Some("inherit")), "claude-sonnet-4-5");
        assert_eq!(name(Some("sonnet")), "claude-sonnet-4-5", "one of the family is in use");
        assert_eq!(name(Some("haiku")), "claude-haiku-5-5");
        assert_eq!(name(Some("claude-opus-4-1")), "claude-opus-4-1");
    }

    // Mutant: the suffix is ignored, so that `sonnet[1m]` is sent as written.
    #[test]
    fn a_short_name_may_ask_for_the_large_context_window() {
        let aliases = Aliases::default();
        assert_eq!(aliases.full_name(Some("sonnet[1m]"), "x"), "claude-sonnet-5-5");
        assert_eq!(aliases.full_name(Some("sonnet"), "claude-sonnet-4-5[1m]"), "claude-sonnet-4-5");
        assert_eq!(
            aliases.full_name(Some("sonnet[1m]"), "claude-sonnet-4-5"),
            "claude-sonnet-4-5[1m]"
        );
        assert_eq!(aliases.full_name(Some("claude-opus-4-1[1m]"), "x"), "claude-opus-4-1[1m]");
        assert_eq!(aliases.full_name(None, "x[1m]"), "x[1m]");
    }

    #[test]
    fn opusplan_is_opus_in_plan_mode_and_sonnet_otherwise() {
        let env = |name: &str| (name == "ANTHROPIC_DEFAULT_OPUS_MODEL").then(|| "big".to_owned());
        let aliases = Aliases::from_env(env);
        assert_eq!(aliases.full_name(Some("opusplan"), "claude-opus-4-1"), "opusplan");
        assert_eq!(aliases.full_name(Some("opus"), "opusplan"), "big");
        assert_eq!(aliases.for_mode("opusplan", true), "big");
        assert_eq!(aliases.for_mode("opusplan", false), "claude-sonnet-5-5");
        assert_eq!(aliases.for_mode("opusplan[1m]", false), "claude-sonnet-5-5");
        assert_eq!(aliases.for_mode("claude-x", true), "claude-x");
    }

    // Mutants: `best` is sent as written; the variables of the default model are ignored.
    #[test]
    fn the_best_and_the_usual_model_are_those_of_the_environment() {
        let with = |pairs: &'static [(&str, &str)]| {
            let value = |name: &str| pairs.iter().find(|(known, _)| *known == name);
            let aliases = Aliases::from_env(|name| Some(value(name)?.1.to_owned()));
            let best = aliases.full_name(Some("best"), "x");
            format!("{} {best}", aliases.usual())
        };
        assert_eq!(with(&[]), "claude-opus-5-5 claude-opus-5-5");
        assert_eq!(with(&[("ANTHROPIC_DEFAULT_OPUS_MODEL", "big")]), "big big");
        assert_eq!(with(&[("ANTHROPIC_DEFAULT_MODEL", "mine")]), "mine claude-opus-5-5");
        let sonnet = "claude-sonnet-5-5 claude-opus-5-5";
        assert_eq!(with(&[("ANTHROPIC_DEFAULT_MODEL", "sonnet")]), sonnet);
    }

    #[test]
    fn the_environment_overrides_the_defaults() {
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

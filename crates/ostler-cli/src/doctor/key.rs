//! Which credential is used. Its value is never shown.

use ostler_engine::model::{ApiConfig, Credential};

use super::Finding;
use crate::args::Args;
use crate::pick::{DEFAULT_MODEL, OFFLINE};

/// What is wrong with the key, and how the API would be reached.
pub(super) fn check(
    args: &Args,
    env: impl Fn(&str) -> Option<String>,
) -> (Vec<Finding>, Option<ApiConfig>) {
    let wanted = args.model.as_deref().filter(|name| !name.is_empty());
    if wanted == Some(OFFLINE) {
        let text = format!("model: {OFFLINE}, as you asked; it needs no key");
        return (vec![Finding::good(text)], None);
    }
    let is_set = |name: &str| env(name).is_some_and(|value| !value.trim().is_empty());
    let both = is_set("ANTHROPIC_API_KEY") && is_set("ANTHROPIC_AUTH_TOKEN");
    match ApiConfig::from_env(&env, wanted.unwrap_or(DEFAULT_MODEL)) {
        Err(error) => {
            (vec![Finding::bad(format!("key: {error}"), "correct or unset the variable")], None)
        }
        Ok(None) => {
            let fix = "export ANTHROPIC_API_KEY=… (or ANTHROPIC_AUTH_TOKEN) for a real model";
            let finding = match wanted {
                None => Finding::odd(
                    "key: none is set, so the offline demo answers: a few rules, no language model",
                    fix,
                ),
                Some(name) => Finding::bad(format!("key: none is set, but {name} needs one"), fix),
            };
            (vec![finding], None)
        }
        Ok(Some(config)) => {
            let variable = match config.credential {
                Credential::Key(_) => "ANTHROPIC_API_KEY",
                Credential::Token(_) => "ANTHROPIC_AUTH_TOKEN",
            };
            let finding = if both {
                Finding::odd(
                    format!("key: {variable} is used; ANTHROPIC_AUTH_TOKEN is set as well"),
                    "unset the one you do not mean",
                )
            } else {
                Finding::good(format!("key: {variable} is set"))
            };
            (vec![finding], Some(config))
        }
    }
}

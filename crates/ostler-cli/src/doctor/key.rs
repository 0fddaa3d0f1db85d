//! Which credential is used. Its value is never printed.

use ostler_engine::model::ApiConfig;
use ostler_engine::settings::Settings;

use super::Finding;
use ostler::engine::StartContext;
use ostler::engine::pick::{self, ApiAccess, OFFLINE};

/// A finding about the key, and the API configuration if there is one.
pub(super) fn check(scene: &StartContext, settings: &Settings) -> (Finding, Option<ApiConfig>) {
    let wanted = scene.launch.model.name.as_deref().filter(|name| !name.is_empty());
    if wanted == Some(OFFLINE) {
        return (Finding::good(format!("model: {OFFLINE}, as requested; it needs no key")), None);
    }
    let is_set = |name: &str| scene.env.get(name).is_some_and(|value| !value.trim().is_empty());
    let both = is_set("ANTHROPIC_API_KEY") && is_set("ANTHROPIC_AUTH_TOKEN");
    let fix = "export ANTHROPIC_API_KEY=… (or ANTHROPIC_AUTH_TOKEN) for a real model";
    match (pick::reach(scene, settings), wanted) {
        (Err(error), _) => {
            (Finding::bad(format!("key: {error}"), "correct or unset that variable"), None)
        }
        (Ok(None), None) => {
            let text = "key: no key is set, so the offline demo answers: a few rules, not a language model";
            (Finding::odd(text, fix), None)
        }
        (Ok(None), Some(name)) => {
            (Finding::bad(format!("key: no key is set, but {name} needs one"), fix), None)
        }
        (Ok(Some(ApiAccess { config, .. })), _) if both => {
            let text =
                "key: ANTHROPIC_API_KEY and ANTHROPIC_AUTH_TOKEN are both set, and both are sent";
            (Finding::odd(text, "unset the one you do not want to use"), Some(config))
        }
        (Ok(Some(ApiAccess { config, key, .. })), _) => {
            (Finding::good(format!("key: {key}")), Some(config))
        }
    }
}

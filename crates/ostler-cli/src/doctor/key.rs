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
    if pick::is_offline_chosen(scene) {
        let text = format!("model: {OFFLINE}, as requested by OSTLER_OFFLINE; it needs no key");
        return (Finding::good(text), None);
    }
    let is_set = |name: &str| scene.env.get(name).is_some_and(|value| !value.trim().is_empty());
    let both = is_set("ANTHROPIC_API_KEY") && is_set("ANTHROPIC_AUTH_TOKEN");
    let fix = "export ANTHROPIC_API_KEY=… (or ANTHROPIC_AUTH_TOKEN) for a real model";
    let demo = "only a conversation at a terminal starts, with the offline demo: a few rules, not a language model";
    match (pick::reach(scene, settings), wanted) {
        (Err(error), _) => {
            (Finding::bad(format!("key: {error}"), "correct or unset that variable"), None)
        }
        (Ok(None), None) => (
            Finding::bad(format!("key: no key is set, so you are not logged in: {demo}"), fix),
            None,
        ),
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

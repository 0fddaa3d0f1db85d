//! Which model to use: the API when there is a key, the offline demo when there is none.

use std::sync::Arc;

use anyhow::Context;
use ostler_engine::model::{ApiConfig, ApiModel, Model};
use ostler_engine::offline::OfflineModel;

use crate::args::Args;

/// The model asked for when nobody says which.
pub(crate) const DEFAULT_MODEL: &str = "claude-opus-5-5";
pub(crate) const OFFLINE: &str = "offline-demo";

/// The model, and what the user should know about the choice.
pub(crate) struct Picked {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) remark: Option<&'static str>,
}

/// Picks the model. `env` reads environment variables; an empty one counts as absent.
pub(crate) fn model(args: &Args, env: impl Fn(&str) -> Option<String>) -> anyhow::Result<Picked> {
    let wanted = args.model.as_deref().filter(|name| !name.is_empty());
    if wanted == Some(OFFLINE) {
        return Ok(offline("the offline demo, as you asked"));
    }
    match (wanted, ApiConfig::from_env(env, wanted.unwrap_or(DEFAULT_MODEL))?) {
        (_, Some(mut config)) => {
            config.fallback_model = args.fallback_model.clone();
            let model =
                ApiModel::new(config).context("cannot set up the connection to the model")?;
            Ok(Picked { model: Arc::new(model), remark: None })
        }
        (Some(name), None) => anyhow::bail!(
            "the model {name} needs a key: set ANTHROPIC_API_KEY, or try `--model {OFFLINE}` without one"
        ),
        (None, None) => Ok(offline(
            "no ANTHROPIC_API_KEY is set, so this is the offline demo; say \"help\" to see what it can do",
        )),
    }
}

pub(crate) fn offline(remark: &'static str) -> Picked {
    Picked { model: Arc::new(OfflineModel::new()), remark: Some(remark) }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn picked(arguments: &[&str], variables: &[(&str, &str)]) -> Result<String, String> {
        let args = Args::try_parse_from([&["ostler"], arguments].concat()).unwrap();
        let env = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        model(&args, env)
            .map(|picked| picked.model.name().to_owned())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_key_means_the_api_and_none_the_demo() {
        assert_eq!(picked(&[], &[]).unwrap(), OFFLINE);
        assert_eq!(picked(&[], &[("ANTHROPIC_API_KEY", " ")]).unwrap(), OFFLINE);
        assert_eq!(picked(&[], &[("ANTHROPIC_API_KEY", "k")]).unwrap(), DEFAULT_MODEL);
        assert_eq!(picked(&["--model", "x"], &[("ANTHROPIC_AUTH_TOKEN", "t")]).unwrap(), "x");
        assert_eq!(picked(&["--model", OFFLINE], &[("ANTHROPIC_API_KEY", "k")]).unwrap(), OFFLINE);
    }

    #[test]
    fn a_model_without_a_key_is_refused_with_the_way_out() {
        let error = picked(&["--model", "x"], &[]).unwrap_err();
        assert!(error.contains("ANTHROPIC_API_KEY") && error.contains(OFFLINE), "{error}");
    }

    #[test]
    fn a_key_that_fits_no_header_is_refused_without_showing_it() {
        let error = picked(&[], &[("ANTHROPIC_API_KEY", "se\ncret")]).unwrap_err();
        assert!(!error.contains("cret"), "{error}");
    }
}

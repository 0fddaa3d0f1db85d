//! Which model to use: the API when there is a key, the offline demo when there is none.

use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::Context;
use ostler_engine::model::{ApiConfig, ApiModel, Credential, Model};
use ostler_engine::offline::OfflineModel;
use ostler_engine::settings::Settings;

use crate::args::Args;
use crate::rules;

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
    let folder = args.cwd.clone().unwrap_or_else(|| ".".into());
    // A folder that is not there is told when the session starts.
    let settings = match folder.canonicalize() {
        Ok(cwd) => rules::load(args, &cwd)?.settings,
        Err(_) => Settings::default(),
    };
    choose(args, &settings, env)
}

fn choose(
    args: &Args,
    settings: &Settings,
    env: impl Fn(&str) -> Option<String>,
) -> anyhow::Result<Picked> {
    let wanted = args.model.as_deref().filter(|name| !name.is_empty());
    if wanted == Some(OFFLINE) {
        return Ok(offline("the offline demo, as you asked"));
    }
    match (wanted, reach(args, settings, env)?) {
        (_, Some(Reached { mut config, .. })) => {
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

/// How the API is reached, and where the key comes from.
pub(crate) struct Reached {
    pub(crate) config: ApiConfig,
    pub(crate) key: String,
}

/// How the API would be reached; `None` without a key.
pub(crate) fn reach(
    args: &Args,
    settings: &Settings,
    env: impl Fn(&str) -> Option<String>,
) -> anyhow::Result<Option<Reached>> {
    let wanted = args.model.as_deref().filter(|name| !name.is_empty());
    let usual = settings.model.as_deref().filter(|name| !name.is_empty());
    let name = wanted.or(usual).unwrap_or(DEFAULT_MODEL);
    // What settings say about the environment holds for us too.
    let env = |name: &str| settings.env.get(name).cloned().or_else(|| env(name));
    if let Some(config) = ApiConfig::from_env(env, name)? {
        let variable = match config.credential {
            Credential::Key(_) => "ANTHROPIC_API_KEY",
            Credential::Token(_) => "ANTHROPIC_AUTH_TOKEN",
        };
        let place = if settings.env.contains_key(variable) { " in the settings" } else { "" };
        return Ok(Some(Reached { config, key: format!("{variable} is set{place}") }));
    }
    let Some(helper) = &settings.api_key_helper else { return Ok(None) };
    let key = key_from(helper)?;
    let config = ApiConfig::from_env(
        |name| if name == "ANTHROPIC_API_KEY" { Some(key.clone()) } else { env(name) },
        name,
    )?;
    let key = "apiKeyHelper of the settings gives one".to_owned();
    Ok(config.map(|config| Reached { config, key }))
}

/// Runs the command that the user has for getting a key. What it prints is a secret: no error shows it.
fn key_from(helper: &str) -> anyhow::Result<String> {
    let output = Command::new("/bin/sh")
        .args(["-c", helper])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run apiKeyHelper of the settings")?;
    anyhow::ensure!(
        output.status.success(),
        "apiKeyHelper of the settings failed: {}",
        output.status
    );
    let key = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    anyhow::ensure!(!key.is_empty(), "apiKeyHelper of the settings printed no key");
    Ok(key)
}

pub(crate) fn offline(remark: &'static str) -> Picked {
    Picked { model: Arc::new(OfflineModel::new()), remark: Some(remark) }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use ostler_engine::settings::{Folders, Sources, load};
    use serde_json::{Value, json};

    use super::*;

    fn picked(arguments: &[&str], variables: &[(&str, &str)]) -> Result<String, String> {
        with_settings(json!({}), arguments, variables)
    }

    fn with_settings(
        settings: Value,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<String, String> {
        let flag = Some(settings.to_string());
        let sources = Sources { flag, ..Sources::default() };
        let settings = load(&Folders::default(), &sources).unwrap();
        let args = Args::try_parse_from([&["ostler"], arguments].concat()).unwrap();
        let env = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        choose(&args, &settings, env)
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
    fn settings_name_the_model_and_the_key_unless_the_command_line_does() {
        let key = ("ANTHROPIC_API_KEY", "k");
        let named = || json!({"model": "mine"});
        assert_eq!(with_settings(named(), &[], &[key]).unwrap(), "mine");
        assert_eq!(with_settings(named(), &["--model", "x"], &[key]).unwrap(), "x");
        // A usual model is no demand: without a key there is still the demo.
        assert_eq!(with_settings(named(), &[], &[]).unwrap(), OFFLINE);
        let env = json!({"env": {"ANTHROPIC_API_KEY": "k"}});
        assert_eq!(with_settings(env, &[], &[]).unwrap(), DEFAULT_MODEL);
        let helper = |command: &str| json!({"apiKeyHelper": command});
        assert_eq!(with_settings(helper("echo k"), &[], &[]).unwrap(), DEFAULT_MODEL);
        assert_eq!(with_settings(helper("exit 1"), &[], &[key]).unwrap(), DEFAULT_MODEL);
        let error = with_settings(helper("echo secret; exit 3"), &[], &[]).unwrap_err();
        assert!(error.contains("apiKeyHelper") && !error.contains("secret"), "{error}");
        assert!(with_settings(helper("true"), &[], &[]).unwrap_err().contains("no key"));
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

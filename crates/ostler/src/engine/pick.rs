//! Chooses the model: the API if there is a key. Without one, prompts fail; the offline demo answers only if the user chose
//! it, or at a terminal, where a banner says so.

use std::sync::Arc;

pub use ostler_engine::model::pricing::OFFLINE;
use ostler_engine::model::{
    Aliases, ApiConfig, ApiModel, Header, Model, ModelError, NotLoggedIn, Prices, pricing,
};
#[cfg(feature = "offline")]
use ostler_engine::offline::OfflineModel;
use ostler_engine::record::Recording;
use ostler_engine::settings::Settings;
use ostler_proto::control::AccountInfo;
use serde_json::Value;

use super::credentials::{self, CredentialSource, FoundCredential};
use super::{StartContext, StartError, recording};

/// The model that is used unless another one is chosen.
pub const DEFAULT_MODEL: &str = "claude-opus-5-5";
/// The placeholder for the key in recordings.
pub(super) const KEY: &str = "API_KEY";
/// The small model that is used unless another one is chosen.
pub const SMALL_MODEL: &str = "claude-haiku-5-5";
/// The API beta for task budgets.
const TASK_BUDGETS: &str = "task-budgets-2026-03-13";

/// The chosen model, and how it was chosen.
#[non_exhaustive]
pub struct SelectedModel {
    /// The model.
    pub model: Arc<dyn Model>,
    /// A remark for the user about the choice.
    pub remark: Option<&'static str>,
    /// The account that pays for the requests.
    pub account: AccountInfo,
    /// The recording to which the session is written, or from which it is replayed.
    pub recording: Option<Recording>,
}

/// Chooses the model.
///
/// # Errors
/// When the launch names a model that cannot be reached.
pub fn model(context: &StartContext, settings: &Settings) -> Result<SelectedModel, StartError> {
    let choice = recording::chosen(context)?;
    if let Some(path) = &choice.replay {
        return recording::replayed(context, settings, &choice, path);
    }
    let mut secrets = Vec::new();
    let picked = real(context, settings, &mut secrets)?;
    match &choice.record {
        Some(path) => recording::recorded(context, settings, picked, path, &secrets),
        None => Ok(picked),
    }
}

/// The model without a recording. Appends keys and headers to `secrets` as pairs of name and value.
fn real(
    context: &StartContext,
    settings: &Settings,
    secrets: &mut Vec<(String, String)>,
) -> Result<SelectedModel, StartError> {
    let wanted = context.launch.model.name.as_deref().filter(|name| !name.is_empty());
    if wanted == Some(OFFLINE) || is_offline_chosen(context) {
        return offline(
            "the offline demo answers, as you asked: a few rules, not a language model",
        );
    }
    match reach(context, settings)? {
        Some(ApiAccess { config, source, .. }) => {
            let mut config = with_options(context, settings, config);
            let keys = config.credential.secrets().into_iter();
            secrets.extend(keys.map(|key| (KEY.to_owned(), key.to_owned())));
            let header = |header: &Header| (header.name.replace('-', "_"), header.value.clone());
            secrets.extend(config.headers.iter().map(header));
            config.headers.extend(user_agent(context, &config.headers));
            let model = ApiModel::new(config).map_err(|error| {
                StartError::Model(format!("cannot set up the connection to the model: {error}"))
            })?;
            Ok(SelectedModel {
                model: Arc::new(model),
                remark: None,
                account: source.account(),
                recording: None,
            })
        }
        None if wanted.is_none() && context.offers_demo => offline(
            "You are not logged in, so the OFFLINE DEMO answers: a few rules, not a language model. Set ANTHROPIC_API_KEY for a \
             real model; say \"help\" to see what the demo can do.",
        ),
        None if context.is_interactive => {
            Err(StartError::Model(ModelError::NotLoggedIn.to_string()))
        }
        None => Ok(SelectedModel {
            model: Arc::new(NotLoggedIn::new(named(context, settings))),
            remark: None,
            account: credentials::no_account(),
            recording: None,
        }),
    }
}

/// Whether the user chose the offline demo for this process, whatever model is named: `OSTLER_OFFLINE=1`. Settings cannot
/// choose it, because they may come with a project.
pub fn is_offline_chosen(context: &StartContext) -> bool {
    context.var("OSTLER_OFFLINE").is_some_and(|value| value == "1" || value == "true")
}

/// The full name of the model that the launch or the settings name.
fn named(context: &StartContext, settings: &Settings) -> String {
    let wanted = context.launch.model.name.as_deref().filter(|name| !name.is_empty());
    full_name(&aliases(context, settings), wanted.or(settings.model.as_deref()))
}

/// Adds what the launch says about requests.
fn with_options(context: &StartContext, settings: &Settings, mut config: ApiConfig) -> ApiConfig {
    config.fallback_models = fallback_models(context, settings);
    config.betas.extend(context.launch.model.betas.iter().cloned());
    config.betas.extend(context.launch.limits.task_budget.map(|_| TASK_BUDGETS.to_owned()));
    config
}

/// The full names of the fallback models: a list with commas, of the launch or else of the settings. A short name means the
/// usual model of its family, whatever the session's model.
fn fallback_models(context: &StartContext, settings: &Settings) -> Vec<String> {
    let of_settings = || match settings.extra.get("fallbackModel")? {
        Value::String(list) => Some(list.clone()),
        Value::Array(list) => {
            Some(list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","))
        }
        _ => None,
    };
    let wanted = context.launch.model.fallback.clone().filter(|list| !list.is_empty());
    let wanted = wanted.or_else(of_settings).unwrap_or_default();
    let aliases = aliases(context, settings);
    let mut models = Vec::new();
    for name in wanted.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let name = full_name(&aliases, Some(name));
        if !models.contains(&name) {
            models.push(name);
        }
    }
    models
}

/// Which models short names stand for, according to the environment and the settings.
pub(super) fn aliases(context: &StartContext, settings: &Settings) -> Aliases {
    Aliases::from_env(|name| variable(context, settings, name))
}

/// A variable: `env` of the settings counts for this process too.
fn variable(context: &StartContext, settings: &Settings, name: &str) -> Option<String> {
    settings.env.get(name).cloned().or_else(|| context.env.get(name))
}

/// The full name of a model. A short name means the usual model of its family, also if that is not the default model.
fn full_name(aliases: &Aliases, wanted: Option<&str>) -> String {
    let name = aliases.full_name(wanted, "");
    if name.is_empty() { aliases.usual().to_owned() } else { name }
}

/// Prices of models: those of the command line come first, then those of the settings, then the built-in list.
pub(super) fn prices(context: &StartContext, settings: &Settings) -> Prices {
    let mut given = settings.model_prices.clone();
    given.extend(context.launch.model.prices.clone());
    Prices::new(given)
}

/// An error if the launch has a limit in dollars but the price of one of its models is unknown.
pub(super) fn unpriced(
    context: &StartContext,
    settings: &Settings,
    prices: &Prices,
    model: &str,
) -> Option<StartError> {
    let limit = context.launch.limits.max_budget_usd?;
    let named = aliases(context, settings).meant_by(model);
    let mut models = named.into_iter().chain(fallback_models(context, settings));
    let unpriced = models.find(|name| !prices.is_priced(name))?;
    Some(StartError::Model(pricing::no_price(&unpriced, limit)))
}

/// The small model used for titles, summaries and prompt hooks. `None` if the session's model is of an unknown family:
/// then the endpoint may not have the usual small model either.
pub(super) fn small_model(
    context: &StartContext,
    settings: &Settings,
    model: &str,
) -> Option<String> {
    let env = |name: &str| variable(context, settings, name).filter(|value| !value.is_empty());
    let named = env("ANTHROPIC_DEFAULT_HAIKU_MODEL").or_else(|| env("ANTHROPIC_SMALL_FAST_MODEL"));
    let is_known = aliases(context, settings)
        .meant_by(model)
        .iter()
        .all(|name| pricing::family(name).is_some());
    named.or_else(|| is_known.then(|| SMALL_MODEL.to_owned()))
}

/// How the API is reached, and where the key comes from.
#[non_exhaustive]
pub struct ApiAccess {
    /// The endpoint, the credential and the model.
    pub config: ApiConfig,
    /// Where the key comes from, as text for people; never the key itself.
    pub key: String,
    /// Where the key comes from, for programs.
    pub source: CredentialSource,
}

/// How the API would be reached; `None` without a key.
///
/// # Errors
/// When the configuration is malformed, or the command that prints the key fails.
pub fn reach(context: &StartContext, settings: &Settings) -> Result<Option<ApiAccess>, StartError> {
    let env = |name: &str| variable(context, settings, name);
    let name = named(context, settings);
    let name = name.as_str();
    let malformed = |error: ostler_engine::model::ConfigError| StartError::Model(error.to_string());
    let Some(found) = credentials::find(context, settings)? else { return Ok(None) };
    let FoundCredential { credential, renewal, source, text } = found;
    let mut config = ApiConfig::with_env(env, credential, name).map_err(malformed)?;
    config.renewal = renewal;
    Ok(Some(ApiAccess { config, key: text, source }))
}

/// The user agent: this program and the program that uses it. `None` if the user's headers already contain one.
fn user_agent(context: &StartContext, headers: &[Header]) -> Option<Header> {
    const NAME: &str = "user-agent";
    let app = context.var("CLAUDE_AGENT_SDK_CLIENT_APP")?;
    let app: String =
        app.chars().filter(|character| character.is_ascii_graphic()).take(100).collect();
    let is_chosen = headers.iter().any(|header| header.name.eq_ignore_ascii_case(NAME));
    let value = format!("ostler/{} (client-app/{app})", env!("CARGO_PKG_VERSION"));
    (!is_chosen && !app.is_empty()).then(|| Header { name: NAME.to_owned(), value })
}

#[cfg(feature = "offline")]
fn offline(remark: &'static str) -> Result<SelectedModel, StartError> {
    Ok(SelectedModel {
        model: Arc::new(OfflineModel::new()),
        remark: Some(remark),
        account: credentials::no_account(),
        recording: None,
    })
}

/// The offline demo is not part of this build.
#[cfg(not(feature = "offline"))]
fn offline(_: &'static str) -> Result<SelectedModel, StartError> {
    Err(StartError::Model(
        "the offline demo is not part of this build: build with the feature `offline`, or set ANTHROPIC_API_KEY for a real model".to_owned(),
    ))
}

#[cfg(test)]
mod tests;

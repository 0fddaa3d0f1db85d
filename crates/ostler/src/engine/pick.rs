//! Chooses the model: the API if there is a key, otherwise the offline demo.

use std::sync::Arc;
use std::time::Duration;

pub use ostler_engine::model::pricing::OFFLINE;
use ostler_engine::model::{
    Aliases, ApiConfig, ApiModel, Credential, Header, Model, Prices, Renewal, pricing,
};
#[cfg(feature = "offline")]
use ostler_engine::offline::OfflineModel;
use ostler_engine::record::Recording;
use ostler_engine::settings::Settings;
use ostler_proto::build;
use ostler_proto::control::AccountInfo;

use super::key_helper::KeyHelper;
use super::{StartContext, StartError, recording, sandbox};

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
    if wanted == Some(OFFLINE) {
        return offline("the offline demo, as you asked");
    }
    match (wanted, reach(context, settings)?) {
        (_, Some(ApiAccess { config, account, .. })) => {
            let mut config = with_options(context, settings, config);
            let keys = config.credential.secrets().into_iter();
            secrets.extend(keys.map(|key| (KEY.to_owned(), key.to_owned())));
            let header = |header: &Header| (header.name.replace('-', "_"), header.value.clone());
            secrets.extend(config.headers.iter().map(header));
            config.headers.extend(user_agent(context, &config.headers));
            let model = ApiModel::new(config).map_err(|error| {
                StartError::Model(format!("cannot set up the connection to the model: {error}"))
            })?;
            Ok(SelectedModel { model: Arc::new(model), remark: None, account, recording: None })
        }
        (Some(name), None) => Err(StartError::Model(format!(
            "the model {name} needs a key: set ANTHROPIC_API_KEY, or try `--model {OFFLINE}` without one"
        ))),
        (None, None) => offline(
            "no ANTHROPIC_API_KEY is set, so this is the offline demo; say \"help\" to see what it can do",
        ),
    }
}

/// Adds what the launch says about requests.
fn with_options(context: &StartContext, settings: &Settings, mut config: ApiConfig) -> ApiConfig {
    config.fallback_model = fallback_model(context, settings);
    config.betas.extend(context.launch.model.betas.iter().cloned());
    config.betas.extend(context.launch.limits.task_budget.map(|_| TASK_BUDGETS.to_owned()));
    config
}

/// The full name of the fallback model. A short name means the usual model of its family, whatever the session's model.
fn fallback_model(context: &StartContext, settings: &Settings) -> Option<String> {
    let wanted = context.launch.model.fallback.as_deref().filter(|name| !name.is_empty())?;
    Some(full_name(&aliases(context, settings), Some(wanted)))
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
    if name.is_empty() { DEFAULT_MODEL.to_owned() } else { name }
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
    let mut models = named.into_iter().chain(fallback_model(context, settings));
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
    pub account: AccountInfo,
}

/// How the API would be reached; `None` without a key.
///
/// # Errors
/// When the configuration is malformed, or the command that prints the key fails.
pub fn reach(context: &StartContext, settings: &Settings) -> Result<Option<ApiAccess>, StartError> {
    let wanted = context.launch.model.name.as_deref().filter(|name| !name.is_empty());
    let usual = settings.model.as_deref();
    let env = |name: &str| variable(context, settings, name);
    let name = full_name(&aliases(context, settings), wanted.or(usual));
    let name = name.as_str();
    let malformed = |error: ostler_engine::model::ConfigError| StartError::Model(error.to_string());
    if let Some(config) = ApiConfig::from_env(env, name).map_err(malformed)? {
        let variable = match config.credential {
            Credential::Token(_) => "ANTHROPIC_AUTH_TOKEN",
            _ => "ANTHROPIC_API_KEY",
        };
        let place = if settings.env.contains_key(variable) { " in the settings" } else { "" };
        let account = account(variable);
        let key = format!("{variable} is set{place}");
        return Ok(Some(ApiAccess { config, key, account }));
    }
    let Some(helper) = &settings.api_key_helper else { return Ok(None) };
    let env_of_helper = context.env.with(settings.env.clone());
    let writable = sandbox::writable_folders(context, settings);
    let helper = KeyHelper::new(helper.clone(), env_of_helper, writable);
    let credential = helper
        .credential()
        .map_err(|error| StartError::Model(format!("apiKeyHelper of the settings {error}")))?;
    // `from_env` reads the other variables only if it finds a key, so it gets a placeholder.
    let stand_in = |name: &str| match name {
        "ANTHROPIC_API_KEY" => Some("-".to_owned()),
        name => env(name),
    };
    let Some(mut config) = ApiConfig::from_env(stand_in, name).map_err(malformed)? else {
        return Ok(None);
    };
    config.credential = credential;
    config.renewal = Some(Renewal {
        every: renewed_every(env("CLAUDE_CODE_API_KEY_HELPER_TTL_MS"))?,
        give: Arc::new(move || helper.credential()),
    });
    let key = "apiKeyHelper of the settings gives one".to_owned();
    let account = account("apiKeyHelper");
    Ok(Some(ApiAccess { config, key, account }))
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

/// The account that pays, derived from the source of the key.
pub(super) fn account(source: &str) -> AccountInfo {
    let is_token = source == "ANTHROPIC_AUTH_TOKEN";
    let (token, key) = if is_token { (source, "none") } else { ("none", source) };
    build!(AccountInfo {
        token_source: Some(token.to_owned()),
        api_key_source: Some(key.to_owned()),
        api_provider: Some("firstParty".to_owned())
    })
}

/// How long a key that the user's command printed is used. The command runs earlier if the API refuses the key.
fn renewed_every(milliseconds: Option<String>) -> Result<Duration, StartError> {
    const USUAL: Duration = Duration::from_secs(5 * 60);
    let value = milliseconds.as_deref().map(str::trim).filter(|value| !value.is_empty());
    match value.map(|value| (value, value.parse())) {
        None => Ok(USUAL),
        Some((_, Ok(milliseconds))) => Ok(Duration::from_millis(milliseconds)),
        Some((value, Err(_))) => Err(StartError::Model(format!(
            "CLAUDE_CODE_API_KEY_HELPER_TTL_MS is {value:?}, but must be a number of milliseconds"
        ))),
    }
}

#[cfg(feature = "offline")]
fn offline(remark: &'static str) -> Result<SelectedModel, StartError> {
    let account = account("none");
    Ok(SelectedModel {
        model: Arc::new(OfflineModel::new()),
        remark: Some(remark),
        account,
        recording: None,
    })
}

/// The offline demo is not part of this build.
#[cfg(not(feature = "offline"))]
fn offline(_: &'static str) -> Result<SelectedModel, StartError> {
    Err(StartError::Model(
        "there is no model: set ANTHROPIC_API_KEY, or build with the feature `offline` for the offline demo".to_owned(),
    ))
}

#[cfg(test)]
mod tests;

//! Where the key or token for the API comes from. The first of these counts:
//!
//! 1. `ANTHROPIC_API_KEY` and `ANTHROPIC_AUTH_TOKEN`
//! 2. the command `apiKeyHelper` of the settings
//! 3. `CLAUDE_CODE_OAUTH_TOKEN`, a long-lived token of the vendor's `setup-token`
//! 4. a login with the vendor's program: `.credentials.json`
//! 5. a key that such a login created: `primaryApiKey` in `.claude.json`

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ostler_engine::model::Renewal;
use ostler_engine::model::login::Login;
pub use ostler_engine::model::{Credential, LOGIN_BETA};
use ostler_engine::project_file::{Boundary, Refusal};
use ostler_engine::settings::Settings;
use ostler_proto::build;
use ostler_proto::control::AccountInfo;
use ostler_sdk::transport::Environment;
use serde_json::Value;

use super::key_helper::KeyHelper;
use super::server_files::{USER_FILE, USER_FILE_LONGEST};
use super::{StartContext, StartError, sandbox};

/// The variable with a long-lived token.
pub const LOGIN_TOKEN: &str = "CLAUDE_CODE_OAUTH_TOKEN";
/// Variables with tokens of a login, which nothing but this program needs.
pub(super) const LOGIN_VARIABLES: [&str; 2] = [LOGIN_TOKEN, "CLAUDE_CODE_OAUTH_REFRESH_TOKEN"];
/// The file with the tokens of a login, in the vendor's folder.
const LOGIN_FILE: &str = ".credentials.json";
/// The entry of the user's file with a key.
const MANAGED_KEY: &str = "primaryApiKey";
/// Renews tokens in place of the vendor's endpoint: for gateways, and for tests.
const ENDPOINT: &str = "OSTLER_LOGIN_ENDPOINT";

/// Where a credential comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CredentialSource {
    /// `ANTHROPIC_API_KEY`, alone or together with `ANTHROPIC_AUTH_TOKEN`.
    ApiKey,
    /// `ANTHROPIC_AUTH_TOKEN`.
    AuthToken,
    /// `apiKeyHelper` of the settings.
    Helper,
    /// `CLAUDE_CODE_OAUTH_TOKEN`.
    LoginToken,
    /// A login with the vendor's program.
    Login,
    /// The key that a login with the vendor's program created.
    ManagedKey,
}

impl CredentialSource {
    /// Its name in messages for programs.
    pub fn word(self) -> &'static str {
        match self {
            Self::ApiKey => "ANTHROPIC_API_KEY",
            Self::AuthToken => "ANTHROPIC_AUTH_TOKEN",
            Self::Helper => "apiKeyHelper",
            Self::LoginToken => LOGIN_TOKEN,
            Self::Login => "claude.ai",
            Self::ManagedKey => "/login managed key",
        }
    }

    /// The account that pays.
    pub fn account(self) -> AccountInfo {
        let is_token = matches!(self, Self::AuthToken | Self::LoginToken | Self::Login);
        let (token, key) = if is_token { (self.word(), "none") } else { ("none", self.word()) };
        account(token, key)
    }
}

/// The account of a session without a credential.
pub(super) fn no_account() -> AccountInfo {
    account("none", "none")
}

fn account(token: &str, key: &str) -> AccountInfo {
    build!(AccountInfo {
        token_source: Some(token.to_owned()),
        api_key_source: Some(key.to_owned()),
        api_provider: Some("firstParty".to_owned())
    })
}

/// A credential, and where it comes from.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FoundCredential {
    /// The key or token.
    pub credential: Credential,
    /// Gets another one when this one is old or refused.
    pub renewal: Option<Renewal>,
    /// Where it comes from.
    pub source: CredentialSource,
    /// The same, as text for people; never the credential itself.
    pub text: String,
}

impl FoundCredential {
    fn new(credential: Credential, source: CredentialSource, text: String) -> Self {
        Self { credential, renewal: None, source, text }
    }
}

/// The credential of a session; `None` if the user is not logged in.
///
/// # Errors
/// When the command that prints the key fails, or a file with a login cannot be read.
pub fn find(
    context: &StartContext,
    settings: &Settings,
) -> Result<Option<FoundCredential>, StartError> {
    let variable = |name: &str| settings.env.get(name).cloned().or_else(|| context.env.get(name));
    if let Some(credential) = Credential::from_env(&variable) {
        let source = match credential {
            Credential::Token(_) => CredentialSource::AuthToken,
            _ => CredentialSource::ApiKey,
        };
        let place = if settings.env.contains_key(source.word()) { " in the settings" } else { "" };
        let text = format!("{} is set{place}", source.word());
        return Ok(Some(FoundCredential::new(credential, source, text)));
    }
    if let Some(command) = &settings.api_key_helper {
        return helper(context, settings, command, variable("CLAUDE_CODE_API_KEY_HELPER_TTL_MS"))
            .map(Some);
    }
    of_login(&context.env.with(settings.env.clone()), &context.env).map_err(StartError::Model)
}

/// The credential of a login with the vendor's program, in the environment or in a file of its folder.
///
/// # Errors
/// When a file cannot be read. No error contains a token.
pub fn login(env: &Environment) -> Result<Option<FoundCredential>, String> {
    of_login(env, env)
}

/// `own` is the environment without that of settings, which could send tokens elsewhere.
fn of_login(env: &Environment, own: &Environment) -> Result<Option<FoundCredential>, String> {
    let set = |name: &str| env.get(name).filter(|value| !value.trim().is_empty());
    if let Some(token) = set(LOGIN_TOKEN) {
        let credential = Credential::Login(token.trim().to_owned());
        let text = format!("{LOGIN_TOKEN} is set");
        return Ok(Some(FoundCredential::new(credential, CredentialSource::LoginToken, text)));
    }
    let Files { login, user } = files(own);
    if let Some(file) = login {
        let text = format!("a login with Claude Code ({})", file.display());
        let login = Login::new(file, own.get(ENDPOINT).as_deref())?;
        if let Some(tokens) = login.tokens()? {
            let give = move |refused: Option<&Credential>| login.credential(refused);
            return Ok(Some(FoundCredential {
                credential: Credential::Login(tokens.access),
                // The file is read before each request: another program may have renewed the token.
                renewal: Some(Renewal { every: Duration::ZERO, give: Arc::new(give) }),
                source: CredentialSource::Login,
                text,
            }));
        }
    }
    let Some(file) = user else { return Ok(None) };
    let key = managed_key(&file)?;
    Ok(key.map(|key| {
        let text = format!("a login with Claude Code created one ({})", file.display());
        FoundCredential::new(Credential::Key(key), CredentialSource::ManagedKey, text)
    }))
}

/// Files that may contain a credential.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Files {
    /// The tokens of a login.
    pub login: Option<PathBuf>,
    /// The vendor's file with settings of the user and a key.
    pub user: Option<PathBuf>,
}

/// The places of these files, whether they exist or not.
pub fn files(env: &Environment) -> Files {
    let folder = |name: &str| env.get(name).filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let (config, home) = (folder("CLAUDE_CONFIG_DIR"), folder("HOME"));
    let of_login = config.clone().or_else(|| Some(home.as_ref()?.join(".claude")));
    Files {
        login: of_login.map(|folder| folder.join(LOGIN_FILE)),
        user: config.or(home).map(|folder| folder.join(USER_FILE)),
    }
}

/// The key in the user's file. A file that is malformed has none; MCP servers report that it is.
fn managed_key(file: &std::path::Path) -> Result<Option<String>, String> {
    let text = match Boundary::default().read_text(file, USER_FILE_LONGEST) {
        Ok(text) => text,
        Err(Refusal::Missing) => return Ok(None),
        Err(refusal) => return Err(format!("{} cannot be read: {refusal}", file.display())),
    };
    let root: Value = serde_json::from_str(&text).unwrap_or_default();
    let key = root[MANAGED_KEY].as_str().map(str::trim).filter(|key| !key.is_empty());
    Ok(key.map(str::to_owned))
}

/// The key that the user's command prints.
fn helper(
    context: &StartContext,
    settings: &Settings,
    command: &str,
    milliseconds: Option<String>,
) -> Result<FoundCredential, StartError> {
    let env = context.env.with(settings.env.clone());
    let writable = sandbox::writable_folders(context, settings);
    let helper = KeyHelper::new(command.to_owned(), env, writable);
    let failed = |error| StartError::Model(format!("apiKeyHelper of the settings {error}"));
    let credential = helper.credential().map_err(failed)?;
    let renewal = Renewal {
        every: renewed_every(milliseconds)?,
        give: Arc::new(move |_: Option<&Credential>| helper.credential()),
    };
    let text = "apiKeyHelper of the settings gives one".to_owned();
    Ok(FoundCredential {
        renewal: Some(renewal),
        ..FoundCredential::new(credential, CredentialSource::Helper, text)
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

#[cfg(test)]
mod tests;

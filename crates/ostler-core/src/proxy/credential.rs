//! The operator's key for the model: where it is stored, and how it is added to a request.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ostler::engine::credentials::{self as logins, Credential, LOGIN_BETA, LOGIN_TOKEN};
use ostler::options::Environment;

use ostler_base::private;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::config::Config;
use crate::confine::redact::Redactor;

const KEY: &str = "ANTHROPIC_API_KEY";
const TOKEN: &str = "ANTHROPIC_AUTH_TOKEN";
const BASE: &str = "ANTHROPIC_BASE_URL";
const HEADERS: &str = "ANTHROPIC_CUSTOM_HEADERS";
/// The header with the features of the API that a request needs.
pub(super) const BETA: &str = "anthropic-beta";
const DEFAULT_BASE: &str = "https://api.anthropic.com";

/// The credentials for the model.
pub struct Credentials {
    /// Configured variables; others are read from the environment.
    configured: BTreeMap<String, String>,
    file: Option<PathBuf>,
    /// Where a login of the operator is looked for, if there is no key.
    operator: Environment,
    base: String,
    redactor: Redactor,
}

impl Credentials {
    /// Moves the credentials out of the configuration of engines.
    pub fn take(config: &mut Config, redactor: Redactor) -> Self {
        let take = |name: &str| Some((name.to_owned(), config.env.remove(name)?));
        let configured: BTreeMap<_, _> =
            [KEY, TOKEN, BASE, HEADERS].into_iter().filter_map(take).collect();
        let base = variable(&configured, BASE).unwrap_or_else(|| DEFAULT_BASE.to_owned());
        let (file, operator) = (config.key_file.clone(), config.operator.clone());
        config.env.remove(LOGIN_TOKEN);
        Self { configured, file, operator, base, redactor }
    }

    /// The base URL of the model.
    pub(super) fn base(&self) -> &str {
        self.base.trim_end_matches('/')
    }

    /// Whether there is a key, or a key file.
    pub(super) fn are_there(&self) -> bool {
        let has = |name| variable(&self.configured, name).is_some();
        // A login that cannot be read is reported by the requests.
        let has_login = || !matches!(logins::login(&self.operator), Ok(None));
        self.file.is_some() || has(KEY) || has(TOKEN) || has_login()
    }

    /// The headers for a request, with the current key.
    ///
    /// # Errors
    /// A message that does not contain the key.
    pub(super) async fn headers(&self) -> Result<HeaderMap, String> {
        let kept = match self.file.clone() {
            Some(file) => tokio::task::spawn_blocking(move || read(&file))
                .await
                .map_err(|_| "the key file could not be read".to_owned())??,
            None => self.configured.clone(),
        };
        let from_file = self.file.is_some();
        let find = |name: &str| match from_file {
            // An operator who names a file wants only that key.
            true => kept.get(name).cloned(),
            false => variable(&kept, name),
        };
        let (key, token) = (find(KEY), find(TOKEN));
        let mut headers = HeaderMap::new();
        for line in variable(&self.configured, HEADERS).unwrap_or_default().lines() {
            let (name, value) =
                line.split_once(':').ok_or(format!("a line of {HEADERS} has no colon"))?;
            let name = name.trim().parse::<HeaderName>();
            let name = name.map_err(|_| format!("{HEADERS} has a header without a name"))?;
            headers.insert(name, self.secret(HEADERS, value.trim())?);
        }
        if let Some(key) = &key {
            headers.insert("x-api-key", self.secret(KEY, key)?);
        }
        if let Some(token) = &token {
            self.redactor.add(TOKEN, token);
            headers.insert("authorization", self.secret(TOKEN, &format!("Bearer {token}"))?);
        }
        if key.is_none() && token.is_none() {
            let login = match from_file {
                true => None,
                false => self.login().await?,
            };
            let login = login.ok_or("the server has no key for the model")?;
            for secret in login.secrets() {
                self.redactor.add(LOGIN_TOKEN, secret);
            }
            match &login {
                Credential::Key(key) => {
                    headers.insert("x-api-key", self.secret(KEY, key)?);
                }
                other => {
                    let token = other.secrets()[0].to_owned();
                    headers.insert(
                        "authorization",
                        self.secret(LOGIN_TOKEN, &format!("Bearer {token}"))?,
                    );
                    headers.insert(BETA, HeaderValue::from_static(LOGIN_BETA));
                }
            }
        }
        Ok(headers)
    }

    /// The credential of the operator's login, renewed if it has expired.
    async fn login(&self) -> Result<Option<Credential>, String> {
        let env = self.operator.clone();
        let find = move || {
            let Some(found) = logins::login(&env)? else { return Ok(None) };
            match found.renewal {
                Some(renewal) => (renewal.give)(None).map(Some),
                None => Ok(Some(found.credential)),
            }
        };
        tokio::task::spawn_blocking(find)
            .await
            .map_err(|_| "the login could not be read".to_owned())?
    }

    fn secret(&self, name: &str, value: &str) -> Result<HeaderValue, String> {
        self.redactor.add(name, value);
        let mut header = HeaderValue::from_str(value)
            .map_err(|_| format!("the value of {name} is not a valid header"))?;
        header.set_sensitive(true);
        Ok(header)
    }
}

/// The configured value, or else that of the environment.
fn variable(configured: &BTreeMap<String, String>, name: &str) -> Option<String> {
    let said = configured.get(name).cloned().or_else(|| std::env::var(name).ok());
    said.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// Reads a file with only a key, or with lines such as `ANTHROPIC_AUTH_TOKEN=…`.
fn read(file: &Path) -> Result<BTreeMap<String, String>, String> {
    // Links are resolved every time: operators may change keys in one step by replacing a link.
    let text = file.canonicalize().and_then(|real| private::read(&real));
    let text =
        text.map_err(|error| format!("the key file {} cannot be used: {error}", file.display()))?;
    let mut kept = BTreeMap::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let named = line.split_once('=').filter(|(name, _)| [KEY, TOKEN].contains(&name.trim()));
        let (name, value) = named.unwrap_or((KEY, line));
        kept.insert(name.trim().to_owned(), value.trim().to_owned());
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials(env: &[(&str, &str)], file: Option<PathBuf>) -> (Credentials, Config) {
        let mut config = Config::new("/no/data", "/no/workspace");
        config.key_file = file;
        config.env =
            env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        (Credentials::take(&mut config, Redactor::default()), config)
    }

    fn shown(headers: &HeaderMap) -> String {
        let line = |(name, value): (&HeaderName, &HeaderValue)| {
            format!("{name}: {}", value.to_str().unwrap())
        };
        let mut lines: Vec<String> = headers.iter().map(line).collect();
        lines.sort();
        lines.join("\n")
    }

    #[tokio::test]
    async fn configured_credentials_are_removed_from_the_engines_environment() {
        let env = [
            (KEY, "the-key"),
            (TOKEN, "the-token"),
            (BASE, "http://m/"),
            (HEADERS, "x-team: red"),
            ("OTHER", "x"),
        ];
        let (credentials, config) = credentials(&env, None);
        assert_eq!(config.env.keys().collect::<Vec<_>>(), ["OTHER"]);
        assert_eq!(credentials.base(), "http://m");
        let headers = credentials.headers().await.unwrap();
        assert_eq!(
            shown(&headers),
            "authorization: Bearer the-token\nx-api-key: the-key\nx-team: red"
        );
        assert!(headers.values().all(HeaderValue::is_sensitive));
        assert!(!credentials.redactor.text("the-key the-token").contains("the-"));
    }

    #[tokio::test]
    async fn a_key_file_is_read_every_time_and_only_if_it_is_private() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("key");
        let (credentials, _) = credentials(&[(KEY, "another")], Some(file.clone()));
        assert!(credentials.are_there());
        let error = credentials.headers().await.unwrap_err();
        assert!(error.contains("cannot be used"), "no other key instead: {error}");
        private::create(&file, b"first-key\n").unwrap();
        assert_eq!(shown(&credentials.headers().await.unwrap()), "x-api-key: first-key");
        private::replace(&file, b"ANTHROPIC_AUTH_TOKEN = second\n").unwrap();
        assert_eq!(shown(&credentials.headers().await.unwrap()), "authorization: Bearer second");
        private::replace(&file, b"one\ttwo\n").unwrap();
        private::replace(&file, "kéy\u{1}".as_bytes()).unwrap();
        let error = credentials.headers().await.unwrap_err();
        assert!(!error.contains("kéy"), "{error}");
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        std::fs::set_permissions(&file, open).unwrap();
        assert!(credentials.headers().await.unwrap_err().contains("chmod 600"));
    }
}

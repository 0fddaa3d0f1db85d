//! The connection to the API: address, credential, headers, timeouts. Read from the environment or built by the caller.

use std::time::Duration;

use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};

use super::{Credential, Renewal, RetryPolicy};

/// The address of the API, unless `ANTHROPIC_BASE_URL` is set.
pub const DEFAULT_BASE_URL: &str = "https://api.anthropic.com";

/// The beta without which the API refuses the token of a login.
pub const LOGIN_BETA: &str = "oauth-2025-04-20";

/// The connection to the API.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ApiConfig {
    /// The address, possibly with a path, without `/v1/messages`.
    pub base_url: String,
    /// The key or token.
    pub credential: Credential,
    /// Gets another credential when this one is old or refused.
    pub renewal: Option<Renewal>,
    /// The model to ask for.
    pub model: String,
    /// The models that take over, one after the other, when the model before is overloaded or unknown.
    pub fallback_models: Vec<String>,
    /// The most tokens of one answer, in place of the request's limit.
    pub max_output_tokens: Option<u64>,
    /// Further headers; they replace ours of the same name.
    pub headers: Vec<Header>,
    /// Features to enable with `anthropic-beta`.
    pub betas: Vec<String>,
    /// How often to retry.
    pub retry: RetryPolicy,
    /// How long to wait.
    pub timeouts: Timeouts,
}

impl ApiConfig {
    /// The default configuration for an address.
    pub fn new(
        base_url: impl Into<String>,
        credential: Credential,
        model: impl Into<String>,
    ) -> Self {
        Self {
            base_url: base_url.into(),
            credential,
            renewal: None,
            model: model.into(),
            fallback_models: Vec::new(),
            max_output_tokens: None,
            headers: Vec::new(),
            betas: Vec::new(),
            retry: RetryPolicy::default(),
            timeouts: Timeouts::default(),
        }
    }

    /// Reads the environment; `None` without a key or token. An empty variable counts as absent.
    ///
    /// # Errors
    /// When a variable has an invalid value. No error shows a secret.
    pub fn from_env(
        env: impl Fn(&str) -> Option<String>,
        model: impl Into<String>,
    ) -> Result<Option<Self>, ConfigError> {
        let credential = Credential::from_env(&env);
        credential.map(|credential| Self::with_env(env, credential, model)).transpose()
    }

    /// Reads everything but the key from the environment.
    ///
    /// # Errors
    /// When a variable has an invalid value. No error shows a secret.
    pub fn with_env(
        env: impl Fn(&str) -> Option<String>,
        credential: Credential,
        model: impl Into<String>,
    ) -> Result<Self, ConfigError> {
        let env = |name: &str| {
            env(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
        };
        let base_url = env("ANTHROPIC_BASE_URL").unwrap_or_else(|| DEFAULT_BASE_URL.to_owned());
        read_base_url(&base_url)?;
        let mut config = Self::new(base_url, credential, model);
        if let Some(lines) = env("ANTHROPIC_CUSTOM_HEADERS") {
            config.headers = read_headers(&lines)?;
        }
        if let Some(betas) = env("ANTHROPIC_BETAS") {
            config.betas = betas.split(',').map(|beta| beta.trim().to_owned()).collect();
        }
        if matches!(config.credential, Credential::Login(_)) {
            config.betas.push(LOGIN_BETA.to_owned());
        }
        if let Some(retries) = whole_number(&env, "CLAUDE_CODE_MAX_RETRIES", 0)? {
            config.retry.max_retries = u32::try_from(retries).unwrap_or(u32::MAX);
        }
        config.max_output_tokens = whole_number(&env, "CLAUDE_CODE_MAX_OUTPUT_TOKENS", 1)?;
        if let Some(milliseconds) = whole_number(&env, "API_TIMEOUT_MS", 1)? {
            // A longer timeout for an answer also makes the timeout for its beginning longer.
            let whole = Duration::from_millis(milliseconds);
            config.timeouts = Timeouts { first_byte: whole, whole, ..config.timeouts };
        }
        if let Some(milliseconds) = whole_number(&env, "OSTLER_CONTENT_TIMEOUT_MS", 1)? {
            config.timeouts.content = Duration::from_millis(milliseconds);
        }
        Ok(config)
    }
}

/// How long to wait for the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For the first byte of a stream. Each further attempt adds the same time again.
    pub first_byte: Duration,
    /// Between two bytes of a stream. The API sends pings while it has no content to send.
    pub idle: Duration,
    /// Between two events of a stream with content: a model that sends only pings for this long has stalled. It is
    /// generous, because long hidden thinking also arrives as pings.
    pub content: Duration,
    /// For an answer without a stream, to its end.
    pub whole: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            first_byte: Duration::from_secs(60),
            idle: Duration::from_secs(90),
            content: Duration::from_secs(600),
            whole: Duration::from_secs(600),
        }
    }
}

/// A further header. Its value may be a secret and is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Header {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl std::fmt::Debug for Header {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: [hidden]", self.name)
    }
}

/// An invalid setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The address is invalid.
    #[error("ANTHROPIC_BASE_URL {problem}")]
    BaseUrl {
        /// What is wrong with it.
        problem: String,
    },
    /// Not a number, or too small.
    #[error("{variable} is {value:?}, but must be a whole number of at least {least}")]
    Number {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// The smallest valid number.
        least: u64,
    },
    /// A line that is not a header.
    #[error("line {line} of ANTHROPIC_CUSTOM_HEADERS is not of the form `Name: value`")]
    Header {
        /// The number of the line, from 1.
        line: usize,
    },
}

/// The address of the API, checked.
pub(crate) fn read_base_url(text: &str) -> Result<Url, ConfigError> {
    let problem = |problem: String| ConfigError::BaseUrl { problem };
    let url = Url::parse(text.trim()).map_err(|error| {
        problem(format!("is not an address such as {DEFAULT_BASE_URL}: {error}"))
    })?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(problem(format!("begins with {}:, not with https: or http:", url.scheme())));
    }
    if !url.username().is_empty() || url.password().is_some() {
        // Addresses appear in logs.
        return Err(problem(
            "has a user name or password in it; use ANTHROPIC_AUTH_TOKEN or ANTHROPIC_CUSTOM_HEADERS"
                .to_owned(),
        ));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(problem("has a `?` or `#` in it, after which no path can follow".to_owned()));
    }
    Ok(url)
}

fn read_headers(lines: &str) -> Result<Vec<Header>, ConfigError> {
    let lines = lines.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let headers = lines.map(|(number, line)| {
        let error = ConfigError::Header { line: number + 1 };
        let (name, value) = line.split_once(':').ok_or(error.clone())?;
        let header = Header { name: name.trim().to_owned(), value: value.trim().to_owned() };
        header.parsed().ok_or(error)?;
        Ok(header)
    });
    headers.collect()
}

impl Header {
    /// The parsed header; `None` if it is not a valid HTTP header.
    pub(crate) fn parsed(&self) -> Option<(HeaderName, HeaderValue)> {
        let mut value = HeaderValue::from_str(&self.value).ok()?;
        value.set_sensitive(true);
        Some((self.name.parse().ok()?, value))
    }
}

fn whole_number(
    env: &impl Fn(&str) -> Option<String>,
    variable: &'static str,
    least: u64,
) -> Result<Option<u64>, ConfigError> {
    let Some(value) = env(variable) else { return Ok(None) };
    match value.parse() {
        Ok(number) if number >= least => Ok(Some(number)),
        _ => Err(ConfigError::Number { variable, value, least }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<ApiConfig>, ConfigError> {
        let env = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        ApiConfig::from_env(env, "m")
    }

    fn with(variable: &str, value: &str) -> Result<ApiConfig, String> {
        read(&[("ANTHROPIC_API_KEY", "k"), (variable, value)])
            .map(|config| config.expect("there is a key"))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_key_and_a_token_are_both_used_and_an_empty_one_counts_as_absent() {
        assert!(read(&[]).unwrap().is_none());
        assert!(
            read(&[("ANTHROPIC_API_KEY", " "), ("ANTHROPIC_AUTH_TOKEN", "")]).unwrap().is_none()
        );
        let both = read(&[("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_AUTH_TOKEN", "t")]);
        assert_eq!(both.unwrap().unwrap().credential.secrets(), ["k", "t"]);
        let token = read(&[("ANTHROPIC_API_KEY", ""), ("ANTHROPIC_AUTH_TOKEN", "t")]);
        assert!(matches!(token.unwrap().unwrap().credential, Credential::Token(_)));
    }

    #[test]
    fn everything_has_a_default_and_can_be_set() {
        let config = with("UNRELATED", "x").unwrap();
        assert_eq!((config.base_url.as_str(), config.model.as_str()), (DEFAULT_BASE_URL, "m"));
        assert_eq!(config.retry.max_retries, 10);
        assert_eq!(with("ANTHROPIC_BASE_URL", "").unwrap().base_url, DEFAULT_BASE_URL);
        assert_eq!(with("CLAUDE_CODE_MAX_RETRIES", "0").unwrap().retry.max_retries, 0);
        assert_eq!(
            with("CLAUDE_CODE_MAX_OUTPUT_TOKENS", " 9 ").unwrap().max_output_tokens,
            Some(9)
        );
        assert_eq!(with("ANTHROPIC_BETAS", "a, b").unwrap().betas, ["a", "b"]);
        let timeouts = with("API_TIMEOUT_MS", "5000").unwrap().timeouts;
        assert_eq!(
            (timeouts.first_byte, timeouts.whole),
            (Duration::from_secs(5), Duration::from_secs(5))
        );
        let content = with("OSTLER_CONTENT_TIMEOUT_MS", "7000").unwrap().timeouts.content;
        assert_eq!(content, Duration::from_secs(7));
        let headers = with("ANTHROPIC_CUSTOM_HEADERS", "X-A: 1\n\nx-b:2:3\n").unwrap().headers;
        let pairs: Vec<_> = headers.iter().map(|h| (h.name.as_str(), h.value.as_str())).collect();
        assert_eq!(pairs, [("X-A", "1"), ("x-b", "2:3")]);
    }

    #[test]
    fn a_bad_value_is_refused_with_its_name() {
        for (variable, value, expected) in [
            ("CLAUDE_CODE_MAX_RETRIES", "many", "CLAUDE_CODE_MAX_RETRIES is \"many\", but must be"),
            ("CLAUDE_CODE_MAX_RETRIES", "-1", "at least 0"),
            ("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "0", "at least 1"),
            ("API_TIMEOUT_MS", "1.5", "API_TIMEOUT_MS is \"1.5\""),
            ("ANTHROPIC_BASE_URL", "api.example", "ANTHROPIC_BASE_URL is not an address"),
            ("ANTHROPIC_BASE_URL", "localhost:8080", "begins with localhost:, not"),
            ("ANTHROPIC_BASE_URL", "ftp://x", "begins with ftp:, not"),
            ("ANTHROPIC_BASE_URL", "https://u:p@x", "has a user name or password"),
            ("ANTHROPIC_BASE_URL", "https://x/?a=b", "has a `?` or `#`"),
            ("ANTHROPIC_CUSTOM_HEADERS", "a: b\nno colon", "line 2 of ANTHROPIC_CUSTOM_HEADERS"),
            ("ANTHROPIC_CUSTOM_HEADERS", "not a name: x", "line 1 of"),
            ("ANTHROPIC_CUSTOM_HEADERS", "a: \u{7}", "line 1 of"),
        ] {
            let error = with(variable, value).unwrap_err();
            assert!(error.contains(expected), "{variable}={value}: {error}");
        }
    }

    #[test]
    fn no_secret_is_shown() {
        let mut config = with("ANTHROPIC_CUSTOM_HEADERS", "x-a: hush").unwrap();
        config.credential = Credential::Token("hush".into());
        let shown = format!("{config:?}");
        assert!(!shown.contains("hush") && shown.contains("x-a: [hidden]"), "{shown}");
        let error = with("ANTHROPIC_CUSTOM_HEADERS", "hush").unwrap_err();
        assert!(!error.contains("hush"), "{error}");
        let error = with("ANTHROPIC_BASE_URL", "https://u:hush@x").unwrap_err();
        assert!(!error.contains("hush"), "{error}");
    }
}

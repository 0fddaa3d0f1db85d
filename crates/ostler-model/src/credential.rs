//! Credentials, and how a key is renewed while a session runs.

use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use tokio::time::Instant;

use super::{Header, ModelError};

/// A key or token. Never shown.
#[derive(Clone)]
#[non_exhaustive]
pub enum Credential {
    /// `x-api-key`.
    Key(String),
    /// `Authorization: Bearer`.
    Token(String),
    /// Both; the server uses the one it knows.
    Both {
        /// `x-api-key`.
        key: String,
        /// `Authorization: Bearer`.
        token: String,
    },
    /// The token of a login: `Authorization: Bearer`, and the API needs [`super::LOGIN_BETA`] in addition.
    Login(String),
}

impl Credential {
    /// The key and the token of the environment; `None` without either. An empty variable counts as absent.
    pub fn from_env(env: &impl Fn(&str) -> Option<String>) -> Option<Self> {
        let env = |name: &str| {
            env(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
        };
        match (env("ANTHROPIC_API_KEY"), env("ANTHROPIC_AUTH_TOKEN")) {
            // A gateway may need the token for itself and the key for the API behind it.
            (Some(key), Some(token)) => Some(Self::Both { key, token }),
            (Some(key), None) => Some(Self::Key(key)),
            (None, Some(token)) => Some(Self::Token(token)),
            (None, None) => None,
        }
    }

    /// The secret values in it.
    pub fn secrets(&self) -> Vec<&str> {
        match self {
            Self::Key(secret) | Self::Token(secret) | Self::Login(secret) => vec![secret],
            Self::Both { key, token } => vec![key, token],
        }
    }

    fn headers(&self) -> Result<Vec<(HeaderName, HeaderValue)>, ModelError> {
        let (key, token) = match self {
            Self::Key(key) => (Some(key), None),
            Self::Token(token) | Self::Login(token) => (None, Some(token)),
            Self::Both { key, token } => (Some(key), Some(token)),
        };
        let mut headers = Vec::new();
        if let Some(key) = key {
            headers.push((HeaderName::from_static("x-api-key"), sensitive(key.trim())?));
        }
        if let Some(token) = token {
            let token = format!("Bearer {}", token.trim());
            headers.push((header::AUTHORIZATION, sensitive(&token)?));
        }
        Ok(headers)
    }
}

fn sensitive(text: &str) -> Result<HeaderValue, ModelError> {
    let mut value = HeaderValue::from_str(text).map_err(|_| {
        ModelError::Connection(
            "the API key contains characters that are not valid in a header".to_owned(),
        )
    })?;
    value.set_sensitive(true);
    Ok(value)
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Key(_) => "Key([hidden])",
            Self::Token(_) => "Token([hidden])",
            Self::Login(_) => "Login([hidden])",
            Self::Both { .. } => "Both([hidden])",
        })
    }
}

/// Gets a new credential.
#[derive(Clone)]
pub struct Renewal {
    /// How long a credential is used. When the API refuses it, another one is requested at once.
    pub every: Duration,
    /// Returns a credential. May block: it is called on a blocking thread.
    pub give: Give,
}

/// Returns a credential, other than the one that the API has refused.
pub type Give = Arc<dyn Fn(Option<&Credential>) -> Result<Credential, String> + Send + Sync>;

impl std::fmt::Debug for Renewal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Renewal").field("every", &self.every).finish_non_exhaustive()
    }
}

/// The current credential.
#[derive(Debug)]
pub(crate) struct Keyring {
    current: Mutex<Current>,
    renewal: Option<Renewal>,
    /// Headers that the user sets, which the credential must not replace.
    taken: Vec<HeaderName>,
}

#[derive(Clone, Debug)]
struct Current {
    number: u64,
    credential: Credential,
    headers: HeaderMap,
    since: Instant,
}

impl Keyring {
    /// # Errors
    /// When the credential is not valid in a header.
    pub(crate) fn new(
        credential: &Credential,
        renewal: Option<Renewal>,
        headers: &[Header],
    ) -> Result<Self, ModelError> {
        let taken = headers.iter().filter_map(|header| header.name.parse().ok()).collect();
        let current = Current {
            number: 0,
            credential: credential.clone(),
            headers: HeaderMap::new(),
            since: Instant::now(),
        };
        let keyring = Self { current: Mutex::new(current), renewal, taken };
        keyring.replace(credential)?;
        Ok(keyring)
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock()
    }

    fn replace(&self, credential: &Credential) -> Result<(), ModelError> {
        let ours = |(name, _): &(HeaderName, HeaderValue)| !self.taken.contains(name);
        let headers = credential.headers()?.into_iter().filter(ours).collect();
        let mut current = self.current();
        let (number, credential) = (current.number + 1, credential.clone());
        *current = Current { number, credential, headers, since: Instant::now() };
        Ok(())
    }

    /// The headers to send, and the number of the credential.
    pub(crate) fn headers(&self) -> (u64, HeaderMap) {
        let current = self.current();
        (current.number, current.headers.clone())
    }

    /// Requests a new credential if this one is old.
    pub(crate) async fn freshen(&self) {
        let (number, since) = {
            let current = self.current();
            (current.number, current.since)
        };
        if self.renewal.as_ref().is_some_and(|renewal| since.elapsed() >= renewal.every) {
            self.request_another(number, None).await;
        }
    }

    /// Requests a new credential, because this one was refused. Another request may have done so meanwhile.
    pub(crate) async fn renew(&self, number: u64) {
        let refused = self.current().credential.clone();
        self.request_another(number, Some(refused)).await;
    }

    async fn request_another(&self, number: u64, refused: Option<Credential>) {
        let Some(renewal) = self.renewal.clone().filter(|_| self.current().number == number) else {
            return;
        };
        let given = tokio::task::spawn_blocking(move || (renewal.give)(refused.as_ref())).await;
        // Without a new one the old one is tried again, and the user reads the API's error about it.
        if let Ok(Ok(credential)) = given {
            let _ = self.replace(&credential);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn renewed_every(every: Duration) -> Keyring {
        let count = AtomicU32::new(0);
        let give = move |_: Option<&Credential>| match count.fetch_add(1, Ordering::Relaxed) {
            1 => Err("not this time".to_owned()),
            n => Ok(Credential::Key(format!("fresh-{n}"))),
        };
        let renewal = Renewal { every, give: Arc::new(give) };
        Keyring::new(&Credential::Key("first".into()), Some(renewal), &[]).unwrap()
    }

    fn key(keyring: &Keyring) -> (u64, String) {
        let (number, headers) = keyring.headers();
        (number, headers["x-api-key"].to_str().unwrap().to_owned())
    }

    #[tokio::test]
    async fn a_refused_key_is_renewed_once_for_all_requests_that_used_it() {
        let keyring = renewed_every(Duration::from_secs(300));
        let (number, first) = key(&keyring);
        assert_eq!(first, "first");
        keyring.freshen().await;
        assert_eq!(key(&keyring).1, "first", "it is not old");
        keyring.renew(number).await;
        keyring.renew(number).await;
        let (number, second) = key(&keyring);
        assert_eq!(second, "fresh-0");
        keyring.renew(number).await;
        assert_eq!(key(&keyring), (number, "fresh-0".to_owned()), "the old one stays");
        keyring.renew(number).await;
        assert_eq!(key(&keyring).1, "fresh-2");
    }

    #[tokio::test]
    async fn an_old_key_is_renewed_before_it_is_used() {
        let keyring = renewed_every(Duration::ZERO);
        keyring.freshen().await;
        assert_eq!(key(&keyring).1, "fresh-0");
    }

    #[test]
    fn a_header_that_the_user_sets_is_not_replaced() {
        let both = Credential::Both { key: "k".into(), token: "t".into() };
        let header = Header { name: "Authorization".into(), value: "Basic x".into() };
        let headers = Keyring::new(&both, None, &[header]).unwrap().headers().1;
        assert_eq!(headers.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["x-api-key"]);
    }
}

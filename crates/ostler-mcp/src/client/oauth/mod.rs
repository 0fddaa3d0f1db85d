//! Signing in to servers behind a URL, with OAuth.
//!
//! `rmcp` has the protocol: discovery (RFC 9728, RFC 8414), registration, PKCE, issuer checks and refresh. This module
//! decides when each of them happens, and keeps the outcome in a private file (`store.rs`). Its requests go through
//! `http.rs`.

mod callback;
mod http;
mod store;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use reqwest::Url;
use rmcp::transport::auth::{
    AuthError, AuthorizationCallback, AuthorizationManager, AuthorizationMetadata,
    CredentialStore as _, InMemoryCredentialStore, OAuthClientConfig, StoredCredentials,
    WWWAuthenticateParams,
};
use tracing::instrument::WithSubscriber as _;
use tracing::subscriber::NoSubscriber;

pub(super) use self::callback::Callback;
use self::http::OAuthClient;
use self::store::{Registration, Store, StoredAccount};

/// The scope of OpenID Connect with which a server issues a refresh token.
const OFFLINE: &str = "offline_access";
/// How long signing out waits for the authorization server.
const REVOCATION: Duration = Duration::from_secs(10);

/// How a client signs in to a server.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct OAuthOptions {
    /// The folder for tokens, which only the user can read. Without it tokens are kept in memory.
    pub folder: Option<PathBuf>,
    /// Which account, for a user who has several at one server. Each has tokens of its own.
    pub account: Option<String>,
    /// A client id that the authorization server issued before.
    pub client_id: Option<String>,
    /// The secret of that client.
    pub client_secret: Option<String>,
    /// The address of a document that describes this client, used as its id where a server supports that.
    pub client_metadata_url: Option<String>,
    /// The scopes to ask for. Without them the server's own are used.
    pub scopes: Vec<String>,
    /// The port of this machine to which the browser is led back; any free one by default.
    pub callback_port: Option<u16>,
}

impl OAuthOptions {
    /// Keeps tokens in this folder.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Uses this account of several at one server.
    #[must_use]
    pub fn account(mut self, name: impl Into<String>) -> Self {
        self.account = Some(name.into());
        self
    }

    /// Uses a client that was registered before.
    #[must_use]
    pub fn client(mut self, id: impl Into<String>, secret: Option<String>) -> Self {
        (self.client_id, self.client_secret) = (Some(id.into()), secret);
        self
    }

    /// Names the document that describes this client.
    #[must_use]
    pub fn client_metadata_url(mut self, url: impl Into<String>) -> Self {
        self.client_metadata_url = Some(url.into());
        self
    }

    /// Has the browser led back to this port, for authorization servers that know one address only.
    #[must_use]
    pub fn callback_port(mut self, port: u16) -> Self {
        self.callback_port = Some(port);
        self
    }

    /// Asks for these scopes only.
    #[must_use]
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }
}

impl std::fmt::Debug for OAuthOptions {
    /// Without the secret.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("OAuthOptions")
            .field("folder", &self.folder)
            .field("account", &self.account)
            .field("client_id", &self.client_id)
            .field("client_metadata_url", &self.client_metadata_url)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

/// An account at one server. Its URL never changes, so a token goes to the server that it was issued for.
pub(super) struct Account {
    url: Url,
    client_name: String,
    options: OAuthOptions,
    client: Arc<OAuthClient>,
    store: Store,
    /// The last challenge of the server: what it wants a client to do.
    challenge: Mutex<Option<String>>,
    /// Locked while a token is renewed, so that a refresh token is used once.
    state: tokio::sync::Mutex<State>,
}

struct State {
    manager: AuthorizationManager,
    /// The tokens; the manager reads and writes them here.
    tokens: InMemoryCredentialStore,
    registration: Option<Registration>,
    /// Whether the manager knows the authorization server and the client.
    is_ready: bool,
    /// Whether the file has been read.
    is_loaded: bool,
}

impl Account {
    pub(super) async fn new(
        server: &str,
        url: Url,
        client_name: &str,
        options: OAuthOptions,
    ) -> Result<Self, String> {
        let client = Arc::new(OAuthClient::default());
        let manager =
            AuthorizationManager::new_with_oauth_http_client(url.clone(), client.clone()).await;
        let mut manager = manager.map_err(|error| error.to_string())?;
        let tokens = InMemoryCredentialStore::new();
        manager.set_credential_store(tokens.clone());
        let (folder, account) = (options.folder.clone(), options.account.clone());
        let store = Store::new(folder, server, &url, account);
        let (registration, is_ready, is_loaded) = (None, false, false);
        let state = State { manager, tokens, registration, is_ready, is_loaded };
        Ok(Self {
            url,
            client_name: client_name.to_owned(),
            options,
            client,
            store,
            challenge: Mutex::default(),
            state: tokio::sync::Mutex::new(state),
        })
    }

    /// Notes why the server refused a request.
    pub(super) fn challenged(&self, challenge: String) {
        *self.challenge.lock() = Some(challenge);
    }

    /// The token for the next request, renewed if it is about to expire; `None` if the user has not signed in.
    pub(super) async fn token(&self) -> Result<Option<String>, String> {
        let mut state = self.loaded().await?;
        match state.access_token().await {
            Some(token) if token.expires_soon => self.renew(&mut state).await,
            token => Ok(token.map(|token| token.text)),
        }
    }

    /// Another token, after the server refused `sent`, or a request without one; `None` if the user has to sign in.
    pub(super) async fn token_after(&self, sent: Option<&str>) -> Result<Option<String>, String> {
        let mut state = self.loaded().await?;
        match state.access_token().await {
            // Another request renewed it meanwhile.
            Some(token) if Some(&*token.text) != sent => Ok(Some(token.text)),
            Some(_) => self.renew(&mut state).await,
            // Another process may have signed in meanwhile.
            None => {
                self.reload(&mut state).await?;
                Ok(state.access_token().await.map(|token| token.text))
            }
        }
    }

    /// Begins to sign in; returns the address that the user opens in a browser. It leads back to `redirect_uri`.
    pub(super) async fn begin(&self, redirect_uri: &str) -> Result<String, String> {
        let mut state = self.loaded().await?;
        let challenge = self.challenge.lock().clone();
        let stored = state.stored().await;
        let more = self.more_scopes(challenge.as_deref(), stored.as_ref())?;
        let resolution = state.manager.resolve_metadata_from_challenge(challenge.as_deref()).await;
        let metadata = safe(resolution.map_err(text)?.metadata)?;
        state.manager.set_metadata(metadata.clone());
        if stored.is_some_and(|stored| stored.issuer != metadata.issuer) {
            // What one authorization server issued is not for another one to see.
            state.tokens.clear().await.map_err(text)?;
            state.registration = None;
            self.save(&state).await?;
        }
        let scopes = match (more, self.options.scopes.is_empty()) {
            (Some(scopes), _) => with_refresh(scopes, &metadata),
            (None, false) => self.options.scopes.clone(),
            (None, true) => state.manager.select_initial_scopes(&[]).await,
        };
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let registration = self.register(&mut state, &metadata, redirect_uri, &scopes).await?;
        state.manager.configure_client(registration.config()).map_err(text)?;
        (state.registration, state.is_ready) = (Some(registration), true);
        let url = state.manager.get_authorization_url(&scopes).await.map_err(text)?;
        if !scopes.contains(&OFFLINE) {
            return Ok(url);
        }
        // OpenID Connect: without this, a server ignores the scope and issues no refresh token.
        let mut url = Url::parse(&url).map_err(|error| error.to_string())?;
        url.query_pairs_mut().append_pair("prompt", "consent");
        Ok(url.into())
    }

    /// Finishes signing in; `callback` is the address to which the browser was led back.
    pub(super) async fn finish(&self, callback: &str) -> Result<(), String> {
        if let Some(refusal) = refusal(callback) {
            return Err(refusal);
        }
        let parts = AuthorizationCallback::from_redirect_url(callback).map_err(text)?;
        let state = self.loaded().await?;
        let (code, csrf, issuer) = (&parts.code, &parts.csrf_token, parts.issuer.as_deref());
        let exchange = state.manager.exchange_code_for_token_with_issuer(code, csrf, issuer);
        // `rmcp` logs the code.
        exchange.with_subscriber(NoSubscriber::new()).await.map_err(text)?;
        *self.challenge.lock() = None;
        let _lock = self.store.lock().await?;
        self.save(&state).await
    }

    /// Deletes tokens and registration, and has the authorization server end them, if it can.
    pub(super) async fn forget(&self) -> Result<(), String> {
        let mut state = self.state.lock().await;
        let _lock = self.store.lock().await?;
        self.reload(&mut state).await?;
        // Whatever the server does, the tokens are gone from here.
        tokio::time::timeout(REVOCATION, self.revoke(&mut state)).await.ok();
        state.tokens.clear().await.map_err(text)?;
        (state.registration, state.is_loaded, state.is_ready) = (None, true, false);
        self.store.delete().await
    }

    /// Tells the authorization server that the tokens are no longer used (RFC 7009).
    async fn revoke(&self, state: &mut State) -> Option<()> {
        let token = store::main_token(&state.stored().await?)?;
        self.prepare(state).await.ok()?;
        let Registration { client_id, client_secret, .. } = state.registration.as_ref()?;
        let metadata = state.manager.resolve_metadata().await.ok()?.metadata;
        let endpoint = metadata.additional_fields.get("revocation_endpoint")?.as_str()?;
        self.client.revoke(endpoint, &token, client_id, client_secret.as_deref()).await.ok()
    }

    /// The scopes for signing in once more, if the server asked for more than it granted before.
    fn more_scopes(
        &self,
        challenge: Option<&str>,
        stored: Option<&StoredCredentials>,
    ) -> Result<Option<Vec<String>>, String> {
        let (Some(challenge), Some(stored)) = (challenge, stored) else { return Ok(None) };
        let params = WWWAuthenticateParams::parse(challenge, &self.url);
        if !params.is_insufficient_scope() {
            return Ok(None);
        }
        let asked = params.scope.unwrap_or_default();
        let mut scopes = stored.granted_scopes.clone();
        let before = scopes.len();
        for scope in asked.split_whitespace() {
            if !scopes.iter().any(|granted| granted == scope) {
                scopes.push(scope.to_owned());
            }
        }
        // Signing in again would change nothing, again and again.
        if scopes.len() == before {
            return Err(format!(
                "the server granted the scope `{asked}`, and refuses requests with it"
            ));
        }
        Ok(Some(scopes))
    }

    /// The client's registration: given by the user, a document, the one from before, or a new one.
    async fn register(
        &self,
        state: &mut State,
        metadata: &AuthorizationMetadata,
        redirect_uri: &str,
        scopes: &[&str],
    ) -> Result<Registration, String> {
        let of = |client_id: &str, client_secret: Option<String>| Registration {
            client_id: client_id.to_owned(),
            client_secret,
            redirect_uri: redirect_uri.to_owned(),
        };
        if let Some(id) = &self.options.client_id {
            return Ok(of(id, self.options.client_secret.clone()));
        }
        let knows_documents =
            metadata.additional_fields.get("client_id_metadata_document_supported");
        if let Some(url) = &self.options.client_metadata_url
            && knows_documents.is_some_and(|it| it == true)
        {
            return Ok(of(url, None));
        }
        let known = state.registration.as_ref();
        if let Some(known) = known.filter(|known| known.redirect_uri == redirect_uri) {
            return Ok(known.clone());
        }
        let (manager, name) = (&mut state.manager, &self.client_name);
        let registered = match manager.register_client(name, redirect_uri, scopes).await {
            // Some servers know the scopes of their resources only when a user signs in.
            Err(AuthError::RegistrationFailed(_)) if !scopes.is_empty() => {
                manager.register_client(name, redirect_uri, &[]).await
            }
            registered => registered,
        };
        let OAuthClientConfig { client_id, client_secret, .. } = registered.map_err(text)?;
        Ok(of(&client_id, client_secret))
    }

    /// Uses the refresh token; `None` if the user has to sign in again.
    async fn renew(&self, state: &mut State) -> Result<Option<String>, String> {
        let _lock = self.store.lock().await?;
        if self.reload(state).await? {
            match state.access_token().await {
                Some(token) if !token.expires_soon => return Ok(Some(token.text)),
                Some(_) => {}
                None => return Ok(None),
            }
        }
        if !state.is_ready && !self.prepare(state).await? {
            return Ok(None);
        }
        match state.manager.refresh_token().await {
            Ok(_) => {}
            Err(AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_)) => {
                return Ok(None);
            }
            Err(error) => return Err(text(error)),
        }
        self.save(state).await?;
        Ok(state.access_token().await.map(|token| token.text))
    }

    /// Finds the authorization server of tokens that were stored before. If it is another one now, they are deleted.
    async fn prepare(&self, state: &mut State) -> Result<bool, String> {
        let (Some(registration), Some(stored)) = (&state.registration, state.stored().await) else {
            return Ok(false);
        };
        let config = registration.config();
        let metadata = safe(state.manager.resolve_metadata().await.map_err(text)?.metadata)?;
        if metadata.issuer != stored.issuer {
            state.tokens.clear().await.map_err(text)?;
            state.registration = None;
            self.save(state).await?;
            return Ok(false);
        }
        state.manager.set_metadata(metadata);
        state.manager.configure_client(config).map_err(text)?;
        state.is_ready = true;
        Ok(true)
    }

    async fn loaded(&self) -> Result<tokio::sync::MutexGuard<'_, State>, String> {
        let mut state = self.state.lock().await;
        if !state.is_loaded {
            if let Some(account) = self.store.load().await? {
                state.tokens.save(account.tokens).await.map_err(text)?;
                state.registration = Some(account.registration);
            }
            state.is_loaded = true;
        }
        Ok(state)
    }

    /// Reads the file again: another process may have renewed the token, signed in or signed out. Returns whether the
    /// token is another one.
    async fn reload(&self, state: &mut State) -> Result<bool, String> {
        if !self.store.has_place() {
            return Ok(false);
        }
        let before = state.access_token().await.map(|token| token.text);
        let account = self.store.load().await?;
        let now = account.as_ref().and_then(|it| store::AccessToken::of(&it.tokens));
        if now.map(|token| token.text) == before {
            return Ok(false);
        }
        match account {
            Some(account) => {
                state.tokens.save(account.tokens).await.map_err(text)?;
                state.registration = Some(account.registration);
            }
            None => {
                state.tokens.clear().await.map_err(text)?;
                state.registration = None;
            }
        }
        state.is_ready = false;
        Ok(true)
    }

    async fn save(&self, state: &State) -> Result<(), String> {
        match (&state.registration, state.stored().await) {
            (Some(registration), Some(tokens)) => {
                let registration = registration.clone();
                self.store.save(StoredAccount { registration, tokens }).await
            }
            _ => self.store.delete().await,
        }
    }
}

impl State {
    async fn stored(&self) -> Option<StoredCredentials> {
        self.tokens.load().await.ok().flatten().filter(|stored| stored.token_response.is_some())
    }

    async fn access_token(&self) -> Option<store::AccessToken> {
        store::AccessToken::of(&self.stored().await?)
    }
}

impl Registration {
    fn config(&self) -> OAuthClientConfig {
        let config = OAuthClientConfig::new(&self.client_id, &self.redirect_uri);
        match &self.client_secret {
            Some(secret) => config.with_client_secret(secret),
            None => config,
        }
    }
}

/// These scopes, and the one for a refresh token if the authorization server has it.
fn with_refresh(mut scopes: Vec<String>, metadata: &AuthorizationMetadata) -> Vec<String> {
    let supported = metadata.scopes_supported.iter().flatten();
    let is_there = scopes.iter().any(|scope| scope == OFFLINE);
    if !is_there && supported.into_iter().any(|scope| scope == OFFLINE) {
        scopes.push(OFFLINE.to_owned());
    }
    scopes
}

/// Metadata whose endpoints a code, a secret or a user may be sent to.
fn safe(metadata: AuthorizationMetadata) -> Result<AuthorizationMetadata, String> {
    http::check(&metadata.authorization_endpoint)?;
    http::check(&metadata.token_endpoint)?;
    metadata.registration_endpoint.iter().try_for_each(|endpoint| http::check(endpoint))?;
    Ok(metadata)
}

/// What the authorization server said in the callback, if it refused.
fn refusal(callback: &str) -> Option<String> {
    let url = Url::parse(callback).ok()?;
    let of = |name: &str| {
        let mut pairs = url.query_pairs();
        pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    };
    let error = of("error")?;
    Some(match of("error_description") {
        Some(description) => format!("the authorization server refused: {error}: {description}"),
        None => format!("the authorization server refused: {error}"),
    })
}

fn text(error: AuthError) -> String {
    error.to_string()
}

//! Signing in and out of a server behind a URL.

use std::sync::Arc;

use super::oauth::{Account, Callback};
use super::{Client, Endpoint, Error, http};

/// A user who signs in: see [`Client::sign_in`].
#[non_exhaustive]
pub struct SignIn {
    client: Client,
    callback: Callback,
    /// The address that the user opens in a browser.
    pub url: String,
    /// The value in the address that the browser returns.
    pub state: String,
}

impl SignIn {
    /// The port of this machine to which the browser is led back.
    pub fn port(&self) -> u16 {
        self.callback.port()
    }

    /// Waits for the browser, at most ten minutes, and finishes signing in. The user can also paste the address that
    /// the browser was led to: give it to [`Client::finish_sign_in`].
    ///
    /// # Errors
    /// If the browser does not come back, or for the reasons of [`Client::finish_sign_in`].
    pub async fn finished(self) -> Result<(), Error> {
        let Self { client, callback, state, .. } = self;
        let address = callback.wait(&state).await;
        client.finish_sign_in(&address.map_err(|reason| client.sign_in_error(reason))?).await
    }
}

impl std::fmt::Debug for SignIn {
    /// Without the address, which is for the user alone.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SignIn").field("port", &self.port()).finish_non_exhaustive()
    }
}

impl Client {
    /// Begins to sign in with OAuth; returns the address that the user opens in a browser. After that the browser is
    /// led to `redirect_uri`, and [`Client::finish_sign_in`] needs the whole address that it was led to.
    ///
    /// # Errors
    /// If the server has no OAuth, its authorization server cannot be found or does not accept this client, or the
    /// configuration already has an `Authorization` header.
    pub async fn begin_sign_in(&self, redirect_uri: &str) -> Result<String, Error> {
        self.signing_in()
            .await?
            .begin(redirect_uri)
            .await
            .map_err(|reason| self.sign_in_error(reason))
    }

    /// Begins to sign in with OAuth. The browser is led back to a port of this machine, where [`SignIn::finished`] waits.
    ///
    /// # Errors
    /// Those of [`Client::begin_sign_in`], and if no port can be opened.
    pub async fn sign_in(&self) -> Result<SignIn, Error> {
        let callback = Callback::open(self.inner.options.oauth.callback_port).await;
        let callback = callback.map_err(|reason| self.sign_in_error(reason))?;
        let (url, state) = self.begin_sign_in_with_state(&callback.redirect_uri()).await?;
        Ok(SignIn { client: self.clone(), callback, url, state })
    }

    /// [`Client::begin_sign_in`], with the value `state` in the address that the browser returns.
    ///
    /// # Errors
    /// Those of [`Client::begin_sign_in`].
    pub async fn begin_sign_in_with_state(
        &self,
        redirect_uri: &str,
    ) -> Result<(String, String), Error> {
        let url = self.begin_sign_in(redirect_uri).await?;
        let state = reqwest::Url::parse(&url).ok().and_then(|url| {
            let (_, state) = url.query_pairs().find(|(key, _)| key == "state")?;
            Some(state.into_owned())
        });
        Ok((url, state.unwrap_or_default()))
    }

    /// Finishes signing in. Requests carry the token from now on; a client that could not connect before has to
    /// [`reconnect`](Client::reconnect).
    ///
    /// # Errors
    /// If `callback` does not belong to the last [`Client::begin_sign_in`], comes from another authorization server, or
    /// is refused.
    pub async fn finish_sign_in(&self, callback: &str) -> Result<(), Error> {
        self.signing_in().await?.finish(callback).await.map_err(|reason| self.sign_in_error(reason))
    }

    /// Deletes the tokens. Requests carry none from now on.
    ///
    /// # Errors
    /// If the file with the tokens cannot be deleted.
    pub async fn sign_out(&self) -> Result<(), Error> {
        match self.account().await? {
            Some(account) => account.forget().await.map_err(|reason| self.sign_in_error(reason)),
            None => Ok(()),
        }
    }

    /// The account, unless the server is not behind a URL or the user configured a token.
    pub(super) async fn account(&self) -> Result<Option<Arc<Account>>, Error> {
        let inner = &*self.inner;
        let make = || async {
            let (Endpoint::Http(remote) | Endpoint::Sse(remote)) = &inner.endpoint else {
                return Ok(None);
            };
            let has_token =
                remote.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
            // An address that is not valid is reported when the connection is made.
            let Ok(url) = http::parse(&remote.url) else { return Ok(None) };
            if has_token {
                return Ok(None);
            }
            let client_name = &inner.options.client_info.0;
            let oauth = inner.options.oauth.clone();
            Account::new(&inner.name, url, client_name, oauth).await.map(|it| Some(Arc::new(it)))
        };
        let account = inner.account.get_or_try_init(make).await;
        account.cloned().map_err(|reason| self.sign_in_error(reason))
    }

    async fn signing_in(&self) -> Result<Arc<Account>, Error> {
        let reason = "it has no URL, or its configuration has an `Authorization` header; \
                      remove the header to sign in with a browser";
        self.account().await?.ok_or_else(|| self.sign_in_error(reason.to_owned()))
    }

    fn sign_in_error(&self, reason: String) -> Error {
        Error::SignIn { server: self.inner.name.clone(), reason }
    }
}

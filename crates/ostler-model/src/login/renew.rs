//! Requests another token from the vendor's token endpoint, with the protocol OAuth 2.0 (RFC 6749, section 6).

use std::time::Duration;

use ostler_http::Certificates;
use reqwest::{Client, Url};
use serde::Deserialize;
use serde_json::json;

use super::Tokens;

/// The vendor's token endpoint.
const ENDPOINT: &str = "https://platform.claude.com/v1/oauth/token";
/// The public id of the program that the tokens were issued to.
const CLIENT: &str = "9d1c250a-e61b-44d9-88ed-5944d1962f5e";
/// How long the request may take.
const TIME_LIMIT: Duration = Duration::from_secs(15);
/// The longest response, in bytes.
const LONGEST: usize = 256 * 1024;

/// Where tokens are renewed.
#[derive(Clone, Debug)]
pub(super) struct Endpoint(Url);

/// The response.
#[derive(Deserialize)]
struct Renewed {
    access_token: String,
    refresh_token: Option<String>,
    /// Seconds.
    expires_in: Option<u64>,
    scope: Option<String>,
}

impl Endpoint {
    /// A refresh token is worth as much as a password, so it is only sent encrypted, or to this machine.
    pub(super) fn new(address: Option<&str>) -> Result<Self, String> {
        let url = Url::parse(address.unwrap_or(ENDPOINT))
            .map_err(|error| format!("OSTLER_LOGIN_ENDPOINT is not an address: {error}"))?;
        if url.scheme() != "https" && !ostler_http::is_this_machine(&url) {
            return Err("OSTLER_LOGIN_ENDPOINT must begin with https:".to_owned());
        }
        Ok(Self(url))
    }

    /// Blocks until the response is there.
    ///
    /// # Errors
    /// A reason without a token in it.
    pub(super) fn renew(&self, tokens: &Tokens, now: Duration) -> Result<Tokens, String> {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return Err("its token has expired, and cannot be renewed here".to_owned());
        };
        runtime.block_on(self.request(tokens, now))
    }

    async fn request(&self, tokens: &Tokens, now: Duration) -> Result<Tokens, String> {
        let body = json!({
            "grant_type": "refresh_token",
            "refresh_token": tokens.refresh,
            "client_id": CLIENT,
            "scope": tokens.scopes.join(" "),
        });
        let sent = self.client()?.post(self.0.clone()).json(&body).timeout(TIME_LIMIT).send();
        let failed = |error: reqwest::Error| {
            format!("its token has expired and could not be renewed: {}", error.without_url())
        };
        let mut response = sent.await.map_err(failed)?;
        let status = response.status();
        if !status.is_success() {
            return Err(format!(
                "its token has expired and was not renewed ({status}); log in with Claude Code again"
            ));
        }
        let mut text = Vec::new();
        while let Some(bytes) = response.chunk().await.map_err(failed)? {
            text.extend_from_slice(&bytes);
            if text.len() > LONGEST {
                return Err("the response with the renewed token is too long".to_owned());
            }
        }
        // The error of the parser could quote a token.
        let renewed: Renewed = serde_json::from_slice(&text)
            .map_err(|_| "the response with the renewed token is malformed".to_owned())?;
        let scopes = |scope: String| scope.split_whitespace().map(str::to_owned).collect();
        Ok(Tokens {
            access: renewed.access_token,
            refresh: renewed.refresh_token.or_else(|| tokens.refresh.clone()),
            expires: renewed.expires_in.map(|seconds| now + Duration::from_secs(seconds)),
            scopes: renewed.scope.map_or_else(|| tokens.scopes.clone(), scopes),
            plan: tokens.plan.clone(),
        })
    }

    fn client(&self) -> Result<Client, String> {
        let is_here = ostler_http::is_this_machine(&self.0);
        let certificates = match is_here && self.0.scheme() == "http" {
            true => Certificates::None,
            false => Certificates::System,
        };
        let builder = ostler_http::client(certificates).map_err(|error| error.to_string())?;
        // A redirect would send the token to another address.
        let builder = builder.redirect(reqwest::redirect::Policy::none());
        let builder = if is_here { builder.no_proxy() } else { builder };
        builder.build().map_err(|error| error.to_string())
    }
}

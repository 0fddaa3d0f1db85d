//! The requests of OAuth: bounded in size and time, and only over TLS or to this machine.

use std::sync::OnceLock;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use futures::StreamExt as _;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Client, Url};
use rmcp::transport::auth::{
    OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRedirectPolicy,
    OAuthHttpRequest,
};

use super::super::http;

/// The size limit of an answer, in bytes.
const LIMIT: usize = 1024 * 1024;
const TIMEOUT: Duration = Duration::from_secs(30);
const MAX_REDIRECTS: usize = 5;

/// Built with the first request: most servers need no authentication, and reading certificates takes time.
#[derive(Default)]
pub(super) struct OAuthClient(OnceLock<Result<Clients, String>>);

struct Clients {
    following: Client,
    stopping: Client,
}

impl Clients {
    fn new() -> Result<Self, String> {
        let build = |policy| {
            let builder = http::builder().map_err(|ended| format!("{ended:?}"))?;
            let builder = builder.timeout(TIMEOUT).redirect(policy);
            builder.build().map_err(|error| http::chain(&error))
        };
        let follow = reqwest::redirect::Policy::custom(|attempt| {
            match (check(attempt.url().as_str()), attempt.previous().len() > MAX_REDIRECTS) {
                (Err(reason), _) => attempt.error(reason),
                (Ok(()), true) => attempt.error(format!("exceeded {MAX_REDIRECTS} redirects")),
                (Ok(()), false) => attempt.follow(),
            }
        });
        Ok(Self { following: build(follow)?, stopping: build(reqwest::redirect::Policy::none())? })
    }
}

impl OAuthHttpClient for OAuthClient {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let follows = matches!(request.redirect_policy, OAuthHttpRedirectPolicy::Follow);
            self.send(request.request, follows).await
        })
    }
}

impl OAuthClient {
    async fn send(
        &self,
        request: ::http::Request<Vec<u8>>,
        follows: bool,
    ) -> Result<::http::Response<Vec<u8>>, OAuthHttpClientError> {
        let clients = self.0.get_or_init(Clients::new).as_ref().map_err(Clone::clone)?;
        let client = if follows { &clients.following } else { &clients.stopping };
        let request = reqwest::Request::try_from(request)?;
        check(request.url().as_str())?;
        let response = client.execute(request).await.map_err(|error| http::chain(&error))?;
        let mut answer = ::http::Response::builder().status(response.status());
        for (name, value) in response.headers() {
            answer = answer.header(name, value);
        }
        let (mut stream, mut body) = (response.bytes_stream(), Vec::new());
        while let Some(bytes) = stream.next().await {
            let bytes = bytes.map_err(|error| http::chain(&error))?;
            if body.len() + bytes.len() > LIMIT {
                let reason = format!("the answer is larger than {LIMIT} bytes");
                return Err(OAuthHttpClientError::from(reason));
            }
            body.extend_from_slice(&bytes);
        }
        Ok(answer.body(body)?)
    }

    /// Ends a token at the authorization server.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses.
    pub(super) async fn revoke(
        &self,
        endpoint: &str,
        token: &str,
        client_id: &str,
        client_secret: Option<&str>,
    ) -> Result<(), OAuthHttpClientError> {
        let form = |pairs: &[(&str, &str)]| {
            let mut url = Url::parse("http://form").expect("a constant address");
            url.query_pairs_mut().extend_pairs(pairs);
            url.query().unwrap_or_default().to_owned()
        };
        let encoded = |text: &str| form(&[("", text)]).trim_start_matches('=').to_owned();
        let mut request = ::http::Request::post(endpoint)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let mut pairs = vec![("token", token)];
        match client_secret {
            Some(secret) => {
                let basic = format!("{}:{}", encoded(client_id), encoded(secret));
                request = request.header(AUTHORIZATION, format!("Basic {}", BASE64.encode(basic)));
            }
            None => pairs.push(("client_id", client_id)),
        }
        let request = request.body(form(&pairs).into_bytes())?;
        let answer = self.send(request, false).await?;
        match answer.status().is_success() {
            true => Ok(()),
            false => Err(format!("the server answered {}", answer.status()).into()),
        }
    }
}

/// Codes and tokens travel over TLS, or do not leave this machine.
pub(super) fn check(url: &str) -> Result<(), String> {
    let parsed = Url::parse(url).map_err(|error| format!("`{url}`: {error}"))?;
    match parsed.scheme() {
        "https" => Ok(()),
        "http" if ostler_http::is_this_machine(&parsed) => Ok(()),
        scheme => Err(format!(
            "the authorization server's address `{scheme}://{}` is not safe: it must begin with `https://`",
            parsed.host_str().unwrap_or_default()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    // Mutant: `check` accepts every `http` address.
    #[test]
    fn tokens_travel_over_tls_or_stay_on_this_machine() {
        for url in ["https://a.example/token", "http://localhost:9/x", "http://127.0.0.1/x"] {
            assert_eq!(check(url), Ok(()), "{url}");
        }
        for url in ["http://a.example/token", "javascript:alert(1)", "file:///etc/passwd", "a"] {
            assert!(check(url).is_err(), "{url}");
        }
    }
}

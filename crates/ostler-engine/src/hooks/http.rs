//! Hooks that a server answers: the event is posted as JSON, the answer is the body of a successful response.
//!
//! Anything else (no connection, a redirect, another status) is a failure of the hook, which counts as an objection
//! where it guards.

use std::time::Duration;

use ostler_http::Certificates;
use ostler_process::Environment;
use ostler_proto::hook::{HookEvent, HookOutput};
use reqwest::Url;
use tokio::sync::OnceCell;

use super::command;
use super::registry::HttpHook;
use crate::disk::on_disk;
use crate::interpolate::{self, Syntax};
use crate::model::is_loopback;

/// The most bytes of an answer.
const MAX_ANSWER: usize = 1024 * 1024;

/// # Errors
/// When there is no answer or it is malformed.
pub(super) async fn ask(
    clients: &Clients,
    hook: &HttpHook,
    event: &HookEvent,
    input: String,
    env: &Environment,
) -> Result<(String, HookOutput), String> {
    let url = Url::parse(&hook.url).map_err(|error| format!("{}: {error}", hook.url))?;
    let client = clients.get(&url).await?;
    let mut request = client.post(url).header("content-type", "application/json").body(input);
    for (name, value) in &hook.headers {
        let value = fill(value, &hook.variables, |name| env.get(name));
        request = request.header(name, value);
    }
    let sent = request.send().await;
    // Without the URL: it may contain a secret, and the settings show it anyway.
    let mut response =
        sent.map_err(|error| format!("cannot reach its server: {}", error.without_url()))?;
    if !response.status().is_success() {
        return Err(format!("was answered with status {}", response.status().as_u16()));
    }
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(piece)) if body.len() + piece.len() <= MAX_ANSWER => body.extend(piece),
            Ok(Some(_)) => return Err(format!("was answered with more than {MAX_ANSWER} bytes")),
            Ok(None) => break,
            Err(error) => {
                return Err(format!("received an incomplete answer: {}", error.without_url()));
            }
        }
    }
    let body = String::from_utf8_lossy(&body).into_owned();
    let output = command::answer(event, body.trim())?;
    Ok((body, output))
}

/// The HTTP clients of a session's hooks, each created when it is first needed: creating one reads the system's
/// certificates, and a new client for every call would connect again for every call.
#[derive(Debug, Default)]
pub(super) struct Clients {
    /// For servers on this machine, without encryption.
    plain_here: OnceCell<reqwest::Client>,
    /// For servers on this machine: without a proxy.
    here: OnceCell<reqwest::Client>,
    elsewhere: OnceCell<reqwest::Client>,
}

/// How long an idle connection is reused. Many servers close theirs after five seconds; a request on a connection that
/// the server closes would fail, which for a guard means no.
const KEPT: Duration = Duration::from_secs(4);

impl Clients {
    async fn get(&self, url: &Url) -> Result<reqwest::Client, String> {
        let (is_here, needs_certificates) = (is_loopback(url), url.scheme() != "http");
        let client = match (is_here, needs_certificates) {
            (true, false) => &self.plain_here,
            (true, true) => &self.here,
            (false, _) => &self.elsewhere,
        };
        let made = client.get_or_try_init(|| {
            on_disk(move || {
                let certificates = match is_here && !needs_certificates {
                    true => Certificates::None,
                    false => Certificates::System,
                };
                // A redirect would send the headers to another address.
                let mut client = ostler_http::client(certificates)
                    .map_err(|error| error.to_string())?
                    .redirect(reqwest::redirect::Policy::none())
                    .pool_idle_timeout(KEPT);
                if is_here {
                    client = client.no_proxy();
                }
                client.build().map_err(|error| format!("cannot be sent: {error}"))
            })
        });
        made.await.cloned()
    }
}

/// Fills variables into a header: `$NAME` and `${NAME}`. A variable that is not allowed, or not set, is empty.
fn fill(text: &str, allowed: &[String], look_up: impl Fn(&str) -> Option<String>) -> String {
    interpolate::fill(text, Syntax::Shell, |name| {
        let is_allowed = allowed.iter().any(|allowed| allowed == name);
        Some(is_allowed.then(|| look_up(name)).flatten().unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_allowed_variables_reach_a_header() {
        let fill = |text| {
            let look_up = |name: &str| Some(format!("<{name}>"));
            fill(text, &["TOKEN".to_owned()], look_up)
        };
        assert_eq!(fill("Bearer $TOKEN"), "Bearer <TOKEN>");
        assert_eq!(fill("${TOKEN}x$TOKEN."), "<TOKEN>x<TOKEN>.");
        assert_eq!(fill("a $HOME ${HOME} b"), "a   b");
        assert_eq!(fill("5 $ and ${"), "5 $ and ${");
    }
}

//! How a connection begins.
//!
//! Since MCP 2026-07-28 a server has no sessions: `server/discover` asks what it offers, and every request carries what
//! the server must know about the client. Older servers begin a session with `initialize`.
//!
//! A server behind a URL is asked with `server/discover` first. If it refuses, the connection is made again with
//! `initialize`. All others are asked with `initialize` first: programs exist that end at a message which they do not
//! expect, and to start a program twice takes longer than a second request.

use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::stdio::StderrTail;
use super::{
    CallOptions, Client, ClientOptions, Ended, Endpoint, Error, Inner, Link, ServerDetails,
    Session, listen,
};
use crate::server::VERSIONS;

/// The revision without sessions.
pub(super) const STATELESS: &str = "2026-07-28";

/// A server may take this part of the startup timeout to answer one handshake, before the other one is tried too.
const PATIENCE: u32 = 3;

/// The error code of a server that does not know the version of a request.
const UNSUPPORTED_VERSION: i64 = -32022;

impl Client {
    /// Connects, and makes the handshake that the server understands.
    pub(super) async fn open(&self, stderr: StderrTail) -> Result<(Session, ServerDetails), Error> {
        let Inner { endpoint, options, has_sessions, .. } = &*self.inner;
        let known = options.manifest.as_ref().and_then(|known| known.get("initializeResult"));
        match (endpoint, known) {
            (Endpoint::Custom(_), Some(known)) => {
                Ok((self.link(stderr).await?, self.details_of(known)?))
            }
            (Endpoint::Http(_), _) if has_sessions.load(Ordering::Relaxed) => {
                self.with_session(stderr).await
            }
            (Endpoint::Http(_), _) => self.with_either(stderr).await,
            _ => {
                let session = self.link(stderr).await?;
                match self.initialize(&session).await {
                    Err(error @ Error::Refused { .. }) => {
                        let discover = self.discover(&session);
                        let limited = tokio::time::timeout(self.patience(), discover).await;
                        let details = limited.ok().and_then(Result::ok).ok_or(error)?;
                        Ok((session, details))
                    }
                    answer => Ok((session, self.details_of(&answer?)?)),
                }
            }
        }
    }

    /// Connects to a server behind a URL: without a session if it can, otherwise with one.
    async fn with_either(&self, stderr: StderrTail) -> Result<(Session, ServerDetails), Error> {
        let mut newer = pin!(self.without_session(stderr.clone()));
        if let Ok(outcome) = tokio::time::timeout(self.patience(), &mut newer).await {
            return match outcome {
                Err(error) if is_older(&error) => {
                    self.with_session(stderr).await.map_err(|it| with_refusal(it, &error))
                }
                outcome => outcome,
            };
        }
        // The server is slow, or never answers what it does not know. The first handshake that succeeds counts.
        let mut older = pin!(self.with_session(stderr));
        tokio::select! {
            outcome = &mut newer => match outcome {
                Err(error) if is_older(&error) => {
                    older.await.map_err(|it| with_refusal(it, &error))
                }
                outcome => outcome,
            },
            outcome = &mut older => match outcome {
                Err(error) if !error.needs_auth() => newer.await.map_err(|_| error),
                outcome => outcome,
            },
        }
    }

    fn patience(&self) -> Duration {
        self.inner.options.startup_timeout / PATIENCE
    }

    async fn without_session(&self, stderr: StderrTail) -> Result<(Session, ServerDetails), Error> {
        let session = self.link(stderr).await?;
        let details = self.discover(&session).await?;
        Ok((session, details))
    }

    async fn with_session(&self, stderr: StderrTail) -> Result<(Session, ServerDetails), Error> {
        let session = self.link(stderr).await?;
        let answer = self.initialize(&session).await?;
        let details = self.details_of(&answer)?;
        self.inner.has_sessions.store(true, Ordering::Relaxed);
        Ok((session, details))
    }

    async fn link(&self, stderr: StderrTail) -> Result<Session, Error> {
        let Inner { name, endpoint, options, .. } = &*self.inner;
        let link = match endpoint {
            Endpoint::Stdio(program) => super::stdio::open(program, options.message_limit, stderr),
            #[cfg(feature = "http")]
            Endpoint::Http(remote) => super::http::open(remote, options, self.account().await?),
            #[cfg(feature = "http")]
            Endpoint::Sse(remote) => {
                super::sse::open(remote, options.message_limit, self.account().await?).await
            }
            #[cfg(not(feature = "http"))]
            Endpoint::Http(remote) | Endpoint::Sse(remote) => Err(Ended::new(format!(
                "`{}` cannot be reached: this program was built without MCP over HTTP; enable the feature `http` of \
                 ostler-mcp (`mcp-http` of ostler)",
                remote.url
            ))),
            Endpoint::Custom(custom) => Ok(Link::from(custom.open())),
        };
        let unreachable = |ended| match ended {
            Ended::NeedsAuth(reason) => Error::NeedsAuth { server: name.clone(), reason },
            Ended::Unreachable(reason) | Ended::Other(reason) => {
                Error::Unreachable { server: name.clone(), reason }
            }
        };
        Ok(Session::new(name, options, link.map_err(unreachable)?))
    }

    /// Asks a server without sessions what it offers.
    async fn discover(&self, session: &Session) -> Result<ServerDetails, Error> {
        let options = &self.inner.options;
        let (name, version) = &options.client_info;
        let metadata = [
            ("io.modelcontextprotocol/protocolVersion", json!(STATELESS)),
            ("io.modelcontextprotocol/clientInfo", json!({"name": name, "version": version})),
            ("io.modelcontextprotocol/clientCapabilities", capabilities(options, false)),
        ];
        let metadata = metadata.map(|(key, value)| (key.to_owned(), value));
        session.describe_client(Map::from_iter(metadata));
        let ask =
            || session.exchange("start", "server/discover", Value::Null, CallOptions::default());
        let answer = match ask().await {
            // It refuses the version and names the same one: the refusal was for another reason, such as a restart.
            Err(error) if offers_version(&error, STATELESS) => ask().await?,
            answer => answer?,
        };
        let details = ServerDetails::from_discovery(&answer, STATELESS)
            .map_err(|reason| self.malformed("start", reason))?;
        listen::listen(session, &details);
        Ok(details)
    }

    /// Begins a session with an older server.
    async fn initialize(&self, session: &Session) -> Result<Value, Error> {
        let options = &self.inner.options;
        let (name, version) = &options.client_info;
        let params = json!({
            "protocolVersion": VERSIONS[0],
            "capabilities": capabilities(options, true),
            "clientInfo": {"name": name, "version": version},
        });
        let answer = session.exchange("start", "initialize", params, CallOptions::default()).await;
        let answer = answer.map_err(|error| match error {
            // The caller has not seen a connection yet.
            Error::Closed { server, reason } => Error::Unreachable { server, reason },
            error => error,
        })?;
        session.notify("notifications/initialized").await;
        Ok(answer)
    }

    fn details_of(&self, answer: &Value) -> Result<ServerDetails, Error> {
        let malformed = |reason| self.malformed("start", reason);
        let details = ServerDetails::from_value(answer).map_err(malformed)?;
        match VERSIONS.contains(&details.protocol_version.as_str()) {
            true => Ok(details),
            false => {
                let version = &details.protocol_version;
                Err(malformed(format!("its MCP version {version} is not supported")))
            }
        }
    }
}

/// What servers may ask of this client. Only a session has notifications of changed folders.
fn capabilities(options: &ClientOptions, has_session: bool) -> Value {
    let mut capabilities = json!({});
    if options.on_elicitation.is_some() {
        capabilities["elicitation"] = json!({"form": {}, "url": {}});
    }
    if options.on_sampling.is_some() {
        capabilities["sampling"] = json!({});
    }
    if options.roots.is_some() {
        capabilities["roots"] = if has_session { json!({"listChanged": true}) } else { json!({}) };
    }
    capabilities
}

/// Whether a server refuses a version of MCP, and this one is among those that it names instead.
fn offers_version(error: &Error, version: &str) -> bool {
    let Error::Refused { code: UNSUPPORTED_VERSION, data: Some(data), .. } = error else {
        return false;
    };
    data["supported"].as_array().is_some_and(|offered| offered.iter().any(|it| it == version))
}

/// Whether an answer to `server/discover` is that of a server which may understand `initialize`.
fn is_older(error: &Error) -> bool {
    !matches!(error, Error::NeedsAuth { .. } | Error::Unreachable { .. })
}

/// A server that refuses both handshakes may have said why in its first answer.
fn with_refusal(error: Error, refusal: &Error) -> Error {
    match (error, refusal) {
        (
            Error::Refused { server, what, code, message, data },
            Error::Refused { message: first, code: first_code, .. },
        ) if message != *first => {
            let message =
                format!("{message}; to `server/discover` it answered: {first} (code {first_code})");
            Error::Refused { server, what, code, message, data }
        }
        (error, _) => error,
    }
}

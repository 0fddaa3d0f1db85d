//! How a connection begins.
//!
//! Since MCP 2026-07-28 a server has no sessions: `server/discover` asks what it offers, and every request carries what
//! the server must know about the client. Older servers begin a session with `initialize`.
//!
//! A server behind a URL is asked with `server/discover` first. If it refuses, the connection is made again with
//! `initialize`. All others are asked with `initialize` first: programs exist that end at a message which they do not
//! expect, and to start a program twice takes longer than a second request.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::stdio::StderrTail;
use super::{
    CallOptions, Client, ClientOptions, Endpoint, Ended, Error, Inner, Link, ServerDetails,
    Session, listen,
};
use crate::server::VERSIONS;

/// The revision without sessions.
pub(super) const STATELESS: &str = "2026-07-28";

/// How long a server may take to answer `server/discover`. Some servers never answer what they do not know.
const DISCOVERY_LIMIT: Duration = Duration::from_secs(10);

/// The error code of a server that does not know the version of a request.
const UNSUPPORTED_VERSION: i64 = -32022;

impl Client {
    /// Connects, and makes the handshake that the server understands.
    pub(super) async fn open(
        &self,
        stderr: StderrTail,
    ) -> Result<(Session, ServerDetails), Error> {
        let Inner { endpoint, options, has_sessions, .. } = &*self.inner;
        let known = options.manifest.as_ref().and_then(|known| known.get("initializeResult"));
        if let (Endpoint::Custom(_), Some(known)) = (endpoint, known) {
            let session = self.link(stderr).await?;
            return Ok((session, self.details_of(known)?));
        }
        let is_http = matches!(endpoint, Endpoint::Http(_));
        let mut refusal = None;
        if is_http && !has_sessions.load(Ordering::Relaxed) {
            let session = self.link(stderr.clone()).await?;
            match self.discover(&session).await {
                Ok(details) => return Ok((session, details)),
                Err(error @ (Error::NeedsAuth { .. } | Error::Unreachable { .. })) => {
                    return Err(error);
                }
                Err(error) => refusal = Some(error),
            }
        }
        let session = self.link(stderr).await?;
        let answer = match self.initialize(&session).await {
            Err(error @ Error::Refused { .. }) if !is_http => {
                let details = self.discover(&session).await.map_err(|_| error)?;
                return Ok((session, details));
            }
            answer => answer.map_err(|error| with_refusal(error, refusal))?,
        };
        let details = self.details_of(&answer)?;
        has_sessions.store(true, Ordering::Relaxed);
        Ok((session, details))
    }

    async fn link(&self, stderr: StderrTail) -> Result<Session, Error> {
        let Inner { name, endpoint, options, .. } = &*self.inner;
        let link = match endpoint {
            Endpoint::Stdio(program) => {
                super::stdio::open(program, options.message_limit, stderr)
            }
            #[cfg(feature = "http")]
            Endpoint::Http(remote) => {
                super::http::open(remote, options.message_limit, self.account().await?)
            }
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
            ("io.modelcontextprotocol/clientCapabilities", capabilities(options)),
        ];
        let metadata = metadata.map(|(key, value)| (key.to_owned(), value));
        session.describe_client(Map::from_iter(metadata));
        let after = DISCOVERY_LIMIT.min(options.startup_timeout / 2);
        let limit = CallOptions::default().timeout(after);
        let ask = || session.exchange("start", "server/discover", Value::Null, limit.clone());
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
            "capabilities": capabilities(options),
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

/// What servers may ask of this client.
fn capabilities(options: &ClientOptions) -> Value {
    match options.on_elicitation {
        Some(_) => json!({"elicitation": {"form": {}, "url": {}}}),
        None => json!({}),
    }
}

/// Whether a server refuses a version of MCP, and this one is among those that it names instead.
fn offers_version(error: &Error, version: &str) -> bool {
    let Error::Refused { code: UNSUPPORTED_VERSION, data: Some(data), .. } = error else {
        return false;
    };
    data["supported"].as_array().is_some_and(|offered| offered.iter().any(|it| it == version))
}

/// A server that refuses both handshakes may have said why in its first answer.
fn with_refusal(error: Error, refusal: Option<Error>) -> Error {
    match (error, refusal) {
        (
            Error::Refused { server, what, code, message, data },
            Some(Error::Refused { message: first, code: first_code, .. }),
        ) if message != first => {
            let message =
                format!("{message}; to `server/discover` it answered: {first} (code {first_code})");
            Error::Refused { server, what, code, message, data }
        }
        (error, _) => error,
    }
}

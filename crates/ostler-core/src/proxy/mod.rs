//! The proxy to the model. The key stays here: engines get an address on this machine and a token in place of the key,
//! and their requests are passed on with the real key.
//!
//! The token belongs to one engine. It is useless elsewhere, and invalid once that engine has ended. The real key is
//! read again for every request, so a new one needs no restart. Only the Messages API is available, with the models
//! that the operator allows, and within the limits of one engine in tokens, dollars and concurrent requests.
//!
//! What this guarantees: the key is in no environment, argument or file that this server gives to an engine or to
//! anything an engine starts. What it cannot guarantee: that a command of the same user as the server does not read a
//! file of that user. Rules keep agents out of the key file, but do not restrict a program that a command starts. Until
//! commands run in a sandbox, put the key into the server's environment, whose process other processes of that user
//! cannot inspect (see `ostler serve`).

mod credential;
mod forward;
mod passes;
#[cfg(test)]
mod tests;
mod usage;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use axum::routing::{any, get};
use ostler_base::error::Fallible;
use ostler_door::serve::{self, ConnectionLimits};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use self::credential::Credentials;
pub(crate) use self::passes::Pass;
use self::passes::Passes;
pub use self::usage::PassLimits;
use crate::model::run::Session;
use crate::runs::options::{EngineParts, EngineSetup};

/// The path prefix of the API, so that other routes cannot be mistaken for it.
const PREFIX: &str = "/model";
/// How long an engine may keep an idle connection: longer than the model thinks.
const IDLE: std::time::Duration = std::time::Duration::from_secs(15 * 60);

/// Passes requests of engines on to the model.
pub struct Proxy {
    address: SocketAddr,
    credentials: Credentials,
    passes: Arc<Passes>,
    limits: PassLimits,
    client: reqwest::Client,
}

impl Proxy {
    /// Starts to listen on this machine only, until `stop`.
    ///
    /// # Errors
    /// When it cannot listen, or the model's address is invalid.
    pub async fn start(
        credentials: Credentials,
        limits: PassLimits,
        stop: CancellationToken,
    ) -> io::Result<Arc<Self>> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let client = forward::client(credentials.base()).map_err(io::Error::other)?;
        let address = listener.local_addr()?;
        let proxy = Arc::new(Self { address, credentials, passes: Arc::default(), limits, client });
        let routes = Router::new()
            .route("/healthz", get(forward::health))
            .route(&format!("{PREFIX}/{{*path}}"), any(forward::forward))
            .with_state(Arc::clone(&proxy));
        let connections = ConnectionLimits { head: IDLE, ..ConnectionLimits::default() };
        tokio::spawn(serve::serve(listener, routes, connections, stop));
        Ok(proxy)
    }

    /// Whether there is a key, or a key file. It may still be refused.
    pub fn has_key(&self) -> bool {
        self.credentials.are_there()
    }

    /// `ok`, `no key`, or why the key cannot be used.
    pub async fn health(&self) -> String {
        if !self.credentials.are_there() {
            return "no key".to_owned();
        }
        match self.credentials.headers().await {
            Ok(_) => "ok".to_owned(),
            Err(why) => why,
        }
    }

    /// The address of the model, if a server answers there. The key is not sent.
    ///
    /// # Errors
    /// A message, if no server answers in time.
    pub async fn reaches(&self, within: std::time::Duration) -> Result<String, String> {
        let base = self.credentials.base().to_owned();
        // Every response means that a server is there.
        let asked = tokio::time::timeout(within, self.client.head(&base).send()).await;
        match asked {
            Ok(Ok(_)) => Ok(base),
            Ok(Err(error)) => Err(format!("{base} cannot be reached: {}", error.without_url())),
            Err(_) => Err(format!("{base} does not answer within {} s", within.as_secs())),
        }
    }

    /// Issues a pass for an engine, valid until it is dropped. `None` if the operator has no key: the engine then
    /// cannot reach a model, and has to report that.
    pub(crate) fn admit(&self, session: &str) -> Option<Pass> {
        let base = format!("http://{}{PREFIX}", self.address);
        self.credentials.are_there().then(|| self.passes.issue(session, base))
    }
}

#[async_trait]
impl EngineSetup for Proxy {
    async fn set_up(&self, session: &Session, engine_parts: &mut EngineParts) -> Fallible<()> {
        if let Some(pass) = self.admit(&session.id) {
            pass.give_to(&mut engine_parts.options.engine.env.variables);
            engine_parts.guards.push(Box::new(pass));
        }
        Ok(())
    }
}

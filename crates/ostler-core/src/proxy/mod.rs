//! The key stays here: engines get an address on this machine and a word in place of the key, and what they ask the
//! model goes on from here with the real one.
//!
//! The word belongs to one engine and is worth nothing anywhere else, nor here once that engine has ended. The real key
//! is read again for every request, from where the operator keeps it, so that a new one needs no restart. Only the
//! Messages API can be reached this way, with the models that the operator allows, and only as far as one engine may go in
//! tokens, dollars and requests at the same time.
//!
//! What this promises: the key is in no environment, argument or file that this server gives to an engine or to anything
//! an engine starts. What it cannot: hold back a command that runs as the same user as the server from a file of that
//! user. Rules keep agents out of the key file, but a program that a command starts is beyond rules; until commands are
//! put into a sandbox, give the key in the server's environment, whose process nobody of that user can look into (see
//! `ostler serve`).

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

/// Below this lies the API, so that what else is here cannot be mistaken for it.
const PREFIX: &str = "/model";
/// How long an engine may keep a connection it does not use: longer than the model thinks.
const IDLE: std::time::Duration = std::time::Duration::from_secs(15 * 60);

/// Stands between engines and the model.
pub struct Proxy {
    address: SocketAddr,
    credentials: Credentials,
    passes: Arc<Passes>,
    limits: PassLimits,
    client: reqwest::Client,
}

impl Proxy {
    /// Listens on this machine alone, until `stop`.
    ///
    /// # Errors
    /// When it cannot, or the model's address is none.
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

    /// Where the model is, if anything answers there. The key is not shown to it.
    ///
    /// # Errors
    /// In words, when nothing answers in time.
    pub async fn reaches(&self, within: std::time::Duration) -> Result<String, String> {
        let base = self.credentials.base().to_owned();
        // Whatever it says, somebody is there.
        let asked = tokio::time::timeout(within, self.client.head(&base).send()).await;
        match asked {
            Ok(Ok(_)) => Ok(base),
            Ok(Err(error)) => Err(format!("{base} cannot be reached: {}", error.without_url())),
            Err(_) => Err(format!("{base} does not answer within {} s", within.as_secs())),
        }
    }

    /// Lets an engine in, for as long as the pass lives. `None` if the operator has no key: then there is no model to be
    /// reached, and the engine has to say so.
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

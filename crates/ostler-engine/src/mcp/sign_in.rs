//! Users who sign in to servers: `mcp_authenticate`, `mcp_oauth_callback_url`, `mcp_clear_auth`.
//!
//! The address with the user's code goes from the browser to the connector. It is not kept, and no frame contains a token.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use ostler_proto::mcp::McpServerConfig;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::AbortHandle;

use super::{Connector, Servers};

/// A user who has begun to sign in.
pub struct StartedSignIn {
    /// The address that the user opens in a browser.
    pub url: String,
    /// The value that the browser returns.
    pub state: String,
    /// The port of this machine to which the browser is led back.
    pub port: u16,
    /// Finishes with the address that the browser was led to.
    pub finish: Arc<Finish>,
    /// Ends when the browser has come back to the port, and the user is signed in or not.
    pub finished: BoxFuture<'static, Result<(), String>>,
}

type Finish = dyn Fn(String) -> BoxFuture<'static, Result<(), String>> + Send + Sync;

/// The users who are signing in, by server.
#[derive(Default)]
pub(super) struct SignIns(Mutex<BTreeMap<String, Pending>>);

struct Pending {
    finish: Arc<Finish>,
    /// Waits for the browser.
    waiting: AbortHandle,
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.waiting.abort();
    }
}

impl SignIns {
    fn insert(&self, name: String, pending: Pending) {
        self.0.lock().insert(name, pending);
    }

    fn remove(&self, name: &str) {
        self.0.lock().remove(name);
    }

    fn finish(&self, name: &str) -> Option<Arc<Finish>> {
        let pending = self.0.lock();
        pending.get(name).map(|pending| Arc::clone(&pending.finish))
    }
}

impl Servers {
    /// Begins to sign in. When the browser comes back, the server is connected again.
    pub(crate) async fn sign_in(&self, name: &str) -> Result<Value, String> {
        let (connector, config) = self.to_sign_in(name)?;
        let StartedSignIn { url, state, port, finish, finished } =
            connector.sign_in(name.to_owned(), config).await?;
        let (inner, server) = (Arc::downgrade(&self.0), name.to_owned());
        let waiting = self.lock().tasks.spawn(async move {
            let outcome = finished.await;
            if let Some(inner) = inner.upgrade() {
                let servers = Self(inner);
                if outcome.is_ok() {
                    // It may have been removed meanwhile.
                    servers.reconnect(&server).ok();
                }
                servers.0.sign_ins.remove(&server);
            }
        });
        self.0.sign_ins.insert(name.to_owned(), Pending { finish, waiting });
        Ok(json!({
            "authUrl": url,
            "requiresUserAction": true,
            "callbackExpected": true,
            "redirectScheme": "localhost",
            "state": state,
            "callbackPort": port,
        }))
    }

    /// Finishes signing in for a user whose browser cannot reach this machine.
    pub(crate) async fn finish_sign_in(&self, name: &str, callback: String) -> Result<(), String> {
        let finish = self.0.sign_ins.finish(name);
        let finish = finish.ok_or_else(|| format!("No active OAuth flow for server: {name}"))?;
        finish(callback).await?;
        self.0.sign_ins.remove(name);
        self.reconnect(name)
    }

    /// Signs out. The server is connected again, without a token.
    pub(crate) async fn sign_out(&self, name: &str) -> Result<(), String> {
        let (connector, config) = self.to_sign_in(name)?;
        self.0.sign_ins.remove(name);
        connector.sign_out(name.to_owned(), config).await?;
        self.reconnect(name)
    }

    fn to_sign_in(&self, name: &str) -> Result<(Arc<dyn Connector>, McpServerConfig), String> {
        let state = self.lock();
        let entry = state.entries.get(name).ok_or_else(|| format!("Server not found: {name}"))?;
        if let Some(reason) = self.0.lists.refusal(name, &entry.config) {
            return Err(reason);
        }
        let connector = self.0.connector.clone();
        let connector = connector.ok_or("this engine cannot reach MCP servers")?;
        Ok((connector, entry.config.clone()))
    }
}

//! What a request knows about the client that sent it.

use std::str::FromStr;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::ask::ClientCapability;
use super::level::Level;
use super::questions::Questions;
use super::refusal::{Refusal, STATELESS};
use super::rounds::Rounds;
use crate::rpc::Failure;

pub(super) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";

/// The client of one request.
#[derive(Debug)]
pub(super) struct Client {
    /// As the client declared them: in the handshake, or with the request.
    pub(super) capabilities: Value,
    /// Log messages below it are not sent; without one, none are.
    pub(super) log_level: Option<Level>,
    pub(super) asking: Asking,
    /// A capability that a tool asked for in vain.
    missing: Mutex<Option<ClientCapability>>,
}

/// How the client is asked.
#[derive(Debug)]
pub(super) enum Asking {
    /// By a request of the server.
    Requests(Arc<Questions>),
    /// By the answer to its request, which it then repeats.
    Rounds(Box<Rounds>),
}

impl Client {
    pub(super) fn new(capabilities: Value, log_level: Option<Level>, asking: Asking) -> Self {
        Self { capabilities, log_level, asking, missing: Mutex::default() }
    }

    pub(super) fn note_missing(&self, capability: ClientCapability) {
        let mut missing = self.missing.lock();
        missing.get_or_insert(capability);
    }

    /// The refusal of a request that failed for want of a capability. Only newer clients know the code.
    pub(super) fn missing(&self) -> Option<Refusal> {
        let missing = *self.missing.lock();
        let capability = missing.filter(|_| self.is_stateless())?;
        Some(Refusal::missing_capability(capability.name()))
    }

    pub(super) fn is_stateless(&self) -> bool {
        matches!(self.asking, Asking::Rounds(_))
    }
}

/// What a request without a session says about its client.
#[derive(Debug)]
pub(super) struct Described {
    pub(super) capabilities: Value,
    pub(super) log_level: Option<Level>,
}

/// Whether a request belongs to no session, and what it then says about its client.
pub(super) fn described(
    method: &str,
    meta: &Map<String, Value>,
    must: bool,
) -> Result<Option<Described>, Refusal> {
    let is_new = matches!(method, "server/discover" | "subscriptions/listen");
    if !(must || is_new || meta.contains_key(VERSION_KEY)) {
        return Ok(None);
    }
    let wrong = |key: &str, what: &str| {
        Refusal::from(Failure::invalid_params(format!("`_meta[\"{key}\"]` must be {what}")))
    };
    let version = meta.get(VERSION_KEY).and_then(Value::as_str);
    let version = version.ok_or_else(|| wrong(VERSION_KEY, "the version of MCP"))?;
    if version != STATELESS {
        return Err(Refusal::unsupported_version(version));
    }
    let capabilities = meta.get(CAPABILITIES_KEY).filter(|it| it.is_object()).cloned();
    let capabilities = capabilities.ok_or_else(|| wrong(CAPABILITIES_KEY, "an object"))?;
    let log_level = match meta.get(LEVEL_KEY).map(Value::as_str) {
        None => None,
        Some(name) => {
            Some(name.ok_or_else(|| wrong(LEVEL_KEY, "a log level")).and_then(|name| {
                Level::from_str(name).map_err(|_| wrong(LEVEL_KEY, "a log level"))
            })?)
        }
    };
    Ok(Some(Described { capabilities, log_level }))
}

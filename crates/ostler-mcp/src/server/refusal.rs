//! Why a request fails: a JSON-RPC error with the details that its code asks for.

use serde_json::{Map, Value, json};

use super::answers::VERSIONS;
use crate::rpc::Failure;

/// The revision of MCP without sessions.
pub(crate) const STATELESS: &str = "2026-07-28";

/// The headers of an HTTP request contradict its body.
pub(super) const HEADER_MISMATCH: i64 = -32020;
/// The client did not declare a capability that the request needs.
pub(super) const MISSING_CAPABILITY: i64 = -32021;
/// The server does not know the request's version of MCP.
pub(super) const UNSUPPORTED_VERSION: i64 = -32022;

/// A JSON-RPC error with its details.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Refusal {
    pub(super) failure: Failure,
    pub(super) data: Option<Value>,
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self { failure, data: None }
    }
}

impl Refusal {
    pub(super) fn new(code: i64, message: impl Into<String>, data: Option<Value>) -> Self {
        Self { failure: Failure { code, message: message.into() }, data }
    }

    pub(super) fn unsupported_version(requested: &str) -> Self {
        let data = json!({"supported": supported_versions(), "requested": requested});
        let message = format!("this server does not know version `{requested}` of MCP");
        Self::new(UNSUPPORTED_VERSION, message, Some(data))
    }

    pub(super) fn missing_capability(capability: &str) -> Self {
        let required = Map::from_iter([(capability.to_owned(), json!({}))]);
        let message = format!("this request needs a client that declares `{capability}`");
        Self::new(MISSING_CAPABILITY, message, Some(json!({"requiredCapabilities": required})))
    }

    /// Revisions with sessions have a code of their own for it.
    pub(super) fn resource_not_found(uri: &str, is_stateless: bool) -> Self {
        let failure = match is_stateless {
            true => Failure::invalid_params(format!("there is no resource `{uri}`")),
            false => Failure::resource_not_found(uri),
        };
        Self { failure, data: Some(json!({"uri": uri})) }
    }

    /// The error as JSON-RPC has it.
    pub(super) fn answer(self, id: &Value) -> Value {
        let Failure { code, message } = self.failure;
        let mut error = json!({"code": code, "message": message});
        if let Some(data) = self.data {
            error["data"] = data;
        }
        json!({"jsonrpc": "2.0", "id": id, "error": error})
    }
}

/// Every revision that this server understands, newest first.
pub(super) fn supported_versions() -> Vec<&'static str> {
    std::iter::once(STATELESS).chain(VERSIONS).collect()
}

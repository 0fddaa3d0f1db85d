//! The control protocol: requests and answers next to the messages, in both directions.
//!
//! Either side may send requests. The sender chooses `request_id`; in an answer it is inside `response`. Requests run
//! concurrently and answers arrive in any order. Every request is answered exactly once, except a cancelled one,
//! whose answer (if any) is ignored.
//!
//! ```text
//! {"type":"control_request","request_id":"abc","request":{"subtype":"interrupt"}}
//! {"type":"control_response","response":{"subtype":"success","request_id":"abc","response":{}}}
//! {"type":"control_response","response":{"subtype":"error","request_id":"abc","error":"text"}}
//! {"type":"control_cancel_request","request_id":"abc"}
//! ```
//!
//! [`AskEngine`] has the requests of a host, [`AskHost`] those of an engine. [`Ask`] says which answer belongs to
//! which request: `Interrupt` is answered by `InterruptReply`, and so on.

mod ask;
mod into;
mod reply;
mod shared;
mod to_engine;
mod to_host;

use ostler_proto_derive::Wire;
use serde::de::MapAccess;
use serde::ser::SerializeMap;
use serde_json::Value;

pub use self::ask::*;
pub use self::reply::*;
pub use self::shared::*;
pub use self::to_engine::*;
pub use self::to_host::*;
use crate::wire::{self, WireObject};
use crate::{Extra, RequestId, UnknownObject};

/// `control_request`.
///
/// `R` is [`AskEngine`] on stdin and [`AskHost`] on stdout.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ControlRequest<R> {
    /// Echoed in the answer. A peer that leaves it out gets an answer without it.
    pub request_id: Option<RequestId>,
    /// The request itself.
    pub request: R,
    /// Unknown fields.
    pub extra: Extra,
}

impl<R> ControlRequest<R> {
    /// A request with its id.
    pub fn new(request_id: RequestId, request: R) -> Self {
        Self { request_id: Some(request_id), request, extra: Extra::default() }
    }
}

// Written by hand because the derive does not support type parameters; this is the only generic frame.
impl<R: WireObject + serde::Serialize + for<'a> serde::Deserialize<'a>> WireObject
    for ControlRequest<R>
{
    const NAME: &'static str = "ControlRequest";

    fn read<'de, A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let (mut request_id, mut request) = (None, None);
        let mut extra = Extra::default();
        while let Some(key) = wire::next_key(&mut map)? {
            match &*key {
                "request_id" => {
                    request_id = wire::field(&mut map, "request_id")?;
                    extra.written_otherwise("request_id", request_id.is_none());
                }
                "request" => request = Some(wire::field(&mut map, "request")?),
                _ => extra.keep(Self::NAME, key, &mut map)?,
            }
        }
        let request = request.ok_or_else(|| serde::de::Error::missing_field("request"))?;
        Ok(Self { request_id, request, extra })
    }

    fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        if self.request_id.is_some() || self.extra.writes_null("request_id", false) {
            map.serialize_entry("request_id", &self.request_id)?;
        }
        map.serialize_entry("request", &self.request)?;
        self.extra.write(map)
    }
}

/// `control_response`.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(new(response))]
#[non_exhaustive]
pub struct ControlResponse {
    /// The answer.
    pub response: Response,
    /// Unknown fields.
    pub extra: Extra,
}

impl ControlResponse {
    /// A success, with the payload the request's [`Ask::Reply`] describes.
    pub fn success(request_id: RequestId, response: Option<Value>) -> Self {
        Self::new(Response::Success(Success {
            request_id: Some(request_id),
            response,
            ..Success::default()
        }))
    }

    /// A failure, with a message.
    pub fn error(request_id: RequestId, error: impl Into<String>) -> Self {
        Self::new(Response::Error(Failure {
            request_id: Some(request_id),
            error: error.into(),
            ..Failure::default()
        }))
    }
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tag = "subtype")]
#[non_exhaustive]
pub enum Response {
    /// Success.
    Success(Success),
    /// Failure.
    Error(Failure),
    /// An answer this version does not know.
    #[wire(other)]
    Unknown(UnknownObject),
}

impl Response {
    /// The request this answers.
    pub fn request_id(&self) -> Option<RequestId> {
        match self {
            Self::Success(success) => success.request_id.clone(),
            Self::Error(failure) => failure.request_id.clone(),
            Self::Unknown(unknown) => unknown.get("request_id")?.as_str().map(RequestId::from),
        }
    }
}

/// `success`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[non_exhaustive]
pub struct Success {
    /// The request.
    pub request_id: Option<RequestId>,
    /// The payload; absent for a bare acknowledgement. Read it with [`Ask::read_reply`].
    pub response: Option<Value>,
    /// Permission questions that are still open, on the answer to a second `initialize`.
    pub pending_permission_requests: Option<Vec<Value>>,
    /// Dialogs that are still open.
    pub pending_user_dialog_requests: Option<Vec<Value>>,
    /// Questions of MCP servers that are still open.
    pub pending_elicitation_requests: Option<Vec<Value>>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `error`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[non_exhaustive]
pub struct Failure {
    /// The request.
    pub request_id: Option<RequestId>,
    /// For people.
    pub error: String,
    /// For programs, such as [`UNSUPPORTED_REQUEST`].
    pub error_code: Option<String>,
    /// Permission questions that are still open.
    pub pending_permission_requests: Option<Vec<Value>>,
    /// Dialogs that are still open.
    pub pending_user_dialog_requests: Option<Vec<Value>>,
    /// Questions of MCP servers that are still open.
    pub pending_elicitation_requests: Option<Vec<Value>>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `error_code` for a request the receiver does not know.
pub const UNSUPPORTED_REQUEST: &str = "unsupported_request";

/// `control_cancel_request`: the sender no longer wants an answer.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[non_exhaustive]
pub struct ControlCancelRequest {
    /// The request.
    pub request_id: RequestId,
    /// Unknown fields.
    pub extra: Extra,
}

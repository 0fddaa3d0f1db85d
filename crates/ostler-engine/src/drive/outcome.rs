//! The result of a turn.

use ostler_proto::api::{StopReason, Usage};
use ostler_proto::message::PermissionDenial;
use serde_json::Value;

use crate::model::ChatMessage;
use crate::response::ResponseTiming;
use crate::turn::Ending;

#[derive(Debug)]
pub(crate) struct TurnOutcome {
    pub(crate) ending: Ending,
    pub(crate) conversation: Vec<ChatMessage>,
    /// The last text of the model.
    pub(crate) text: String,
    /// The text that hooks showed the user in its place.
    pub(crate) shown: Option<String>,
    /// The structured answer, if the host asked for one.
    pub(crate) structured: Option<Value>,
    /// What was wrong with the last attempt at a structured answer.
    pub(crate) miss: Option<String>,
    /// Why a hook ended the turn.
    pub(crate) hook_stop_reason: Option<String>,
    pub(crate) stop_reason: Option<StopReason>,
    pub(crate) usage: Usage,
    pub(crate) denials: Vec<PermissionDenial>,
    /// User-role messages of the turn, as `num_turns` counts them.
    pub(crate) n_user_messages: u64,
    pub(crate) n_tool_calls: u64,
    /// How often a response was stopped as unsafe.
    pub(crate) n_safety_stops: u64,
    pub(crate) timing: ResponseTiming,
}

impl TurnOutcome {
    /// A turn in which nothing happened.
    pub(crate) fn new(ending: Ending, conversation: Vec<ChatMessage>) -> Self {
        Self {
            ending,
            conversation,
            text: String::new(),
            shown: None,
            structured: None,
            miss: None,
            hook_stop_reason: None,
            stop_reason: None,
            usage: Usage::default(),
            denials: Vec::new(),
            n_user_messages: 0,
            n_tool_calls: 0,
            n_safety_stops: 0,
            timing: ResponseTiming::default(),
        }
    }
}

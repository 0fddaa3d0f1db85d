//! Support for clients older than 1.0. They send no `protocolVersion`, and discard a run with fields or values that
//! they do not know.

use crate::event::{Body, Event, Outcome};
use crate::message::Content;

/// Rewrites an event for such a client.
///
/// Pending calls are not listed, because the client finds them itself. A result becomes plain text. A stopped run ends
/// with an error, because the only other end that such clients know means success.
pub fn for_old_peer(mut event: Event) -> Event {
    match &mut event.body {
        Body::RunFinished { outcome: Some(Outcome::Success { pending_tool_call_ids }), .. } => {
            *pending_tool_call_ids = None;
        }
        Body::RunFinished { outcome: Some(Outcome::Cancelled {}), usage, .. } => {
            let reason = event.metadata.as_ref().and_then(|metadata| metadata.get("reason"));
            let message = match reason.and_then(|reason| reason.as_str()) {
                Some(reason) => format!("the run was stopped: {reason}"),
                None => "the run was stopped".to_owned(),
            };
            let usage = usage.take();
            event.body = Body::RunError { message, code: Some("cancelled".to_owned()), usage };
        }
        Body::ToolCallResult { content, .. } => {
            if let Content::Parts(_) = content {
                *content = Content::Text(content.text());
            }
        }
        _ => {}
    }
    event
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::for_old_peer;
    use crate::event::Event;

    fn check(event: Value, expected: Value) {
        let event: Event = serde_json::from_value(event).unwrap();
        assert_eq!(serde_json::to_value(for_old_peer(event)).unwrap(), expected);
    }

    #[test]
    fn pending_calls_are_not_listed() {
        check(
            json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": {"type": "success", "pendingToolCallIds": ["a"]}}),
            json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": {"type": "success"}}),
        );
    }

    #[test]
    fn a_stopped_run_is_an_error_and_not_a_success() {
        check(
            json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": {"type": "cancelled"},
                "usage": [{"outputTokens": 3}], "metadata": {"reason": "max_turns"}}),
            json!({"type": "RUN_ERROR", "message": "the run was stopped: max_turns", "code": "cancelled",
                "usage": [{"outputTokens": 3}], "metadata": {"reason": "max_turns"}}),
        );
    }

    #[test]
    fn a_result_becomes_plain_text() {
        let image = json!({"type": "image", "source": {"type": "data", "value": "aGk=", "mimeType": "image/png"}});
        check(
            json!({"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c", "content": [{"type": "text", "text": "one"}, image]}),
            json!({"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c", "content": "one"}),
        );
    }
}

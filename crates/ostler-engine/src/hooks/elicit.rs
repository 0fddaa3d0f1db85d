//! A question of an MCP server to the user: hooks may answer in the user's place, and may change the answer before the
//! server receives it. Everything but a clear answer declines.

use ostler_proto::control::{AskHost, Elicitation, ElicitationReply};
use ostler_proto::hook::{ElicitationAction, HookEvent};
use serde_json::{Map, Value, json};

use super::verdict::Verdict;
use super::{Event, Hooks};
use crate::outbox::Outbox;

/// Gets an answer: from hooks, else from the host.
pub(crate) async fn elicit(hooks: &Hooks, question: Elicitation) -> ElicitationReply {
    let event = Event::new(HookEvent::Elicitation, fields(&question));
    let answer = match instead(hooks.run(event).await) {
        Some(answer) => answer,
        None => ask_host(&hooks.scope.outbox, question.clone()).await,
    };
    let event = Event::new(HookEvent::ElicitationResult, result_fields(&question, &answer));
    match instead(hooks.run(event).await) {
        // A hook that accepts without content keeps the user's content.
        Some(other) if other.action == "accept" && other.content.is_none() => {
            ElicitationReply { content: answer.content, ..other }
        }
        Some(other) => other,
        None => answer,
    }
}

async fn ask_host(outbox: &Outbox, question: Elicitation) -> ElicitationReply {
    let asked = outbox.ask::<Elicitation>(AskHost::Elicitation(question)).await;
    let is_answer =
        |reply: &ElicitationReply| matches!(reply.action.as_str(), "accept" | "decline" | "cancel");
    let answer = asked.ok().filter(is_answer);
    answer.unwrap_or_else(|| reply(ElicitationAction::Decline, None))
}

fn reply(action: ElicitationAction, content: Option<Value>) -> ElicitationReply {
    let action = action.as_str().to_owned();
    ElicitationReply { action, content, ..ElicitationReply::default() }
}

/// The hooks' answer. An objection and an unknown action decline.
fn instead(verdict: Verdict) -> Option<ElicitationReply> {
    use ElicitationAction::{Accept, Cancel, Decline};
    match (verdict.block, verdict.elicited) {
        (Some(_), _) => Some(reply(Decline, None)),
        (None, Some((Accept, content))) => Some(reply(Accept, content)),
        (None, Some((Cancel, _))) => Some(reply(Cancel, None)),
        (None, Some(_)) => Some(reply(Decline, None)),
        (None, None) => None,
    }
}

fn fields(question: &Elicitation) -> Value {
    let text = |text: &Option<String>| text.clone().map(Value::String);
    present([
        ("mcp_server_name", Some(json!(question.mcp_server_name))),
        ("message", Some(json!(question.message))),
        ("mode", text(&question.mode)),
        ("url", text(&question.url)),
        ("elicitation_id", text(&question.elicitation_id)),
        ("requested_schema", question.requested_schema.clone()),
    ])
}

fn result_fields(question: &Elicitation, answer: &ElicitationReply) -> Value {
    let text = |text: &Option<String>| text.clone().map(Value::String);
    present([
        ("mcp_server_name", Some(json!(question.mcp_server_name))),
        ("elicitation_id", text(&question.elicitation_id)),
        ("mode", text(&question.mode)),
        ("action", Some(json!(answer.action))),
        ("content", answer.content.clone()),
    ])
}

/// The fields that have a value.
fn present<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(fields.collect::<Map<_, _>>())
}

//! Questions of a server to the user, and the answers.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use ostler_proto::build;
use ostler_proto::control::{Elicitation, ElicitationReply};
use serde_json::{Value, json};

use super::options::ClientOptions;

/// How many questions a server may have open; further ones are refused.
pub(super) const MOST_QUESTIONS: usize = 16;

/// The result of `elicitation/create`. Without a callback no user can answer and the question is cancelled; if the
/// callback panics, it is declined.
pub(super) async fn answer(server: &str, options: &ClientOptions, params: &Value) -> Value {
    let Some(callback) = options.on_elicitation.clone() else {
        return json!({"action": "cancel"});
    };
    let question = question(server, params);
    let reply = AssertUnwindSafe(async { callback(question).await }).catch_unwind().await;
    // A callback that panicked has not given consent.
    reply.map_or_else(|_| declined(), |reply| result(reply, &params["requestedSchema"]))
}

/// Whether the user accepts all questions that a server asks before it does what a request wants (error -32042). `None`
/// if the error names no question, or too many.
pub(super) async fn accepts_all(
    server: &str,
    options: &ClientOptions,
    data: &Value,
) -> Option<bool> {
    options.on_elicitation.as_ref()?;
    let questions = data["elicitations"].as_array()?;
    if questions.is_empty() || questions.len() > MOST_QUESTIONS {
        return None;
    }
    for question in questions {
        if answer(server, options, question).await["action"] != "accept" {
            return Some(false);
        }
    }
    Some(true)
}

fn declined() -> Value {
    json!({"action": "decline"})
}

fn question(server: &str, params: &Value) -> Elicitation {
    let text = |key: &str| params[key].as_str().map(str::to_owned);
    build!(Elicitation {
        mcp_server_name: server.to_owned(),
        message: text("message").unwrap_or_default(),
        mode: Some(text("mode").unwrap_or_else(|| "form".to_owned())),
        url: text("url"),
        elicitation_id: text("elicitationId"),
        requested_schema: params.get("requestedSchema").cloned()
    })
}

fn result(reply: ElicitationReply, schema: &Value) -> Value {
    let action = reply.action;
    if action != "accept" {
        return json!({"action": action});
    }
    match with_defaults(reply.content, schema) {
        Some(content) => json!({"action": action, "content": content}),
        None => json!({"action": action}),
    }
}

/// Fills in fields that the user left out and that have a default in the schema.
fn with_defaults(content: Option<Value>, schema: &Value) -> Option<Value> {
    let Some(properties) = schema["properties"].as_object() else { return content };
    let defaults = properties
        .iter()
        .filter_map(|(name, property)| Some((name, property.get("default")?)))
        .collect::<Vec<_>>();
    if defaults.is_empty() {
        return content;
    }
    let mut content = content.unwrap_or_else(|| json!({}));
    if let Some(fields) = content.as_object_mut() {
        for (name, default) in defaults {
            fields.entry(name).or_insert_with(|| default.clone());
        }
    }
    Some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_the_user_left_out_get_their_default() {
        let schema = json!({"properties": {"name": {"default": "Ada"}, "age": {"type": "number"}}});
        let filled = |content| with_defaults(content, &schema);
        assert_eq!(filled(None), Some(json!({"name": "Ada"})));
        assert_eq!(filled(Some(json!({"age": 3}))), Some(json!({"age": 3, "name": "Ada"})));
        assert_eq!(filled(Some(json!({"name": "Bo"}))), Some(json!({"name": "Bo"})));
        assert_eq!(with_defaults(None, &json!({"properties": {"age": {}}})), None);
        assert_eq!(with_defaults(Some(json!(7)), &schema), Some(json!(7)));
    }

    #[test]
    fn a_refusal_has_no_content() {
        let reply = ElicitationReply { action: "decline".to_owned(), ..Default::default() };
        let schema = json!({"properties": {"name": {"default": "Ada"}}});
        assert_eq!(result(reply, &schema), json!({"action": "decline"}));
    }
}

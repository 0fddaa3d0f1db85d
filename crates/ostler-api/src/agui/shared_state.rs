//! The state that client and agent share: the client sends it, the agent changes it with a tool.

use ostler::mcp::{Output, Server, raw_tool};
use serde_json::{Map, Value, json};

use super::client_tool_calls::ClientToolCalls;

/// The name of the MCP server.
const SERVER: &str = "shared_state";
/// The model's name for the tool. Its calls are not shown, because the state is.
pub(super) const TOOL: &str = "mcp__shared_state__update";

/// The server with which the agent changes the state.
pub(super) fn server(tool_calls: &ClientToolCalls) -> Server {
    let schema = json!({
        "type": "object",
        "properties": {
            "set": {"type": "object", "description": "Fields to set, each as a whole; null removes one."},
            "replace": {"description": "A new state that replaces the present one."},
        },
    });
    let words =
        "Changes the state that is shared with the user's application, which shows it at once.";
    let tool_calls = tool_calls.clone();
    let update = raw_tool("update", words, schema, move |arguments, _| {
        let tool_calls = tool_calls.clone();
        async move {
            let after = match (arguments.get("set"), arguments.get("replace")) {
                (Some(Value::Object(fields)), None) => {
                    let fields = fields.clone();
                    tool_calls.change_state(|state| set(state, fields)).await
                }
                (None, Some(whole)) => {
                    let whole = whole.clone();
                    tool_calls.change_state(|state| *state = whole).await
                }
                _ => return Err("give either `set`, an object, or `replace`".to_owned()),
            };
            let after = after.map_err(|error| format!("the state could not be stored: {error}"))?;
            Ok(Output::text(format!("The state is now {after}")))
        }
    });
    Server::new(SERVER, env!("CARGO_PKG_VERSION")).tool(update)
}

fn set(state: &mut Value, fields: Map<String, Value>) {
    if !state.is_object() {
        *state = json!({});
    }
    let Value::Object(state) = state else { return };
    for (name, value) in fields {
        if value.is_null() {
            state.shift_remove(&name);
        } else {
            state.insert(name, value);
        }
    }
}

/// The state when a run begins: that of the client, except for the keys that only the server may change.
pub(super) fn begin(client: Option<Value>, ours: &Value, server_keys: &[String]) -> Value {
    let mut state = client.unwrap_or_else(|| json!({}));
    for key in server_keys {
        let kept = ours.get(key).cloned();
        let Value::Object(state) = &mut state else { continue };
        match kept {
            Some(value) => {
                state.insert(key.clone(), value);
            }
            None => {
                state.shift_remove(key);
            }
        }
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_set_and_removed_one_by_one() {
        let mut state = json!({"a": 1, "b": 2});
        set(&mut state, json!({"a": 3, "b": null, "c": [1]}).as_object().unwrap().clone());
        assert_eq!(state, json!({"a": 3, "c": [1]}));
        let mut state = json!(7);
        set(&mut state, json!({"a": 1}).as_object().unwrap().clone());
        assert_eq!(state, json!({"a": 1}));
    }

    #[test]
    fn the_client_cannot_change_keys_of_the_server() {
        let keys = ["plan".to_owned()];
        let ours = json!({"plan": "gold", "x": 1});
        assert_eq!(
            begin(Some(json!({"plan": "free", "y": 2})), &ours, &keys),
            json!({"plan": "gold", "y": 2})
        );
        assert_eq!(
            begin(Some(json!({"plan": "free"})), &json!({}), &keys),
            json!({}),
            "nor add them"
        );
        assert_eq!(begin(None, &json!({}), &keys), json!({}));
        for state in [json!(null), json!([1]), json!(7)] {
            assert_eq!(begin(Some(state.clone()), &ours, &keys), state);
        }
    }
}

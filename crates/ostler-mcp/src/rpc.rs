//! JSON-RPC 2.0.

use serde_json::{Value, json};

/// A parsed message.
#[derive(Debug, PartialEq)]
pub(crate) enum Message {
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// An answer to a request of ours.
    Response,
}

/// A JSON-RPC error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) code: i64,
    pub(crate) message: String,
}

impl Failure {
    /// The message is not a valid request.
    pub(crate) fn invalid_request(message: impl Into<String>) -> Self {
        Self { code: -32600, message: message.into() }
    }

    pub(crate) fn unknown_method(method: &str) -> Self {
        Self { code: -32601, message: format!("this server does not know the method `{method}`") }
    }

    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self { code: -32602, message: message.into() }
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self { code: -32603, message: message.into() }
    }

    /// An error code of MCP.
    pub(crate) fn resource_not_found(uri: &str) -> Self {
        Self { code: -32002, message: format!("there is no resource `{uri}`") }
    }
}

/// Parses a message. An error carries the message's id, if it has one.
pub(crate) fn open(mut message: Value) -> Result<Message, (Value, Failure)> {
    let Some(object) = message.as_object_mut() else {
        return Err((Value::Null, Failure::invalid_request("a message is a JSON object")));
    };
    let id = object.remove("id");
    let usable = matches!(id, None | Some(Value::String(_) | Value::Number(_)));
    let known = id.clone().filter(|_| usable).unwrap_or_default();
    let refuse = |text: &str| Err((known.clone(), Failure::invalid_request(text)));
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return refuse("`jsonrpc` must be \"2.0\"");
    }
    if !usable {
        return refuse("`id` must be a string or a number");
    }
    let params = object.remove("params").unwrap_or_default();
    match (object.remove("method"), id) {
        (Some(Value::String(method)), Some(id)) => Ok(Message::Request { id, method, params }),
        (Some(Value::String(method)), None) => Ok(Message::Notification { method, params }),
        (Some(_), _) => refuse("`method` must be a string"),
        (None, _) if object.contains_key("result") || object.contains_key("error") => {
            Ok(Message::Response)
        }
        (None, _) => refuse("a message has a `method`, a `result` or an `error`"),
    }
}

/// An answer.
pub(crate) fn answer(id: &Value, result: Result<Value, Failure>) -> Value {
    match result {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(Failure { code, message }) => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
        }
    }
}

/// A notification.
pub(crate) fn notification(method: &str, params: Option<Value>) -> Value {
    match params {
        Some(params) => json!({"jsonrpc": "2.0", "method": method, "params": params}),
        None => json!({"jsonrpc": "2.0", "method": method}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(message: Value) -> (Value, i64) {
        let (id, failure) = open(message).unwrap_err();
        (id, failure.code)
    }

    #[test]
    fn requests_notifications_and_responses_are_distinguished() {
        let request = json!({"jsonrpc": "2.0", "id": 0, "method": "ping"});
        let (id, method) = (json!(0), "ping".to_owned());
        let params = Value::Null;
        assert_eq!(open(request), Ok(Message::Request { id, method, params }));
        let (method, params) = ("x".to_owned(), json!({"a": 1}));
        let notification = json!({"jsonrpc": "2.0", "method": "x", "params": {"a": 1}});
        assert_eq!(open(notification), Ok(Message::Notification { method, params }));
        assert_eq!(open(json!({"jsonrpc": "2.0", "id": 1, "result": {}})), Ok(Message::Response));
    }

    #[test]
    fn an_invalid_message_is_refused_with_its_id_if_it_has_one() {
        assert_eq!(refused(json!("ping")), (Value::Null, -32600));
        assert_eq!(refused(json!({"id": 3, "method": "ping"})), (json!(3), -32600));
        assert_eq!(refused(json!({"jsonrpc": "2.0", "id": 3, "method": 4})), (json!(3), -32600));
        assert_eq!(refused(json!({"jsonrpc": "2.0", "id": 3})), (json!(3), -32600));
        let null_id = json!({"jsonrpc": "2.0", "id": null, "method": "ping"});
        assert_eq!(refused(null_id), (Value::Null, -32600));
        let odd_id = json!({"jsonrpc": "2.0", "id": {}, "method": "ping"});
        assert_eq!(refused(odd_id), (Value::Null, -32600));
    }
}

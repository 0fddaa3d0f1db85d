//! Requests and answers as they are on the wire. `rmcp` carries typed values, which lose what it does not know, such as
//! the tasks of MCP 2025-11-25.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::model::RequestId;
use serde_json::Value;

/// The requests that wait for an answer. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct RawMessages(Arc<Mutex<HashMap<String, Raw>>>);

struct Raw {
    request: Value,
    answer: Option<Value>,
}

impl RawMessages {
    /// Notes a request before it is sent.
    pub(super) fn sending(&self, message: &Value) {
        if let (Some(id), true) = (message.get("id"), message.get("method").is_some()) {
            let raw = Raw { request: message.clone(), answer: None };
            self.0.lock().insert(id.to_string(), raw);
        }
    }

    /// The request with this id.
    pub(super) fn request(&self, id: &RequestId) -> Option<Value> {
        let key = serde_json::to_string(id).ok()?;
        self.0.lock().get(&key).map(|raw| raw.request.clone())
    }

    /// Notes an answer as it arrived. Only those that are awaited are kept.
    pub(super) fn arrived(&self, text: &[u8]) {
        let Ok(message) = serde_json::from_slice::<Value>(text) else { return };
        if let (Some(id), true) = (message.get("id"), message.get("result").is_some())
            && let Some(raw) = self.0.lock().get_mut(&id.to_string())
        {
            raw.answer = Some(message);
        }
    }

    /// The message as it arrived, if it is an answer and was noted; without the tools that `rmcp` left out.
    pub(super) fn take(&self, message: Value) -> Value {
        let is_answer = message.get("method").is_none();
        let id = message.get("id").filter(|_| is_answer).map(Value::to_string);
        let raw = id.and_then(|id| self.0.lock().remove(&id)).and_then(|raw| raw.answer);
        match raw {
            Some(mut raw) => {
                leave_out_tools(&mut raw, &message);
                raw
            }
            None => message,
        }
    }

    /// Forgets a request that has no answer.
    pub(super) fn forget(&self, id: &Option<Value>) {
        if let Some(id) = id {
            self.0.lock().remove(&id.to_string());
        }
    }
}

/// Leaves out the tools of a list that `typed` does not have: `rmcp` refuses those whose parameters become invalid HTTP
/// headers.
fn leave_out_tools(raw: &mut Value, typed: &Value) {
    let Some(kept) = typed["result"]["tools"].as_array() else { return };
    if let Some(Value::Array(tools)) = raw.pointer_mut("/result/tools") {
        tools.retain(|tool| kept.iter().any(|kept| kept["name"] == tool["name"]));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // Mutant: without `leave_out_tools`, the official scenario `http-invalid-tool-headers` fails too.
    #[test]
    fn an_answer_stays_as_it_arrived_but_for_tools_that_were_left_out() {
        let raw = RawMessages::default();
        let list = |tools: Value| json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}});
        let tool = json!({"name": "good", "execution": {"taskSupport": "required"}});
        raw.sending(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
        raw.arrived(list(json!([{"name": "bad"}, tool])).to_string().as_bytes());
        assert_eq!(raw.take(list(json!([{"name": "good"}]))), list(json!([tool])));
        let other = json!({"jsonrpc": "2.0", "id": 2, "result": {}});
        assert_eq!(raw.take(other.clone()), other, "it was not noted");
    }
}

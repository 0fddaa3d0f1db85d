//! What waits for an answer of a person: tool calls and questions of the agent.

use serde_json::Value;

use crate::{Client, Error};

/// Where approvals are listed.
pub const LIST: &str = "/api/approvals";

/// Whether it is a list of questions instead of a tool call.
#[must_use]
pub fn is_question(approval: &Value) -> bool {
    approval["kind"] == "question"
}

/// The questions that are asked.
pub fn questions(approval: &Value) -> impl Iterator<Item = &Value> {
    approval["input"]["questions"].as_array().into_iter().flatten()
}

/// Finds an approval by its id, or by the beginning of it.
///
/// # Errors
/// When there is none, or the server says no.
pub async fn find(client: &Client, id: &str) -> Result<Value, Error> {
    let id = client.full_id(LIST, "approval", id).await?;
    client.get(&format!("{LIST}/{id}")).await
}

/// Answers exactly what was shown: the digest says what that was.
///
/// # Errors
/// When another answer was first, or the server says no.
pub async fn answer(client: &Client, approval: &Value, mut answer: Value) -> Result<Value, Error> {
    let id = approval["id"].as_str().unwrap_or_default();
    answer["digest"] = approval["digest"].clone();
    let path = if is_question(approval) {
        format!("/api/questions/{id}/answers")
    } else {
        format!("{LIST}/{id}/decision")
    };
    client.post(&path, answer).await
}

//! Pending approvals: tool calls and questions of the agent.

use serde_json::Value;

use crate::{Client, Error};

/// The path that lists approvals.
pub const LIST: &str = "/api/approvals";

/// Whether the agent asks questions instead of requesting approval of a tool call.
#[must_use]
pub fn is_question(approval: &Value) -> bool {
    approval["kind"] == "question"
}

/// The questions of an approval.
pub fn questions(approval: &Value) -> impl Iterator<Item = &Value> {
    approval["input"]["questions"].as_array().into_iter().flatten()
}

/// Finds an approval by its id, or by the beginning of it.
///
/// # Errors
/// When no approval matches, or the server refuses.
pub async fn find(client: &Client, id: &str) -> Result<Value, Error> {
    let id = client.full_id(LIST, "approval", id).await?;
    client.get(&format!("{LIST}/{id}")).await
}

/// Answers an approval. The request carries the digest of `approval`, so the answer counts only for what the user saw.
///
/// # Errors
/// When another answer came first, or the server refuses.
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

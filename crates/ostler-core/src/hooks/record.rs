//! The records of hooks, and of results that are still to be sent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::records::kept;
use crate::start::Start;

/// A hook: another program can start a run with a signature instead of a token.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hook {
    pub id: String,
    pub owner: String,
    pub name: String,
    pub start: Start,
    /// The address to which the result is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callback: Option<String>,
    /// The secret for signing on both sides. It is shown once, when the hook is created.
    pub(crate) secret: String,
    /// Milliseconds since 1970.
    pub created: u64,
}

/// A hook as clients see it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookView {
    pub id: String,
    pub owner: String,
    pub name: String,
    pub start: Start,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callback: Option<String>,
    /// Milliseconds since 1970.
    pub created: u64,
    /// The path for calling it.
    pub path: String,
    /// The secret for signing requests; only in the response that creates the hook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<String>,
}

impl Hook {
    /// The hook without its secret.
    pub fn view(self) -> HookView {
        let path = format!("/api/hooks/{}", self.id);
        let Self { id, owner, name, start, callback, created, .. } = self;
        HookView { id, owner, name, start, callback, created, path, secret: None }
    }
}

/// A result to send when a run ends. Its id is that of the run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Owed {
    pub id: String,
    pub hook: String,
    pub owner: String,
}

kept!(Hook, "hook");

kept!(Owed, "owed");

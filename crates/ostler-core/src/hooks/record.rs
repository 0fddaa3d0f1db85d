//! Hooks and the answers that are still owed, as they are kept.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::records::kept;
use crate::start::Start;

/// What another program can start, without a token and with a signature.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hook {
    pub id: String,
    pub owner: String,
    pub name: String,
    pub start: Start,
    /// Where the answer is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callback: Option<String>,
    /// What both sides sign with. It is shown once, and then only used.
    pub(crate) secret: String,
    /// Milliseconds since 1970.
    pub created: u64,
}

/// A hook as it is shown.
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
    /// Where it is called.
    pub path: String,
    /// What calls are signed with; only in the answer that makes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<String>,
}

impl Hook {
    /// Without the secret.
    pub fn view(self) -> HookView {
        let path = format!("/api/hooks/{}", self.id);
        let Self { id, owner, name, start, callback, created, .. } = self;
        HookView { id, owner, name, start, callback, created, path, secret: None }
    }
}

/// An answer that is owed when a run is over. It has the name of the run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Owed {
    pub id: String,
    pub hook: String,
    pub owner: String,
}

kept!(Hook, "hook");

kept!(Owed, "owed");

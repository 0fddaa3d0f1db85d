//! `Artifact` and `ClaudeDesign`: pages published outside the conversation. Newer peers only.

use ostler_proto_derive::Wire;
use serde_json::Value;

use crate::Extra;

/// What to do with published pages.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ArtifactInput {
    /// What to do; publishing if absent.
    pub action: Option<ArtifactAction>,
    /// The file to publish or upload.
    pub file_path: Option<String>,
    /// A symbol for the page.
    pub favicon: Option<String>,
    /// A picture for the page.
    pub icon: Option<String>,
    /// How many entries to list.
    pub limit: Option<u64>,
    /// The cursor of a list.
    pub page_token: Option<String>,
    /// Whose to list.
    pub scope: Option<ArtifactScope>,
    /// The page's title.
    pub title: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// A name for this version.
    pub label: Option<String>,
    /// The page's address.
    pub url: Option<String>,
    /// What to find out from it.
    pub prompt: Option<String>,
    /// Whether to overwrite newer changes.
    pub force: Option<bool>,
    /// Whether to pin it.
    pub pin: Option<bool>,
    /// Where to put what is read.
    pub out_dir: Option<String>,
    /// The files to upload.
    pub file_paths: Option<Vec<String>>,
    /// The file to read or delete.
    pub asset_id: Option<String>,
    /// The cursor of a list of files.
    pub after: Option<String>,
    /// What the page may do.
    pub capabilities: Option<Value>,
    /// The version of the rules it is written for.
    pub contract: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// What to do with published pages.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum ArtifactAction {
    /// Publish one.
    Publish,
    /// List them.
    List,
    /// Read one.
    Read,
    /// List the kinds there are.
    ListTypes,
    /// Subscribe to changes.
    Watch,
    /// Unsubscribe from changes.
    Unwatch,
    /// Ask for its status.
    Status,
    /// Add a file to one.
    UploadAsset,
    /// List its files.
    ListAssets,
    /// Read one of its files.
    ReadAsset,
    /// Delete one of its files.
    DeleteAsset,
    /// Pin it.
    Pin,
    /// No longer pin it.
    Unpin,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// Whose pages to list.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum ArtifactScope {
    /// One's own.
    Mine,
    /// Those of others.
    Shared,
    /// All.
    All,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// A request to the design service.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ClaudeDesignInput {
    /// What to do.
    pub operation: String,
    /// With what.
    pub arguments: Value,
    /// Unknown fields.
    pub extra: Extra,
}

/// The design service's answer.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct ClaudeDesignOutput {
    /// What was done.
    pub operation: String,
    /// Content blocks.
    pub content: Vec<Value>,
    /// Whether it failed.
    pub is_error: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

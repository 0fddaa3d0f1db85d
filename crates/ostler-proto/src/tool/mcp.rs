//! Tools about MCP servers: resources, the list of tools and, in older peers, subscriptions.

use ostler_proto_derive::Wire;
use serde_json::Value;

use crate::Extra;

/// Asks which resources there are.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ListMcpResourcesInput {
    /// Only those of this server.
    pub server: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A resource of an MCP server.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct McpResource {
    /// Its address.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// Its format.
    pub mime_type: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// The server; absent where the server was given.
    pub server: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A resource to read.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ReadMcpResourceInput {
    /// The server.
    pub server: String,
    /// The resource.
    pub uri: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// A resource was read.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ReadMcpResourceOutput {
    /// Its parts.
    pub contents: Vec<McpResourceContent>,
    /// What went wrong. Newer peers only.
    pub error: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A part of a resource.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct McpResourceContent {
    /// Its address.
    pub uri: String,
    /// Its format.
    pub mime_type: Option<String>,
    /// Its text.
    pub text: Option<String>,
    /// The file it was put into, if it is not text. Newer peers only.
    pub blob_saved_to: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A directory of resources to list. Newer peers only.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ReadMcpResourceDirInput {
    /// The server.
    pub server: String,
    /// The directory.
    pub uri: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// A directory of resources.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ReadMcpResourceDirOutput {
    /// What is in it.
    pub resources: Vec<McpResource>,
    /// What went wrong.
    pub error: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Asks servers for their tools again. Newer peers only.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct RefreshMcpToolsInput {
    /// Only this server.
    pub server: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// What a server answered when asked for its tools again.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase", new(server, status))]
#[non_exhaustive]
pub struct McpRefresh {
    /// The server.
    pub server: String,
    /// Whether it answered.
    pub status: McpRefreshStatus,
    /// How many tools it has.
    pub tool_count: Option<u64>,
    /// Which are new.
    pub added: Option<Vec<String>>,
    /// Which are gone.
    pub removed: Option<Vec<String>>,
    /// What went wrong.
    pub error: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Whether a server answered.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum McpRefreshStatus {
    /// It did.
    Refreshed,
    /// It did not.
    Error,
    /// It could not be asked.
    NotConnected,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// A resource to subscribe to. Older peers only.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct SubscribeMcpResourceInput {
    /// The server.
    pub server: String,
    /// The resource.
    pub uri: String,
    /// Why.
    pub reason: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A resource to unsubscribe from. Older peers only.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct UnsubscribeMcpResourceInput {
    /// The server.
    pub server: Option<String>,
    /// The resource.
    pub uri: Option<String>,
    /// The subscription.
    pub subscription_id: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A tool or resource to poll. Older peers only.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase", new(type, server))]
#[non_exhaustive]
pub struct SubscribePollingInput {
    /// Which of the two.
    pub r#type: PollingKind,
    /// The server.
    pub server: String,
    /// The tool.
    pub tool_name: Option<String>,
    /// What to pass to the tool.
    pub arguments: Option<Value>,
    /// The resource.
    pub uri: Option<String>,
    /// How often.
    pub interval_ms: u64,
    /// Why.
    pub reason: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// What is polled.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum PollingKind {
    /// A tool.
    Tool,
    /// A resource.
    Resource,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// A poll to end. Older peers only.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct UnsubscribePollingInput {
    /// The subscription.
    pub subscription_id: Option<String>,
    /// The server.
    pub server: Option<String>,
    /// The tool or resource.
    pub target: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A subscription was made.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscribeOutput {
    /// Whether it was.
    pub subscribed: bool,
    /// Its id.
    pub subscription_id: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// A subscription was ended.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct UnsubscribeOutput {
    /// Whether it was.
    pub unsubscribed: bool,
    /// Unknown fields.
    pub extra: Extra,
}

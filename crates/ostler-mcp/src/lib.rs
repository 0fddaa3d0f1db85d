//! MCP, the Model Context Protocol: servers inside this program, and a client for external servers.
//!
//! A [`Server`] is a list of tools, resources and prompts that are functions of this program. It is called message by
//! message ([`Server::connect`]), as the `mcp_message` requests of an agent's wire protocol need it, or served as a
//! separate program ([`Server::serve_stdio`]).
#![cfg_attr(
    feature = "client",
    doc = "\nA [`Client`] reaches a server wherever it is ([`Endpoint`]): a program, an address, or this program."
)]
//!
//! The client is behind the feature `client`, which is on by default; without it this crate compiles faster.

#![warn(missing_docs)]

#[cfg(feature = "client")]
mod client;
mod content;
mod output;
mod rpc;
mod server;
#[cfg(feature = "http")]
mod websocket;

#[cfg(feature = "client")]
pub use client::{
    CallOptions, Channel, Client, ClientOptions, Custom, Endpoint, Error, Event, Program, Progress,
    PromptArgument, PromptInfo, PromptResult, Remote, ResourceTemplate, Root, ServerDetails,
    Status, ToolAnnotations, ToolInfo,
};
#[cfg(feature = "http")]
pub use client::{OAuthOptions, SignIn};
pub use content::{Content, Media, ResourceContents, ResourceLink};
pub use output::{IntoOutput, Output};
#[cfg(feature = "serve-http")]
pub use server::HttpOptions;
pub use server::{
    AskError, Async, ClientCapability, Connection, Context, Elicited, Fallible, Json, Level, Plain,
    Prompt, PromptArguments, PromptMessage, Resource, Server, Tool, ToolReply, ToolValue,
    Variables, raw_tool, tool, tool_with_context,
};
#[cfg(feature = "http")]
pub use websocket::websocket;

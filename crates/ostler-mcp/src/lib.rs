//! MCP, the Model Context Protocol: servers inside this program, and a client for everybody else's.
//!
//! A [`Server`] is a list of tools, resources and prompts that are functions of this program. It is reached message
//! by message ([`Server::connect`]), which is what the `mcp_message` requests of an agent's wire protocol need, or
//! served as a program of its own ([`Server::serve_stdio`]).
#![warn(missing_docs)]

mod content;
mod output;
mod rpc;
mod server;

pub use content::{Content, Media, ResourceContents, ResourceLink};
pub use output::{IntoOutput, Output};
pub use server::{
    Connection, Context, Prompt, PromptArguments, PromptMessage, Resource, Server, Tool, Variables,
    raw_tool, tool, tool_with_context,
};

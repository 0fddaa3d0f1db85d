//! The Claude Agent SDK wire protocol as types: the frames between a host (an SDK) and an engine (a CLI) over stdin
//! and stdout, one JSON object per line.
//!
//! This crate has no IO and no clock. It contains:
//!
//! - [`frame`]: everything that a line may contain, [`frame::ToEngine`] on stdin and [`frame::ToHost`] on stdout;
//! - [`message`], [`api`], [`control`], [`permission`], [`hook`], [`mcp`], [`agent`], [`sandbox`], [`tool`]: the
//!   parts frames are made of;
//! - [`codec`]: bytes to frames, or to server-sent events, in any portions;
//! - [`peer`]: which request waits for which answer, on either side;
//! - [`quirks`]: unexpected behaviour of peers;
//! - [`launch`]: how an engine is started;
//! - [`transcript`], [`project`]: the lines of session files, and the folders of these;
//! - [`version`]: which versions of the other side were tested;
//! - [`guide`]: the protocol in prose. Start there to implement it.
//!
//! Two rules hold for every type. **Unknown is kept**: unknown message types, subtypes, fields and values survive
//! decoding and encoding unchanged, also the difference between `null` and absent. **Malformed is reported**: a known
//! type that does not decode is an error that names the type and the field.
//!
//! # Which types grow
//!
//! A struct that programs only receive is `#[non_exhaustive]`, so that a new field breaks no program: messages and their
//! parts, results, usage, requests to a host, replies of an engine, hook inputs, inputs and outputs of tools, lines of
//! session files, and errors. Engines and tests make one with [`build!`], which looks like a literal, by `Default` or
//! `new` and assignment to fields, or out of JSON.
//!
//! What hosts build can be written as a literal: options ([`launch`], [`sandbox`]), [`agent::AgentDefinition`],
//! [`mcp::McpServerConfig`], permission answers, hook outputs, requests to an engine. So can the few structs that hosts
//! both build and receive: [`message::User`] and the text, images and documents in it, [`permission::PermissionUpdate`],
//! [`control::McpMessage`] and [`message::KeepAlive`].
//!
//! Enums are `#[non_exhaustive]`, except those whose variants are the possible forms of a JSON value, such as
//! [`api::Content`]. `cargo xtask tidy` checks all this (`xtask/src/tidy/growth.rs`).
//!
//! # A host in twenty lines
//!
//! ```
//! use ostler_proto::codec::FrameDecoder;
//! use ostler_proto::control::{AskHost, ControlResponse};
//! use ostler_proto::frame::{Frame, ToEngine, ToHost};
//! use ostler_proto::message::User;
//! use ostler_proto::permission::{Deny, PermissionResult};
//!
//! // First line to the engine's stdin:
//! let prompt = ToEngine::User(Box::new(User::prompt("list the files"))).to_line();
//! assert!(prompt.ends_with("\n"));
//!
//! // And the bytes from its stdout, in any chunks:
//! let mut decoder = FrameDecoder::<ToHost>::new();
//! decoder.push(br#"{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","#);
//! decoder.push(b"\"tool_name\":\"Bash\",\"input\":{\"command\":\"rm -rf /\"}}}\n");
//! while let Some(frame) = decoder.next_frame() {
//!     match frame.unwrap() {
//!         ToHost::ControlRequest(request) => {
//!             let AskHost::CanUseTool(call) = request.request else { continue };
//!             assert_eq!(call.tool_name, "Bash");
//!             let no = PermissionResult::Deny(Deny { message: "No.".into(), ..Deny::default() });
//!             let payload = serde_json::to_value(no).unwrap();
//!             let answer = ControlResponse::success(request.request_id.unwrap(), Some(payload));
//!             assert_eq!(
//!                 ToEngine::ControlResponse(answer).to_line(),
//!                 r#"{"type":"control_response","response":{"subtype":"success","request_id":"r1","#.to_owned()
//!                     + r#""response":{"behavior":"deny","message":"No."}}}"# + "\n"
//!             );
//!         }
//!         ToHost::Result(result) => println!("done: {:?}", result.result),
//!         _ => {}
//!     }
//! }
//! ```
#![warn(missing_docs)]

pub mod agent;
pub mod api;
mod build_macro;
pub mod codec;
pub mod control;
pub mod drift;
mod error;
pub mod frame;
pub mod guide;
pub mod hook;
mod ids;
pub mod launch;
pub mod mcp;
pub mod message;
mod num;
pub mod peer;
pub mod permission;
pub mod project;
pub mod quirks;
pub mod sandbox;
pub mod tool;
pub mod transcript;
pub mod version;
pub mod wire;

pub use self::error::DecodeError;
pub use self::ids::*;
pub use self::num::Num;
pub use self::wire::{Extra, UnknownObject};

//! AG-UI: any client of that protocol talks to an agent here.
//!
//! `POST /agui` is a run: the conversation goes in, events come out. A thread is a session of this server, found by the
//! name the client has for it, and a client's run is a look at its log: what is new is submitted as any other prompt,
//! and what the log says of it is told as events. The engine's turn and the client's run are not the same thing: when
//! the agent calls a tool of the client, or needs a yes, the client's run ends and says so, while the turn waits; the
//! next run on the thread brings the answer and goes on where the turn is. Questions are the same that every other
//! client of the server sees, and whoever is first answers them.
//!
//! `endpoint.rs` is what HTTP sees; `thread.rs` is what is remembered between runs, and keeps runs on one thread apart.
//! `run.rs` carries one run, and `connect.rs` tells a client that comes later what it has missed: `run_request.rs` finds out what the client wants, `follow.rs` tells what the log says, `asks.rs`
//! knows the open questions and `interrupts.rs` what they look like. `page.rs` sets up the engine for a thread;
//! `client_tool_calls.rs` is where its calls of the client's tools wait (`frontend_tools.rs`) and what it shares (`shared_state.rs`).
//! What events look like and in which order they come is all in `ostler-agui`.

mod asks;
mod client_tool_calls;
mod connect;
mod endpoint;
mod follow;
mod frontend_tools;
pub(crate) mod history_page;
mod interrupts;
mod outlet;
mod page;
mod past;
mod run;
pub(crate) mod run_pages;
mod run_request;
mod shared_state;
mod thread;

pub use ostler_core::config::agui::{Approvals, Busy, Config, Disconnect, Memory};

pub use self::client_tool_calls::ThreadToolCalls;
pub use self::endpoint::{AgUi, Caller};
pub use self::page::Pages;

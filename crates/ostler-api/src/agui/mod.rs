//! AG-UI: any client of that protocol can use an agent here.
//!
//! `POST /agui` is a run: the conversation goes in, events come out. A thread is a session of this server, found by the
//! client's name for it. A client's run follows the log of the session: new messages are submitted like any other
//! prompt, and the log is sent as events. The engine's turn and the client's run differ: when the agent calls a tool of
//! the client, or needs approval, the client's run ends and says so, while the turn waits. The next run on the thread
//! brings the answer and continues with the turn. All clients of the server see the same questions, and the first
//! answer wins.
//!
//! `endpoint.rs` has the HTTP routes; `thread.rs` is what is stored between runs, and allows one run at a time on a
//! thread. `run.rs` performs one run, and `connect.rs` sends what it has missed to a client that comes later:
//! `run_request.rs` finds out what the client wants, `follow.rs` sends the events of the log, `asks.rs` has the open
//! questions and `interrupts.rs` their form. `page.rs` sets up the engine for a thread; in `client_tool_calls.rs` its
//! calls of the client's tools wait (`frontend_tools.rs`), next to the state that it shares (`shared_state.rs`). The
//! format and the order of events are in `ostler-agui`.

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

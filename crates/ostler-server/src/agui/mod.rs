//! AG-UI: any client of that protocol talks to an agent here.
//!
//! `POST /agui` is a run: the conversation goes in, events come out. The engine's turn and the client's run are not the
//! same thing: when the agent calls a tool of the client, or needs a yes, the run ends and says so, while the turn waits;
//! the next run on the thread brings the answer and goes on where the turn is.
//!
//! `endpoint.rs` is what HTTP sees; `thread.rs` knows the threads of every caller and keeps runs on one thread apart;
//! `mount.rs` makes it a part of this server. `run.rs` carries one run; `session.rs` is the engine behind a thread, and `desk.rs` what lies there to be answered.
//! `frontend_tools.rs`, `interrupts.rs` and `shared_state.rs` say what a client's tools, a question and a state are to
//! the engine. What events look like and in which order they come is all in `ostler-agui`.

mod config;
mod desk;
mod endpoint;
mod frontend_tools;
mod interrupts;
mod mount;
mod outlet;
mod run;
mod session;
mod shared_state;
mod thread;

pub use self::config::{Approvals, Busy, Config, Disconnect, Memory, OptionsFor};
pub use self::endpoint::{AgUi, Caller};
pub(crate) use self::mount::mount;

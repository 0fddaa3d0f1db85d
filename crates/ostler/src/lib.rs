//! Ostler: an agent in your program.
//!
//! A prompt goes in; a model answers, calls tools that look into files, change them and run commands, and comes back
//! with a result. This crate is the Claude Agent SDK for Rust with the engine that does all this built in: there is no
//! other program to install.
//!
//! # Quick start
//!
//! ```no_run
//! #[tokio::main]
//! async fn main() -> Result<(), ostler::Error> {
//!     let mut messages = ostler::query("What is in this folder?", ostler::Options::new());
//!     while let Some(message) = messages.next().await {
//!         if let Some(text) = message?.text() {
//!             println!("{text}");
//!         }
//!     }
//!     Ok(())
//! }
//! ```
//!
//! With `ANTHROPIC_API_KEY` in the environment a real model answers. Without it an offline demo does, which understands
//! a few plain sentences (say `help`) and uses the same tools: enough to try everything on this page. Each step below
//! has a program in `examples/`, to be started with `cargo run --example`.
//!
//! # What one does with it
//!
//! **Read an answer as it is written** (`streaming`). With [`Options::partial_messages`] pieces come as
//! [`Message::text_delta`]; finished blocks come as well. A [`Fold`] puts the pieces together, for those who redraw.
//!
//! **Get just the result** ([`prompt`]):
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), ostler::Error> {
//! # let mut options = ostler::Options::new().model("offline-demo");
//! # options.session.ephemeral = true;
//! let result = ostler::prompt("count the files", options).await?;
//! println!("{} for {} $", result.result.unwrap_or_default(), result.total_cost_usd);
//! # Ok(()) }
//! ```
//!
//! **Get a value** ([`prompt_as`], `structured_output`). The type's schema is shown to the model, and the answer is
//! checked against it:
//!
//! ```
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Listing { files: Vec<String> }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), ostler::Error> {
//! # let mut options = ostler::Options::new().model("offline-demo");
//! # options.session.ephemeral = true;
//! let listing: Listing = ostler::prompt_as("list the files", options).await?;
//! # assert!(!listing.files.is_empty());
//! # Ok(()) }
//! ```
//!
//! **Hold a conversation** ([`Client`], `conversation`). The session stays open for further prompts; a [`Handle`] of it
//! can change the model, the permission mode and more from anywhere:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), ostler::Error> {
//! # let mut options = ostler::Options::new().model("offline-demo");
//! # options.session.ephemeral = true;
//! let mut client = ostler::Client::connect(options).await?;
//! client.prompt("list the files").await?;
//! client.prompt("count the files").await?;
//! client.close().await
//! # }
//! ```
//!
//! **Decide what the agent may do** ([`Options::allow`], [`Options::deny`], [`Options::on_permission`], `permissions`).
//! Looking around in the working directory is free. Everything else runs only if a rule or the callback says yes;
//! without either it is denied.
//!
//! ```
//! use ostler::Decision;
//!
//! let options = ostler::Options::new().allow(["Bash(git log:*)"]).on_permission(|call| async move {
//!     match call.tool_name.as_str() {
//!         "Write" | "Edit" => Decision::allow(),
//!         other => Decision::deny(format!("{other} is not for this program")),
//!     }
//! });
//! ```
//!
//! **Answer its questions** ([`Options::on_question`], `questions`). They come apart from permissions, and never look
//! like one.
//!
//! **Show dialogs** ([`Options::on_dialog`]) of engines that have some of their own.
//!
//! **Look at every call** ([`Hook`], `hooks`). A hook is notified of an event, can add to what the model knows, change a call
//! or stop it. A hook that fails stops what it guards.
//!
//! **Give it tools of your own** ([`mcp`], [`Options::server`], `custom_tools`): functions with typed arguments, as an MCP
//! server inside your program. Servers that others wrote come with [`Options::mcp_server`]; what they ask the user comes
//! to [`Options::on_elicitation`]. The same server is a program of its own with [`mcp::Server::serve_stdio`]
//! (`mcp_server`).
//!
//! ```
//! use ostler::mcp::{Server, tool};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Add { a: i64, b: i64 }
//!
//! let add = tool("add", "Adds two numbers", |it: Add| async move { Ok::<_, String>(it.a + it.b) });
//! let options = ostler::Options::new().server(Server::new("calc", "1.0.0").tool(add)).allow(["mcp__calc__add"]);
//! ```
//!
//! **Let it delegate** (`subagents`, [`Options::agent`]). A subagent has the permissions of its parent and its own
//! conversation; its messages come with [`Message::parent_tool_use_id`], its questions with the agent's id.
//!
//! **Continue later** ([`Options::resume`], [`Options::fork`], [`Options::continue_newest`], `sessions`). Sessions are kept
//! on disk, in the format of Claude Code.
//!
//! **Keep sessions in your own place** ([`Options::session_store`], [`session_store`]), and resume them on another machine:
//!
//! ```
//! use std::sync::Arc;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), ostler::Error> {
//! # let disk = tempfile::tempdir().unwrap();
//! # let disk = disk.path().display().to_string();
//! let store = Arc::new(ostler::InMemorySessionStore::new());
//! let options = || ostler::Options::new().session_store(Arc::clone(&store));
//! # let options = || options().model("offline-demo").env("CLAUDE_CONFIG_DIR", &disk);
//! let first = ostler::prompt("list the files", options()).await?;
//! // Elsewhere: only the store is the same.
//! # let options = || options().env("CLAUDE_CONFIG_DIR", "/nowhere");
//! let second = ostler::prompt("count the files", options().resume(first.session_id.as_str())).await?;
//! assert_eq!(first.session_id, second.session_id);
//! # Ok(()) }
//! ```
//!
//! **Stop it** ([`Client::interrupt`], `interrupt`), **limit it** ([`Options::max_turns`], [`Options::max_budget_usd`]),
//! **cancel it** from elsewhere ([`Options::cancel_with`]), or just drop the [`Query`] or [`Client`]: the agent ends with
//! everything it started.
//!
//! **Test it offline** ([`Options::record`], [`Options::replay`], `offline_test`). A run is recorded once, and answered
//! from the recording ever after: no key, no network, the same every time.
//!
//! **Let work continue in the background** (`background`). [`query`] ends when all of it has ended.
//!
//! **Leave it alone with a task** (feature `prompts`, crate `ostler-prompt`): prompts as checked values, typed answers,
//! deadlines, budgets that several runs share, copies of folders to work in, and events on the way.
//!
//! # Which engine
//!
//! | options | the engine is |
//! |---|---|
//! | [`Options::new`] | in this process: starts in no time, moves messages without serialising them |
//! | `Options::new().transport(Process::find())` ([`Process::find`]) | a program found by `OSTLER_ENGINE`, or as `ostler` or `claude` on the `PATH` |
//! | [`Options::executable`] | that program: `ostler`, or Claude Code as a binary or as `cli.js` |
//! | [`Options::transport`] | whatever implements [`transport::Transport`] |
//!
//! Nothing else changes: the same options, callbacks and messages work with all of them. Programs that need no engine
//! inside can depend on `ostler-sdk` alone.
//!
//! # Features
//!
//! All but `prompts` are on by default. `default-features = false` leaves out what brings other crates along; what needs a
//! feature that is off says so.
//!
//! | feature | what it adds |
//! |---|---|
//! | `mcp-http` | MCP servers behind an address |
//! | `offline` | the offline demo, which answers without a key |
//! | `pdf` | PDF documents for the tool `Read` |
//! | `prompts` | typed prompts (`ostler::prompts`) |
//! | `web` | the tool `WebFetch` |
//!
//! The crate runs on Unix only. It needs unwinding panics (`panic = "unwind"`, the default) to keep its promise that a
//! callback that panics denies. It turns on `serde_json/preserve_order` and `float_roundtrip`;
//! `serde_json/arbitrary_precision` must stay off.
//!
//! # When something goes wrong
//!
//! Everything fails with an [`Error`], whose text says what happened and what helps. [`Error::kind`] sorts them
//! (`errors`):
//!
//! | [`ErrorKind`] | what happened | what to do |
//! |---|---|---|
//! | `Engine` | there is no engine, or it does not start | install one, or use the built-in one: [`Options::new`] |
//! | `Usage` | the options contradict each other or the machine | correct them |
//! | `Connection` | the engine has gone; [`Error::exit_code`], [`Error::stderr`] | start a new session and resume |
//! | `Protocol` | the engine said something malformed | report it; the engine is too old, too new or broken |
//! | `Refused` | the engine said no to a request | see the text |
//! | `Unsupported` | the engine does not know a request | use another engine, or do without |
//! | `Cancelled` | the token of [`Options::cancel_with`] fired | nothing |
//! | `Api` | the API said no; [`Error::api_status`] | if [`Error::is_retryable`], try again later |
//! | `MaxTurns`, `Budget` | a limit was reached | resume with a higher one |
//! | `Answer` | the answer is not of the type asked for | ask again, or loosen the type |
//! | `Turn` | the turn was interrupted, or failed otherwise | the session continues |
//! | `Timeout` | something took longer than its limit | try again, or set another limit |
//! | `Session` | a stored session is missing or cannot be changed | list the sessions ([`Sessions`]) |
//!
//! A tool that fails, a call that is denied and a hook that panics are no errors of the session: the model reads about
//! them and continues.
#![warn(missing_docs)]

#[cfg(not(unix))]
compile_error!(
    "ostler runs on Unix only (Linux, macOS): it relies on process groups, signals and file permissions. On Windows, use WSL"
);

pub mod engine;
pub mod sessions;

#[cfg(feature = "prompts")]
pub use ostler_prompt as prompts;
pub use ostler_sdk::*;

pub use self::sessions::Sessions;

/// Options for a session. Without an [executable](ostler_sdk::OptionsFor::executable) or another
/// [transport](ostler_sdk::OptionsFor::transport) the engine runs inside this process.
///
/// ```
/// use ostler::Options;
///
/// let options = Options::new().model("claude-sonnet-5-5").cwd("/tmp").max_turns(5);
/// let claude_code = Options::new().executable("claude");
/// ```
pub type Options = OptionsFor<engine::Embedded>;

/// The same as [`Options::new`].
pub fn options() -> Options {
    Options::new()
}

const _: () = {
    const fn shares<T: Send + Sync>() {}
    shares::<Options>();
    shares::<Sessions>();
};

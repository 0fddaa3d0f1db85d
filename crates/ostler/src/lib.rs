//! Ostler: an agent in your program.
//!
//! You send a prompt; a model answers it, calls tools that read files, change them and run commands, and returns a
//! result. This crate is the Claude Agent SDK for Rust with the engine built in: there is no other program to install.
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
//! With `ANTHROPIC_API_KEY` in the environment a real model answers; without a key prompts fail with "Not logged in".
//! `OSTLER_OFFLINE=1`, or the model `offline-demo`, chooses the offline demo, which understands a few plain sentences (send
//! `help`) and uses the same tools: enough to try everything on this page. Each step below has a program in `examples/`;
//! start it with `cargo run --example`.
//!
//! # What you can do with it
//!
//! **Read an answer as it is written** (`streaming`). With [`Options::partial_messages`] the text arrives in deltas
//! ([`Message::text_delta`]), in addition to finished blocks. A [`Fold`] joins the deltas, for programs that redraw.
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
//! Calls that only read in the working directory need no approval. Every other call runs only if a rule or the callback
//! allows it.
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
//! **Answer its questions** ([`Options::on_question`], `questions`). They have their own callback, so they cannot be
//! mistaken for permission requests.
//!
//! **Show dialogs** ([`Options::on_dialog`]) of engines that have their own.
//!
//! **Look at every call** ([`Hook`], `hooks`). A hook is notified of an event. It can add context for the model, change a
//! call or stop it. If a hook fails, the call that it guards is denied.
//!
//! **Give it tools of your own** ([`mcp`], [`Options::server`], `custom_tools`): functions with typed arguments, as an MCP
//! server inside your program. [`Options::mcp_server`] adds other MCP servers; [`Options::on_elicitation`] answers the
//! questions that they ask the user. With [`mcp::Server::serve_stdio`] your server is a separate program (`mcp_server`).
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
//! conversation. Its messages have a [`Message::parent_tool_use_id`], its questions the agent's id.
//!
//! **Continue later** ([`Options::resume`], [`Options::fork`], [`Options::continue_newest`], `sessions`). Sessions are
//! stored on disk, in the format of Claude Code.
//!
//! **Store sessions elsewhere** ([`Options::session_store`], [`session_store`]), and resume them on another machine:
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
//! // On another machine: only the store is the same.
//! # let options = || options().env("CLAUDE_CONFIG_DIR", "/nowhere");
//! let second = ostler::prompt("count the files", options().resume(first.session_id.as_str())).await?;
//! assert_eq!(first.session_id, second.session_id);
//! # Ok(()) }
//! ```
//!
//! **Stop it** ([`Client::interrupt`], `interrupt`), **limit it** ([`Options::max_turns`], [`Options::max_budget_usd`]),
//! **cancel it** from another task ([`Options::cancel_with`]), or drop the [`Query`] or [`Client`]: the agent ends with
//! everything it started.
//!
//! **Test it offline** ([`Options::record`], [`Options::replay`], `offline_test`). You record a run once; after that the
//! recording answers, without a key and a network, and always the same.
//!
//! **Let work continue in the background** (`background`). A [`query`] ends when all background tasks have ended.
//!
//! **Run it unattended** (feature `prompts`, crate `ostler-prompt`): prompts as checked values, typed answers, deadlines,
//! budgets that several runs share, copies of folders to work in, and progress events.
//!
//! # Which engine
//!
//! | options | the engine is |
//! |---|---|
//! | [`Options::new`] | in this process: starts at once, passes messages without serialising them |
//! | `Options::new().transport(Process::find())` ([`Process::find`]) | a program found by `OSTLER_ENGINE`, or as `ostler` or `claude` on the `PATH` |
//! | [`Options::executable`] | that program: `ostler`, or Claude Code as a binary or as `cli.js` |
//! | [`Options::transport`] | whatever implements [`transport::Transport`] |
//!
//! The same options, callbacks and messages work with all of them. Programs that do not need the built-in engine can
//! depend on `ostler-sdk` alone.
//!
//! # Features
//!
//! All but `prompts` are on by default. `default-features = false` saves dependencies; an operation that needs a feature
//! that is off fails with an error that names it.
//!
//! | feature | what it adds |
//! |---|---|
//! | `mcp-http` | MCP servers over HTTP |
//! | `offline` | the offline demo, which answers without a key if it is chosen |
//! | `pdf` | PDF documents for the tool `Read` |
//! | `prompts` | typed prompts (`ostler::prompts`) |
//! | `web` | the tool `WebFetch` |
//!
//! The crate runs on Unix only. It needs unwinding panics (`panic = "unwind"`, the default): a permission callback that
//! panics denies the call. It turns on `serde_json/preserve_order` and `float_roundtrip`;
//! `serde_json/arbitrary_precision` must stay off.
//!
//! # When something goes wrong
//!
//! Every operation fails with an [`Error`], whose text says what happened and what to do. [`Error::kind`] classifies it
//! (`errors`):
//!
//! | [`ErrorKind`] | what happened | what to do |
//! |---|---|---|
//! | `Engine` | there is no engine, or it does not start | install one, or use the built-in one: [`Options::new`] |
//! | `Usage` | the options contradict each other or do not fit this machine | correct them |
//! | `Connection` | the engine has ended; [`Error::exit_code`], [`Error::stderr`] | start a new session and resume |
//! | `Protocol` | the engine sent a malformed message | report it; the engine is too old, too new or broken |
//! | `Refused` | the engine refused a request | see the text |
//! | `Unsupported` | the engine does not know a request | use another engine, or do without |
//! | `Cancelled` | the token of [`Options::cancel_with`] fired | nothing |
//! | `Api` | the API returned an error; [`Error::api_status`] | if [`Error::is_retryable`], try again later |
//! | `MaxTurns`, `Budget` | a limit was reached | resume with a higher one |
//! | `Answer` | the answer does not have the requested type | ask again, or loosen the type |
//! | `Turn` | the turn was interrupted, or failed otherwise | the session continues |
//! | `Timeout` | something took longer than its limit | try again, or set another limit |
//! | `Session` | a stored session is missing or cannot be changed | list the sessions ([`Sessions`]) |
//!
//! A tool that fails, a call that is denied and a hook that panics are not errors of the session: the model reads the
//! reason and continues.
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

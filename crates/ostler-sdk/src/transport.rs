//! How a session reaches its engine: a child process, or an engine in this process.

use std::path::PathBuf;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt as _};
pub use ostler_process::Environment;
use ostler_proto::codec::StreamDeltas;
use ostler_proto::frame::{ToEngine, ToHost};
use ostler_proto::launch::Launch;
use tokio::sync::mpsc;

use crate::error::Error;

/// Starts engines.
pub trait Transport: Send + Sync + 'static {
    /// Starts an engine.
    ///
    /// # Errors
    /// When no engine is found, or it cannot be started.
    fn start(&self, start: Start) -> BoxFuture<'static, Result<Link, Error>>;

    /// The version of an engine that does not answer `initialize`, such as `2.1.325 (Claude Code)`: very old engines do
    /// not know that request. `None` if the version cannot be determined.
    fn version(&self, _env: &Environment) -> BoxFuture<'static, Option<String>> {
        std::future::ready(None).boxed()
    }
}

/// Receives what an engine writes to stderr.
pub type StderrListener = Arc<dyn Fn(&str) + Send + Sync>;

/// Everything that a transport needs to start an engine.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Start {
    /// The options of the command line.
    pub launch: Launch,
    /// The working directory; `None` for that of this process.
    pub cwd: Option<PathBuf>,
    /// The engine's environment.
    pub env: Environment,
    /// The user that the engine runs as, by name or number; `None` for the user of this process.
    pub user: Option<String>,
    /// Receives what the engine writes to stderr.
    pub stderr: Option<StderrListener>,
}

/// A running engine.
#[non_exhaustive]
pub struct Link {
    /// Frames for the engine; dropping the sender closes the engine's input.
    pub to_engine: mpsc::Sender<ToEngine>,
    /// Output of the engine; ends when the engine closes it.
    pub(crate) from_engine: BoxStream<'static, Result<Said, Error>>,
    /// The engine itself; dropping it ends the engine at once.
    pub engine: Box<dyn Engine>,
}

impl Link {
    /// A link from its parts.
    pub fn new(
        to_engine: mpsc::Sender<ToEngine>,
        from_engine: BoxStream<'static, Result<ToHost, Error>>,
        engine: impl Engine + 'static,
    ) -> Self {
        let output = from_engine.map(|frame| frame.map(Said::Frame));
        Self { to_engine, from_engine: output.boxed(), engine: Box::new(engine) }
    }
}

/// An item of an engine's output.
#[expect(clippy::large_enum_variant, reason = "taken apart at once")]
pub(crate) enum Said {
    /// A frame.
    Frame(ToHost),
    /// The beginning of a line that is not a frame, such as a line of a debugger.
    Noise(String),
    /// Deltas of a response. Only the reader of the messages decodes them.
    Pieces(StreamDeltas),
}

/// A running engine. Dropping it ends the engine with everything that it started.
pub trait Engine: Send {
    /// Waits until the engine has ended. Called after it has closed its output.
    ///
    /// # Errors
    /// When the engine ended with an error.
    fn ended(&mut self) -> BoxFuture<'_, Result<(), Error>>;

    /// Waits until the engine has ended, even if another process holds its output open, and then ends such processes.
    /// The output written before can still be read. The future may be dropped and requested again. By default it never
    /// completes, for engines that have ended when their output has.
    fn gone(&mut self) -> BoxFuture<'_, ()> {
        std::future::pending().boxed()
    }

    /// Asks the engine to end by itself soon.
    fn terminate(&mut self) {}
}

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
    /// Starts one.
    ///
    /// # Errors
    /// When there is none, or it cannot be started.
    fn start(&self, start: Start) -> BoxFuture<'static, Result<Link, Error>>;

    /// What an engine that does not answer `initialize` says about its version, such as `2.1.325 (Claude Code)`: the
    /// oldest ones do not know the request. `None` where that cannot be found out.
    fn version(&self, _env: &Environment) -> BoxFuture<'static, Option<String>> {
        std::future::ready(None).boxed()
    }
}

/// Hears what an engine writes to its error output.
pub type StderrListener = Arc<dyn Fn(&str) + Send + Sync>;

/// What an engine is started with.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Start {
    /// What stands on its command line.
    pub launch: Launch,
    /// Where it works; `None` for this process's own directory.
    pub cwd: Option<PathBuf>,
    /// Its environment.
    pub env: Environment,
    /// The user it runs as, by name or number; `None` for this process's own.
    pub user: Option<String>,
    /// Hears what it writes to its error output.
    pub stderr: Option<StderrListener>,
}

/// A running engine.
#[non_exhaustive]
pub struct Link {
    /// To the engine; dropping it closes the engine's input.
    pub to_engine: mpsc::Sender<ToEngine>,
    /// From the engine; ends when the engine has nothing more to say.
    pub(crate) from_engine: BoxStream<'static, Result<Said, Error>>,
    /// The engine itself; dropping it ends the engine at once.
    pub engine: Box<dyn Engine>,
}

impl Link {
    /// A link of its parts.
    pub fn new(
        to_engine: mpsc::Sender<ToEngine>,
        from_engine: BoxStream<'static, Result<ToHost, Error>>,
        engine: impl Engine + 'static,
    ) -> Self {
        let said = from_engine.map(|frame| frame.map(Said::Frame));
        Self { to_engine, from_engine: said.boxed(), engine: Box::new(engine) }
    }
}

/// What an engine says.
#[expect(clippy::large_enum_variant, reason = "taken apart at once")]
pub(crate) enum Said {
    /// A frame.
    Frame(ToHost),
    /// A line that is not a frame at all, such as a debugger writes: its beginning.
    Noise(String),
    /// Pieces of a response: nothing but their reader needs to look into them.
    Pieces(StreamDeltas),
}

/// An engine that runs. Dropping it ends it with everything it started.
pub trait Engine: Send {
    /// Waits for its end, after it has nothing more to say.
    ///
    /// # Errors
    /// When it did not end well.
    fn ended(&mut self) -> BoxFuture<'_, Result<(), Error>>;

    /// Waits until it has gone, whoever still holds its output open, and sees to it that nobody does: what it has said
    /// can still be read then. May be dropped and called again. Never ends where the output's end tells it all.
    fn gone(&mut self) -> BoxFuture<'_, ()> {
        std::future::pending().boxed()
    }

    /// Asks it to end by itself, soon.
    fn terminate(&mut self) {}
}

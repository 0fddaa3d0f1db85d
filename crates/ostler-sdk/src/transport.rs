//! How a session reaches its engine: a child process, or an engine in this process.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
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
    /// Hears what it writes to its error output.
    pub stderr: Option<StderrListener>,
}

/// The environment of an engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// Whether it is all there is; otherwise it is added to this process's own.
    pub replaces: bool,
    /// The variables.
    pub variables: BTreeMap<String, String>,
}

impl Environment {
    /// A variable as the engine sees it.
    pub fn get(&self, name: &str) -> Option<String> {
        let inherited = || if self.replaces { None } else { std::env::var(name).ok() };
        self.variables.get(name).cloned().or_else(inherited)
    }
}

/// A running engine.
#[non_exhaustive]
pub struct Link {
    /// To the engine; dropping it closes the engine's input.
    pub to_engine: mpsc::Sender<ToEngine>,
    /// From the engine; ends when the engine has nothing more to say.
    pub from_engine: BoxStream<'static, Result<ToHost, Error>>,
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
        Self { to_engine, from_engine, engine: Box::new(engine) }
    }
}

/// An engine that runs. Dropping it ends it with everything it started.
pub trait Engine: Send {
    /// Waits for its end, after it has nothing more to say.
    ///
    /// # Errors
    /// When it did not end well.
    fn ended(&mut self) -> BoxFuture<'_, Result<(), Error>>;

    /// Asks it to end by itself, soon.
    fn terminate(&mut self) {}
}

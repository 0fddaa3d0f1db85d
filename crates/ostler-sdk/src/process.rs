//! An engine as a child process: any executable that speaks the protocol on its standard input and output.

mod child;
mod find;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::error::Error;
use crate::transport::{Environment, Link, Start, Transport};

/// Starts an executable per session.
///
/// It leads a process group of its own, which ends with the session, and with this process even if it is killed.
/// Nothing goes through a shell.
#[derive(Clone, Debug, Default)]
pub struct Process {
    executable: Option<PathBuf>,
    runtime: Vec<OsString>,
}

impl Process {
    /// Looks for an engine where one would be installed: `OSTLER_ENGINE`, then `ostler` and `claude` on the `PATH`.
    pub fn find() -> Self {
        Self::default()
    }

    /// This executable. One that ends in `.js`, `.mjs` or `.cjs` is run by `node`.
    pub fn new(executable: impl AsRef<Path>) -> Self {
        Self { executable: Some(executable.as_ref().to_owned()), ..Self::default() }
    }

    /// Has a script run by another program than `node`: its name or path, and what stands before the script. A program
    /// that is no script runs by itself all the same.
    ///
    /// ```
    /// let bun = ostler_sdk::Process::new("cli.js").runtime(["bun", "--smol"]);
    /// ```
    #[must_use]
    pub fn runtime<W: Into<OsString>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        self.runtime = words.into_iter().map(Into::into).collect();
        self
    }
}

impl Transport for Process {
    fn start(&self, start: Start) -> BoxFuture<'static, Result<Link, Error>> {
        let (executable, runtime) = (self.executable.clone(), self.runtime.clone());
        async move {
            let program = find::program(executable, &runtime, &start.env)?;
            child::start(&program, start)
        }
        .boxed()
    }

    fn version(&self, env: &Environment) -> BoxFuture<'static, Option<String>> {
        let program = find::program(self.executable.clone(), &self.runtime, env);
        let env = env.clone();
        async move { child::version(&program.ok()?, &env).await }.boxed()
    }
}

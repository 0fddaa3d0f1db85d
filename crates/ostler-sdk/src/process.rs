//! An engine as a child process: any executable that uses the protocol on its standard input and output.

mod child;
mod find;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::error::Error;
use crate::transport::{Environment, Link, Start, Transport};

/// Starts one executable per session.
///
/// The executable leads its own process group. The group ends with the session, and with this process even if that is
/// killed. No shell is involved.
#[derive(Clone, Debug, Default)]
pub struct Process {
    executable: Option<PathBuf>,
    runtime: Vec<OsString>,
}

impl Process {
    /// Looks for an installed engine: `OSTLER_ENGINE`, then `ostler` and `claude` on the `PATH`.
    pub fn find() -> Self {
        Self::default()
    }

    /// This executable. A name that ends in `.js`, `.mjs` or `.cjs` is a script and run by `node`.
    pub fn new(executable: impl AsRef<Path>) -> Self {
        Self { executable: Some(executable.as_ref().to_owned()), ..Self::default() }
    }

    /// Runs a script with another program than `node`: its name or path, and its arguments before the script. Has no
    /// effect on an executable that is not a script.
    ///
    /// ```
    /// let bun = ostler_sdk::Process::new("cli.js").runtime(["bun", "--smol"]);
    /// ```
    #[must_use]
    pub fn runtime<W: Into<OsString>>(mut self, command: impl IntoIterator<Item = W>) -> Self {
        self.runtime = command.into_iter().map(Into::into).collect();
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

//! The engine inside this process, as a transport of the SDK. Frames are passed as values and not serialised.

use std::path::PathBuf;

use futures::FutureExt as _;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream;
use ostler_proto::frame::ToHost;
use ostler_proto::launch::OddArgument;
use ostler_sdk::Error;
use ostler_sdk::transport::{Engine, Link, Start, StderrListener, Transport};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::{RunningSession, ServerHosting, StartContext, StartError, sessions, start};

/// Runs the engine inside this process: no executable is needed, no child process is started.
#[derive(Clone, Copy, Debug, Default)]
pub struct Embedded;

/// [`Embedded`], for a host with several users: its operator trusts some repositories, and sessions may share MCP servers.
#[derive(Clone, Debug, Default)]
pub struct EmbeddedWithTrust {
    /// The folders of these repositories: `git` commands that only read run in them without approval.
    pub trusted_repositories: Vec<PathBuf>,
    /// What the MCP servers of the host's sessions have in common.
    pub hosting: Option<ServerHosting>,
}

impl Transport for Embedded {
    fn start(&self, start: Start) -> BoxFuture<'static, Result<Link, Error>> {
        EmbeddedWithTrust::default().start(start)
    }
}

impl Transport for EmbeddedWithTrust {
    fn start(&self, start: Start) -> BoxFuture<'static, Result<Link, Error>> {
        let Self { trusted_repositories, hosting } = self.clone();
        async move {
            // Starting reads settings and session files, so it runs on a thread for blocking operations.
            let stderr = start.stderr.clone();
            let context = StartContext { trusted_repositories, hosting, ..context(start)? };
            let runtime = tokio::runtime::Handle::current();
            let started = tokio::task::spawn_blocking(move || {
                let _guard = runtime.enter();
                link(&context, stderr.as_ref())
            });
            started.await.map_err(|error| {
                Error::Options(format!("the engine panicked at its start: {error}"))
            })?
        }
        .boxed()
    }
}

fn context(given: Start) -> Result<StartContext, Error> {
    if let Some(user) = &given.user {
        return Err(Error::Options(format!(
            "engine.user: the engine in this process cannot run as {user}; start an executable, or leave it out"
        )));
    }
    let cwd = given.cwd.unwrap_or_else(|| PathBuf::from("."));
    let odd = |reason: String| {
        Error::Options(StartError::Folder { folder: cwd.clone(), reason }.to_string())
    };
    let folder = cwd.canonicalize().map_err(|error| odd(error.to_string()))?;
    if !folder.is_dir() {
        return Err(odd("it is not a folder".to_owned()));
    }
    let mut context = StartContext::new(given.launch, folder);
    let odd = |error: OddArgument| Error::Options(format!("engine.extra_args: {error}"));
    context.launch.take_extra().map_err(odd)?;
    context.env = given.env;
    context.entrypoint = context.var("CLAUDE_CODE_ENTRYPOINT").unwrap_or(context.entrypoint);
    Ok(context)
}

fn link(context: &StartContext, stderr: Option<&StderrListener>) -> Result<Link, Error> {
    match start(context) {
        Ok(running) => {
            if let Some(listener) = stderr {
                report_start(&running, &**listener);
            }
            let frames = ReceiverStream::new(running.connection.from_engine).map(Ok).boxed();
            Ok(Link::new(running.connection.to_engine, frames, EmbeddedEngine))
        }
        // A failed resume is a result frame, as from an engine in a child process.
        Err(StartError::Store(error)) => match sessions::failure(&context.launch.session, &error) {
            Some(result) => {
                let frames = stream::iter([Ok(ToHost::Result(Box::new(result)))]).boxed();
                Ok(Link::new(mpsc::channel(1).0, frames, EmbeddedEngine))
            }
            None => Err(Error::Options(error.to_string())),
        },
        Err(error) => Err(Error::Options(error.to_string())),
    }
}

/// Passes to a stderr listener the lines that an engine in a child process writes about its start. The notices after
/// `init` contain the warnings too.
fn report_start(running: &RunningSession, listener: &(dyn Fn(&str) + Send + Sync)) {
    running.cautions.iter().for_each(|text| listener(text));
    running.warnings.iter().for_each(|problem| listener(&problem.to_string()));
    running.remark.iter().for_each(|text| listener(text));
}

/// The engine has ended when its stream of frames has; there is no process to wait for.
struct EmbeddedEngine;

impl Engine for EmbeddedEngine {
    fn ended(&mut self) -> BoxFuture<'_, Result<(), Error>> {
        async { Ok(()) }.boxed()
    }
}

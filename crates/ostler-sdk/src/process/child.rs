//! The child process and its three pipes.

use std::collections::VecDeque;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt as _};
use ostler_process::Group;
use ostler_proto::DecodeError;
use ostler_proto::codec::FrameDecoder;
use ostler_proto::frame::{Frame as _, ToEngine, ToHost};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::find::Program;
use crate::error::Error;
use crate::transport::{Engine, Link, Start, StderrListener};

/// How many frames may wait for an engine that does not read.
const FRAMES_AHEAD: usize = 256;
/// How much of the error output is kept.
const STDERR_KEPT: usize = 16 * 1024;
/// How long an engine may take to exit once it has nothing more to say.
const EXIT_GRACE: Duration = Duration::from_secs(10);

/// Starts the program.
pub(super) fn start(program: &Program, start: Start) -> Result<Link, Error> {
    let mut command = Command::new(&program.path);
    command.args(&program.before).args(start.launch.to_args());
    if let Some(cwd) = &start.cwd {
        // The system would blame the program.
        if !cwd.is_dir() {
            return Err(Error::Options(format!("there is no folder {} to work in", cwd.display())));
        }
        command.current_dir(cwd);
    }
    if start.env.replaces {
        command.env_clear();
    }
    command.envs(&start.env.variables);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let cannot = |source| Error::Start { program: program.path.display().to_string(), source };
    let mut group = Group::spawn(command).map_err(cannot)?;
    let pipes = (group.stdin(), group.stdout(), group.stderr());
    let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err(cannot(std::io::Error::other("it has no pipes")));
    };
    let (to_engine, frames) = mpsc::channel(FRAMES_AHEAD);
    let tail = Tail::default();
    let mut helpers = JoinSet::new();
    helpers.spawn(write(stdin, frames));
    helpers.spawn(listen(stderr, tail.clone(), start.stderr));
    Ok(Link::new(to_engine, read(stdout), Child { group, tail, helpers }))
}

/// Writes frames until there are no more, or the engine no longer reads.
async fn write(mut stdin: ChildStdin, mut frames: mpsc::Receiver<ToEngine>) {
    while let Some(frame) = frames.recv().await {
        // That the engine has gone is seen at its output, together with the reason.
        if stdin.write_all(frame.to_line().as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Frames as they come. Lines that are no objects are passed over, as other SDKs do.
fn read(stdout: ChildStdout) -> BoxStream<'static, Result<ToHost, Error>> {
    struct Reader {
        stdout: ChildStdout,
        decoder: FrameDecoder<ToHost>,
        buffer: Vec<u8>,
        is_at_end: bool,
    }
    let reader = Reader {
        stdout,
        decoder: FrameDecoder::new(),
        buffer: vec![0; 64 * 1024],
        is_at_end: false,
    };
    stream::unfold(reader, |mut reader| async move {
        loop {
            match reader.decoder.next_frame() {
                Some(Err(error)) if is_noise(&error) => continue,
                Some(frame) => return Some((frame.map_err(Error::from), reader)),
                None if reader.is_at_end => return None,
                None => {}
            }
            match reader.stdout.read(&mut reader.buffer).await {
                Ok(0) | Err(_) => {
                    reader.is_at_end = true;
                    reader.decoder.finish();
                }
                Ok(n) => reader.decoder.push(&reader.buffer[..n]),
            }
        }
    })
    .boxed()
}

/// Whether it is something a program on the way (a debugger, a wrapper) wrote, and no broken frame.
fn is_noise(error: &DecodeError) -> bool {
    match error {
        DecodeError::NotAnObject { .. } => true,
        DecodeError::NotJson { text, .. } => !text.trim_start().starts_with('{'),
        _ => false,
    }
}

/// Keeps the end of the error output, and passes it on.
async fn listen(mut stderr: ChildStderr, tail: Tail, listener: Option<StderrListener>) {
    let mut buffer = vec![0; 8 * 1024];
    while let Ok(n @ 1..) = stderr.read(&mut buffer).await {
        tail.push(&buffer[..n]);
        if let Some(listener) = &listener {
            listener(&String::from_utf8_lossy(&buffer[..n]));
        }
    }
}

/// The last bytes of something long.
#[derive(Clone, Default)]
struct Tail(Arc<Mutex<VecDeque<u8>>>);

impl Tail {
    fn push(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(bytes);
        let excess = kept.len().saturating_sub(STDERR_KEPT);
        kept.drain(..excess);
    }

    fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

struct Child {
    group: Group,
    tail: Tail,
    // Dropping the set ends the tasks that hold the pipes.
    helpers: JoinSet<()>,
}

impl Engine for Child {
    fn ended(&mut self) -> BoxFuture<'_, Result<(), Error>> {
        async {
            let Ok(status) = tokio::time::timeout(EXIT_GRACE, self.group.wait()).await else {
                self.group.kill();
                return Err(Error::TimedOut { what: "the engine's exit", limit: EXIT_GRACE });
            };
            let lost =
                |reason: std::io::Error, stderr| Error::Lost { reason: reason.to_string(), stderr };
            let status = status.map_err(|error| lost(error, self.tail.text()))?;
            if status.success() {
                return Ok(());
            }
            // Its last words may still be on their way; they end with the process.
            let last_words = async { while self.helpers.join_next().await.is_some() {} };
            let _ = tokio::time::timeout(Duration::from_secs(1), last_words).await;
            let (status, code) = (status.to_string(), status.code());
            Err(Error::Exited { status, code, stderr: self.tail.text() })
        }
        .boxed()
    }

    fn terminate(&mut self) {
        self.group.terminate();
    }
}

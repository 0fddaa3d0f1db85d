//! The child process and its three pipes.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{Stream, StreamExt as _};
use nix::unistd::{Uid, User};
use ostler_process::{Group, OnDrop};
use ostler_proto::DecodeError;
use ostler_proto::codec::FrameDecoder;
use ostler_proto::frame::{Frame as _, ToEngine, ToHost};
use tokio::io::{AsyncRead as _, AsyncReadExt as _, AsyncWriteExt as _, ReadBuf};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::find::Program;
use crate::error::Error;
use crate::transport::{Engine, Environment, Link, Said, Start, StderrListener};

/// How many frames may wait while the engine does not read.
const FRAMES_AHEAD: usize = 256;
/// The size of the read buffer for the engine's output, in bytes: as much as a pipe holds.
const READ_AT_ONCE: usize = 64 * 1024;
/// How many bytes at the end of stderr are kept for errors.
const STDERR_KEPT: usize = 16 * 1024;
/// How long an engine may take to exit after it has closed its output.
const EXIT_GRACE: Duration = Duration::from_secs(10);
/// How long a program may take to print its version.
const VERSION_LIMIT: Duration = Duration::from_secs(2);
/// The most bytes of the version that are read.
const VERSION_LENGTH: u64 = 256;

/// Starts the program.
pub(super) fn start(program: &Program, start: Start) -> Result<Link, Error> {
    let mut command = ostler_process::command(&program.path);
    command.args(&program.before).args(start.launch.to_args());
    if let Some(cwd) = &start.cwd {
        // The system's error would name the program and not the folder.
        if !cwd.is_dir() {
            return Err(Error::Options(format!(
                "the working directory {} does not exist",
                cwd.display()
            )));
        }
        command.current_dir(cwd);
    }
    start.env.give_to(command.as_std_mut());
    if let Some(name) = &start.user {
        let User { uid, gid, .. } = user(name)?;
        command.uid(uid.as_raw()).gid(gid.as_raw());
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let cannot = |source| Error::Start { program: program.path.display().to_string(), source };
    // Dropping the group sends SIGTERM first: the vendor's program then ends the commands that it started.
    let mut group = Group::spawn(command).map_err(cannot)?.on_drop(OnDrop::Terminate);
    let pipes = (group.stdin(), group.stdout(), group.stderr());
    let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err(cannot(std::io::Error::other("it has no pipes")));
    };
    let (to_engine, frames) = mpsc::channel(FRAMES_AHEAD);
    let tail = Tail::default();
    let mut helpers = JoinSet::new();
    helpers.spawn(write(stdin, frames));
    helpers.spawn(listen(stderr, tail.clone(), start.stderr));
    let engine = Box::new(Child { group, tail, helpers });
    Ok(Link { to_engine, from_engine: Frames::new(stdout).boxed(), engine })
}

/// What the program prints for `--version`.
pub(super) async fn version(program: &Program, env: &Environment) -> Option<String> {
    let mut command = ostler_process::command(&program.path);
    command.args(&program.before).arg("--version");
    env.give_to(command.as_std_mut());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut group = Group::spawn(command).ok()?;
    let mut stdout = group.stdout()?.take(VERSION_LENGTH);
    let mut text = String::new();
    let read = tokio::time::timeout(VERSION_LIMIT, stdout.read_to_string(&mut text));
    read.await.ok()?.ok()?;
    Some(text)
}

/// The user with this name or number.
fn user(name: &str) -> Result<User, Error> {
    let found = match name.parse() {
        Ok(number) => User::from_uid(Uid::from_raw(number)),
        Err(_) => User::from_name(name),
    };
    let odd = |reason: &str| Error::Options(format!("engine.user: {name}: {reason}"));
    found.map_err(|error| odd(error.desc()))?.ok_or_else(|| odd("this user does not exist"))
}

/// Writes frames until there are no more, or the engine no longer reads.
async fn write(mut stdin: ChildStdin, mut frames: mpsc::Receiver<ToEngine>) {
    while let Some(frame) = frames.recv().await {
        // If the engine has ended, its closed output and its exit status report that.
        if stdin.write_all(frame.to_line().as_bytes()).await.is_err() {
            return;
        }
    }
}

/// The frames that the engine writes. A line that is not a JSON object is reported and does not end the session.
struct Frames {
    stdout: ChildStdout,
    decoder: FrameDecoder<ToHost>,
    buffer: Box<[u8]>,
    is_at_end: bool,
}

impl Frames {
    fn new(stdout: ChildStdout) -> Self {
        let buffer = vec![0; READ_AT_ONCE].into_boxed_slice();
        Self { stdout, decoder: FrameDecoder::new(), buffer, is_at_end: false }
    }
}

impl Stream for Frames {
    type Item = Result<Said, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(deltas) = this.decoder.next_deltas() {
                return Poll::Ready(Some(Ok(Said::Pieces(deltas))));
            }
            match this.decoder.next_frame() {
                Some(Err(error)) => {
                    let said = noise(&error).map(Said::Noise).ok_or_else(|| error.into());
                    return Poll::Ready(Some(said));
                }
                Some(frame) => {
                    return Poll::Ready(Some(frame.map(Said::Frame).map_err(Into::into)));
                }
                None if this.is_at_end => return Poll::Ready(None),
                None => {}
            }
            let mut buffer = ReadBuf::new(&mut this.buffer);
            let read = ready!(Pin::new(&mut this.stdout).poll_read(cx, &mut buffer));
            match buffer.filled() {
                bytes if read.is_ok() && !bytes.is_empty() => this.decoder.push(bytes),
                _ => {
                    this.is_at_end = true;
                    this.decoder.finish();
                }
            }
        }
    }
}

/// The text of a line that another program in between wrote (a debugger, a wrapper); `None` for a malformed frame.
fn noise(error: &DecodeError) -> Option<String> {
    match error {
        DecodeError::NotAnObject { text, .. } => Some(text.clone()),
        DecodeError::NotJson { text, .. } if !text.trim_start().starts_with('{') => {
            Some(text.clone())
        }
        _ => None,
    }
}

/// Reads stderr: keeps its end for errors and passes it to the listener.
async fn listen(mut stderr: ChildStderr, tail: Tail, listener: Option<StderrListener>) {
    let mut buffer = vec![0; 8 * 1024];
    while let Ok(n @ 1..) = stderr.read(&mut buffer).await {
        tail.push(&buffer[..n]);
        if let Some(listener) = &listener {
            listener(&String::from_utf8_lossy(&buffer[..n]));
        }
    }
}

/// The last [`STDERR_KEPT`] bytes of stderr.
#[derive(Clone, Default)]
struct Tail(Arc<Mutex<VecDeque<u8>>>);

impl Tail {
    fn push(&self, bytes: &[u8]) {
        let mut tail = self.0.lock();
        tail.extend(bytes);
        let excess = tail.len().saturating_sub(STDERR_KEPT);
        tail.drain(..excess);
    }

    fn text(&self) -> String {
        let tail = self.0.lock();
        let bytes: Vec<u8> = tail.iter().copied().collect();
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
            // The end of stderr may not have been read yet. The pipe closes with the process.
            let rest_of_stderr = async { while self.helpers.join_next().await.is_some() {} };
            let _ = tokio::time::timeout(Duration::from_secs(1), rest_of_stderr).await;
            let (status, code) = (status.to_string(), status.code());
            Err(Error::Exited { status, code, stderr: self.tail.text() })
        }
        .boxed()
    }

    fn gone(&mut self) -> BoxFuture<'_, ()> {
        async {
            // If waiting fails, `ended` reports the error.
            let _ = self.group.wait().await;
            self.group.kill();
        }
        .boxed()
    }

    fn terminate(&mut self) {
        self.group.terminate_leader();
    }
}

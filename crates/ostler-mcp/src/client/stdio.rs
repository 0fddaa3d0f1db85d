//! A server that is a program: started in its own process group, and ended with it.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::FusedFuture;
use ostler_process::{Confine, Group, OnDrop, PipedCommand};
use ostler_proto::codec::LineDecoder;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::endpoint::Program;
use super::link::{Arrival, Arrivals, CAPACITY, Carrier, Ended, Incoming, Link};

/// How many bytes of stderr are kept for error messages.
const STDERR_LIMIT: usize = 4096;
/// How long a program may take to end after its input is closed, and again after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);

/// Starts the program.
pub(super) fn open(
    program: &Program,
    limit: usize,
    stderr_tail: StderrTail,
) -> Result<Link, Ended> {
    let failed = |error| Ended::new(format!("starting `{}`: {error}", program.command));
    let group = match &program.boundary {
        Some(boundary) => start_inside(program, &**boundary),
        None => start(program),
    };
    let mut group = group.map_err(failed)?.on_drop(OnDrop::CloseInput);
    let (Some(stdin), Some(stdout), Some(stderr)) = (group.stdin(), group.stdout(), group.stderr())
    else {
        return Err(Ended::new(format!("`{}` has no pipes", program.command)));
    };
    let (outgoing, to_write) = mpsc::channel(CAPACITY);
    let (read, incoming) = mpsc::channel(CAPACITY);
    let pipes = (stdin, stdout, stderr);
    let carry = carry(group, pipes, to_write, read, limit, stderr_tail);
    let carrier = Some(Carrier::spawn(carry));
    Ok(Link { outgoing, incoming: Incoming::WithReason(incoming), carrier })
}

fn start(program: &Program) -> io::Result<Group> {
    let mut command = ostler_process::command(&program.command);
    command.args(&program.args);
    program.env.give_to(command.as_std_mut());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(cwd) = &program.cwd {
        command.current_dir(cwd);
    }
    Group::spawn(command)
}

fn start_inside(program: &Program, boundary: &dyn Confine) -> io::Result<Group> {
    let folder = match &program.cwd {
        Some(cwd) => cwd.clone(),
        None => std::env::current_dir()?,
    };
    let arguments: Vec<&OsStr> = program.args.iter().map(OsStr::new).collect();
    Group::spawn_piped(PipedCommand {
        program: Path::new(&program.command),
        arguments: &arguments,
        folder: &folder,
        environment: program.env.of_child(),
        boundary: Some(boundary),
    })
}

/// Carries messages in one task, so that dropping it ends the program and all its processes.
async fn carry(
    mut group: Group,
    (stdin, stdout, stderr): (ChildStdin, ChildStdout, ChildStderr),
    to_write: mpsc::Receiver<Value>,
    read: Arrivals,
    limit: usize,
    stderr_tail: StderrTail,
) {
    let (reason, status) = {
        let mut listening = pin!(listen(stderr, &stderr_tail).fuse());
        let reason = {
            let mut reading = pin!(read_messages(stdout, &read, limit));
            let mut writing = pin!(write_messages(stdin, to_write).fuse());
            loop {
                tokio::select! {
                    reason = &mut reading => break reason,
                    // Nothing more will be sent; pending requests may still be answered.
                    () = &mut writing, if !writing.is_terminated() => {}
                    () = &mut listening, if !listening.is_terminated() => {}
                    () = read.closed() => break None,
                }
            }
        };
        let status = end(&mut group, reason.is_some()).await;
        if !listening.is_terminated() {
            // The rest of the pipe; a grandchild may hold it open, so with a timeout.
            timeout(Duration::from_millis(200), listening).await.ok();
        }
        (reason, status)
    };
    drop(group);
    let reason = reason.unwrap_or_else(|| match status {
        Some(status) => format!("its program ended with {status}"),
        None => "its program did not end by itself".to_owned(),
    });
    read.send(Err(Ended::new(stderr_tail.after(reason)))).await.ok();
}

/// Waits for the program to end, then sends SIGTERM, then SIGKILL. A program that broke the protocol is killed at
/// once.
async fn end(group: &mut Group, forced: bool) -> Option<ExitStatus> {
    if !forced {
        if let Ok(status) = timeout(GRACE, group.wait()).await {
            return status.ok();
        }
        group.terminate();
        if let Ok(status) = timeout(GRACE, group.wait()).await {
            return status.ok();
        }
    }
    group.kill();
    group.wait().await.ok();
    None
}

/// Reads until the end, or until an error, which it returns.
async fn read_messages(mut stdout: ChildStdout, read: &Arrivals, limit: usize) -> Option<String> {
    let mut lines = LineDecoder::with_limit(limit);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = stdout.read(&mut buffer).await.unwrap_or(0);
        match count {
            0 => lines.finish(),
            count => lines.push(&buffer[..count]),
        }
        while let Some(line) = lines.next_bytes() {
            match line {
                // Many programs print other text; only messages count. One that is not UTF-8 is read as far as it can
                // be: its request would otherwise wait for ever.
                Ok(line) => {
                    if let Ok(message @ (Value::Object(_) | Value::Array(_))) =
                        serde_json::from_str(&String::from_utf8_lossy(line))
                        && read.send(Ok(Arrival::Message(message))).await.is_err()
                    {
                        return None;
                    }
                }
                Err(ostler_proto::DecodeError::TooLong { limit, .. }) => {
                    return Some(format!("it sent a message of more than {limit} bytes"));
                }
                Err(_) => {}
            }
        }
        if count == 0 {
            return None;
        }
    }
}

async fn write_messages(mut stdin: ChildStdin, mut to_write: mpsc::Receiver<Value>) {
    while let Some(message) = to_write.recv().await {
        let mut line = message.to_string();
        line.push('\n');
        // A program that no longer reads is about to end; its end is reported.
        if stdin.write_all(line.as_bytes()).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

/// Stderr must be read, or the program would block.
async fn listen(mut stderr: ChildStderr, stderr_tail: &StderrTail) {
    let mut buffer = vec![0; 8192];
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        stderr_tail.add(&buffer[..count]);
    }
}

/// The end of a program's stderr, for error messages.
#[derive(Clone, Debug, Default)]
pub(super) struct StderrTail(Arc<Mutex<VecDeque<u8>>>);

impl StderrTail {
    fn add(&self, bytes: &[u8]) {
        let mut stderr_tail = self.0.lock();
        stderr_tail.extend(bytes);
        let surplus = stderr_tail.len().saturating_sub(STDERR_LIMIT);
        stderr_tail.drain(..surplus);
    }

    pub(super) fn text(&self) -> String {
        let stderr_tail = self.0.lock();
        let bytes: Vec<_> = stderr_tail.iter().copied().collect();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }

    /// The reason, followed by the stderr text.
    pub(super) fn after(&self, reason: String) -> String {
        match self.text().as_str() {
            "" => reason,
            stderr_tail => format!("{reason}; it last said: {stderr_tail}"),
        }
    }
}

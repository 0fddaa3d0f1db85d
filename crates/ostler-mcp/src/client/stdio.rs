//! A server that is a program: started in a process group of its own, and ended with it.

use std::collections::VecDeque;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::FusedFuture;
use ostler_process::{Group, OnDrop};
use ostler_proto::codec::LineDecoder;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::endpoint::Program;
use super::link::{CAPACITY, Carrier, Ended, Incoming, Link};

/// How much of what the program says on standard error is kept for messages.
const LAST_WORDS: usize = 4096;
/// How long a program may take to end after its input has, and once more after it was asked to.
const GRACE: Duration = Duration::from_secs(2);

/// Starts the program.
pub(super) fn open(program: &Program, limit: usize, words: LastWords) -> Result<Link, Ended> {
    let mut command = ostler_process::command(&program.command);
    command.args(&program.args);
    program.env.give_to(command.as_std_mut());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(cwd) = &program.cwd {
        command.current_dir(cwd);
    }
    let failed = |error| Ended::new(format!("starting `{}`: {error}", program.command));
    let mut group = Group::spawn(command).map_err(failed)?.on_drop(OnDrop::CloseInput);
    let (Some(stdin), Some(stdout), Some(stderr)) = (group.stdin(), group.stdout(), group.stderr())
    else {
        return Err(Ended::new(format!("`{}` has no pipes", program.command)));
    };
    let (outgoing, to_write) = mpsc::channel(CAPACITY);
    let (read, incoming) = mpsc::channel(CAPACITY);
    let pipes = (stdin, stdout, stderr);
    let carry = carry(group, pipes, to_write, read, limit, words);
    let carrier = Some(Carrier::spawn(carry));
    Ok(Link { outgoing, incoming: Incoming::WithReason(incoming), carrier })
}

/// Carries messages in one task, so that dropping it ends the program and everything the program started.
async fn carry(
    mut group: Group,
    (stdin, stdout, stderr): (ChildStdin, ChildStdout, ChildStderr),
    to_write: mpsc::Receiver<Value>,
    read: mpsc::Sender<Result<Value, Ended>>,
    limit: usize,
    words: LastWords,
) {
    let (reason, status) = {
        let mut listening = pin!(listen(stderr, &words).fuse());
        let reason = {
            let mut reading = pin!(read_messages(stdout, &read, limit));
            let mut writing = pin!(write_messages(stdin, to_write).fuse());
            loop {
                tokio::select! {
                    reason = &mut reading => break reason,
                    // Nothing more is to be said; what was asked may still be answered.
                    () = &mut writing, if !writing.is_terminated() => {}
                    () = &mut listening, if !listening.is_terminated() => {}
                    () = read.closed() => break None,
                }
            }
        };
        let status = end(&mut group, reason.is_some()).await;
        if !listening.is_terminated() {
            // What is still in the pipe; a grandchild may hold it open, so not for long.
            timeout(Duration::from_millis(200), listening).await.ok();
        }
        (reason, status)
    };
    drop(group);
    let reason = reason.unwrap_or_else(|| match status {
        Some(status) => format!("its program ended with {status}"),
        None => "its program did not end by itself".to_owned(),
    });
    read.send(Err(Ended::new(words.after(reason)))).await.ok();
}

/// Waits for the program's end; asks for it, then forces it. A program that broke the rules is not asked.
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

/// Reads until the end, or until something makes going on impossible: then says what.
async fn read_messages(
    mut stdout: ChildStdout,
    read: &mpsc::Sender<Result<Value, Ended>>,
    limit: usize,
) -> Option<String> {
    let mut lines = LineDecoder::with_limit(limit);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = stdout.read(&mut buffer).await.unwrap_or(0);
        match count {
            0 => lines.finish(),
            count => lines.push(&buffer[..count]),
        }
        while let Some(line) = lines.next_line() {
            match line {
                // Many programs print something of their own; only messages matter.
                Ok(line) => {
                    if let Ok(message @ (Value::Object(_) | Value::Array(_))) =
                        serde_json::from_str(line)
                        && read.send(Ok(message)).await.is_err()
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
        // A program that no longer reads is about to end, and its end is told.
        if stdin.write_all(line.as_bytes()).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

/// It must be read, or the program would stand still.
async fn listen(mut stderr: ChildStderr, words: &LastWords) {
    let mut buffer = vec![0; 8192];
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        words.add(&buffer[..count]);
    }
}

/// The end of what a program says on standard error, for messages.
#[derive(Clone, Debug, Default)]
pub(super) struct LastWords(Arc<Mutex<VecDeque<u8>>>);

impl LastWords {
    fn add(&self, bytes: &[u8]) {
        let mut words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        words.extend(bytes);
        let surplus = words.len().saturating_sub(LAST_WORDS);
        words.drain(..surplus);
    }

    pub(super) fn text(&self) -> String {
        let words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<_> = words.iter().copied().collect();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }

    /// A reason, followed by them.
    pub(super) fn after(&self, reason: String) -> String {
        match self.text().as_str() {
            "" => reason,
            words => format!("{reason}; it last said: {words}"),
        }
    }
}

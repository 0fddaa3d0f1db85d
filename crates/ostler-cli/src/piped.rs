//! The prompt of a run without a conversation: from the command line, and from a pipe.

use std::io::IsTerminal as _;
use std::time::Duration;

use anyhow::Context as _;
use tokio::io::AsyncReadExt as _;

use crate::signals::{Signals, StopRequest};

/// The most bytes read: far more than a model accepts, and still small for memory.
const MOST_BYTES: usize = 10 * 1024 * 1024;
/// How long to wait for a silent pipe when the command line already has a prompt. Many programs start others with a
/// pipe that they never write to and never close.
const SILENCE: Duration = Duration::from_secs(3);

/// The prompt, or the signal that arrives first.
///
/// # Errors
/// When there is no prompt, or standard input cannot be read or is too long.
pub(crate) async fn prompt(
    given: Option<&str>,
    signals: &mut Signals,
) -> anyhow::Result<Result<String, StopRequest>> {
    if std::io::stdin().is_terminal() {
        let given = given.context("there is no prompt: write it after the options")?;
        return Ok(Ok(given.to_owned()));
    }
    let piped = tokio::select! {
        piped = read(given.is_some()) => piped?,
        signal = signals.next() => return Ok(Err(signal)),
    };
    Ok(Ok(join(given, &piped)))
}

/// Puts the piped text after the prompt that asks about it.
fn join(given: Option<&str>, piped: &str) -> String {
    match given {
        None => piped.to_owned(),
        Some(given) if piped.trim().is_empty() => given.to_owned(),
        Some(given) => format!("{given}\n\n{piped}"),
    }
}

/// Reads standard input to its end.
async fn read(can_do_without: bool) -> anyhow::Result<String> {
    let mut stdin = tokio::io::stdin();
    let mut bytes = Vec::new();
    let mut portion = vec![0; 64 * 1024];
    loop {
        let reading = stdin.read(&mut portion);
        let n = match can_do_without && bytes.is_empty() {
            false => reading.await,
            true => match tokio::time::timeout(SILENCE, reading).await {
                Ok(read) => read,
                Err(_) => return Ok(String::new()),
            },
        };
        let n = n.context("cannot read standard input")?;
        if n == 0 {
            // A log may contain any bytes; invalid UTF-8 becomes replacement characters.
            return Ok(String::from_utf8_lossy(&bytes).into_owned());
        }
        bytes.extend_from_slice(&portion[..n]);
        anyhow::ensure!(
            bytes.len() <= MOST_BYTES,
            "standard input is longer than {} MiB, which is more than a prompt can be: put it into a file and name the file in the prompt",
            MOST_BYTES / (1024 * 1024)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn piped_text_follows_the_prompt() {
        for (given, piped, expected) in [
            (Some("explain"), "line 1\nline 2\n", "explain\n\nline 1\nline 2\n"),
            (Some("explain"), " \n", "explain"),
            (None, "explain\n", "explain\n"),
        ] {
            assert_eq!(join(given, piped), expected);
        }
    }
}

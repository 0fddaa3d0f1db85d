//! Lines from the keyboard (or a pipe), read by a thread of their own so that nothing waits for them.

use std::io::{self, BufRead, IsTerminal};

use tokio::sync::mpsc;

/// The lines of standard input, one at a time.
pub(crate) struct Lines {
    lines: mpsc::Receiver<String>,
    pub(crate) is_terminal: bool,
}

impl Lines {
    pub(crate) fn from_stdin() -> Self {
        // Room for one: the rest stays in the pipe until somebody wants it.
        let (sender, lines) = mpsc::channel(1);
        std::thread::spawn(move || {
            for line in io::stdin().lock().split(b'\n') {
                let Ok(line) = line else { break };
                let line = String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned();
                if sender.blocking_send(line).is_err() {
                    break;
                }
            }
        });
        Self { lines, is_terminal: io::stdin().is_terminal() }
    }

    /// The next line; `None` at the end of the input.
    pub(crate) async fn next(&mut self) -> Option<String> {
        self.lines.recv().await
    }
}

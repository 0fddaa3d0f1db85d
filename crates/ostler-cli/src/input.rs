//! What is typed, or comes through a pipe: by the line, or by the key while a question is open.
//!
//! A thread of its own reads, so that nothing waits for the keyboard.

use std::collections::VecDeque;
use std::io::{self, IsTerminal, Read};

use tokio::sync::mpsc;

use crate::keys::{self, Key};
use crate::tty::KeyMode;

/// Standard input.
pub(crate) struct Input {
    chunks: mpsc::Receiver<Vec<u8>>,
    /// Lines that were typed before anybody wanted one.
    lines: VecDeque<String>,
    /// The beginning of a line.
    begun: Vec<u8>,
    pub(crate) is_terminal: bool,
}

impl Input {
    pub(crate) fn from_stdin() -> Self {
        // Room for one: the rest stays in the pipe until somebody wants it.
        let (sender, chunks) = mpsc::channel(1);
        std::thread::spawn(move || {
            let mut bytes = vec![0; 4096];
            // An error is the end, too: there is nobody to type any more.
            while let Ok(n @ 1..) = read(&mut bytes) {
                if sender.blocking_send(bytes[..n].to_vec()).is_err() {
                    break;
                }
            }
        });
        let is_terminal = io::stdin().is_terminal();
        Self { chunks, lines: VecDeque::new(), begun: Vec::new(), is_terminal }
    }

    /// The next line; `None` at the end of the input. Nothing is lost when it is dropped.
    pub(crate) async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Some(line);
            }
            match self.chunks.recv().await {
                Some(chunk) => self.keep(&chunk),
                None if self.begun.is_empty() => return None,
                None => return Some(text(&std::mem::take(&mut self.begun))),
            }
        }
    }

    /// Starts waiting for keys.
    pub(crate) fn keys(&mut self) -> io::Result<Keys<'_>> {
        let mode = KeyMode::enter()?;
        // A key pressed twice answers one question, not the next one as well.
        while let Ok(chunk) = self.chunks.try_recv() {
            if chunk.contains(&b'\n') {
                self.keep(&chunk);
            }
        }
        Ok(Keys { _mode: mode, input: self })
    }

    fn keep(&mut self, chunk: &[u8]) {
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            self.begun.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.lines.push_back(text(&std::mem::take(&mut self.begun)));
            }
        }
    }
}

/// Standard input by the key. The terminal is as before once this is dropped.
pub(crate) struct Keys<'a> {
    _mode: KeyMode,
    input: &'a mut Input,
}

impl Keys<'_> {
    /// The next keys, those that came together; `None` at the end of the input.
    pub(crate) async fn next(&mut self) -> Option<Vec<Key>> {
        loop {
            let chunk = self.input.chunks.recv().await?;
            // Enter is `\r` in this mode. What ends in `\n` is a line from before: it answers no question, and
            // waits for the next prompt.
            if !chunk.contains(&b'\n') {
                return Some(keys::decode(&chunk));
            }
            self.input.keep(&chunk);
        }
    }
}

fn read(bytes: &mut [u8]) -> io::Result<usize> {
    loop {
        match io::stdin().lock().read(bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line).trim_end_matches(['\n', '\r']).to_owned()
}

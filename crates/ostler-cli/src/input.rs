//! Standard input, from a keyboard or a pipe: by line, or by key while a question is open.
//!
//! A separate thread reads, so that no task waits for the keyboard.

use std::collections::VecDeque;
use std::io::{self, IsTerminal, Read};
use std::time::Duration;

use tokio::sync::mpsc;

use crate::keys::{self, Decoder, Key, Stroke};
use crate::tty::Mode;

/// How long to wait for keys typed before the question to arrive.
const SETTLING: Duration = Duration::from_millis(30);

/// Standard input.
pub(crate) struct Input {
    chunks: mpsc::Receiver<Vec<u8>>,
    /// Lines that were typed ahead.
    lines: VecDeque<String>,
    /// The beginning of a line that is not finished.
    begun: Vec<u8>,
    pub(crate) is_terminal: bool,
}

pub(crate) struct Typed {
    pub(crate) text: String,
    /// Whether the terminal already shows the line: it was typed there in answer to a prompt.
    pub(crate) is_shown: bool,
}

impl Input {
    pub(crate) fn from_stdin() -> Self {
        // Capacity 1: the rest stays in the pipe until it is needed.
        let (sender, chunks) = mpsc::channel(1);
        std::thread::spawn(move || {
            let mut bytes = vec![0; 4096];
            // An error also ends the input: nothing more can be typed.
            while let Ok(n @ 1..) = read(&mut bytes) {
                if sender.blocking_send(bytes[..n].to_vec()).is_err() {
                    break;
                }
            }
        });
        let is_terminal = io::stdin().is_terminal();
        Self { chunks, lines: VecDeque::new(), begun: Vec::new(), is_terminal }
    }

    /// The next line; `None` at the end of the input. Nothing is lost if the future is dropped.
    pub(crate) async fn line(&mut self) -> Option<Typed> {
        let mut is_shown = false;
        loop {
            if let Some(text) = self.lines.pop_front() {
                return Some(Typed { text, is_shown });
            }
            is_shown = self.is_terminal;
            match self.chunks.recv().await {
                Some(chunk) => self.keep(&chunk),
                None if self.begun.is_empty() => return None,
                None => {
                    let text = text(&std::mem::take(&mut self.begun));
                    return Some(Typed { text, is_shown });
                }
            }
        }
    }

    /// The next line typed from now on. Lines typed before stay in the queue for the next prompt.
    pub(crate) async fn fresh_line(&mut self) -> Option<String> {
        let before = self.put_aside();
        let typed = self.line().await;
        self.take_back(before);
        Some(typed?.text)
    }

    /// Takes out the lines typed so far, so that they do not answer a question.
    pub(crate) fn put_aside(&mut self) -> VecDeque<String> {
        std::mem::take(&mut self.lines)
    }

    pub(crate) fn take_back(&mut self, lines: VecDeque<String>) {
        self.lines.extend(lines);
    }

    /// Starts reading keys pressed from now on. Show the question only after this.
    pub(crate) async fn keys(&mut self) -> io::Result<Keys<'_>> {
        // A line typed ahead is a prompt; take it before the terminal's input is discarded.
        self.settle().await;
        let mode = Mode::keys()?;
        // A key pressed twice answers one question and not also the next one. Not every system discards the input when
        // it is asked to.
        self.settle().await;
        Ok(Keys { _mode: mode, input: self })
    }

    /// Takes the input that is on its way: keeps lines, discards single keys.
    async fn settle(&mut self) {
        while let Ok(Some(chunk)) = tokio::time::timeout(SETTLING, self.chunks.recv()).await {
            self.keep_line(&chunk);
        }
    }

    /// Starts reading keys for the editor. Keys typed before belong to the text.
    pub(crate) fn writing(&mut self) -> io::Result<Writing<'_>> {
        Ok(Writing { mode: Mode::writing()?, decoder: Decoder::default(), input: self })
    }

    /// A line that was typed ahead.
    pub(crate) fn kept_line(&mut self) -> Option<String> {
        self.lines.pop_front()
    }

    /// Keeps the lines typed so far for the next reader of lines, and discards single keys.
    pub(crate) fn keep_lines(&mut self) {
        while let Ok(chunk) = self.chunks.try_recv() {
            self.keep_line(&chunk);
        }
    }

    fn keep_line(&mut self, chunk: &[u8]) {
        if chunk.contains(&b'\n') {
            self.keep(chunk);
        }
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

/// Standard input by key. Dropping this restores the terminal's mode.
pub(crate) struct Keys<'a> {
    _mode: Mode,
    input: &'a mut Input,
}

impl Keys<'_> {
    /// The next keys, as many as arrived together; `None` at the end of the input.
    pub(crate) async fn next(&mut self) -> Option<Vec<Key>> {
        loop {
            let chunk = self.input.chunks.recv().await?;
            // Enter is `\r` in this mode. Input that ends in `\n` is a line from before: it does not answer the
            // question and is kept for the next prompt.
            if !chunk.contains(&b'\n') {
                return Some(keys::decode(&chunk));
            }
            self.input.keep(&chunk);
        }
    }
}

/// Standard input while the user writes a text. Dropping this restores the terminal's mode.
pub(crate) struct Writing<'a> {
    mode: Mode,
    decoder: Decoder,
    input: &'a mut Input,
}

impl Writing<'_> {
    /// The next keys and pastes; `None` at the end of the input. Empty if only a line arrived, which is kept.
    pub(crate) async fn next(&mut self) -> Option<Vec<Stroke>> {
        let chunk = self.input.chunks.recv().await?;
        // A line typed before this mode began: Enter is `\r` in this mode, and Ctrl-J arrives alone.
        let is_line = chunk.len() > 1 && chunk.ends_with(b"\n") && !chunk.contains(&0x1b);
        if is_line && !self.decoder.is_pasting() {
            self.input.keep(&chunk);
            return Some(Vec::new());
        }
        Some(self.decoder.push(&chunk))
    }

    /// Keeps a line for the next reader of lines.
    pub(crate) fn keep_line(&mut self, text: String) {
        self.input.lines.push_back(text);
    }

    pub(crate) fn kept_line(&mut self) -> Option<String> {
        self.input.kept_line()
    }

    /// Sets the terminal's mode again after the program was suspended.
    pub(crate) fn resume(&self) -> io::Result<()> {
        self.mode.resume()
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

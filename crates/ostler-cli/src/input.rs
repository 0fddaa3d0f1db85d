//! What is typed, or comes through a pipe: by the line, or by the key while a question is open.
//!
//! A thread of its own reads, so that nothing waits for the keyboard.

use std::collections::VecDeque;
use std::io::{self, IsTerminal, Read};
use std::time::Duration;

use tokio::sync::mpsc;

use crate::keys::{self, Decoder, Key, Stroke};
use crate::tty::Mode;

/// How long what was typed before takes to come through.
const SETTLING: Duration = Duration::from_millis(30);

/// Standard input.
pub(crate) struct Input {
    chunks: mpsc::Receiver<Vec<u8>>,
    /// Lines that were typed before anybody wanted one.
    lines: VecDeque<String>,
    /// The beginning of a line.
    begun: Vec<u8>,
    pub(crate) is_terminal: bool,
}

/// A line of input.
pub(crate) struct Typed {
    pub(crate) text: String,
    /// Whether it stands on the screen: it was typed there after somebody asked for it.
    pub(crate) is_shown: bool,
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

    /// The next line that is typed from now on; what was typed before is for somebody else.
    pub(crate) async fn fresh_line(&mut self) -> Option<String> {
        let before = self.put_aside();
        let typed = self.line().await;
        self.take_back(before);
        Some(typed?.text)
    }

    /// The lines that were typed until now, which are not to be given to anybody.
    pub(crate) fn put_aside(&mut self) -> VecDeque<String> {
        std::mem::take(&mut self.lines)
    }

    pub(crate) fn take_back(&mut self, lines: VecDeque<String>) {
        self.lines.extend(lines);
    }

    /// Starts waiting for keys, those that are pressed from now on: ask only then.
    pub(crate) async fn keys(&mut self) -> io::Result<Keys<'_>> {
        // A line that was typed ahead is a prompt, and must be taken before the rest is thrown away.
        self.settle().await;
        let mode = Mode::keys()?;
        // A key pressed twice answers one question, not the next one as well; and not every system throws away what
        // it was told to.
        self.settle().await;
        Ok(Keys { _mode: mode, input: self })
    }

    /// Takes what is on its way: lines are kept, single keys are forgotten.
    async fn settle(&mut self) {
        while let Ok(Some(chunk)) = tokio::time::timeout(SETTLING, self.chunks.recv()).await {
            self.keep_line(&chunk);
        }
    }

    /// Starts taking keys for a text that is written. What was typed before belongs to it.
    pub(crate) fn writing(&mut self) -> io::Result<Writing<'_>> {
        Ok(Writing { mode: Mode::writing()?, decoder: Decoder::default(), input: self })
    }

    /// A line that was typed before anybody wanted one.
    pub(crate) fn kept_line(&mut self) -> Option<String> {
        self.lines.pop_front()
    }

    /// Puts aside the lines that were typed, for whoever wants one next. Single keys are forgotten.
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

/// Standard input by the key. The terminal is as before once this is dropped.
pub(crate) struct Keys<'a> {
    _mode: Mode,
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

/// Standard input while a text is written. The terminal is as before once this is dropped.
pub(crate) struct Writing<'a> {
    mode: Mode,
    decoder: Decoder,
    input: &'a mut Input,
}

impl Writing<'_> {
    /// The next keys and pastes; `None` at the end of the input. There may be none but a line that was kept.
    pub(crate) async fn next(&mut self) -> Option<Vec<Stroke>> {
        let chunk = self.input.chunks.recv().await?;
        // A line from before, when the terminal still made lines: Enter is `\r` in this mode, and Ctrl-J comes alone.
        let is_line = chunk.len() > 1 && chunk.ends_with(b"\n") && !chunk.contains(&0x1b);
        if is_line && !self.decoder.is_pasting() {
            self.input.keep(&chunk);
            return Some(Vec::new());
        }
        Some(self.decoder.push(&chunk))
    }

    /// Keeps a line for whoever wants one next.
    pub(crate) fn keep_line(&mut self, text: String) {
        self.input.lines.push_back(text);
    }

    pub(crate) fn kept_line(&mut self) -> Option<String> {
        self.input.kept_line()
    }

    /// Takes the terminal again, after the program was suspended.
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

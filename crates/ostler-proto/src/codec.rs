//! An incremental decoder from bytes to frames, and an encoder.
//!
//! One JSON object per line, UTF-8. `\r\n` and a missing last newline are accepted, blank lines skipped. An invalid
//! line is reported and does not end the stream: decoding continues with the next one.

mod deltas;
mod sse;

use std::marker::PhantomData;

use crate::DecodeError;
use crate::error::shortened;
use crate::frame::Frame;

pub use self::deltas::StreamDeltas;
pub use self::sse::{EventTooLong, SseDecoder, SseEvent};

/// The longest line that the Python SDK reads by default, newline included. An engine should stay below it.
pub const PYTHON_LINE_LIMIT: usize = 1024 * 1024;

/// Turns bytes into frames.
///
/// ```
/// use ostler_proto::codec::FrameDecoder;
/// use ostler_proto::frame::ToHost;
///
/// let mut decoder = FrameDecoder::<ToHost>::new();
/// decoder.push(b"{\"type\":\"keep_");
/// assert!(decoder.next_frame().is_none());
/// decoder.push(b"alive\"}\r\n\n{\"type\":\"keep_alive\"}");
/// assert!(matches!(decoder.next_frame(), Some(Ok(ToHost::KeepAlive(_)))));
/// assert!(decoder.next_frame().is_none(), "the second line is not complete yet");
/// decoder.finish();
/// assert!(matches!(decoder.next_frame(), Some(Ok(ToHost::KeepAlive(_)))));
/// assert!(decoder.next_frame().is_none());
/// ```
#[derive(Debug)]
pub struct FrameDecoder<F> {
    lines: LineDecoder,
    frame: PhantomData<fn() -> F>,
}

impl<F: Frame> FrameDecoder<F> {
    /// A decoder without a limit on the length of a line.
    pub fn new() -> Self {
        Self { lines: LineDecoder::new(), frame: PhantomData }
    }

    /// A decoder that gives up on a line longer than `limit` bytes, for peers that are not trusted.
    pub fn with_limit(limit: usize) -> Self {
        Self { lines: LineDecoder::with_limit(limit), frame: PhantomData }
    }

    /// Adds bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.lines.push(bytes);
    }

    /// Ends the input: the remaining bytes count as a line.
    pub fn finish(&mut self) {
        self.lines.finish();
    }

    /// The next frame, or `None` when more bytes are needed.
    pub fn next_frame(&mut self) -> Option<Result<F, DecodeError>> {
        self.lines.next_line().map(|line| line.and_then(F::from_line))
    }
}

impl<F: Frame> Default for FrameDecoder<F> {
    fn default() -> Self {
        Self::new()
    }
}

/// Turns bytes into lines.
#[derive(Debug, Default)]
pub struct LineDecoder {
    buffer: Vec<u8>,
    /// Where the first unread line starts.
    start: usize,
    /// How far after `start` was searched for a newline, so that a long line is not searched again.
    searched: usize,
    limit: Option<usize>,
    /// The line was too long and was reported; its rest must be skipped.
    skipping: bool,
    finished: bool,
}

impl LineDecoder {
    /// A decoder without a limit on the length of a line.
    pub fn new() -> Self {
        Self::default()
    }

    /// A decoder that gives up on a line longer than `limit` bytes.
    pub fn with_limit(limit: usize) -> Self {
        Self { limit: Some(limit), ..Self::default() }
    }

    /// Adds bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        // Memory is reclaimed here and not per line, so that a burst of short lines is moved once.
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Ends the input: the remaining bytes count as a line.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// The next line that is not blank, without its ending, or `None` when more bytes are needed.
    pub fn next_line(&mut self) -> Option<Result<&str, DecodeError>> {
        self.next_bytes().map(|line| line.and_then(read_utf8))
    }

    /// The same for lines that may not be UTF-8.
    pub fn next_bytes(&mut self) -> Option<Result<&[u8], DecodeError>> {
        loop {
            let Some(end) = self.line_end() else { return self.too_long().map(Err) };
            let line = self.start..end;
            self.start = (end + 1).min(self.buffer.len());
            self.searched = self.start;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            if let Some(limit) = self.limit.filter(|limit| line.len() > *limit) {
                return Some(Err(DecodeError::too_long(limit, &self.buffer[line])));
            }
            if self.buffer[line.clone()].trim_ascii().is_empty() {
                continue;
            }
            let bytes = &self.buffer[line];
            return Some(Ok(bytes.strip_suffix(b"\r").unwrap_or(bytes)));
        }
    }

    /// The next complete lines that start with `beginning`: how many, and their bytes.
    fn lines_beginning_with(&mut self, beginning: &[u8]) -> Option<(usize, &[u8])> {
        // Lines that may be too long are checked one by one.
        if self.skipping || self.limit.is_some() {
            return None;
        }
        let first = self.start;
        let mut count = 0;
        while self.buffer[self.start..].starts_with(beginning) {
            let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
                self.searched = self.buffer.len();
                break;
            };
            self.start = self.searched + at + 1;
            self.searched = self.start;
            count += 1;
        }
        (count > 0).then(|| (count, &self.buffer[first..self.start]))
    }

    /// Where the first unread line ends: at a newline, or at the end of all bytes.
    fn line_end(&mut self) -> Option<usize> {
        if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) {
            return Some(self.searched + at);
        }
        self.searched = self.buffer.len();
        (self.finished && self.start < self.buffer.len()).then_some(self.buffer.len())
    }

    /// Reports an unfinished line that is already too long, once, and drops its bytes.
    fn too_long(&mut self) -> Option<DecodeError> {
        let limit = self.limit?;
        let line = &self.buffer[self.start..];
        let error =
            (line.len() > limit && !self.skipping).then(|| DecodeError::too_long(limit, line));
        if error.is_some() || self.skipping {
            self.skipping = true;
            self.start = self.buffer.len();
            self.searched = self.start;
        }
        error
    }
}

fn read_utf8(bytes: &[u8]) -> Result<&str, DecodeError> {
    std::str::from_utf8(bytes).map_err(|error| DecodeError::NotUtf8 {
        at: error.valid_up_to(),
        text: shortened(&String::from_utf8_lossy(bytes)),
    })
}

/// A frame that would be longer than its reader accepts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the frame ({summary}) has {length} bytes, more than the {limit} its reader accepts")]
#[non_exhaustive]
pub struct FrameTooLong {
    /// The kind of frame.
    pub summary: String,
    /// Its length.
    pub length: usize,
    /// The limit.
    pub limit: usize,
}

/// The frame as one line, unless that would be longer than `limit` bytes.
///
/// The caller decides what to do then: cut a tool's output, split a text, or send it anyway.
///
/// # Errors
/// When the line is too long.
pub fn encode_within<F: Frame>(frame: &F, limit: usize) -> Result<String, FrameTooLong> {
    let line = frame.to_line();
    if line.len() > limit {
        return Err(FrameTooLong { summary: frame.summary(), length: line.len(), limit });
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::{FrameDecoder, LineDecoder, PYTHON_LINE_LIMIT, encode_within};
    use crate::DecodeError;
    use crate::frame::{ToEngine, ToHost};
    use crate::message::User;

    fn lines(input: &[u8]) -> Vec<String> {
        let mut decoder = LineDecoder::new();
        decoder.push(input);
        decoder.finish();
        std::iter::from_fn(|| decoder.next_line().map(|line| line.unwrap().to_owned())).collect()
    }

    #[test]
    fn all_usual_line_endings_are_accepted() {
        assert_eq!(lines(b"a\nb\r\n\n \t\r\nc"), ["a", "b", "c"]);
        assert_eq!(lines(b"\n\n"), [""; 0]);
        assert_eq!(lines(b""), [""; 0]);
    }

    #[test]
    fn a_bad_line_does_not_end_the_stream() {
        let mut decoder = FrameDecoder::<ToHost>::new();
        decoder.push(b"oops\n{\"type\":\"k\xff\"}\n{\"type\":\"keep_alive\"}\n");
        assert!(matches!(decoder.next_frame(), Some(Err(DecodeError::NotJson { .. }))));
        assert!(matches!(decoder.next_frame(), Some(Err(DecodeError::NotUtf8 { at: 10, .. }))));
        assert!(matches!(decoder.next_frame(), Some(Ok(ToHost::KeepAlive(_)))));
    }

    #[test]
    fn a_long_line_is_read_whole_unless_there_is_a_limit() {
        let line =
            format!("{{\"type\":\"{}\"}}\n{{\"type\":\"keep_alive\"}}\n", "x".repeat(3_000_000));
        let mut decoder = FrameDecoder::<ToHost>::new();
        line.as_bytes().chunks(65_536).for_each(|chunk| decoder.push(chunk));
        assert!(matches!(decoder.next_frame(), Some(Ok(ToHost::Unknown(_)))));

        for chunk in [100, 65_536, line.len()] {
            let mut decoder = FrameDecoder::<ToHost>::with_limit(1000);
            let mut seen = Vec::new();
            for bytes in line.as_bytes().chunks(chunk) {
                decoder.push(bytes);
                seen.extend(std::iter::from_fn(|| decoder.next_frame()));
            }
            assert!(matches!(
                seen[..],
                [Err(DecodeError::TooLong { limit: 1000, .. }), Ok(ToHost::KeepAlive(_))]
            ));
        }
    }

    #[test]
    fn a_line_exactly_at_the_limit_passes() {
        let mut decoder = LineDecoder::with_limit(4);
        decoder.push(b"1234\n12345\n1");
        assert_eq!(decoder.next_line(), Some(Ok("1234")));
        assert!(matches!(decoder.next_line(), Some(Err(DecodeError::TooLong { .. }))));
        assert_eq!(decoder.next_line(), None);
    }

    #[test]
    fn a_frame_that_is_too_long_is_not_encoded() {
        let prompt = ToEngine::User(Box::new(User::prompt("x".repeat(PYTHON_LINE_LIMIT).as_str())));
        let error = encode_within(&prompt, PYTHON_LINE_LIMIT).unwrap_err();
        assert!(error.length > error.limit && error.summary == "user", "{error}");
        assert!(encode_within(&prompt, usize::MAX).unwrap().ends_with("}\n"));
    }
}

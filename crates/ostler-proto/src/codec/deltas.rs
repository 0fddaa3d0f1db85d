//! Stream deltas, read from a stream in batches and decoded later, only if they are used.

use super::{FrameDecoder, LineDecoder};
use crate::DecodeError;
use crate::frame::ToHost;

/// The start of every stream delta of all engines. A line that starts like this is a [`ToHost::StreamEvent`], or
/// malformed.
const BEGINNING: &[u8] = br#"{"type":"stream_event","#;

impl FrameDecoder<ToHost> {
    /// The next lines that are stream deltas; `None` if another frame is next, or more bytes are needed.
    ///
    /// ```
    /// use ostler_proto::codec::FrameDecoder;
    /// use ostler_proto::frame::ToHost;
    ///
    /// let delta = r#"{"type":"stream_event","event":{"type":"ping"},"session_id":"s","parent_tool_use_id":null,"uuid":"u"}"#;
    /// let mut decoder = FrameDecoder::<ToHost>::new();
    /// decoder.push(format!("{delta}\n{delta}\n{{\"type\":\"keep_alive\"}}\n").as_bytes());
    /// let deltas = decoder.next_deltas().unwrap();
    /// assert_eq!(deltas.len(), 2);
    /// assert!(deltas.into_iter().all(|delta| matches!(delta, Ok(ToHost::StreamEvent(_)))));
    /// assert!(decoder.next_deltas().is_none());
    /// assert!(matches!(decoder.next_frame(), Some(Ok(ToHost::KeepAlive(_)))));
    /// ```
    pub fn next_deltas(&mut self) -> Option<StreamDeltas> {
        let (n_left, lines) = self.lines.lines_beginning_with(BEGINNING)?;
        let n_bytes = lines.len();
        let lines = LineDecoder { buffer: lines.to_vec(), finished: true, ..LineDecoder::new() };
        Some(StreamDeltas { n_left, n_bytes, decoder: Self { lines, frame: self.frame } })
    }
}

/// Undecoded stream deltas.
#[derive(Debug)]
pub struct StreamDeltas {
    decoder: FrameDecoder<ToHost>,
    n_left: usize,
    n_bytes: usize,
}

impl StreamDeltas {
    /// The bytes of all deltas, including those that were read already: they stay in memory until all are read.
    pub fn n_bytes(&self) -> usize {
        self.n_bytes
    }
}

impl Iterator for StreamDeltas {
    type Item = Result<ToHost, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let delta = self.decoder.next_frame()?;
        self.n_left -= 1;
        Some(delta)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.n_left, Some(self.n_left))
    }
}

impl ExactSizeIterator for StreamDeltas {}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECE: &str = r#"{"type":"stream_event","event":{"type":"ping"},"session_id":"s","parent_tool_use_id":null,"uuid":"u"}"#;

    /// Decodes a stream in portions of a size, with batches of deltas.
    fn decoded(text: &str, portion: usize) -> Vec<Result<ToHost, DecodeError>> {
        let mut decoder = FrameDecoder::new();
        let mut all = Vec::new();
        let mut take = |decoder: &mut FrameDecoder<ToHost>| loop {
            if let Some(deltas) = decoder.next_deltas() {
                let (count, before) = (deltas.len(), all.len());
                all.extend(deltas);
                assert_eq!(all.len() - before, count);
            } else if let Some(frame) = decoder.next_frame() {
                all.push(frame);
            } else {
                return;
            }
        };
        for bytes in text.as_bytes().chunks(portion) {
            decoder.push(bytes);
            take(&mut decoder);
        }
        decoder.finish();
        take(&mut decoder);
        all
    }

    #[test]
    fn taking_deltas_in_batches_gives_the_same_frames() {
        let other = r#"{"type":"keep_alive"}"#;
        let broken = r#"{"type":"stream_event","type":"result"}"#;
        let text = format!(
            "{PIECE}\n{PIECE}\r\n{other}\n\n{PIECE}\n{broken}\n{PIECE}\n \n{other}\n{PIECE}"
        );
        let mut decoder = FrameDecoder::<ToHost>::new();
        decoder.push(text.as_bytes());
        decoder.finish();
        let one_by_one: Vec<_> = std::iter::from_fn(|| decoder.next_frame()).collect();
        assert_eq!(one_by_one.len(), 8);
        assert_eq!(one_by_one.iter().filter(|frame| frame.is_err()).count(), 1);
        for portion in [1, 7, 100, 101, 102, text.len()] {
            assert_eq!(decoded(&text, portion), one_by_one, "{portion}");
        }
    }

    #[test]
    fn a_decoder_with_a_limit_checks_every_line() {
        let mut decoder = FrameDecoder::<ToHost>::with_limit(10);
        decoder.push(format!("{PIECE}\n").as_bytes());
        assert!(decoder.next_deltas().is_none());
        assert!(matches!(decoder.next_frame(), Some(Err(DecodeError::TooLong { .. }))));
    }
}

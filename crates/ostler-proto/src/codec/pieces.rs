//! Pieces of responses, taken from a stream many at a time and decoded later, by whoever wants to see them.

use super::{FrameDecoder, LineDecoder};
use crate::DecodeError;
use crate::frame::ToHost;

/// What every engine begins a piece of a response with. A line that begins like this is a
/// [`ToHost::StreamEvent`], or malformed.
const BEGINNING: &[u8] = br#"{"type":"stream_event","#;

impl FrameDecoder<ToHost> {
    /// The lines that come next, as far as they are pieces of a response; `None` when something else comes next, or
    /// more bytes are needed.
    ///
    /// ```
    /// use ostler_proto::codec::FrameDecoder;
    /// use ostler_proto::frame::ToHost;
    ///
    /// let piece = r#"{"type":"stream_event","event":{"type":"ping"},"session_id":"s","parent_tool_use_id":null,"uuid":"u"}"#;
    /// let mut decoder = FrameDecoder::<ToHost>::new();
    /// decoder.push(format!("{piece}\n{piece}\n{{\"type\":\"keep_alive\"}}\n").as_bytes());
    /// let pieces = decoder.next_pieces().unwrap();
    /// assert_eq!(pieces.len(), 2);
    /// assert!(pieces.into_iter().all(|piece| matches!(piece, Ok(ToHost::StreamEvent(_)))));
    /// assert!(decoder.next_pieces().is_none());
    /// assert!(matches!(decoder.next_frame(), Some(Ok(ToHost::KeepAlive(_)))));
    /// ```
    pub fn next_pieces(&mut self) -> Option<Pieces> {
        let (n_left, lines) = self.lines.lines_beginning_with(BEGINNING)?;
        let n_bytes = lines.len();
        let lines = LineDecoder { buffer: lines.to_vec(), finished: true, ..LineDecoder::new() };
        Some(Pieces { n_left, n_bytes, decoder: Self { lines, frame: self.frame } })
    }
}

/// Pieces of responses that are still to be decoded.
#[derive(Debug)]
pub struct Pieces {
    decoder: FrameDecoder<ToHost>,
    n_left: usize,
    n_bytes: usize,
}

impl Pieces {
    /// The bytes of all pieces as they came, those that were taken included: they are held until all are taken.
    pub fn n_bytes(&self) -> usize {
        self.n_bytes
    }
}

impl Iterator for Pieces {
    type Item = Result<ToHost, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let piece = self.decoder.next_frame()?;
        self.n_left -= 1;
        Some(piece)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.n_left, Some(self.n_left))
    }
}

impl ExactSizeIterator for Pieces {}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECE: &str = r#"{"type":"stream_event","event":{"type":"ping"},"session_id":"s","parent_tool_use_id":null,"uuid":"u"}"#;

    /// What comes of a stream in portions of a size, taken in pieces where there are any.
    fn decoded(text: &str, portion: usize) -> Vec<Result<ToHost, DecodeError>> {
        let mut decoder = FrameDecoder::new();
        let mut all = Vec::new();
        let mut take = |decoder: &mut FrameDecoder<ToHost>| loop {
            if let Some(pieces) = decoder.next_pieces() {
                let (count, before) = (pieces.len(), all.len());
                all.extend(pieces);
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
    fn it_makes_no_difference_that_pieces_are_taken_many_at_a_time() {
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
    fn a_decoder_with_a_limit_looks_at_every_line() {
        let mut decoder = FrameDecoder::<ToHost>::with_limit(10);
        decoder.push(format!("{PIECE}\n").as_bytes());
        assert!(decoder.next_pieces().is_none());
        assert!(matches!(decoder.next_frame(), Some(Err(DecodeError::TooLong { .. }))));
    }
}

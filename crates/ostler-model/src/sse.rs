//! Server-sent events: bytes in any portions in, event data out. Pure.
//!
//! Only `data` matters here: the Messages API repeats the event's name inside it.

use super::MAX_RESPONSE_BYTES;

/// The longest event that is read: one that holds a whole response.
const MAX_EVENT: usize = MAX_RESPONSE_BYTES;

/// Decodes a stream of server-sent events.
#[derive(Debug, Default)]
pub(crate) struct SseDecoder {
    /// The unfinished line. Kept as bytes: a character may straddle two portions.
    line: Vec<u8>,
    data: Option<String>,
    /// The last line ended in CR; an LF right after it belongs to it.
    after_cr: bool,
    begun: bool,
}

/// An event that is too long to be one.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of more than {MAX_EVENT} bytes")]
pub(crate) struct EventTooLong;

impl SseDecoder {
    /// Takes more bytes and returns the data of the events they complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, EventTooLong> {
        let mut events = Vec::new();
        let mut rest = bytes;
        if std::mem::take(&mut self.after_cr) {
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.line.extend_from_slice(&rest[..at]);
            let ended_in_cr = rest[at] == b'\r';
            rest = &rest[at + 1..];
            if ended_in_cr {
                self.after_cr = rest.is_empty();
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
            events.extend(self.end_line());
            self.check_length()?;
        }
        self.line.extend_from_slice(rest);
        self.check_length()?;
        Ok(events)
    }

    /// An empty line ends an event; `data` lines add to it; all else is not for us.
    fn end_line(&mut self) -> Option<String> {
        let bytes = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&bytes);
        let line =
            if self.begun { &text[..] } else { text.strip_prefix('\u{feff}').unwrap_or(&text) };
        self.begun = true;
        if line.is_empty() {
            return self.data.take();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        if field == "data" {
            let value = value.strip_prefix(' ').unwrap_or(value);
            match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            }
        }
        None
    }

    fn check_length(&self) -> Result<(), EventTooLong> {
        let length = self.line.len() + self.data.as_ref().map_or(0, String::len);
        if length > MAX_EVENT { Err(EventTooLong) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(portions: &[&[u8]]) -> Vec<String> {
        let mut decoder = SseDecoder::default();
        portions.iter().flat_map(|bytes| decoder.push(bytes).unwrap()).collect()
    }

    #[test]
    fn data_lines_make_events() {
        assert_eq!(
            events(&[b"event: a\ndata: 1\n\n: remark\ndata:2\ndata: 3\nid: 7\n\ndata\n\n"]),
            ["1", "2\n3", ""]
        );
        assert_eq!(events(&[b"data: unfinished\n"]), [""; 0]);
        assert_eq!(events(&[b"event: no data\n\n"]), [""; 0]);
    }

    #[test]
    fn every_cut_gives_the_same_events() {
        let stream = "\u{feff}data: é😀\r\n\r\ndata: a\rdata: b\r\rdata: c\n\n".as_bytes();
        let expected = ["é😀", "a\nb", "c"];
        for first in 0..stream.len() {
            for second in first..stream.len() {
                let portions = [&stream[..first], &stream[first..second], &stream[second..]];
                assert_eq!(events(&portions), expected, "cut at {first} and {second}");
            }
        }
    }
}

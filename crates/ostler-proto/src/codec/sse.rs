//! Server-sent events: bytes in any portions in, events out.
//!
//! Lines end in LF, CRLF or a lone CR. A byte order mark at the beginning is skipped, several `data` lines are joined,
//! and an event that the stream's end cuts off is dropped, as the specification says.

/// An event with data. Events without any are skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SseEvent {
    /// Its `event` field; `None` means `message`.
    pub name: Option<String>,
    /// Its `data` lines, joined with newlines.
    pub data: String,
    /// The last `id` of the stream, of this event or an earlier one.
    pub id: Option<String>,
}

/// An event is longer than the decoder's limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of more than {limit} bytes")]
#[non_exhaustive]
pub struct EventTooLong {
    /// The most bytes that the fields of an event may have.
    pub limit: usize,
}

/// Decodes a stream of server-sent events.
///
/// ```
/// use ostler_proto::codec::SseDecoder;
///
/// let mut decoder = SseDecoder::new(1024);
/// assert!(decoder.push(b"id: 7\ndata: {\"a\"").unwrap().is_empty());
/// let events = decoder.push(b": 1}\r\n\r\n").unwrap();
/// assert_eq!((events[0].data.as_str(), events[0].id.as_deref()), ("{\"a\": 1}", Some("7")));
/// ```
#[derive(Debug)]
pub struct SseDecoder {
    /// The unfinished line. Kept as bytes: a character may straddle two portions.
    line: Vec<u8>,
    name: Option<String>,
    data: Option<String>,
    id: Option<String>,
    /// The bytes of the unfinished event's fields.
    size: usize,
    limit: usize,
    /// The last line ended in CR; an LF right after it belongs to it.
    is_after_cr: bool,
    has_begun: bool,
}

impl SseDecoder {
    /// A decoder for events whose fields have at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        let (line, name, data, id) = (Vec::new(), None, None, None);
        Self { line, name, data, id, size: 0, limit, is_after_cr: false, has_begun: false }
    }

    /// Takes more bytes and returns the events that they complete.
    ///
    /// # Errors
    /// If an event is too long. The rest of the stream cannot be read then.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<SseEvent>, EventTooLong> {
        let mut events = Vec::new();
        let mut rest = bytes;
        if self.is_after_cr && !rest.is_empty() {
            self.is_after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(at) = memchr::memchr2(b'\n', b'\r', rest) {
            self.line.extend_from_slice(&rest[..at]);
            let ends_in_cr = rest[at] == b'\r';
            rest = &rest[at + 1..];
            if ends_in_cr {
                self.is_after_cr = rest.is_empty();
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
            events.extend(self.end_line());
            self.check_size()?;
        }
        self.line.extend_from_slice(rest);
        self.check_size()?;
        Ok(events)
    }

    /// An empty line ends an event; every other line is a field, or a comment.
    fn end_line(&mut self) -> Option<SseEvent> {
        let bytes = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&bytes);
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let line = match is_first {
            true => text.strip_prefix('\u{feff}').unwrap_or(&text),
            false => &text,
        };
        if line.is_empty() {
            self.size = 0;
            let name = self.name.take();
            return self.data.take().map(|data| SseEvent { name, data, id: self.id.clone() });
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => match &mut self.data {
                Some(data) => data.extend(["\n", value]),
                None => self.data = Some(value.to_owned()),
            },
            "event" => self.name = (!value.is_empty()).then(|| value.to_owned()),
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            _ => return None,
        }
        self.size += bytes.len();
        None
    }

    fn check_size(&self) -> Result<(), EventTooLong> {
        match self.size + self.line.len() > self.limit {
            true => Err(EventTooLong { limit: self.limit }),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(portions: &[&[u8]]) -> Vec<SseEvent> {
        let mut decoder = SseDecoder::new(1000);
        portions.iter().flat_map(|bytes| decoder.push(bytes).unwrap()).collect()
    }

    fn data(stream: &[u8]) -> Vec<String> {
        events(&[stream]).into_iter().map(|event| event.data).collect()
    }

    #[test]
    fn data_lines_make_events() {
        assert_eq!(
            data(b"event: a\ndata: 1\n\n: remark\ndata:2\ndata: 3\nid: 7\n\ndata\n\n"),
            ["1", "2\n3", ""]
        );
        assert_eq!(data(b"data: unfinished\n"), [""; 0]);
        assert_eq!(data(b"event: no data\n\n"), [""; 0]);
    }

    #[test]
    fn a_name_is_for_one_event_and_an_id_for_all_that_follow() {
        let found = events(&[
            b"event: a\nid: 1\ndata: x\n\ndata: y\n\nevent: b\n\nevent:\nid: 2\ndata: z\n\n",
        ]);
        let found: Vec<_> = found
            .iter()
            .map(|event| (event.name.as_deref(), event.data.as_str(), event.id.as_deref()))
            .collect();
        let expected =
            [(Some("a"), "x", Some("1")), (None, "y", Some("1")), (None, "z", Some("2"))];
        assert_eq!(found, expected);
    }

    #[test]
    fn every_cut_gives_the_same_events() {
        let stream = "\u{feff}event: é\r\ndata: é😀\r\n\r\n: note\nid: 7\ndata: a\rdata: b\r\rdata: c\n\n\ndata: cut";
        let stream = stream.as_bytes();
        let event = |name: Option<&str>, data: &str, id: Option<&str>| SseEvent {
            name: name.map(str::to_owned),
            data: data.to_owned(),
            id: id.map(str::to_owned),
        };
        let expected = [
            event(Some("é"), "é😀", None),
            event(None, "a\nb", Some("7")),
            event(None, "c", Some("7")),
        ];
        for first in 0..stream.len() {
            for second in first..stream.len() {
                let portions = [&stream[..first], &stream[first..second], &stream[second..]];
                assert_eq!(events(&portions), expected, "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn an_event_has_a_size_limit() {
        let mut in_one_line = SseDecoder::new(10);
        assert!(in_one_line.push(b"data: 0123456789").is_err());
        let mut in_many = SseDecoder::new(10);
        assert!(in_many.push(b"data: 01\n").is_ok());
        assert!(in_many.push(b"data: 23\n").is_err());
        let mut one_after_the_other = SseDecoder::new(10);
        for _ in 0..3 {
            assert!(one_after_the_other.push(b"data: 01\n\n: a note\n").is_ok());
        }
    }
}

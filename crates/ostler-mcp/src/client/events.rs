//! A decoder for server-sent events, as far as MCP uses them: names and data.

/// An event.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) name: String,
    pub(super) data: String,
}

/// Accepts bytes in any portions.
pub(super) struct Events {
    buffer: Vec<u8>,
    name: String,
    data: Vec<String>,
    size: usize,
    limit: usize,
}

impl Events {
    pub(super) fn new(limit: usize) -> Self {
        Self { buffer: Vec::new(), name: String::new(), data: Vec::new(), size: 0, limit }
    }

    /// The events that these bytes complete, or the error in them.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Event>, String> {
        let mut complete = Vec::new();
        // Only the new bytes can end the line; a long line is not searched again.
        let mut searched = self.buffer.len();
        self.buffer.extend_from_slice(bytes);
        let mut start = 0;
        while let Some(at) = self.buffer[searched..].iter().position(|byte| *byte == b'\n') {
            let end = searched + at;
            let line = self.buffer[start..end].to_vec();
            complete.extend(self.line(line.strip_suffix(b"\r").unwrap_or(&line)));
            (start, searched) = (end + 1, end + 1);
        }
        self.buffer.drain(..start);
        if self.size + self.buffer.len() > self.limit {
            return Err(format!("it sent an event of more than {} bytes", self.limit));
        }
        Ok(complete)
    }

    fn line(&mut self, line: &[u8]) -> Option<Event> {
        if line.is_empty() {
            let (name, data) = (std::mem::take(&mut self.name), std::mem::take(&mut self.data));
            self.size = 0;
            let name = if name.is_empty() { "message".to_owned() } else { name };
            return (!data.is_empty()).then(|| Event { name, data: data.join("\n") });
        }
        self.size += line.len();
        let line = String::from_utf8_lossy(line);
        let line = line.strip_prefix('\u{feff}').unwrap_or(&line);
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => self.data.push(value.to_owned()),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(stream: &str, portion: usize) -> Vec<(String, String)> {
        let mut events = Events::new(1000);
        let chunks = stream.as_bytes().chunks(portion);
        let found = chunks.flat_map(|chunk| events.push(chunk).unwrap());
        found.map(|event| (event.name, event.data)).collect()
    }

    #[test]
    fn events_are_the_same_in_any_portions() {
        let stream = "\u{feff}event: endpoint\r\ndata: /m?é\r\n\r\n: note\ndata:{\ndata: }\nid: 7\n\n\ndata: cut";
        let expected = [("endpoint", "/m?é"), ("message", "{\n}")];
        let expected = expected.map(|(name, data)| (name.to_owned(), data.to_owned()));
        for portion in 1..=stream.len() {
            assert_eq!(events(stream, portion), expected, "in portions of {portion}");
        }
    }

    #[test]
    fn an_event_has_a_size_limit() {
        let mut in_one_line = Events::new(10);
        assert!(in_one_line.push(b"data: 0123456789").is_err());
        let mut in_many = Events::new(10);
        assert!(in_many.push(b"data: 01\n").is_ok());
        assert!(in_many.push(b"data: 23\n").is_err());
    }
}

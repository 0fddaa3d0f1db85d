//! Server-sent events with their numbers.

use futures::StreamExt as _;
use futures::stream::BoxStream;
use serde_json::Value;

/// An event that is longer is not read.
const LONGEST: usize = 64 << 20;

/// A stream of events, each with its number.
pub struct Events {
    chunks: BoxStream<'static, reqwest::Result<Vec<u8>>>,
    held: Vec<u8>,
    id: u64,
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Events {
    pub(crate) fn of(answer: reqwest::Response) -> Self {
        let chunks = answer.bytes_stream().map(|chunk| chunk.map(|chunk| chunk.to_vec()));
        Self { chunks: chunks.boxed(), held: Vec::new(), id: 0 }
    }

    /// The next one; `None` when the stream has ended. Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> Option<(u64, Value)> {
        loop {
            while let Some(end) = self.held.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.held.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line);
                let line = line.trim_end();
                if let Some(id) = line.strip_prefix("id:") {
                    self.id = id.trim().parse().unwrap_or(self.id);
                } else if let Some(data) = line.strip_prefix("data:")
                    && let Ok(event) = serde_json::from_str(data.trim())
                {
                    return Some((self.id, event));
                }
            }
            let chunk = self.chunks.next().await?.ok()?;
            if self.held.len() + chunk.len() > LONGEST {
                return None;
            }
            self.held.extend_from_slice(&chunk);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn events_are_read_however_they_are_cut() {
        let text = ": hello\n\nid: 7\ndata: {\"type\":\"a\"}\n\nid: 9\ndata: {\"é\":1}\n\n";
        for size in [1, 2, 3, 5, 100] {
            let chunks: Vec<_> = text.as_bytes().chunks(size).map(|it| Ok(it.to_vec())).collect();
            let chunks = futures::stream::iter(chunks).boxed();
            let mut events = Events { chunks, held: Vec::new(), id: 0 };
            assert_eq!(events.next().await, Some((7, json!({"type": "a"}))), "{size}");
            assert_eq!(events.next().await, Some((9, json!({"é": 1}))), "{size}");
            assert_eq!(events.next().await, None);
        }
    }
}

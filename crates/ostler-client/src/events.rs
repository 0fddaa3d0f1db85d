//! Server-sent events with their numbers.

use std::collections::VecDeque;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use ostler_proto::codec::{SseDecoder, SseEvent};
use serde_json::Value;

/// The size limit of an event, in bytes.
const LONGEST: usize = 64 << 20;

type Chunks = BoxStream<'static, reqwest::Result<Vec<u8>>>;

/// A stream of events, each with its number.
pub struct Events {
    chunks: Chunks,
    decoder: SseDecoder,
    /// Events that have arrived and were not returned yet.
    ready: VecDeque<SseEvent>,
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").field("ready", &self.ready.len()).finish_non_exhaustive()
    }
}

impl Events {
    pub(crate) fn of(answer: reqwest::Response) -> Self {
        let chunks = answer.bytes_stream().map(|chunk| chunk.map(|chunk| chunk.to_vec()));
        Self::from(chunks.boxed())
    }

    /// The next event; `None` when the stream has ended. Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> Option<(u64, Value)> {
        loop {
            while let Some(event) = self.ready.pop_front() {
                if let Ok(data) = serde_json::from_str(&event.data) {
                    let id = event.id.and_then(|id| id.parse().ok()).unwrap_or(0);
                    return Some((id, data));
                }
            }
            let chunk = self.chunks.next().await?.ok()?;
            self.ready.extend(self.decoder.push(&chunk).ok()?);
        }
    }
}

impl From<Chunks> for Events {
    fn from(chunks: Chunks) -> Self {
        Self { chunks, decoder: SseDecoder::new(LONGEST), ready: VecDeque::new() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn events_are_read_however_the_bytes_are_split() {
        let text = ": hello\n\nid: 7\ndata: {\"type\":\"a\"}\n\nid: 9\ndata: {\"é\":1}\n\n";
        for size in [1, 2, 3, 5, 100] {
            let chunks: Vec<_> = text.as_bytes().chunks(size).map(|it| Ok(it.to_vec())).collect();
            let chunks = futures::stream::iter(chunks).boxed();
            let mut events = Events::from(chunks);
            assert_eq!(events.next().await, Some((7, json!({"type": "a"}))), "{size}");
            assert_eq!(events.next().await, Some((9, json!({"é": 1}))), "{size}");
            assert_eq!(events.next().await, None);
        }
    }
}

//! Brings messages from the task of a session to their reader.
//!
//! Messages travel in batches, because waking the reader costs more than reading a message. Deltas of responses are
//! decoded by the reader: only the reader needs them, and creating and dropping them in one place is cheaper.
//!
//! If the reader is [`MAX_MESSAGES`] messages or [`MAX_BYTES`] bytes behind, the session stops reading from the engine
//! until the reader has caught up; meanwhile the engine's output fills up. Nothing is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::vec;

use ostler_proto::codec::StreamDeltas;
use tokio::sync::{Notify, mpsc};

use crate::error::Error;
use crate::json_size::json_size;
use crate::message::Message;

/// How many messages may wait for their reader before the engine has to wait.
const MAX_MESSAGES: usize = 64 * 1024;
/// How many bytes of messages, as JSON, may wait for their reader before the engine has to wait. The last message may
/// exceed this.
pub(super) const MAX_BYTES: usize = 64 * 1024 * 1024;

type Item = Result<Message, Error>;

/// Messages that are sent together.
enum Batch {
    /// Each with its size in bytes.
    Messages(vec::IntoIter<(Item, usize)>),
    Pieces(StreamDeltas),
}

impl Default for Batch {
    fn default() -> Self {
        Self::Messages(vec::IntoIter::default())
    }
}

impl Batch {
    /// The next message, and how many bytes it frees. The inner `Option` is `None` for a frame that is not a message.
    fn next(&mut self) -> Option<(Option<Item>, usize)> {
        match self {
            Self::Messages(messages) => {
                messages.next().map(|(message, n_bytes)| (Some(message), n_bytes))
            }
            Self::Pieces(pieces) => {
                let message = match pieces.next()? {
                    Ok(frame) => Message::from_frame(frame).map(Ok),
                    Err(error) => Some(Err(error.into())),
                };
                let n_bytes = if pieces.len() == 0 { pieces.n_bytes() } else { 0 };
                Some((message, n_bytes))
            }
        }
    }
}

/// The two ends of an inbox.
pub(super) fn channel() -> (Outlet, Inbox) {
    let (batches, incoming) = mpsc::unbounded_channel();
    let backlog = Arc::new(Backlog::default());
    let outlet = Outlet { batch: Vec::new(), batches, backlog: Arc::clone(&backlog) };
    (outlet, Inbox { batch: Batch::default(), batches: incoming, backlog })
}

/// How much waits for the reader.
#[derive(Default)]
struct Backlog {
    n_messages: AtomicUsize,
    n_bytes: AtomicUsize,
    taken: Notify,
}

impl Backlog {
    fn add(&self, n_messages: usize, n_bytes: usize) {
        self.n_messages.fetch_add(n_messages, Ordering::Relaxed);
        self.n_bytes.fetch_add(n_bytes, Ordering::Relaxed);
    }

    fn is_full(&self) -> bool {
        self.n_messages.load(Ordering::Relaxed) >= MAX_MESSAGES
            || self.n_bytes.load(Ordering::Relaxed) >= MAX_BYTES
    }

    /// Notes that the reader has read a message.
    fn take(&self, n_bytes: usize) {
        let messages = self.n_messages.fetch_sub(1, Ordering::Relaxed);
        let bytes = self.n_bytes.fetch_sub(n_bytes, Ordering::Relaxed);
        // The session then checks whether it is still over a limit.
        if messages == MAX_MESSAGES || (bytes >= MAX_BYTES && bytes - n_bytes < MAX_BYTES) {
            self.taken.notify_one();
        }
    }
}

/// The session's end: messages are put here.
pub(super) struct Outlet {
    batch: Vec<(Item, usize)>,
    batches: mpsc::UnboundedSender<Batch>,
    backlog: Arc<Backlog>,
}

impl Outlet {
    /// Adds a message to the next batch.
    pub(super) fn put(&mut self, message: Item) {
        let n_bytes = message.as_ref().map_or(0, json_bytes);
        self.backlog.add(1, n_bytes);
        self.batch.push((message, n_bytes));
    }

    /// Sends the batch.
    pub(super) fn send(&mut self) {
        if !self.batch.is_empty() {
            let batch = std::mem::take(&mut self.batch);
            self.send_batch(Batch::Messages(batch.into_iter()));
        }
    }

    /// Sends the batch, then deltas of a response.
    pub(super) fn send_pieces(&mut self, pieces: StreamDeltas) {
        self.send();
        self.backlog.add(pieces.len(), pieces.n_bytes());
        self.send_batch(Batch::Pieces(pieces));
    }

    fn send_batch(&self, batch: Batch) {
        // If there is no reader, `unread` reports that.
        let _ = self.batches.send(batch);
    }

    /// Whether the session must wait for the reader.
    pub(super) fn is_full(&self) -> bool {
        self.backlog.is_full()
    }

    /// Waits until the reader has caught up, after the outlet was full.
    pub(super) async fn taken(&self) {
        self.backlog.taken.notified().await;
    }

    /// Waits until the inbox is dropped.
    pub(super) async fn unread(&self) {
        self.batches.closed().await;
    }
}

/// The messages of a session, for one reader.
pub(crate) struct Inbox {
    batch: Batch,
    batches: mpsc::UnboundedReceiver<Batch>,
    backlog: Arc<Backlog>,
}

impl Inbox {
    pub(crate) async fn next(&mut self) -> Option<Item> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Item>> {
        loop {
            if let Some((message, n_bytes)) = self.batch.next() {
                self.backlog.take(n_bytes);
                match message {
                    Some(message) => return Poll::Ready(Some(message)),
                    None => continue,
                }
            }
            // Frees the memory of the last batch while the session is idle.
            self.batch = Batch::default();
            match ready!(self.batches.poll_recv(cx)) {
                Some(batch) => self.batch = batch,
                None => return Poll::Ready(None),
            }
        }
    }
}

/// The size of a message as JSON: a measure of its content that does not depend on the transport.
fn json_bytes(message: &Message) -> usize {
    match message {
        Message::Assistant(message) => json_size(message),
        Message::User(message) => json_size(message),
        Message::System(message) => json_size(message),
        Message::Result(message) => json_size(message),
        Message::StreamEvent(message) => json_size(message),
        Message::ToolProgress(message) => json_size(message),
        Message::Other(frame) => json_size(frame),
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use ostler_proto::codec::FrameDecoder;

    use super::*;

    fn pieces(count: usize) -> StreamDeltas {
        let piece = r#"{"type":"stream_event","event":{"type":"ping"},"session_id":"s","parent_tool_use_id":null,"uuid":"u"}"#;
        let mut decoder = FrameDecoder::new();
        decoder.push(format!("{piece}\n").repeat(count).as_bytes());
        decoder.next_deltas().unwrap()
    }

    fn next(inbox: &mut Inbox) -> Option<&'static str> {
        let item = inbox.next().now_or_never()??;
        Some(if matches!(item, Ok(Message::StreamEvent(_))) { "delta" } else { "error" })
    }

    #[test]
    fn messages_arrive_in_the_order_in_which_they_were_put() {
        let (mut outlet, mut inbox) = channel();
        outlet.put(Err(Error::Cancelled));
        assert_eq!(next(&mut inbox), None, "the batch is not sent yet");
        outlet.send_pieces(pieces(2));
        outlet.put(Err(Error::Cancelled));
        outlet.send();
        let received: Vec<_> = std::iter::from_fn(|| next(&mut inbox)).collect();
        assert_eq!(received, ["error", "delta", "delta", "error"]);
    }

    #[test]
    fn the_session_waits_for_a_reader_that_is_many_messages_behind() {
        let (mut outlet, mut inbox) = channel();
        outlet.send_pieces(pieces(MAX_MESSAGES - 1));
        assert!(!outlet.is_full());
        outlet.put(Err(Error::Cancelled));
        outlet.send();
        assert!(outlet.is_full());
        assert!(outlet.taken().now_or_never().is_none());
        assert_eq!(next(&mut inbox), Some("delta"));
        assert!(!outlet.is_full());
        assert!(outlet.taken().now_or_never().is_some());
    }

    #[test]
    fn the_session_waits_for_a_reader_that_is_many_bytes_behind() {
        let (mut outlet, mut inbox) = channel();
        let text = "x".repeat(MAX_BYTES / 4);
        let long = serde_json::json!({"type": "stream_event", "event": {"type": "content_block_delta", "index": 0,
            "delta": {"type": "text_delta", "text": text}}, "session_id": "s", "parent_tool_use_id": null, "uuid": "u"});
        let frame = || serde_json::from_value(long.clone()).unwrap();
        for n in 0..4 {
            assert!(!outlet.is_full(), "after {n}");
            outlet.put(Ok(Message::from_frame(frame()).unwrap()));
        }
        assert!(outlet.is_full(), "also before it is sent");
        outlet.send();
        assert!(outlet.taken().now_or_never().is_none());
        assert_eq!(next(&mut inbox), Some("delta"));
        assert!(!outlet.is_full() && outlet.taken().now_or_never().is_some());
        let mut decoder = FrameDecoder::new();
        decoder.push(format!("{long}\n{long}\n").as_bytes());
        outlet.send_pieces(decoder.next_deltas().unwrap());
        assert!(outlet.is_full());
        for _ in 0..4 {
            assert_eq!(next(&mut inbox), Some("delta"));
        }
        assert_eq!(
            outlet.backlog.n_bytes.load(Ordering::Relaxed),
            2 * (long.to_string().len() + 1)
        );
        assert_eq!(next(&mut inbox), Some("delta"));
        assert_eq!(
            outlet.backlog.n_bytes.load(Ordering::Relaxed),
            0,
            "the last delta frees the bytes of all of them"
        );
    }

    #[test]
    fn the_session_notices_that_its_reader_was_dropped() {
        let (outlet, inbox) = channel();
        assert!(outlet.unread().now_or_never().is_none());
        drop(inbox);
        assert!(outlet.unread().now_or_never().is_some());
    }
}

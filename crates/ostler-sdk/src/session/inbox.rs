//! The way of messages from the task of a session to their reader.
//!
//! They go in batches, because waking the reader costs more than reading a message: what comes in one breath wakes
//! once. Pieces of responses are decoded by the reader: nobody else looks into them, and what is made and dropped in one
//! place is cheaper. A reader that is [`BACKLOG`] messages behind is waited for; until then nobody is.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::vec;

use ostler_proto::codec::StreamDeltas;
use tokio::sync::{Notify, mpsc};

use crate::error::Error;
use crate::message::Message;

/// How many messages may wait for their reader before the engine has to.
const BACKLOG: usize = 64 * 1024;

type Item = Result<Message, Error>;

/// Messages that go together.
enum Batch {
    Messages(vec::IntoIter<Item>),
    Pieces(StreamDeltas),
}

impl Default for Batch {
    fn default() -> Self {
        Self::Messages(vec::IntoIter::default())
    }
}

impl Batch {
    /// The next message; `None` inside for a frame that is none.
    fn next(&mut self) -> Option<Option<Item>> {
        match self {
            Self::Messages(messages) => messages.next().map(Some),
            Self::Pieces(pieces) => Some(match pieces.next()? {
                Ok(frame) => Message::from_frame(frame).map(Ok),
                Err(error) => Some(Err(error.into())),
            }),
        }
    }
}

/// Both ends.
pub(super) fn channel() -> (Outlet, Inbox) {
    let (batches, incoming) = mpsc::unbounded_channel();
    let backlog = Arc::new(Backlog::default());
    let outlet = Outlet { batch: Vec::new(), batches, backlog: Arc::clone(&backlog) };
    (outlet, Inbox { batch: Batch::default(), batches: incoming, backlog })
}

#[derive(Default)]
struct Backlog {
    waiting: AtomicUsize,
    taken: Notify,
}

/// Where the session puts messages.
pub(super) struct Outlet {
    batch: Vec<Item>,
    batches: mpsc::UnboundedSender<Batch>,
    backlog: Arc<Backlog>,
}

impl Outlet {
    /// Keeps a message for the next batch.
    pub(super) fn put(&mut self, message: Item) {
        self.batch.push(message);
    }

    /// Sends what was kept.
    pub(super) fn send(&mut self) {
        if !self.batch.is_empty() {
            let batch = std::mem::take(&mut self.batch);
            self.send_batch(batch.len(), Batch::Messages(batch.into_iter()));
        }
    }

    /// Sends pieces of a response, after what was kept.
    pub(super) fn send_pieces(&mut self, pieces: StreamDeltas) {
        self.send();
        self.send_batch(pieces.len(), Batch::Pieces(pieces));
    }

    fn send_batch(&self, n_messages: usize, batch: Batch) {
        self.backlog.waiting.fetch_add(n_messages, Ordering::Relaxed);
        // That nobody reads is seen by whoever waits for `unread`.
        let _ = self.batches.send(batch);
    }

    /// Whether the reader has to catch up first.
    pub(super) fn is_full(&self) -> bool {
        self.backlog.waiting.load(Ordering::Relaxed) >= BACKLOG
    }

    /// The reader has caught up, after the outlet was full.
    pub(super) async fn taken(&self) {
        self.backlog.taken.notified().await;
    }

    /// Nobody reads any more.
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
            if let Some(message) = self.batch.next() {
                if self.backlog.waiting.fetch_sub(1, Ordering::Relaxed) == BACKLOG {
                    self.backlog.taken.notify_one();
                }
                match message {
                    Some(message) => return Poll::Ready(Some(message)),
                    None => continue,
                }
            }
            // A session that rests shall not keep the room of its last batch.
            self.batch = Batch::default();
            match ready!(self.batches.poll_recv(cx)) {
                Some(batch) => self.batch = batch,
                None => return Poll::Ready(None),
            }
        }
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
        Some(if matches!(item, Ok(Message::StreamEvent(_))) { "piece" } else { "error" })
    }

    #[test]
    fn what_was_kept_goes_before_what_comes_later() {
        let (mut outlet, mut inbox) = channel();
        outlet.put(Err(Error::Cancelled));
        assert_eq!(next(&mut inbox), None, "it is only kept");
        outlet.send_pieces(pieces(2));
        outlet.put(Err(Error::Cancelled));
        outlet.send();
        let heard: Vec<_> = std::iter::from_fn(|| next(&mut inbox)).collect();
        assert_eq!(heard, ["error", "piece", "piece", "error"]);
    }

    #[test]
    fn a_reader_that_is_far_behind_is_waited_for() {
        let (mut outlet, mut inbox) = channel();
        outlet.send_pieces(pieces(BACKLOG - 1));
        assert!(!outlet.is_full());
        outlet.put(Err(Error::Cancelled));
        outlet.send();
        assert!(outlet.is_full());
        assert!(outlet.taken().now_or_never().is_none());
        assert_eq!(next(&mut inbox), Some("piece"));
        assert!(!outlet.is_full());
        assert!(outlet.taken().now_or_never().is_some());
    }

    #[test]
    fn a_reader_that_has_gone_is_noticed() {
        let (outlet, inbox) = channel();
        assert!(outlet.unread().now_or_never().is_none());
        drop(inbox);
        assert!(outlet.unread().now_or_never().is_some());
    }
}

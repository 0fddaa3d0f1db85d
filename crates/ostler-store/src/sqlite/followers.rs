//! Who wants to know that a stream has grown.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::{Event, StreamId};

/// The streams that somebody follows. `None` when there is nothing to follow any more.
pub(super) struct Followers(Mutex<Option<HashMap<StreamId, watch::Sender<u64>>>>);

impl Default for Followers {
    fn default() -> Self {
        Self(Mutex::new(Some(HashMap::new())))
    }
}

impl Followers {
    /// Follows a stream from now on. `head` says how far it is; it is asked when the stream is already watched for,
    /// so that nothing is missed in between.
    pub(super) fn follow(
        &self,
        stream: &StreamId,
        head: impl FnOnce() -> u64,
    ) -> watch::Receiver<u64> {
        let receiver = match &mut *self.lock() {
            Some(streams) => {
                let sender = streams.entry(stream.clone()).or_insert_with(|| watch::Sender::new(0));
                sender.subscribe()
            }
            // Its sender is gone at once, which is how a receiver learns of the end.
            None => watch::Sender::new(0).subscribe(),
        };
        let known = *receiver.borrow();
        if known == 0 {
            self.raise(stream, head());
        }
        receiver
    }

    /// These are on disk now.
    pub(super) fn tell(&self, added: &[Event]) {
        if added.is_empty() {
            return;
        }
        let mut streams = self.lock();
        let Some(streams) = streams.as_mut().filter(|streams| !streams.is_empty()) else { return };
        for event in added {
            let Some(sender) = streams.get(&event.stream) else { continue };
            if sender.receiver_count() == 0 {
                streams.remove(&event.stream);
            } else {
                sender.send_if_modified(|head| raise(head, event.seq));
            }
        }
    }

    /// Nothing will grow any more.
    pub(super) fn end(&self) {
        *self.lock() = None;
    }

    fn raise(&self, stream: &StreamId, to: u64) {
        if let Some(sender) = self.lock().as_ref().and_then(|streams| streams.get(stream)) {
            sender.send_if_modified(|head| raise(head, to));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<HashMap<StreamId, watch::Sender<u64>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn raise(head: &mut u64, to: u64) -> bool {
    let grown = to > *head;
    *head = (*head).max(to);
    grown
}

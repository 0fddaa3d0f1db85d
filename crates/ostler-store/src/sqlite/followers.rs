//! Notifies followers when a stream grows, and caches the latest events of followed streams.
//!
//! A hundred readers of one stream all want the same event at the same moment. They read it from this cache; only
//! readers that lag behind use the database.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{HashMap, VecDeque};

use tokio::sync::watch;

use crate::{Event, StreamId};

/// How much of a followed stream is cached.
const MOST_EVENTS: usize = 128;
const MOST_BYTES: usize = 64 << 10;

/// With fewer streams than this, unfollowed ones are not searched for.
const FEW: usize = 64;

/// The followed streams. `None` when the store is closed or has failed.
pub(super) struct Followers(Mutex<Option<Streams>>);

struct Streams {
    followed: HashMap<StreamId, Followed>,
    /// With this many streams, those without followers are removed.
    sweep_at: usize,
}

struct Followed {
    head: watch::Sender<u64>,
    /// The last events, without gaps up to the head of the stream.
    latest: VecDeque<Event>,
    bytes: usize,
}

impl Default for Followers {
    fn default() -> Self {
        Self(Mutex::new(Some(Streams::default())))
    }
}

impl Default for Streams {
    fn default() -> Self {
        Self { followed: HashMap::new(), sweep_at: FEW }
    }
}

impl Followers {
    /// Follows a stream. `head` is called after the stream is registered, so that no event is missed in between.
    pub(super) fn follow(
        &self,
        stream: &StreamId,
        head: impl FnOnce() -> u64,
    ) -> watch::Receiver<u64> {
        let receiver = match &mut *self.lock() {
            Some(streams) => streams.enter(stream).head.subscribe(),
            // Its sender is dropped at once, so the receiver notices that the stream has ended.
            None => watch::Sender::new(0).subscribe(),
        };
        let known = *receiver.borrow();
        if known == 0 {
            self.raise(stream, head());
        }
        receiver
    }

    /// Notifies followers of events that are now on disk.
    pub(super) fn notify(&self, added: Vec<Event>) {
        if added.is_empty() {
            return;
        }
        let mut streams = self.lock();
        let Some(Streams { followed: streams, .. }) = &mut *streams else { return };
        for event in added {
            let Some(followed) = streams.get_mut(&event.stream) else { continue };
            if followed.head.receiver_count() == 0 {
                streams.remove(&event.stream);
            } else {
                followed.add(event);
            }
        }
    }

    /// Events after `after`, if all of them are cached. `None` does not mean that there are none.
    pub(super) fn latest(&self, stream: &StreamId, after: u64, limit: usize) -> Option<Vec<Event>> {
        let streams = self.lock();
        let latest = &streams.as_ref()?.followed.get(stream)?.latest;
        let first = latest.front()?.seq;
        let passed = usize::try_from(after.saturating_add(1).checked_sub(first)?).ok()?;
        Some(latest.iter().skip(passed).take(limit).cloned().collect())
    }

    /// Accepts followers again. Receivers from before [`Self::end`] stay ended.
    pub(super) fn begin(&self) {
        self.lock().get_or_insert_default();
    }

    /// Ends the receivers of a deleted stream.
    pub(super) fn forget(&self, stream: &StreamId) {
        if let Some(streams) = &mut *self.lock() {
            streams.followed.remove(stream);
        }
    }

    /// Ends all receivers.
    pub(super) fn end(&self) {
        *self.lock() = None;
    }

    fn raise(&self, stream: &StreamId, to: u64) {
        let streams = self.lock();
        if let Some(followed) = streams.as_ref().and_then(|streams| streams.followed.get(stream)) {
            followed.raise(to);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Streams>> {
        self.0.lock()
    }
}

impl Streams {
    fn enter(&mut self, stream: &StreamId) -> &mut Followed {
        if self.followed.len() >= self.sweep_at {
            self.followed.retain(|_, followed| followed.head.receiver_count() > 0);
            self.sweep_at = FEW.max(self.followed.len() * 2);
        }
        self.followed.entry(stream.clone()).or_default()
    }
}

impl Default for Followed {
    fn default() -> Self {
        Self { head: watch::Sender::new(0), latest: VecDeque::new(), bytes: 0 }
    }
}

impl Followed {
    fn add(&mut self, event: Event) {
        let seq = event.seq;
        self.bytes += event.body.as_str().len();
        self.latest.push_back(event);
        while self.latest.len() > MOST_EVENTS || self.bytes > MOST_BYTES {
            let Some(oldest) = self.latest.pop_front() else { break };
            self.bytes -= oldest.body.as_str().len();
        }
        self.raise(seq);
    }

    fn raise(&self, to: u64) {
        self.head.send_if_modified(|head| {
            let grown = to > *head;
            *head = (*head).max(to);
            grown
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{FEW, Followers, MOST_BYTES, MOST_EVENTS};
    use crate::{Event, StreamId, Timestamp};

    fn event(name: &str, seq: u64, bytes: usize) -> Event {
        let (stream, at) = (StreamId::new(name).unwrap(), Timestamp::default());
        Event { stream, seq, at, kind: "said".to_owned(), body: json!("x".repeat(bytes)).into() }
    }

    fn numbers(followers: &Followers, after: u64, limit: usize) -> Option<Vec<u64>> {
        let latest = followers.latest(&StreamId::new("a").unwrap(), after, limit)?;
        Some(latest.into_iter().map(|event| event.seq).collect())
    }

    #[test]
    fn the_latest_events_are_cached_and_older_ones_are_not() {
        let followers = Followers::default();
        let follower = followers.follow(&StreamId::new("a").unwrap(), || 10);
        assert_eq!(numbers(&followers, 10, 9), None, "the cache is not filled yet");
        followers.notify(vec![event("a", 11, 1), event("b", 1, 1), event("a", 12, 1)]);
        assert_eq!(*follower.borrow(), 12);
        assert_eq!(numbers(&followers, 9, 9), None);
        assert_eq!(numbers(&followers, 10, 9), Some(vec![11, 12]));
        assert_eq!(numbers(&followers, 10, 1), Some(vec![11]));
        assert_eq!(numbers(&followers, 11, 9), Some(vec![12]));
        assert_eq!(numbers(&followers, 12, 9), Some(vec![]));
        assert_eq!(numbers(&followers, 99, 9), Some(vec![]));
        assert!(followers.latest(&StreamId::new("b").unwrap(), 0, 9).is_none());
        drop(follower);
        followers.notify(vec![event("a", 13, 1)]);
        assert_eq!(numbers(&followers, 12, 9), None, "there is no follower any more");
    }

    #[test]
    fn streams_without_followers_are_removed() {
        let followers = Followers::default();
        let name = |number: usize| StreamId::new(format!("s{number}")).unwrap();
        let kept: Vec<_> =
            (0..FEW / 2).map(|number| followers.follow(&name(number), || 0)).collect();
        for number in 0..100 * FEW {
            followers.follow(&name(number), || 0);
        }
        let n_streams = followers.lock().as_ref().unwrap().followed.len();
        assert!((kept.len()..=2 * FEW).contains(&n_streams), "{n_streams}");
        let last = Event { stream: name(FEW / 2 - 1), ..event("a", 7, 1) };
        followers.notify(vec![last]);
        assert_eq!(*kept[FEW / 2 - 1].borrow(), 7);
    }

    #[test]
    fn the_cache_is_limited_in_events_and_bytes() {
        let followers = Followers::default();
        let _follower = followers.follow(&StreamId::new("a").unwrap(), || 0);
        followers.notify((1..=1000).map(|seq| event("a", seq, 1)).collect());
        let oldest = 1000 - MOST_EVENTS as u64;
        assert_eq!(numbers(&followers, oldest - 1, 9999), None);
        assert_eq!(numbers(&followers, oldest, 9999).map(|latest| latest.len()), Some(MOST_EVENTS));
        followers.notify(vec![event("a", 1001, MOST_BYTES)]);
        assert_eq!(numbers(&followers, 1000, 9), None, "too large for the cache");
        followers.notify(vec![event("a", 1002, 1)]);
        assert_eq!(numbers(&followers, 1001, 9), Some(vec![1002]));
    }
}

//! Who wants to know that a stream has grown, and the latest events of those streams.
//!
//! A hundred readers of one stream all want the same event at the same moment. They find it here, in memory; the
//! database is for those who have something to catch up on.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::{Event, StreamId};

/// How much of a stream is kept in memory while somebody follows it.
const MOST_EVENTS: usize = 128;
const MOST_BYTES: usize = 64 << 10;

/// With fewer streams than this nobody looks for those that are no longer followed.
const FEW: usize = 64;

/// The streams that somebody follows. `None` when there is nothing to follow any more.
pub(super) struct Followers(Mutex<Option<Streams>>);

struct Streams {
    followed: HashMap<StreamId, Followed>,
    /// When there are so many, those that nobody follows any more go.
    sweep_at: usize,
}

struct Followed {
    head: watch::Sender<u64>,
    /// The last events, without gaps up to the last one there is.
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
    /// Follows a stream from now on. `head` says how far it is; it is asked when the stream is already watched for,
    /// so that nothing is missed in between.
    pub(super) fn follow(
        &self,
        stream: &StreamId,
        head: impl FnOnce() -> u64,
    ) -> watch::Receiver<u64> {
        let receiver = match &mut *self.lock() {
            Some(streams) => streams.enter(stream).head.subscribe(),
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
    pub(super) fn tell(&self, added: Vec<Event>) {
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

    /// Events behind `after`, if they are all here. `None` says nothing about what there is.
    pub(super) fn latest(&self, stream: &StreamId, after: u64, limit: usize) -> Option<Vec<Event>> {
        let streams = self.lock();
        let latest = &streams.as_ref()?.followed.get(stream)?.latest;
        let first = latest.front()?.seq;
        let passed = usize::try_from(after.saturating_add(1).checked_sub(first)?).ok()?;
        Some(latest.iter().skip(passed).take(limit).cloned().collect())
    }

    /// Streams grow again. Receivers from before the end stay ended.
    pub(super) fn begin(&self) {
        self.lock().get_or_insert_default();
    }

    /// The stream is gone: whoever follows it learns that nothing will come.
    pub(super) fn forget(&self, stream: &StreamId) {
        if let Some(streams) = &mut *self.lock() {
            streams.followed.remove(stream);
        }
    }

    /// Nothing will grow any more.
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
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn the_latest_are_here_and_the_rest_is_not() {
        let followers = Followers::default();
        let follower = followers.follow(&StreamId::new("a").unwrap(), || 10);
        assert_eq!(numbers(&followers, 10, 9), None, "it does not know yet");
        followers.tell(vec![event("a", 11, 1), event("b", 1, 1), event("a", 12, 1)]);
        assert_eq!(*follower.borrow(), 12);
        assert_eq!(numbers(&followers, 9, 9), None);
        assert_eq!(numbers(&followers, 10, 9), Some(vec![11, 12]));
        assert_eq!(numbers(&followers, 10, 1), Some(vec![11]));
        assert_eq!(numbers(&followers, 11, 9), Some(vec![12]));
        assert_eq!(numbers(&followers, 12, 9), Some(vec![]));
        assert_eq!(numbers(&followers, 99, 9), Some(vec![]));
        assert!(followers.latest(&StreamId::new("b").unwrap(), 0, 9).is_none());
        drop(follower);
        followers.tell(vec![event("a", 13, 1)]);
        assert_eq!(numbers(&followers, 12, 9), None, "nobody follows any more");
    }

    #[test]
    fn what_nobody_follows_any_more_goes() {
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
        followers.tell(vec![last]);
        assert_eq!(*kept[FEW / 2 - 1].borrow(), 7);
    }

    #[test]
    fn only_so_much_is_kept() {
        let followers = Followers::default();
        let _follower = followers.follow(&StreamId::new("a").unwrap(), || 0);
        followers.tell((1..=1000).map(|seq| event("a", seq, 1)).collect());
        let oldest = 1000 - MOST_EVENTS as u64;
        assert_eq!(numbers(&followers, oldest - 1, 9999), None);
        assert_eq!(numbers(&followers, oldest, 9999).map(|latest| latest.len()), Some(MOST_EVENTS));
        followers.tell(vec![event("a", 1001, MOST_BYTES)]);
        assert_eq!(numbers(&followers, 1000, 9), None, "too large to be kept");
        followers.tell(vec![event("a", 1002, 1)]);
        assert_eq!(numbers(&followers, 1001, 9), Some(vec![1002]));
    }
}

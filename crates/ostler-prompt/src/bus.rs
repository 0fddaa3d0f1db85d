//! [`EventBus`]: sends events to subscribers while a run is in progress.
//!
//! Publishing never waits: every subscriber has its own queue, and every callback runs in its own thread, so that a
//! callback that blocks or panics disturbs neither the run nor the other subscribers. Queues are bounded; dropped
//! events are counted ([`Subscription::missed`]).

use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{mpsc, oneshot};

use crate::event::{Event, Kind};

/// How many events may wait for a subscriber. Further events are dropped and counted.
const QUEUE: usize = 4096;

/// Publishes events to subscribers. Clones are the same bus.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use ostler_prompt::{EventBus, ToolInvoked};
///
/// let bus = EventBus::new();
/// let subscription = bus.subscribe(|call: &ToolInvoked| println!("{} {}", call.name, call.params));
/// // … evaluate prompts …
/// bus.settle().await;
/// assert_eq!(subscription.missed(), 0);
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct EventBus {
    queues: Arc<Mutex<Vec<Queue>>>,
}

#[derive(Clone, Debug)]
struct Queue {
    to: mpsc::Sender<Item>,
    /// Whether a callback empties the queue, not a [`Listener`].
    is_called: bool,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    missed: AtomicU64,
    panics: AtomicU64,
}

#[derive(Debug)]
enum Item {
    Event(Event),
    /// Reports that all earlier items were handled.
    Settled(oneshot::Sender<()>),
}

impl EventBus {
    /// A bus without subscribers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls a function for every event of one type, that of the function's argument. It runs in its own thread, may
    /// block, and is called again after a panic. The calls end when the [`Subscription`] is dropped.
    pub fn subscribe<E: Kind>(
        &self,
        mut callback: impl FnMut(&E) + Send + 'static,
    ) -> Subscription {
        let (queue, mut items) = self.queue(true);
        let counts = Arc::clone(&queue.counts);
        let work = move || {
            while let Some(item) = items.blocking_recv() {
                match item {
                    Item::Event(event) => {
                        let Some(event) = E::of(&event) else { continue };
                        if catch_unwind(AssertUnwindSafe(|| callback(event))).is_err() {
                            counts.panics.fetch_add(1, Ordering::Relaxed);
                            tracing::warn!(
                                "a subscriber of prompt events panicked; it is called again"
                            );
                        }
                    }
                    // Fails only if the caller no longer waits.
                    Item::Settled(done) => _ = done.send(()),
                }
            }
        };
        let thread = std::thread::Builder::new().name("prompt-events".to_owned()).spawn(work);
        if let Err(error) = thread {
            tracing::error!("cannot start a thread for a subscriber of prompt events: {error}");
            queue.counts.missed.fetch_add(1, Ordering::Relaxed);
        }
        Subscription { bus: self.clone(), queue: Some(queue) }
    }

    /// Returns a reader for all events from now on.
    pub fn listen(&self) -> Listener {
        let (queue, items) = self.queue(false);
        Listener { items, subscription: Subscription { bus: self.clone(), queue: Some(queue) } }
    }

    /// Sends an event to all subscribers. Never waits.
    pub fn publish(&self, event: Event) {
        for queue in self.lock().iter() {
            if queue.to.try_send(Item::Event(event.clone())).is_err() {
                queue.counts.missed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Waits until every callback has handled all events published so far. Does not wait for [listeners](Self::listen),
    /// which read at their own pace.
    pub async fn settle(&self) {
        let queues = self.lock().clone();
        for queue in queues.into_iter().filter(|queue| queue.is_called) {
            let (done, settled) = oneshot::channel();
            if queue.to.send(Item::Settled(done)).await.is_ok() {
                let _ = settled.await;
            }
        }
    }

    fn queue(&self, is_called: bool) -> (Queue, mpsc::Receiver<Item>) {
        let (to, items) = mpsc::channel(QUEUE);
        let queue = Queue { to, is_called, counts: Arc::default() };
        self.lock().push(queue.clone());
        (queue, items)
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, Vec<Queue>> {
        self.queues.lock()
    }
}

/// A callback's subscription. Dropping it ends the subscription after the queued events were handled.
#[derive(Debug)]
#[must_use = "dropping it ends the subscription; `keep` keeps it as long as the bus exists"]
pub struct Subscription {
    bus: EventBus,
    queue: Option<Queue>,
}

impl Subscription {
    /// How many events were dropped because the queue was full.
    pub fn missed(&self) -> u64 {
        self.count(|counts| &counts.missed)
    }

    /// How often the callback panicked.
    pub fn panics(&self) -> u64 {
        self.count(|counts| &counts.panics)
    }

    /// Keeps the subscription as long as the bus exists.
    pub fn keep(mut self) {
        self.queue = None;
    }

    fn count(&self, of: impl Fn(&Counts) -> &AtomicU64) -> u64 {
        self.queue.as_ref().map_or(0, |queue| of(&queue.counts).load(Ordering::Relaxed))
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(queue) = &self.queue {
            self.bus.lock().retain(|other| !Arc::ptr_eq(&other.counts, &queue.counts));
        }
    }
}

/// A reader of events.
#[derive(Debug)]
pub struct Listener {
    items: mpsc::Receiver<Item>,
    subscription: Subscription,
}

impl Listener {
    /// Waits for the next event.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            match self.items.recv().await? {
                Item::Event(event) => return Some(event),
                Item::Settled(done) => _ = done.send(()),
            }
        }
    }

    /// The next event, if one is waiting.
    pub fn try_next(&mut self) -> Option<Event> {
        loop {
            match self.items.try_recv().ok()? {
                Item::Event(event) => return Some(event),
                Item::Settled(done) => _ = done.send(()),
            }
        }
    }

    /// How many events were dropped because the queue was full.
    pub fn missed(&self) -> u64 {
        self.subscription.missed()
    }
}

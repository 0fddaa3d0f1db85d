//! Limits per user on what is in use at the same time: engines, streams, sockets.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ostler_base::error::ApiError;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// When a client that was refused may try again.
const RETRY: Duration = Duration::from_secs(5);

/// How often waiting calls ask idle holders again to make room: a holder that was busy may be idle by now.
const ASK_AGAIN: Duration = Duration::from_secs(1);

type Held = Arc<Mutex<HashMap<String, Arc<Room>>>>;

/// The permits of one user.
#[derive(Debug)]
struct Room {
    places: Arc<Semaphore>,
    /// Notified when a waiting run wants the place of an idle holder.
    wanted: Notify,
}

/// A limit per user.
#[derive(Clone, Debug)]
pub struct UserLimit {
    /// The name of what is limited, in the plural.
    what: &'static str,
    /// What a user with too many can do.
    remedy: &'static str,
    most: usize,
    /// Only users who hold a permit, or wait for one.
    held: Held,
}

/// One permit, returned on drop.
#[derive(Debug)]
pub struct UserPermit {
    user: String,
    most: usize,
    held: Held,
    permit: Option<OwnedSemaphorePermit>,
    room: Option<Arc<Room>>,
}

/// Notifies the idle holder of a permit that a run waits for a place.
#[derive(Debug)]
pub struct Wanted(Option<Arc<Room>>);

impl Wanted {
    /// Waits until a run wants the place; forever if there is no permit.
    pub async fn wanted(&self) {
        match &self.0 {
            Some(room) => room.wanted.notified().await,
            None => std::future::pending().await,
        }
    }
}

impl UserPermit {
    /// For the idle holder of a permit.
    pub fn wanted(permit: Option<&Self>) -> Wanted {
        Wanted(permit.and_then(|permit| permit.room.clone()))
    }
}

impl UserLimit {
    pub fn new(what: &'static str, remedy: &'static str, most: usize) -> Self {
        Self { what, remedy, most: most.min(Semaphore::MAX_PERMITS), held: Arc::default() }
    }

    /// Takes a permit for a user.
    ///
    /// # Errors
    /// When the user has as many as allowed.
    pub fn take(&self, user: &str) -> Result<UserPermit, ApiError> {
        // Created first, so that it is dropped also if there is no permit: users without permits are removed from the
        // map.
        let mut taken = self.none_yet(user);
        let room = self.of(user);
        taken.permit = Arc::clone(&room.places).try_acquire_owned().ok();
        taken.room = Some(room);
        if taken.permit.is_some() {
            return Ok(taken);
        }
        // In the message and not as a hint, because a failed run shows only the message.
        let Self { what, remedy, most, .. } = self;
        let message = format!("you have {most} {what}, the maximum for one user; {remedy}");
        Err(ApiError::too_many(message, RETRY))
    }

    /// Waits for a permit for a user. The longest waiting call is next. Idle holders are asked to make room.
    pub async fn wait(&self, user: &str) -> UserPermit {
        let mut taken = self.none_yet(user);
        let room = self.of(user);
        taken.room = Some(Arc::clone(&room));
        let mut acquired = std::pin::pin!(Arc::clone(&room.places).acquire_owned());
        loop {
            let ask_again = async {
                room.wanted.notify_one();
                tokio::time::sleep(ASK_AGAIN).await;
            };
            tokio::select! {
                biased;
                // The semaphore is never closed.
                permit = &mut acquired => {
                    taken.permit = permit.ok();
                    return taken;
                }
                () = ask_again => {}
            }
        }
    }

    fn none_yet(&self, user: &str) -> UserPermit {
        let (user, held) = (user.to_owned(), Arc::clone(&self.held));
        UserPermit { user, most: self.most, held, permit: None, room: None }
    }

    fn of(&self, user: &str) -> Arc<Room> {
        let mut held = self.held.lock();
        let room = held.entry(user.to_owned()).or_insert_with(|| {
            let places = Arc::new(Semaphore::new(self.most));
            Arc::new(Room { places, wanted: Notify::new() })
        });
        Arc::clone(room)
    }
}

impl Drop for UserPermit {
    fn drop(&mut self) {
        (self.permit, self.room) = (None, None);
        let mut held = self.held.lock();
        let is_unused = |room: &Arc<Room>| {
            // Waiting calls have a reference too.
            Arc::strong_count(room) == 1 && room.places.available_permits() == self.most
        };
        if held.get(&self.user).is_some_and(is_unused) {
            held.remove(&self.user);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Seen to fail with `take` that refuses nothing, and with `drop` that gives nothing back. Mutant: `take` that counts all
    // users together.
    #[test]
    fn one_user_does_not_use_up_the_permits_of_another() {
        let limit = UserLimit::new("sockets", "close some", 2);
        let (first, _second) = (limit.take("ada").unwrap(), limit.take("ada").unwrap());
        let refused = limit.take("ada").unwrap_err();
        assert_eq!(refused.status(), 429);
        assert!(refused.detail().message.ends_with("; close some"), "{refused}");
        let bob = limit.take("bob").unwrap();
        drop(first);
        assert!(limit.take("ada").is_ok());
        drop(bob);
        assert_eq!(limit.held.lock().len(), 1, "users without permits are removed");
    }

    // Mutant: `wait` that asks nobody.
    #[tokio::test(start_paused = true)]
    async fn an_idle_holder_is_notified_that_a_run_waits() {
        let limit = UserLimit::new("engines", "wait", 1);
        let idle = limit.take("ada").unwrap();
        let other = limit.take("bob").unwrap();
        let waiting = limit.wait("ada");
        let making_way = async {
            UserPermit::wanted(Some(&idle)).wanted().await;
            drop(idle);
        };
        let (_taken, ()) = tokio::join!(waiting, making_way);
        let wanted = UserPermit::wanted(Some(&other));
        assert!(
            futures::poll!(std::pin::pin!(wanted.wanted())).is_pending(),
            "another user is not notified"
        );
    }

    // Mutant: `wait` that takes its place when it is polled, not in the order of the calls.
    #[tokio::test]
    async fn the_longest_waiting_call_is_next() {
        let limit = UserLimit::new("engines", "wait", 1);
        let first = limit.take("ada").unwrap();
        let (second, third) = (limit.wait("ada"), limit.wait("ada"));
        let (mut second, mut third) = (std::pin::pin!(second), std::pin::pin!(third));
        assert!(futures::poll!(second.as_mut()).is_pending());
        assert!(futures::poll!(third.as_mut()).is_pending());
        assert!(limit.take("bob").is_ok(), "other users do not wait");
        drop(first);
        assert!(limit.take("ada").is_err(), "a new call does not overtake");
        let second = second.await;
        assert!(futures::poll!(third.as_mut()).is_pending());
        drop(second);
        drop(third.await);
        assert!(limit.held.lock().is_empty(), "users without permits are removed");
    }
}

//! How much of something one user may have at the same time: engines, streams, sockets.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::error::ApiError;

/// When a client that was refused may try again.
const RETRY: Duration = Duration::from_secs(5);

/// A limit per user.
#[derive(Clone, Debug)]
pub(crate) struct UserLimit {
    /// What is limited, in the plural.
    what: &'static str,
    /// What a user does who has too many.
    remedy: &'static str,
    most: usize,
    held: Arc<Mutex<HashMap<String, usize>>>,
}

/// One of them, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct UserPermit {
    user: String,
    held: Arc<Mutex<HashMap<String, usize>>>,
}

impl UserLimit {
    pub(crate) fn new(what: &'static str, remedy: &'static str, most: usize) -> Self {
        Self { what, remedy, most, held: Arc::default() }
    }

    /// One more for a user.
    ///
    /// # Errors
    /// When the user has as many as allowed.
    pub(crate) fn take(&self, user: &str) -> Result<UserPermit, ApiError> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let count = held.entry(user.to_owned()).or_default();
        if *count >= self.most {
            // In the message, because a run that fails for it has no hint.
            let Self { what, remedy, most, .. } = self;
            let message = format!("you have {most} {what}, the most for one user; {remedy}");
            return Err(ApiError::too_many(message, RETRY));
        }
        *count += 1;
        Ok(UserPermit { user: user.to_owned(), held: Arc::clone(&self.held) })
    }
}

impl Drop for UserPermit {
    fn drop(&mut self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = held.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Mutants: `take` that counts all users together; `drop` that gives nothing back.
    #[test]
    fn one_user_does_not_use_up_what_another_may_have() {
        let limit = UserLimit::new("sockets", "close some", 2);
        let (first, _second) = (limit.take("ada").unwrap(), limit.take("ada").unwrap());
        let refused = limit.take("ada").unwrap_err();
        assert_eq!(refused.status(), 429);
        assert!(refused.detail().message.ends_with("; close some"), "{refused}");
        let bob = limit.take("bob").unwrap();
        drop(first);
        assert!(limit.take("ada").is_ok());
        drop(bob);
        assert_eq!(limit.held.lock().unwrap().len(), 1, "who has nothing is forgotten");
    }
}

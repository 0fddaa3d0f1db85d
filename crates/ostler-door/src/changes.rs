//! Notifications that users, tokens or sign-ins have changed.

use tokio::sync::watch;

/// Notifies open connections that users, tokens or sign-ins have changed.
#[derive(Debug, Default)]
pub struct Changes(watch::Sender<u64>);

impl Changes {
    pub(crate) fn notify(&self) {
        self.0.send_modify(|count| *count = count.wrapping_add(1));
    }

    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}

//! Disk work of async code, on the threads that may block.
//!
//! The runtime may have a single thread. A disk that is slow or gone (a network file system, a lock that another
//! process holds, thousands of files) must not stop the session and all others on that thread. Only single short
//! writes into the page cache and single looks at files that the engine made itself stay on the runtime; a comment
//! marks each such place.

use std::panic::resume_unwind;

/// Runs `work` on a blocking thread. A panic in it continues in the caller.
pub(crate) async fn on_disk<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime shuts down, and drops the caller.
            Err(_) => std::future::pending().await,
        },
    }
}

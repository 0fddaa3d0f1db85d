//! Returns the memory of ended engines to the system.
//!
//! The C library keeps freed memory for later use, such as that of 5,000 engines that ended hours ago. It returns it on
//! request. The request scans every free chunk, so it is made at most twice a minute, and only if an engine ended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often memory is returned at most.
const ROUND: Duration = Duration::from_secs(30);

/// Whether an engine ended since memory was last returned. Memory belongs to the process, however many servers it has.
static ENDED: AtomicBool = AtomicBool::new(false);

/// A part of an engine that notices its end.
#[derive(Debug)]
pub(crate) struct NotesEnd;

impl Drop for NotesEnd {
    fn drop(&mut self) {
        ENDED.store(true, Ordering::Relaxed);
    }
}

/// Returns memory for as long as the server runs.
pub async fn give_back() {
    loop {
        tokio::time::sleep(ROUND).await;
        if ENDED.swap(false, Ordering::Relaxed)
            && let Err(error) = tokio::task::spawn_blocking(trim).await
        {
            tracing::error!(%error, "memory could not be returned to the system");
        }
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(
    unsafe_code,
    reason = "the C library has no other way, and this call changes no memory in use"
)]
fn trim() {
    // SAFETY: it takes a number, may be called by any thread at any time, and only returns unused pages.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Other C libraries return memory by themselves, or not at all.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn trim() {}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::trim;

    /// The resident memory of this process, in megabytes.
    fn resident() -> u64 {
        let statm = std::fs::read_to_string("/proc/self/statm").expect("procfs is mounted");
        let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
        (pages.expect("a number of pages") * 4096) >> 20
    }

    // Mutant: `trim` that does nothing.
    #[test]
    fn free_memory_between_used_chunks_is_returned() {
        let mut pieces: Vec<Option<Box<[u8; 200]>>> =
            (0..1 << 20).map(|_| Some(Box::new([1; 200]))).collect();
        let full = resident();
        // One chunk in a thousand stays, so that no large range becomes free by itself.
        for (number, piece) in pieces.iter_mut().enumerate() {
            if number % 1000 != 0 {
                *piece = None;
            }
        }
        trim();
        let left = resident();
        assert!(left + 100 < full, "{full} MB before, {left} MB after");
        assert!(pieces.iter().flatten().all(|piece| piece[0] == 1));
    }
}

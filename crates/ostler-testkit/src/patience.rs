//! The timeout of waiting functions, and the clock that measures it.

use std::time::Duration;

use tokio::runtime::Handle;

/// The timeout of every `wait_for…` and `reached…`. After it they panic and report what happened so far.
pub const WAIT_LIMIT: Duration = Duration::from_secs(30);

/// Limits waiting, measured by the clock of the server's runtime.
///
/// The test's own clock may be paused. A paused clock jumps forward whenever its runtime is idle, and it is idle while
/// it waits for a server in another thread.
#[derive(Clone)]
pub(crate) struct Patience(Handle);

impl Patience {
    pub(crate) fn new(runtime: Handle) -> Self {
        Self(runtime)
    }

    /// The output of `wanted`, or `None` when it takes longer than [`WAIT_LIMIT`].
    pub(crate) async fn wait<T>(&self, wanted: impl Future<Output = T>) -> Option<T> {
        let bounded = {
            // A timer uses the clock of the runtime that is current when it is created.
            let _entered = self.0.enter();
            tokio::time::timeout(WAIT_LIMIT, wanted)
        };
        bounded.await.ok()
    }
}

//! Hooks in the background. They end with the session at the latest.

use parking_lot::Mutex;
use tokio::task::JoinSet;

/// Hooks that run in the background, and their text for the model.
#[derive(Debug, Default)]
pub(super) struct Background {
    tasks: Mutex<JoinSet<()>>,
    /// Text for the model, to go with the next prompt.
    said: Mutex<Vec<String>>,
}

impl Background {
    pub(super) fn spawn(&self, hook: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock();
        // Otherwise finished tasks would accumulate.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(hook);
    }

    pub(super) fn say(&self, context: Vec<String>) {
        self.said.lock().extend(context);
    }

    /// Takes the text that arrived since the last call.
    pub(super) fn take_said(&self) -> Vec<String> {
        std::mem::take(&mut *self.said.lock())
    }

    /// Ends all hooks that still run.
    pub(super) async fn stop(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        tasks.shutdown().await;
    }
}

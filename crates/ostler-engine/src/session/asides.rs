//! Work next to the session's task.

use tokio::task::JoinSet;

/// Tasks that end by themselves, or with the session. Finished ones are not kept.
#[derive(Debug, Default)]
pub(crate) struct Asides(JoinSet<()>);

impl Asides {
    pub(crate) fn spawn(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        // Otherwise every answer of a long session would stay in the set.
        while self.0.try_join_next().is_some() {}
        self.0.spawn(work);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Mutant: `spawn` without the loop.
    #[tokio::test]
    async fn finished_work_is_not_kept() {
        let mut asides = Asides::default();
        asides.spawn(std::future::pending());
        for _ in 0..100 {
            asides.spawn(async {});
            tokio::task::yield_now().await;
        }
        assert!(asides.0.len() <= 3, "{} are kept", asides.0.len());
        asides.spawn(async { panic!("an aside broke") });
        tokio::task::yield_now().await;
        asides.spawn(async {});
        assert!(asides.0.len() <= 3, "also of those that panicked");
    }
}

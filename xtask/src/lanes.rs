//! Jobs that run next to each other: a few lanes take them from one queue, in its order. No lane waits for another one
//! until the queue is empty, so a slow job delays only what follows it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// A job. It reports its failures in its result.
pub(crate) type Job<'a, T> = Box<dyn FnOnce() -> T + Send + 'a>;

/// Runs the jobs in this many lanes. Results are in the order in which jobs ended.
pub(crate) fn run<T: Send>(lanes: usize, jobs: Vec<Job<'_, T>>) -> Vec<T> {
    let queue = Mutex::new(VecDeque::from(jobs));
    let results = Mutex::new(Vec::new());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    std::thread::scope(|scope| {
        for _ in 0..lanes {
            scope.spawn(|| {
                while let Some(job) = next() {
                    let result = job();
                    results.lock().unwrap_or_else(PoisonError::into_inner).push(result);
                }
            });
        }
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::{Job, run};

    #[test]
    fn jobs_run_next_to_each_other_and_each_once() {
        let (send, receive) = mpsc::channel();
        // The first one ends only when the second one runs.
        let mut jobs: Vec<Job<'_, usize>> = vec![Box::new(move || {
            receive.recv_timeout(std::time::Duration::from_secs(60)).expect("another job runs");
            0
        })];
        jobs.push(Box::new(move || {
            send.send(()).expect("the first job waits");
            1
        }));
        jobs.extend((2..9_usize).map(|number| Box::new(move || number) as Job<'_, usize>));
        let mut results = run(2, jobs);
        results.sort_unstable();
        assert_eq!(results, (0..9).collect::<Vec<_>>());
    }
}

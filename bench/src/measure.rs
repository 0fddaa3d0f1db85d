//! Compares times.

use std::time::{Duration, Instant};

/// How often each candidate is timed; odd, so that there is a median.
const ROUNDS: usize = 7;

/// The median time of each candidate. Candidates take turns within a round, so that a machine which is busy for
/// a while is busy for all of them; one round before the first is thrown away.
pub(crate) fn medians(candidates: &mut [&mut dyn FnMut()]) -> Vec<Duration> {
    let mut times = vec![Vec::with_capacity(ROUNDS); candidates.len()];
    for round in 0..=ROUNDS {
        for (candidate, times) in candidates.iter_mut().zip(&mut times) {
            let start = Instant::now();
            candidate();
            let time = start.elapsed();
            if round > 0 {
                times.push(time);
            }
        }
    }
    times.into_iter().map(median).collect()
}

/// The median.
pub(crate) fn median<T: Ord + Copy>(mut figures: Vec<T>) -> T {
    figures.sort();
    figures[figures.len() / 2]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{ROUNDS, medians};

    #[test]
    fn every_candidate_runs_in_every_round_and_in_the_warm_up() {
        let (mut first, mut second) = (0, 0);
        let times = medians(&mut [&mut || first += 1, &mut || second += 1]);
        assert_eq!((first, second, times.len()), (ROUNDS + 1, ROUNDS + 1, 2));
    }

    #[test]
    fn one_slow_round_does_not_move_the_median() {
        let times = [1, 2, 900, 3, 1].map(Duration::from_millis).to_vec();
        assert_eq!(super::median(times), Duration::from_millis(2));
    }
}

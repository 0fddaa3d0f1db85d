//! Token buckets: each key has a burst at once, and a rate per second in the long run.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// The maximum number of keys at a time.
const MOST_KEYS: usize = 4_096;

/// A rate limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// How many at once.
    pub burst: f64,
    /// How many in the long run.
    pub per_second: f64,
}

/// One bucket per key.
#[derive(Debug)]
pub struct Buckets<K> {
    rate: Rate,
    buckets: Mutex<HashMap<K, Bucket>>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Bucket {
    fn refilled(self, rate: Rate, now: Instant) -> f64 {
        let since = now.saturating_duration_since(self.at).as_secs_f64();
        (self.left + since * rate.per_second).min(rate.burst)
    }
}

impl<K: Copy + Eq + Hash> Buckets<K> {
    pub fn new(rate: Rate) -> Self {
        Self { rate, buckets: Mutex::new(HashMap::new()) }
    }

    /// Takes one unit out of a key's bucket.
    ///
    /// # Errors
    /// With the time after which one will be available.
    pub fn take(&self, key: K, now: Instant) -> Result<(), Duration> {
        let mut buckets = self.buckets.lock();
        if !buckets.contains_key(&key) {
            self.make_room(&mut buckets, now);
        }
        let bucket = buckets.entry(key).or_insert(Bucket { left: self.rate.burst, at: now });
        let left = bucket.refilled(self.rate, now);
        if left < 1.0 {
            *bucket = Bucket { left, at: now };
            let seconds = (1.0 - left) / self.rate.per_second;
            return Err(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
        }
        *bucket = Bucket { left: left - 1.0, at: now };
        Ok(())
    }

    /// Removes full buckets, which are the same as missing ones. If no bucket is full, removes the fullest one.
    fn make_room(&self, buckets: &mut HashMap<K, Bucket>, now: Instant) {
        if buckets.len() < MOST_KEYS {
            return;
        }
        buckets.retain(|_, bucket| bucket.refilled(self.rate, now) < self.rate.burst);
        if buckets.len() < MOST_KEYS {
            return;
        }
        let left = |bucket: &Bucket| bucket.refilled(self.rate, now);
        let fullest = buckets.iter().max_by(|(_, a), (_, b)| left(a).total_cmp(&left(b)));
        if let Some(key) = fullest.map(|(key, _)| *key) {
            buckets.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buckets() -> (Buckets<u32>, Instant) {
        (Buckets::new(Rate { burst: 3.0, per_second: 0.5 }), Instant::now())
    }

    // Seen to fail when a bucket is refilled without end, and when nothing is taken out.
    #[test]
    fn the_burst_and_the_long_run_rate_are_enforced() {
        let (buckets, start) = buckets();
        let take = |seconds: u64| buckets.take(1, start + Duration::from_secs(seconds));
        assert_eq!([take(0), take(0), take(0)], [Ok(()); 3]);
        assert_eq!(take(0), Err(Duration::from_secs(2)));
        assert_eq!(take(1), Err(Duration::from_secs(1)), "a refused request costs nothing");
        assert_eq!((take(2), take(2).is_err()), (Ok(()), true));
        assert_eq!([take(1000), take(1000), take(1000)], [Ok(()); 3]);
        assert!(take(1000).is_err(), "a long wait saves up no more than the burst");
    }

    #[test]
    fn keys_have_separate_buckets() {
        let (buckets, now) = buckets();
        while buckets.take(1, now).is_ok() {}
        assert_eq!(buckets.take(2, now), Ok(()));
    }

    #[test]
    fn with_too_many_keys_the_fullest_buckets_are_removed_first() {
        let (buckets, now) = buckets();
        while buckets.take(0, now).is_ok() {}
        for key in 1..=(MOST_KEYS as u32 + 100) {
            buckets.take(key, now).unwrap();
        }
        assert!(buckets.buckets.lock().len() <= MOST_KEYS);
        assert!(buckets.take(0, now).is_err(), "the empty bucket is still there");
        let later = now + Duration::from_secs(100);
        buckets.take(u32::MAX, later).unwrap();
        assert_eq!(buckets.buckets.lock().len(), 1);
    }
}

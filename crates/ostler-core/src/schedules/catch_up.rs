//! Decides what to start when a schedule is due, or long overdue.

use super::plan::Plan;
use super::record::CatchUp;

/// A start with this delay still counts as on time, in milliseconds: a machine may be busy.
const GRACE: u64 = 60_000;
/// The maximum number of missed times that are caught up.
const MOST: usize = 24;

/// What to do now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Now {
    /// The planned times for which to start something.
    pub(super) starts: Vec<u64>,
    /// The first and the last of the times that are skipped.
    pub(super) missed: Option<(u64, u64)>,
    /// When it is due again.
    pub(super) next: Option<u64>,
}

/// `due` is the first due time since the schedule was last checked.
pub(super) fn now(plan: &Plan, policy: CatchUp, due: u64, now: u64) -> Now {
    let most = if policy == CatchUp::All { MOST } else { 1 };
    let is_wanted = |time: &u64| policy != CatchUp::Skip || now.saturating_sub(*time) <= GRACE;
    let starts: Vec<u64> = plan.recent(due, now, most).into_iter().filter(is_wanted).collect();
    let missed = match starts.first() {
        Some(first) if *first == due => None,
        Some(first) => plan.recent(due, first - 1, 1).last().map(|last| (due, *last)),
        None => plan.recent(due, now, 1).last().map(|last| (due, *last)),
    };
    Now { starts, missed, next: plan.next(now) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedules::plan::When;

    const MINUTE: u64 = 60_000;

    /// A schedule for every ten minutes from 0; times in minutes.
    fn check(policy: CatchUp, due: u64, at: u64, starts: &[u64], missed: Option<(u64, u64)>) {
        let when = When { every: Some("10m".to_owned()), ..When::default() };
        let found = now(&when.plan(0).unwrap(), policy, due * MINUTE, at * MINUTE + 1);
        let expected = Now {
            starts: starts.iter().map(|minute| minute * MINUTE).collect(),
            missed: missed.map(|(first, last)| (first * MINUTE, last * MINUTE)),
            next: Some((at / 10 + 1) * 10 * MINUTE),
        };
        assert_eq!(found, expected, "{policy:?} due {due} at {at}");
    }

    #[test]
    fn a_start_on_time_does_not_depend_on_the_policy() {
        for policy in [CatchUp::Skip, CatchUp::Latest, CatchUp::All] {
            check(policy, 30, 30, &[30], None);
        }
    }

    // Seen to fail when `is_wanted` looks at no policy.
    #[test]
    fn missed_times_are_skipped_or_started_once_or_all_started() {
        check(CatchUp::Skip, 30, 57, &[], Some((30, 50)));
        check(CatchUp::Skip, 30, 60, &[60], Some((30, 50)));
        check(CatchUp::Skip, 30, 35, &[], Some((30, 30)));
        check(CatchUp::Latest, 30, 57, &[50], Some((30, 40)));
        check(CatchUp::Latest, 30, 35, &[30], None);
        check(CatchUp::All, 30, 57, &[30, 40, 50], None);
    }

    #[test]
    fn the_number_of_missed_times_that_start_is_limited() {
        let last: Vec<u64> = (9_977..=10_000).map(|n| n * 10).collect();
        check(CatchUp::All, 10, 100_005, &last, Some((10, 99_760)));
    }
}

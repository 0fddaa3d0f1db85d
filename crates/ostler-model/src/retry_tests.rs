//! The retry policy as tables.

use proptest::prelude::*;

use super::*;

fn status(status: u16) -> FailedAttempt {
    ModelError::Status { status, kind: "x".into(), message: "y".into() }.into()
}

fn tries() -> AttemptCounter {
    AttemptCounter::new(RetryPolicy::default(), false)
}

fn retry(milliseconds: u64) -> RetryDecision {
    RetryDecision::Retry { delay: Duration::from_millis(milliseconds) }
}

/// Repeats the same failure until the decision is not a retry.
fn run(mut tries: AttemptCounter, failure: &FailedAttempt) -> (usize, RetryDecision) {
    let verdicts = std::iter::repeat_with(|| tries.failed(failure, 0.0));
    let (n, last) = verdicts
        .enumerate()
        .find(|(_, verdict)| !matches!(verdict, RetryDecision::Retry { .. }))
        .expect("retries are limited");
    (n, last)
}

#[test]
fn each_status_is_retried_as_often_as_it_may_help() {
    for (code, retries) in [
        (400, 0),
        (401, 2),
        (402, 0),
        (403, 0),
        (404, 0),
        (408, 10),
        (409, 10),
        (413, 0),
        (429, 10),
        (500, 10),
        (502, 10),
        (503, 10),
        (504, 10),
        (529, 10),
    ] {
        assert_eq!(run(tries(), &status(code)), (retries, RetryDecision::GiveUp), "{code}");
    }
    let connection = ModelError::Connection("reset".into()).into();
    assert_eq!(run(tries(), &connection), (10, RetryDecision::GiveUp));
    let protocol = ModelError::Protocol("not JSON".into()).into();
    assert_eq!(run(tries(), &protocol), (10, RetryDecision::GiveUp));
    assert_eq!(run(tries(), &ModelError::Broken("cut".into()).into()), (0, RetryDecision::GiveUp));
}

#[test]
fn pauses_double_up_to_a_limit_and_vary_by_a_quarter() {
    let mut tries = tries();
    let mut delays = Vec::new();
    for _ in 0..8 {
        delays.push(tries.failed(&status(500), 0.0));
    }
    assert_eq!(delays, [500, 1000, 2000, 4000, 8000, 16000, 32000, 32000].map(retry));
    let once = |jitter| self::tries().failed(&status(500), jitter);
    let half = RetryDecision::Retry { delay: Duration::from_micros(562_500) };
    assert_eq!([once(0.5), once(1.0), once(7.0)], [half, retry(625), retry(625)]);
}

#[test]
fn the_api_says_how_long_to_wait_but_not_for_ever() {
    let asked =
        |seconds| FailedAttempt { retry_after: Some(Duration::from_secs(seconds)), ..status(429) };
    assert_eq!(tries().failed(&asked(7), 1.0), retry(7000));
    assert_eq!(tries().failed(&asked(0), 1.0), retry(0));
    assert_eq!(tries().failed(&asked(61), 1.0), RetryDecision::GiveUp);
}

#[test]
fn the_api_may_say_whether_to_retry() {
    let advised = |code, advice| FailedAttempt { should_retry: Some(advice), ..status(code) };
    assert_eq!(tries().failed(&advised(500, false), 0.0), RetryDecision::GiveUp);
    assert_eq!(tries().failed(&advised(400, true), 0.0), retry(500));
    assert_eq!(run(tries(), &advised(401, true)), (2, RetryDecision::GiveUp));
}

#[test]
fn after_the_third_overload_in_a_row_the_fallback_takes_over() {
    let with_fallback = || AttemptCounter::new(RetryPolicy::default(), true);
    let overloaded = RetryDecision::FallBack(FallbackTrigger::Overloaded);
    assert_eq!(run(with_fallback(), &status(529)), (2, overloaded));
    assert_eq!(run(tries(), &status(529)), (10, RetryDecision::GiveUp));
    let mut mixed = with_fallback();
    for code in [529, 529, 429, 529, 529] {
        assert!(matches!(mixed.failed(&status(code), 0.0), RetryDecision::Retry { .. }), "{code}");
    }
    assert_eq!(mixed.failed(&status(529), 0.0), overloaded);
}

/// As observed with the vendor's program 2.1.325: 529, 500, 502, 503, 404 and 400.
#[test]
fn a_model_that_fails_is_replaced_unless_every_model_would_fail() {
    use FallbackTrigger::{LastResort, ModelNotFound, Overloaded, ServerError};
    let with_fallback = |max_retries| {
        AttemptCounter::new(RetryPolicy { max_retries, ..RetryPolicy::default() }, true)
    };
    for (code, max_retries, retries, trigger) in [
        (529, 0, 0, Some(Overloaded)),
        (529, 10, 2, Some(Overloaded)),
        (500, 4, 0, Some(ServerError)),
        (503, 4, 0, Some(ServerError)),
        (404, 4, 0, Some(ModelNotFound)),
        (400, 4, 0, Some(LastResort)),
        (408, 4, 4, Some(LastResort)),
        (429, 4, 4, Some(LastResort)),
        (301, 4, 0, None),
        (401, 4, 2, None),
        (403, 4, 0, None),
        (413, 4, 0, None),
    ] {
        let decision = trigger.map_or(RetryDecision::GiveUp, RetryDecision::FallBack);
        assert_eq!(run(with_fallback(max_retries), &status(code)), (retries, decision), "{code}");
    }
    let long = FailedAttempt { retry_after: Some(Duration::from_secs(3600)), ..status(529) };
    assert_eq!(run(with_fallback(10), &long), (0, RetryDecision::FallBack(Overloaded)));
    let too_long = ModelError::Status {
        status: 400,
        kind: "invalid_request_error".into(),
        message: "prompt is too long: 9 tokens > 8 maximum".into(),
    };
    assert_eq!(run(with_fallback(4), &too_long.into()), (0, RetryDecision::GiveUp));
    assert_eq!(
        run(with_fallback(4), &ModelError::Connection("x".into()).into()),
        (4, RetryDecision::GiveUp),
        "another model is behind the same connection"
    );
}

#[test]
fn retry_after_is_seconds_or_a_date() {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_770);
    for (value, seconds) in [
        ("7", Some(7)),
        (" 0 ", Some(0)),
        ("Sun, 06 Nov 1994 08:49:37 GMT", Some(7)),
        ("Sunday, 06-Nov-94 08:49:37 GMT", Some(7)),
        ("Sun Nov  6 08:49:37 1994", Some(7)),
        ("Sun, 06 Nov 1994 08:49:00 GMT", Some(0)),
        ("Tue, 29 Feb 2000 00:00:00 GMT", Some(951_782_400 - 784_111_770)),
        ("-1", None),
        ("NaN", None),
        ("inf", None),
        ("soon", None),
        ("", None),
        ("Sun, 06 Nov 1994 08:49:37 CET", None),
        ("Sun, 06 Nov 1994 08:49 GMT", None),
        ("Sun, 99 Nov 1994 08:49:37 GMT", None),
        ("Sun, 06 Nov 99999999999999999999 08:49:37 GMT", None),
    ] {
        assert_eq!(read_retry_after(value, now), seconds.map(Duration::from_secs), "{value}");
    }
}

proptest! {
    #[test]
    fn retries_stay_within_the_limits_for_any_failures(
        codes in prop::collection::vec(prop_oneof![Just(0), 300_u16..600], 1..60),
        max_retries in 0_u32..20,
        has_fallback: bool,
        jitter in -1.0..2.0_f64,
        asked in prop::option::of(0_u64..200),
    ) {
        let policy = RetryPolicy { max_retries, ..RetryPolicy::default() };
        let mut tries = AttemptCounter::new(policy, has_fallback);
        let mut n_retries = 0;
        for code in codes {
            let failure = FailedAttempt {
                retry_after: asked.map(Duration::from_secs),
                ..if code == 0 { ModelError::Connection("x".into()).into() } else { status(code) }
            };
            match tries.failed(&failure, jitter) {
                RetryDecision::Retry { delay } => {
                    n_retries += 1;
                    prop_assert!(n_retries <= max_retries);
                    prop_assert!(delay <= Duration::from_secs(60));
                }
                RetryDecision::FallBack(_) => {
                    prop_assert!(has_fallback && code >= 400);
                    break;
                }
                RetryDecision::GiveUp => break,
            }
        }
    }

    #[test]
    fn no_header_breaks_the_reader(value in "\\PC*") {
        let _ = read_retry_after(&value, SystemTime::UNIX_EPOCH);
    }
}

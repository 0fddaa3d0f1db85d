//! Expected times, computed by hand.

use jiff::Timestamp;

use super::*;

fn millis(text: &str) -> u64 {
    u64::try_from(text.parse::<Timestamp>().unwrap().as_millisecond()).unwrap()
}

fn cron(text: &str, zone: &str) -> When {
    When { cron: Some(text.to_owned()), zone: Some(zone.to_owned()), ..When::default() }
}

fn every(text: &str) -> When {
    When { every: Some(text.to_owned()), ..When::default() }
}

fn at(text: &str, zone: &str) -> When {
    When { at: Some(text.to_owned()), zone: Some(zone.to_owned()), ..When::default() }
}

/// Checks the next times after `after`, by the clocks of the zone.
fn check(when: &When, after: &str, expected: &[&str]) {
    let plan = when.plan(millis("2026-01-01T00:00:00Z")).unwrap();
    let zone = TimeZone::get(when.zone.as_deref().unwrap_or("UTC")).unwrap();
    let times = plan.upcoming(millis(after), expected.len());
    let times: Vec<String> = times
        .into_iter()
        .map(|time| Timestamp::from_millisecond(i64::try_from(time).unwrap()).unwrap())
        .map(|time| time.to_zoned(zone.clone()).strftime("%F %H:%M %:z").to_string())
        .collect();
    assert_eq!(times, expected, "{when:?}");
}

// Seen to fail with the times that the cron library itself finds in a zone: it skips 2:15 and 2:45.
#[test]
fn a_time_that_the_zone_skips_occurs_once() {
    let before = "2026-03-28T20:00:00Z";
    check(
        &cron("30 2 * * *", "Europe/Berlin"),
        before,
        &["2026-03-29 03:30 +02:00", "2026-03-30 02:30 +02:00", "2026-03-31 02:30 +02:00"],
    );
    check(
        &cron("15,45 2 * * *", "Europe/Berlin"),
        before,
        &["2026-03-29 03:15 +02:00", "2026-03-29 03:45 +02:00", "2026-03-30 02:15 +02:00"],
    );
    // Both mean the same moment, which counts once.
    check(
        &cron("0 2,3 * * *", "Europe/Berlin"),
        before,
        &["2026-03-29 03:00 +02:00", "2026-03-30 02:00 +02:00", "2026-03-30 03:00 +02:00"],
    );
    // A skipped time occurs later than the next time on the clock.
    check(
        &cron("30 2 * * *", "Europe/Berlin"),
        "2026-03-29T01:10:00Z",
        &["2026-03-29 03:30 +02:00", "2026-03-30 02:30 +02:00"],
    );
    check(
        &cron("@daily", "America/Sao_Paulo"),
        "2018-11-03T12:00:00Z",
        &["2018-11-04 01:00 -02:00", "2018-11-05 00:00 -02:00"],
    );
}

// Seen to fail with the cron library's own times: `*/30 2` occurs four times.
#[test]
fn a_time_that_occurs_twice_counts_once() {
    let before = "2026-10-24T20:00:00Z";
    check(
        &cron("30 2 * * *", "Europe/Berlin"),
        before,
        &["2026-10-25 02:30 +02:00", "2026-10-26 02:30 +01:00"],
    );
    check(
        &cron("*/30 2 * * *", "Europe/Berlin"),
        before,
        &["2026-10-25 02:00 +02:00", "2026-10-25 02:30 +02:00", "2026-10-26 02:00 +01:00"],
    );
    // In the repeated hour it has occurred already.
    check(
        &cron("30 2 * * *", "Europe/Berlin"),
        "2026-10-25T01:10:00Z",
        &["2026-10-26 02:30 +01:00"],
    );
}

#[test]
fn every_hour_means_every_elapsed_hour() {
    let hours = cron("0 * * * *", "Europe/Berlin");
    check(
        &hours,
        "2026-10-24T23:30:00Z",
        &["2026-10-25 02:00 +02:00", "2026-10-25 02:00 +01:00", "2026-10-25 03:00 +01:00"],
    );
    check(&hours, "2026-03-29T00:30:00Z", &["2026-03-29 03:00 +02:00", "2026-03-29 04:00 +02:00"]);
}

#[test]
fn days_months_and_weekdays_are_respected() {
    check(
        &cron("0 9 * * 1-5", "UTC"),
        "2026-11-13T10:00:00Z",
        &["2026-11-16 09:00 +00:00", "2026-11-17 09:00 +00:00"],
    );
    check(
        &cron("0 0 29 2 *", "UTC"),
        "2026-01-01T00:00:00Z",
        &["2028-02-29 00:00 +00:00", "2032-02-29 00:00 +00:00"],
    );
    let never = cron("0 0 31 2 *", "UTC").plan(0).unwrap();
    assert_eq!(never.next(millis("2026-01-01T00:00:00Z")), None);
}

#[test]
fn an_interval_is_counted_from_its_anchor() {
    check(
        &every("15m"),
        "2026-01-01T00:07:31Z",
        &["2026-01-01 00:15 +00:00", "2026-01-01 00:30 +00:00"],
    );
    check(&every("1d"), "2026-01-03T00:00:00Z", &["2026-01-04 00:00 +00:00"]);
}

#[test]
fn a_single_time_occurs_once() {
    let soon = at("2026-12-24T18:00", "Europe/Berlin");
    check(&soon, "2026-12-01T00:00:00Z", &["2026-12-24 18:00 +01:00"]);
    let plan = soon.plan(0).unwrap();
    assert_eq!(plan.next(millis("2026-12-24T17:00:00Z")), None);
    check(
        &at("2026-03-29T02:30", "Europe/Berlin"),
        "2026-01-01T00:00:00Z",
        &["2026-03-29 03:30 +02:00"],
    );
    check(
        &at("2026-12-24T18:00:00Z", "Europe/Berlin"),
        "2026-12-01T00:00:00Z",
        &["2026-12-24 19:00 +01:00"],
    );
}

#[test]
fn the_last_missed_times_are_found_however_many_there_are() {
    let now = millis("2026-11-16T09:00:30Z");
    let minutes = cron("* * * * *", "UTC").plan(0).unwrap();
    let found = minutes.recent(millis("2020-01-01T00:00:00Z"), now, 3);
    let expected = ["2026-11-16T08:58:00Z", "2026-11-16T08:59:00Z", "2026-11-16T09:00:00Z"];
    assert_eq!(found, expected.map(millis));
    let years = cron("0 0 1 1 *", "UTC").plan(0).unwrap();
    let found = years.recent(millis("2024-06-01T00:00:00Z"), now, 9);
    assert_eq!(found, ["2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z"].map(millis));
    let from = millis("2026-11-16T08:59:00Z");
    assert_eq!(minutes.recent(from, now, 9).len(), 2, "both ends count");
    assert!(minutes.recent(now, from, 9).is_empty());
}

#[test]
fn an_invalid_plan_is_refused_with_its_field_and_an_example() {
    let nothing = When::default();
    let both = When { every: Some("1h".to_owned()), ..cron("* * * * *", "UTC") };
    let zoned = When { zone: Some("UTC".to_owned()), ..every("1h") };
    for (when, field, part) in [
        (cron("0 9 * *", "UTC"), "when.cron", "0 9 * * 1-5"),
        (cron("61 * * * *", "UTC"), "when.cron", "five fields"),
        (cron("", "UTC"), "when.cron", "five fields"),
        (cron("* * * * * *", "UTC"), "when.cron", "five fields"),
        (cron("* * * * *", "Mars/Olympus"), "when.zone", "Europe/Berlin"),
        (cron("* * * * *", "../../etc/passwd"), "when.zone", "Europe/Berlin"),
        (every("10s"), "when.every", "15m"),
        (every("9999d"), "when.every", "15m"),
        (every("soon"), "when.every", "15m"),
        (every("1é"), "when.every", "15m"),
        (every("1md"), "when.every", "15m"),
        (every("99999999999999999999d"), "when.every", "15m"),
        (at("tomorrow", "UTC"), "when.at", "2026-12-24T18:00"),
        (nothing, "when.cron", "Europe/Berlin"),
        (both, "when.cron", "Europe/Berlin"),
        (zoned, "when.zone", "leave it out"),
    ] {
        let error = when.plan(0).unwrap_err();
        let detail = error.detail();
        assert_eq!(detail.field.as_deref(), Some(field), "{when:?}");
        assert!(detail.hint.as_deref().unwrap_or_default().contains(part), "{when:?}: {detail:?}");
    }
}

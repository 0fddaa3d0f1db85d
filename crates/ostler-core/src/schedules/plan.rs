//! When a schedule is due: computes times from its definition, without a clock.
//!
//! A time of day that a zone skips (the night the clocks go forward) occurs once, later by the skipped time. A time of
//! day that occurs twice counts once, the first time. Only "every hour" and the like follow elapsed hours.

use std::str::FromStr as _;

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use ostler_base::error::{ApiError, Fallible};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The shortest interval, in seconds.
const SHORTEST: u64 = 60;
/// The longest interval, in seconds.
const LONGEST: u64 = 366 * 24 * 60 * 60;
/// More than any zone ever skips or repeats.
const SHIFT: SignedDuration = SignedDuration::from_hours(3);
/// An hour, in milliseconds.
const HOUR: u64 = 60 * 60 * 1_000;

/// When something starts: one of `cron`, `every` and `at`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// Minute, hour, day of the month, month, day of the week: `0 9 * * 1-5` is nine o'clock on working days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cron: Option<String>,
    /// An interval, counted from the planned time, however long a run takes: `90s`, `15m`, `2h`, `1d`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) every: Option<String>,
    /// Once: `2026-12-24T18:00` in the zone, or `2026-12-24T18:00:00Z`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The zone of `cron` and `at`, such as `Europe/Berlin`; the server's if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) zone: Option<String>,
}

/// A parsed [`When`].
#[derive(Debug)]
pub enum Plan {
    Cron {
        cron: Box<Cron>,
        zone: TimeZone,
        /// Whether it names hours of the day, and not "every hour".
        is_by_the_clock: bool,
    },
    Every {
        anchor: u64,
        step: u64,
    },
    Once(u64),
}

impl When {
    /// Parses it. Intervals are counted from `anchor`, in milliseconds since 1970.
    ///
    /// # Errors
    /// A refusal with the field, the reason and an example.
    pub fn plan(&self, anchor: u64) -> Fallible<Plan> {
        match (&self.cron, &self.every, &self.at) {
            (Some(cron), None, None) => self.cron(cron),
            (None, Some(every), None) => {
                let example = "an interval is a number with s, m, h or d, such as `15m`";
                match &self.zone {
                    Some(_) => {
                        Err(invalid("zone", "an interval cannot have a zone", "leave it out"))
                    }
                    None => Ok(Plan::Every { anchor, step: interval(every, example)? * 1_000 }),
                }
            }
            (None, None, Some(at)) => self.once(at),
            _ => Err(invalid(
                "cron",
                "a schedule needs exactly one of cron, every and at",
                "such as {\"cron\": \"0 9 * * 1-5\", \"zone\": \"Europe/Berlin\"}",
            )),
        }
    }

    /// Whether it needs a zone, and none is named.
    pub(crate) fn is_zoneless(&self) -> bool {
        self.every.is_none() && self.zone.is_none()
    }

    /// Stores the zone of this machine, if a zone is needed and none is named.
    pub(crate) fn pin_zone(&mut self) {
        if self.is_zoneless() {
            let here = TimeZone::system();
            self.zone = Some(here.iana_name().unwrap_or("UTC").to_owned());
        }
    }

    fn zone(&self) -> Fallible<TimeZone> {
        let Some(name) = &self.zone else { return Ok(TimeZone::system()) };
        TimeZone::get(name).map_err(|_| {
            let what = format!("{name:?} is not a time zone that this machine knows");
            invalid("zone", what, "use a name of the IANA list, such as `Europe/Berlin` or `UTC`")
        })
    }

    fn cron(&self, text: &str) -> Fallible<Plan> {
        let zone = self.zone()?;
        let example =
            "five fields: minute, hour, day, month, day of the week, such as `0 9 * * 1-5`";
        let parser =
            CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        let cron = parser.parse(text).map_err(|error| {
            invalid("cron", format!("{text:?} is not a valid cron expression: {error}"), example)
        })?;
        let hours = text.split_whitespace().nth(1);
        let is_by_the_clock = match hours {
            Some(hours) => !hours.contains(['*', '?']),
            None => !text.eq_ignore_ascii_case("@hourly"),
        };
        Ok(Plan::Cron { cron: Box::new(cron), zone, is_by_the_clock })
    }

    fn once(&self, text: &str) -> Fallible<Plan> {
        let zone = self.zone()?;
        let time = Timestamp::from_str(text).ok().or_else(|| {
            let time = DateTime::from_str(text).ok()?;
            zone.to_ambiguous_timestamp(time).compatible().ok()
        });
        let time = time.and_then(|time| u64::try_from(time.as_millisecond()).ok());
        time.map(Plan::Once).ok_or_else(|| {
            let what = format!("{text:?} is not a valid time");
            invalid("at", what, "such as `2026-12-24T18:00` or `2026-12-24T18:00:00Z`")
        })
    }
}

impl Plan {
    /// The first time after `after`.
    pub fn next(&self, after: u64) -> Option<u64> {
        match self {
            Self::Once(at) => (*at > after).then_some(*at),
            Self::Every { anchor, step } => match after.checked_sub(*anchor) {
                Some(passed) => anchor.checked_add((passed / step + 1).checked_mul(*step)?),
                None => Some(*anchor),
            },
            Self::Cron { cron, zone, is_by_the_clock } => {
                let after = Timestamp::from_millisecond(i64::try_from(after).ok()?).ok()?;
                let next = if *is_by_the_clock {
                    by_the_clock(cron, zone, after)
                } else {
                    let next = cron.find_next_occurrence(&after.to_zoned(zone.clone()), false);
                    next.ok().map(|next| next.timestamp())
                };
                u64::try_from(next?.as_millisecond()).ok()
            }
        }
    }

    /// The first times after `after`.
    pub(crate) fn upcoming(&self, after: u64, most: usize) -> Vec<u64> {
        std::iter::successors(self.next(after), |last| self.next(*last)).take(most).collect()
    }

    /// The last times from `from` up to `now`, both included, oldest first.
    pub(crate) fn recent(&self, from: u64, now: u64, most: usize) -> Vec<u64> {
        let mut window = HOUR;
        loop {
            // Searched in ever longer spans before now: after a year without a server there may be very many.
            let begin = from.max(now.saturating_sub(window));
            let times =
                std::iter::successors(self.next(begin.saturating_sub(1)), |last| self.next(*last));
            let mut found: Vec<u64> = times.take_while(|time| *time <= now).collect();
            if begin == from || found.len() >= most {
                return found.split_off(found.len().saturating_sub(most));
            }
            window = window.saturating_mul(8);
        }
    }
}

/// The first matching time of day, by the clocks of the zone.
fn by_the_clock(cron: &Cron, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    let shown = zone.to_datetime(after).checked_sub(SHIFT).ok()?;
    // The times of day themselves have no zone.
    let mut time = shown.to_zoned(TimeZone::UTC).ok()?;
    let mut first: Option<Timestamp> = None;
    loop {
        time = match cron.find_next_occurrence(&time, false) {
            Ok(next) => next,
            // There is no later one.
            Err(_) => return first,
        };
        let local_time = time.datetime();
        if let Some(first) = first
            && zone.to_datetime(first).checked_add(SHIFT).is_ok_and(|end| local_time > end)
        {
            return Some(first);
        }
        let happens = zone.to_ambiguous_timestamp(local_time).compatible().ok()?;
        // A skipped time occurs later, so a later time of day may come first.
        if happens > after && first.is_none_or(|first| happens < first) {
            first = Some(happens);
        }
    }
}

fn interval(text: &str, example: &'static str) -> Fallible<u64> {
    let number = text.trim_end_matches(['s', 'm', 'h', 'd']);
    let unit = match &text[number.len()..] {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return Err(invalid("every", format!("{text:?} is not a valid interval"), example)),
    };
    let seconds = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    match seconds {
        Some(seconds @ SHORTEST..=LONGEST) => Ok(seconds),
        Some(0..SHORTEST) => {
            let what = format!("{text} is shorter than the minimum of {SHORTEST} s");
            Err(invalid("every", what, example))
        }
        Some(_) => Err(invalid("every", format!("{text} is longer than a year"), example)),
        None => Err(invalid("every", format!("{text:?} is not a valid interval"), example)),
    }
}

fn invalid(field: &str, what: impl Into<String>, example: &'static str) -> ApiError {
    ApiError::invalid(format!("when.{field}"), what).hint(example)
}

#[cfg(test)]
mod tests;

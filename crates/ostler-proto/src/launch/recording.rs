//! Recordings of the model's traffic.

use super::keyword::keywords;
use super::table::{One, Row, row};

/// A recording of the model's traffic. Only `ostler` supports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordingChoice {
    /// Record to this file.
    pub record: Option<String>,
    /// Replay from this file.
    pub replay: Option<String>,
    /// Where the results of tools come from in a replay.
    pub replay_tools: Option<ReplayTools>,
    /// How closely a request must match a recorded one.
    pub replay_match: Option<ReplayMatch>,
    /// The timing of events in a replay.
    pub replay_timing: Option<ReplayTiming>,
}

keywords! {
    /// Where the results of tools come from in a replay.
    #[derive(Default)]
    #[non_exhaustive]
    pub enum ReplayTools {
        /// The tools run.
        #[default]
        Real = "real",
        /// The recording: nothing outside the conversation is read or changed.
        Recorded = "recorded",
    }
}

keywords! {
    /// How closely a request must match a recorded one.
    #[derive(Default)]
    #[non_exhaustive]
    pub enum ReplayMatch {
        /// The same apart from dates, ids, folders and the like.
        #[default]
        Strict = "strict",
        /// The same kinds of messages with calls of the same tools; of several such, the most similar one.
        Loose = "loose",
    }
}

keywords! {
    /// The timing of events in a replay.
    #[derive(Default)]
    #[non_exhaustive]
    pub enum ReplayTiming {
        /// At once.
        #[default]
        Instant = "instant",
        /// As long after the request as they were recorded.
        Recorded = "recorded",
    }
}

pub(super) const ROWS: &[Row] = &[
    row!(One<String>, "record", tape.record),
    row!(One<String>, "replay", tape.replay),
    row!(One<ReplayTools>, "replay-tools", tape.replay_tools),
    row!(One<ReplayMatch>, "replay-match", tape.replay_match),
    row!(One<ReplayTiming>, "replay-timing", tape.replay_timing),
];

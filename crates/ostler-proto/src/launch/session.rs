//! Which conversation an engine uses.

use super::table::{Flag, One, Row, row};

/// The conversation that an engine uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionChoice {
    /// Continue the newest one of the folder.
    pub go_on: bool,
    /// Resume this one.
    pub resume: Option<String>,
    /// Whether to continue in a copy.
    pub fork: bool,
    /// Resume up to this message only.
    pub resume_at: Option<String>,
    /// The prompt that may be lost by `resume_at`.
    pub resume_drops_turn: Option<String>,
    /// The id of a new one.
    pub id: Option<String>,
}

pub(super) const ROWS: &[Row] = &[
    row!(Flag, "continue", session.go_on),
    row!(One<String>, "resume", session.resume),
    row!(Flag, "fork-session", session.fork),
    row!(One<String>, "resume-session-at", session.resume_at),
    row!(One<String>, "resume-drops-turn", session.resume_drops_turn),
    row!(One<String>, "session-id", session.id),
];

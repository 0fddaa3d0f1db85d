//! The options for reports to the host.

use serde_json::Value;

use super::table::{Flag, One, Row, row};

/// The options for reports to the host.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct OutputOptions {
    /// The schema the answer must have.
    pub schema: Option<Value>,
    /// Whether the events of a response are sent as they come.
    pub partial_messages: bool,
    /// Whether hooks from settings files are reported.
    pub hook_events: bool,
    /// Whether prompts are sent back when their turn begins.
    pub replay_user_messages: bool,
    /// Whether the text of subagents is sent too. It has no argument: a host sets it with `initialize`.
    pub subagent_text: bool,
}

pub(super) const ROWS: &[Row] = &[
    row!(One<Value>, "json-schema", output.schema),
    row!(Flag, "include-partial-messages", output.partial_messages),
    row!(Flag, "include-hook-events", output.hook_events),
    row!(Flag, "replay-user-messages", output.replay_user_messages),
];

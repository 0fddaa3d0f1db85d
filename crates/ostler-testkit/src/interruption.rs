//! Actions between two events of a stream: faults, pings and gates.

use serde::Deserialize;

/// An action after `after_events` events of a stream.
///
/// Events are counted from `message_start`; pings and events that other interruptions insert do not count. A number
/// beyond the last event means the end of the stream. Interruptions at the same position run in the order of the
/// script.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interruption {
    /// How many events precede it.
    #[serde(default)]
    pub after_events: usize,
    /// The action.
    #[serde(rename = "do")]
    pub action: Action,
}

/// The action of an [`Interruption`]. In JSON a string, or an object with one field.
///
/// A call without a stream has no events, so only some actions apply: `Gate` delays the answer, `Stall` never sends
/// it, `Cut` breaks the connection in the middle of the body, `MalformedJson` sends half of it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// Sends nothing more and keeps the connection open until the client leaves or the server stops.
    Stall,
    /// Breaks the connection, so that the body has no proper end.
    Cut,
    /// Ends the body properly, as if the message were complete.
    End,
    /// Sends an event whose data is invalid JSON, then continues.
    MalformedJson,
    /// Sends lines that are not valid event-stream fields, and one event without the blank line at its end, so that it
    /// merges with the next; then continues.
    MalformedSse,
    /// Sends events in an order that the protocol does not allow, then continues.
    OutOfOrder(Disorder),
    /// Sends an `error` event and ends the stream, as the API does when it fails during a response.
    ErrorEvent {
        /// The `type` of the error.
        #[serde(default = "overloaded_error")]
        error_type: String,
        /// The text of the error.
        #[serde(default = "overloaded")]
        message: String,
    },
    /// Sends a ping.
    Ping,
    /// Waits until the gate of this name is released.
    Gate(String),
    /// Sends this text unchanged.
    Raw(String),
}

impl Action {
    /// An `error` event with the error type `overloaded_error`.
    pub fn overloaded() -> Self {
        Self::ErrorEvent { error_type: overloaded_error(), message: overloaded() }
    }
}

/// A way in which events can be out of order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Disorder {
    /// A delta for a content block that never started.
    DeltaWithoutStart,
    /// The end of a content block that never started.
    StopWithoutStart,
    /// A `message_stop` while events still follow.
    EarlyMessageStop,
    /// A second `message_start`.
    SecondMessageStart,
    /// The next two events change places.
    SwapNextTwo,
}

fn overloaded_error() -> String {
    "overloaded_error".to_owned()
}

fn overloaded() -> String {
    "Overloaded".to_owned()
}

//! `CronCreate`, `CronDelete`, `CronList`, `ScheduleWakeup` and `RemoteTrigger`: things to do later. Newer peers only.

use ostler_proto_derive::Wire;
use serde_json::Value;

use crate::{Extra, Num};

/// A prompt to get at set times.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct CronCreateInput {
    /// When, as a cron expression.
    pub cron: String,
    /// The prompt.
    pub prompt: String,
    /// Whether it recurs.
    pub recurring: Option<bool>,
    /// Whether it outlives the session.
    pub durable: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A prompt was scheduled.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct CronCreateOutput {
    /// The entry.
    pub id: String,
    /// When, as text.
    pub human_schedule: String,
    /// Whether it recurs.
    pub recurring: bool,
    /// Whether it outlives the session.
    pub durable: Option<bool>,
    /// When it is next due, in milliseconds since 1970.
    pub next_fire_at: Option<Num>,
    /// Unknown fields.
    pub extra: Extra,
}

/// An entry to remove.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct CronDeleteInput {
    /// The entry.
    pub id: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// An entry was removed.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct CronDeleteOutput {
    /// The entry.
    pub id: String,
    /// Whether that ended a loop.
    pub ended_loop_wakeup: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Asks for all entries.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct CronListInput {
    /// Unknown fields.
    pub extra: Extra,
}

/// All entries.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct CronListOutput {
    /// The entries.
    pub jobs: Vec<CronJob>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A scheduled prompt.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct CronJob {
    /// Its id.
    pub id: String,
    /// When, as a cron expression.
    pub cron: String,
    /// When, as text.
    pub human_schedule: String,
    /// The prompt.
    pub prompt: String,
    /// Whether it recurs.
    pub recurring: Option<bool>,
    /// Whether it outlives the session.
    pub durable: Option<bool>,
    /// When it is next due, in milliseconds since 1970.
    pub next_fire_at: Option<Num>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Asks to be woken, or no longer to be.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct ScheduleWakeupInput {
    /// After how long.
    pub delay_seconds: Option<Num>,
    /// Why.
    pub reason: Option<String>,
    /// The prompt to be woken with.
    pub prompt: Option<String>,
    /// Whether to end the loop instead.
    pub stop: Option<bool>,
    /// Whether to leave things as they are.
    pub noop: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// The model will be woken, or not.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct ScheduleWakeupOutput {
    /// When, in milliseconds since 1970.
    pub scheduled_for: Num,
    /// After how long, within what is allowed.
    pub clamped_delay_seconds: Num,
    /// Whether that differs from what was asked.
    pub was_clamped: bool,
    /// Whether the loop has ended.
    pub stopped: Option<bool>,
    /// How many wake-ups were dropped.
    pub cancelled_wakeups: Option<u64>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A request about agents that run elsewhere.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tree, new(action))]
#[non_exhaustive]
pub struct RemoteTriggerInput {
    /// What to do.
    pub action: RemoteTriggerAction,
    /// The trigger.
    pub trigger_id: Option<String>,
    /// The session.
    pub session_id: Option<String>,
    /// The cursor of a list.
    pub cursor: Option<String>,
    /// What to send.
    pub body: Option<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

/// What to do about agents that run elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum RemoteTriggerAction {
    /// List the triggers.
    List,
    /// Look one up.
    Get,
    /// Add one.
    Create,
    /// Change one.
    Update,
    /// Fire one now.
    Run,
    /// Add one that fires when called.
    CreateWebhookTrigger,
    /// List what a trigger has started.
    ListRuns,
    /// Read what a run has done.
    GetRunLog,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// The answer about agents that run elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct RemoteTriggerOutput {
    /// The HTTP status.
    pub status: u64,
    /// The answer.
    pub json: String,
    /// The same as text.
    pub summary: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

//! The records of schedules and firings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::plan::When;
use crate::records::kept;
use crate::start::Start;
use ostler_base::ids;

/// A run that starts at certain times.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Schedule {
    pub id: String,
    pub owner: String,
    pub name: String,
    pub start: Start,
    pub when: When,
    pub catch_up: CatchUp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<Check>,
    /// How often a start is tried again that failed for a temporary reason.
    pub retries: u32,
    pub state: ScheduleState,
    /// Milliseconds since 1970.
    pub created: u64,
    /// The time from which intervals are counted.
    pub(crate) anchor: u64,
    /// When it is due next; never if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// What happens to times at which the server was not running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CatchUp {
    /// They are skipped; the next one is in the future.
    Skip,
    /// The last of them is started.
    #[default]
    Latest,
    /// All of them are started, up to a limit.
    All,
}

/// Whether a schedule is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ScheduleState {
    Active,
    Paused,
    /// No time is left.
    Ended,
}

/// A command that decides whether the agent starts: it starts if the exit code is 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Check {
    /// The program and its arguments. No shell interprets them.
    #[schemars(length(min = 1, max = 100))]
    pub command: Vec<String>,
    /// The time limit, in seconds.
    #[serde(default = "check_seconds")]
    #[schemars(range(min = 1, max = 300))]
    pub(crate) seconds: u64,
    /// Whether the output is added to the agent's prompt.
    #[serde(default)]
    pub tell: bool,
}

fn check_seconds() -> u64 {
    60
}

/// One time at which a schedule was due, and the result.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Firing {
    pub id: String,
    pub schedule: String,
    pub owner: String,
    /// The planned time, in milliseconds since 1970.
    pub(crate) planned: u64,
    /// The last of the missed times that it represents, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<u64>,
    /// Whether a user started it, independent of the plan.
    pub(crate) by_hand: bool,
    /// The idempotency key of that request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    pub state: FiringState,
    /// How often it was tried again.
    pub retries: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Why it was skipped, or the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The output of the check that started the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) check_said: Option<String>,
    /// When it is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retry_at: Option<u64>,
}

/// The state of a firing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum FiringState {
    /// Its time has come.
    Due,
    /// Its run is in progress.
    Started,
    /// It failed for a temporary reason, and is tried again.
    Retrying,
    /// Nothing was started; `note` says why.
    Skipped,
    Completed,
    Failed,
    Cancelled,
    /// The server stopped during its run, which can be resumed.
    Interrupted,
    /// All attempts failed.
    GivenUp,
}

impl Firing {
    pub(crate) fn new(schedule: &Schedule, planned: u64) -> Self {
        Self {
            id: format!("{}{planned:013}", firings_of(&schedule.id)),
            schedule: schedule.id.clone(),
            owner: schedule.owner.clone(),
            planned,
            until: None,
            by_hand: false,
            key: None,
            state: FiringState::Due,
            retries: 0,
            started: None,
            ended: None,
            session: None,
            run: None,
            note: None,
            check_said: None,
            retry_at: None,
        }
    }

    /// Whether it has not ended.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state, FiringState::Due | FiringState::Started | FiringState::Retrying)
    }
}

/// The prefix of the ids of a schedule's firings; the time follows, so that they sort by time.
pub(crate) fn firings_of(schedule: &str) -> String {
    format!("firing_{}_", schedule.trim_start_matches("schedule_"))
}

/// An idempotency key with which a user started a schedule. It is stored as long as the firing.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FiringKey {
    pub(crate) id: String,
    pub(crate) owner: String,
    pub(crate) firing: String,
}

/// The id of the record of a key. Those of a schedule have the same prefix as its firings.
pub(crate) fn key_id(schedule: &str, key: &str) -> String {
    ids::of(firings_of(schedule).trim_end_matches('_'), key)
}

kept!(FiringKey, "firingKey");

kept!(Schedule, "schedule");

kept!(Firing, "firing");

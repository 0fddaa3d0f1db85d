//! Schedules and what came of them, as they are kept.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::plan::When;
use crate::records::kept;
use crate::start::Start;
use ostler_base::ids;

/// Something that is started at certain times.
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
    /// How often a start that failed for a passing reason is tried again.
    pub retries: u32,
    pub state: ScheduleState,
    /// Milliseconds since 1970.
    pub created: u64,
    /// What intervals are counted from.
    pub(crate) anchor: u64,
    /// When it is due next; never if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// What becomes of times at which the server was not running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CatchUp {
    /// Nothing; the next one is in the future.
    Skip,
    /// The last of them is made up for.
    #[default]
    Latest,
    /// All of them are, up to a number.
    All,
}

/// Whether a schedule is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ScheduleState {
    Active,
    Paused,
    /// No time is left.
    Ended,
}

/// A command that decides whether the agent is woken: it is when the command ends with 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Check {
    /// The program and its arguments. No shell reads them.
    #[schemars(length(min = 1, max = 100))]
    pub command: Vec<String>,
    /// The longest it may take, in seconds.
    #[serde(default = "check_seconds")]
    #[schemars(range(min = 1, max = 300))]
    pub(crate) seconds: u64,
    /// Whether the agent is told what it printed.
    #[serde(default)]
    pub tell: bool,
}

fn check_seconds() -> u64 {
    60
}

/// One time that a schedule was due, and what came of it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Firing {
    pub id: String,
    pub schedule: String,
    pub owner: String,
    /// The time it was meant for, in milliseconds since 1970.
    pub(crate) planned: u64,
    /// The last time it stands for, if it stands for several that were missed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<u64>,
    /// Whether somebody asked for it, out of turn.
    pub(crate) by_hand: bool,
    /// The idempotency key with which that was.
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
    /// Why it was skipped, or what went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// What the check printed that woke the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) check_said: Option<String>,
    /// When it is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retry_at: Option<u64>,
}

/// Where a firing stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum FiringState {
    /// Its time has come.
    Due,
    /// Its run is at work.
    Started,
    /// It failed for a reason that may pass, and is tried again.
    Retrying,
    /// Nothing was started; `note` says why.
    Skipped,
    Completed,
    Failed,
    Cancelled,
    /// The server ended while its run was at work, which can be resumed.
    Interrupted,
    /// It failed as often as it was to be tried.
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

    /// Whether something is still to come.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state, FiringState::Due | FiringState::Started | FiringState::Retrying)
    }
}

/// How the names of a schedule's firings begin; behind it comes the time, so that they are ordered by it.
pub(crate) fn firings_of(schedule: &str) -> String {
    format!("firing_{}_", schedule.trim_start_matches("schedule_"))
}

/// An idempotency key with which a schedule was started by hand. It is kept as long as the firing.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FiringKey {
    pub(crate) id: String,
    pub(crate) owner: String,
    pub(crate) firing: String,
}

/// The id of the record of a key. Those of a schedule begin like its firings.
pub(crate) fn key_id(schedule: &str, key: &str) -> String {
    ids::of(firings_of(schedule).trim_end_matches('_'), key)
}

kept!(FiringKey, "firingKey");

kept!(Schedule, "schedule");

kept!(Firing, "firing");

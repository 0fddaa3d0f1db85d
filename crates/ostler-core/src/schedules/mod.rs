//! Schedules: runs that start at certain times, once for each time, whatever happens to the server.
//!
//! A schedule's record has the time when it is due next, and a timer of the store wakes any running server. Each
//! planned time has its own record, a *firing*, whose id consists of the schedule and the time: it is created once, and
//! so is the run that it starts. After a crash every step can be repeated, and then finds that it was done.

mod catch_up;
mod check;
mod fire;
pub mod plan;
pub mod record;
mod tick;
pub mod tools;

use parking_lot::Mutex;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use ostler_base::error::{self, ApiError, Fallible};
use ostler_base::ids;
use ostler_door::users::{Caller, Role, Users};
use ostler_store::{Body, Due, Expected, Filter, Page, Store, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use self::plan::When;
use self::record::{
    CatchUp, Check, Firing, FiringKey, Schedule, ScheduleState, firings_of, key_id,
};
use crate::clock::Clock;
use crate::model::space::Space;
use crate::records::{Kept as _, Records};
use crate::runs::{Sessions, idempotency};
use crate::start::{Start, Starter};

/// How many schedules one user may have.
const MOST: usize = 1_000;
/// How many firings of a schedule stay.
const KEPT: usize = 500;
/// How often a start is tried again.
pub const MOST_RETRIES: u32 = 5;
/// How many times are shown in advance.
const SHOWN: usize = 5;
const LONGEST_NAME: usize = 200;

/// All schedules of the server.
pub struct Schedules {
    sessions: Arc<Sessions>,
    starter: Starter,
    users: Arc<Users>,
    store: Arc<dyn Store>,
    records: Records,
    clock: Clock,
    /// The id of this server among those that share the store.
    node: String,
    /// Notified when something new is due.
    wake: Notify,
    /// Runs that were started here, and their firings.
    at_work: Mutex<HashMap<String, String>>,
    stopping: CancellationToken,
    ended: CancellationToken,
}

/// The fields of a new schedule.
pub struct NewSchedule {
    pub name: String,
    pub start: Start,
    pub when: When,
    pub catch_up: CatchUp,
    pub check: Option<Check>,
    pub retries: u32,
}

/// The fields to change; absent ones stay.
#[derive(Default)]
pub struct Changes {
    pub name: Option<String>,
    pub start: Option<Start>,
    pub when: Option<When>,
    pub catch_up: Option<CatchUp>,
    pub check: Option<Option<Check>>,
    pub retries: Option<u32>,
}

/// A schedule with its next times.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleView {
    #[serde(flatten)]
    pub schedule: Schedule,
    /// The next times, in milliseconds since 1970; empty while it is paused.
    pub(crate) next_runs: Vec<u64>,
    /// The result of the last firing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Firing>,
}

impl Schedules {
    pub fn new(
        starter: Starter,
        users: Arc<Users>,
        store: Arc<dyn Store>,
        node: String,
    ) -> Arc<Self> {
        let sessions = Arc::clone(&starter.sessions);
        let (records, clock) = (sessions.records.clone(), sessions.clock.clone());
        Arc::new(Self {
            sessions,
            starter,
            users,
            store,
            records,
            clock,
            node,
            wake: Notify::new(),
            at_work: Mutex::default(),
            stopping: CancellationToken::new(),
            ended: CancellationToken::new(),
        })
    }

    /// Creates a schedule.
    pub async fn create(&self, caller: &Caller, new: NewSchedule) -> Fallible<ScheduleView> {
        let created = self.clock.now();
        let mut schedule = Schedule {
            id: ids::new("schedule"),
            owner: caller.user.clone(),
            name: new.name,
            start: new.start,
            when: new.when,
            catch_up: new.catch_up,
            check: new.check,
            retries: new.retries,
            state: ScheduleState::Active,
            created,
            anchor: created,
            next: None,
        };
        self.pin_zone(&mut schedule).await?;
        self.validate(caller, &schedule).await?;
        schedule.next = Some(first_time(&schedule, created)?);
        self.room_for(&caller.user).await?;
        self.records.create(&schedule).await?;
        self.set_timer(&schedule).await?;
        self.view(schedule).await
    }

    async fn validate(&self, caller: &Caller, schedule: &Schedule) -> Fallible<()> {
        let name = schedule.name.trim();
        if name.is_empty() || name.chars().count() > LONGEST_NAME {
            return Err(ApiError::invalid("name", "the name must have 1 to 200 characters"));
        }
        if schedule.retries > MOST_RETRIES {
            let message = format!("a start is tried again at most {MOST_RETRIES} times");
            return Err(ApiError::invalid("retries", message));
        }
        if let Some(check) = &schedule.check {
            // It runs without approval, with all permissions of the server.
            caller.require(Role::Owner).map_err(|error| {
                error
                    .field("check")
                    .hint("only the owner of the server can give a schedule a check command")
            })?;
            check.validate()?;
            check.resolve(&self.writable().await?)?;
        }
        self.starter.validate(&schedule.owner, &schedule.start).await
    }

    /// All folders in which agents may write.
    async fn writable(&self) -> Fallible<Vec<PathBuf>> {
        let config = &self.sessions.config;
        let spaces: Vec<Space> = self.records.all(Filter::default()).await?;
        let mounts = spaces.iter().flat_map(|space| &space.mounts).map(|mount| mount.real.clone());
        let mut folders = vec![config.workspace.clone(), config.data.clone()];
        folders.extend(config.roots.iter().cloned());
        folders.extend(mounts);
        folders.extend(spaces.iter().map(|space| space.folder.clone()));
        Ok(folders)
    }

    /// Stores the default zone, if none is named: that of the space, or else the server's. It does not change when they
    /// do.
    async fn pin_zone(&self, schedule: &mut Schedule) -> Fallible<()> {
        if let Start::Prompt { setup, .. } = &schedule.start
            && let Some(space) = &setup.space
            && schedule.when.is_zoneless()
            && let Some((space, _)) = self.records.find::<Space>(space).await?
        {
            schedule.when.zone = Some(space.zone);
        }
        schedule.when.pin_zone();
        Ok(())
    }

    async fn room_for(&self, owner: &str) -> Fallible<()> {
        let filter = Filter { owner: Some(owner.to_owned()), ..Filter::default() };
        let page = Page { limit: MOST, ..Page::default() };
        if self.records.list::<Schedule>(&filter, &page).await?.len() < MOST {
            return Ok(());
        }
        let message = format!("you have {MOST} schedules already, which is the maximum");
        Err(ApiError::conflict("too_many_schedules", message).hint("remove some"))
    }

    /// The schedule with this id, if the caller may see it.
    pub async fn find(&self, caller: &Caller, id: &str) -> Fallible<Schedule> {
        match self.records.find::<Schedule>(id).await? {
            Some((schedule, _)) if caller.may_see(&schedule.owner) => Ok(schedule),
            _ => Err(error::not_found("schedule", id)),
        }
    }

    /// All schedules of a user.
    pub(crate) async fn of_user(&self, user: &str) -> Fallible<Vec<ScheduleView>> {
        let filter = Filter { owner: Some(user.to_owned()), ..Filter::default() };
        let mut views = Vec::new();
        for schedule in self.records.all(filter).await? {
            views.push(self.view(schedule).await?);
        }
        Ok(views)
    }

    pub async fn view(&self, schedule: Schedule) -> Fallible<ScheduleView> {
        let next_runs = match schedule.next {
            Some(next) if schedule.state == ScheduleState::Active => {
                let plan = schedule.when.plan(schedule.anchor)?;
                let rest = plan.upcoming(next, SHOWN - 1);
                std::iter::once(next).chain(rest).collect()
            }
            _ => Vec::new(),
        };
        let last = self.log(&schedule.id, 1).await?.into_iter().next();
        Ok(ScheduleView { schedule, next_runs, last })
    }

    /// The firings of a schedule, newest first.
    pub async fn log(&self, schedule: &str, limit: usize) -> Fallible<Vec<Firing>> {
        let filter = Filter { prefix: Some(firings_of(schedule)), ..Filter::default() };
        self.records.list(&filter, &Page { limit, descending: true, ..Page::default() }).await
    }

    /// Changes a schedule. A new plan applies from now on.
    pub async fn change(
        &self,
        caller: &Caller,
        id: &str,
        changes: Changes,
    ) -> Fallible<ScheduleView> {
        let before = self.find(caller, id).await?;
        let now = self.clock.now();
        let is_new_plan = changes.when.is_some();
        let mut wanted = before.clone();
        changes.apply(&mut wanted, now);
        if is_new_plan {
            self.pin_zone(&mut wanted).await?;
            wanted.next = Some(first_time(&wanted, now)?);
        }
        // A member may not even rename a schedule with a check of an administrator: it would run in the member's name.
        self.validate(caller, &wanted).await?;
        let changed = self.records.update::<Schedule, ()>(id, |schedule| {
            if schedule.state != ScheduleState::Paused && is_new_plan {
                schedule.state = ScheduleState::Active;
            }
            let next = if is_new_plan { wanted.next } else { schedule.next };
            let state = schedule.state;
            *schedule = Schedule { next, state, ..wanted.clone() };
            Ok(())
        });
        let (schedule, ()) = changed.await?;
        self.set_timer(&schedule).await?;
        self.view(schedule).await
    }

    /// Pauses a schedule until it is resumed. An active run continues.
    pub async fn pause(&self, caller: &Caller, id: &str) -> Fallible<ScheduleView> {
        self.find(caller, id).await?;
        let (schedule, ()) = self
            .records
            .update::<Schedule, ()>(id, |schedule| {
                if schedule.state == ScheduleState::Active {
                    schedule.state = ScheduleState::Paused;
                }
                Ok(())
            })
            .await?;
        self.set_timer(&schedule).await?;
        self.view(schedule).await
    }

    /// Resumes a schedule from now on: times during the pause are skipped.
    pub async fn resume(&self, caller: &Caller, id: &str) -> Fallible<ScheduleView> {
        self.find(caller, id).await?;
        let now = self.clock.now();
        let (schedule, ()) = self
            .records
            .update::<Schedule, ()>(id, |schedule| {
                if schedule.state == ScheduleState::Paused {
                    schedule.next = schedule.when.plan(schedule.anchor)?.next(now);
                    schedule.state = match schedule.next {
                        Some(_) => ScheduleState::Active,
                        None => ScheduleState::Ended,
                    };
                }
                Ok(())
            })
            .await?;
        self.set_timer(&schedule).await?;
        self.view(schedule).await
    }

    /// Starts a schedule now, independent of its plan, with its check. Once for each key of the client, if it has one.
    pub async fn run_now(&self, caller: &Caller, id: &str, key: Option<&str>) -> Fallible<Firing> {
        let schedule = self.find(caller, id).await?;
        let planned = self.clock.now();
        let mut firing = Firing { by_hand: true, ..Firing::new(&schedule, planned) };
        firing.id = format!("{}_{}", firing.id, &ids::new("")[1..9]);
        firing.key = key.map(str::to_owned);
        let mut puts = vec![firing.put(Expected::Absent)?];
        if let Some(key) = key {
            idempotency::check(key)?;
            let id = key_id(&schedule.id, key);
            if let Some(known) = self.started_with(&id).await? {
                return Ok(known);
            }
            let (owner, firing) = (schedule.owner.clone(), firing.id.clone());
            puts.push(FiringKey { id, owner, firing }.put(Expected::Absent)?);
        }
        match self.records.exchange(puts, Vec::new()).await {
            Ok(()) => {}
            // The same request arrived at the same moment.
            Err(error @ ostler_store::Error::Conflict { .. }) => {
                let id = key_id(&schedule.id, key.unwrap_or_default());
                return self.started_with(&id).await?.ok_or_else(|| error.into());
            }
            Err(error) => return Err(error.into()),
        }
        self.wake_at(&firing, planned).await?;
        Ok(firing)
    }

    /// The firing that was started with a key.
    async fn started_with(&self, key: &str) -> Fallible<Option<Firing>> {
        let Some((key, _)) = self.records.find::<FiringKey>(key).await? else { return Ok(None) };
        Ok(self.records.find::<Firing>(&key.firing).await?.map(|(firing, _)| firing))
    }

    async fn remove_firing(&self, firing: &Firing) -> Fallible<()> {
        if let Some(key) = &firing.key {
            self.records.remove::<FiringKey>(&key_id(&firing.schedule, key)).await?;
        }
        self.records.remove::<Firing>(&firing.id).await
    }

    /// Deletes a schedule and its firings. Its sessions and runs stay.
    pub async fn remove(&self, caller: &Caller, id: &str) -> Fallible<()> {
        self.find(caller, id).await?;
        self.records.remove::<Schedule>(id).await?;
        self.store.unschedule(&timer_of(id)).await?;
        let filter = Filter { prefix: Some(firings_of(id)), ..Filter::default() };
        for firing in self.records.all::<Firing>(filter).await? {
            self.store.unschedule(&timer_of(&firing.id)).await?;
            self.remove_firing(&firing).await?;
        }
        Ok(())
    }

    /// Ends the schedules whose prompts go to a deleted session.
    pub(crate) async fn session_deleted(&self, session: &str) -> Fallible<()> {
        let field = Some(("start.session".to_owned(), session.to_owned()));
        let filter = Filter { field, ..Filter::default() };
        for schedule in self.records.all::<Schedule>(filter).await? {
            let ended = self.records.update::<Schedule, ()>(&schedule.id, |schedule| {
                (schedule.state, schedule.next) = (ScheduleState::Ended, None);
                Ok(())
            });
            self.set_timer(&ended.await?.0).await?;
        }
        Ok(())
    }

    /// Sets the store's timer according to the record.
    async fn set_timer(&self, schedule: &Schedule) -> Fallible<()> {
        match schedule.next {
            Some(next) if schedule.state == ScheduleState::Active => {
                self.timer(&schedule.id, next).await
            }
            _ => Ok(self.store.unschedule(&timer_of(&schedule.id)).await?),
        }
    }

    async fn wake_at(&self, firing: &Firing, at: u64) -> Fallible<()> {
        self.timer(&firing.id, at).await
    }

    async fn timer(&self, what: &str, at: u64) -> Fallible<()> {
        let at = Timestamp::from_millis(i64::try_from(at).unwrap_or(i64::MAX));
        let body = Body::of(&json!({})).map_err(error::internal)?;
        self.store.schedule(Due { id: timer_of(what), at, body }).await?;
        self.wake.notify_one();
        Ok(())
    }

    /// Deletes the oldest firings of a schedule that has very many.
    async fn prune(&self, schedule: &str) -> Fallible<()> {
        let filter = Filter { prefix: Some(firings_of(schedule)), ..Filter::default() };
        // One is deleted whenever one is added. Open ones stay, which are few.
        let n_old = self.records.count::<Firing>(&filter, 2 * KEPT).await?.saturating_sub(KEPT);
        if n_old == 0 {
            return Ok(());
        }
        let page = Page { limit: n_old, ..Page::default() };
        let oldest: Vec<Firing> = self.records.list(&filter, &page).await?;
        for firing in oldest.into_iter().filter(|firing| !firing.is_open()) {
            self.remove_firing(&firing).await?;
        }
        Ok(())
    }
}

impl Changes {
    fn apply(self, schedule: &mut Schedule, now: u64) {
        if let Some(name) = self.name {
            schedule.name = name;
        }
        if let Some(start) = self.start {
            schedule.start = start;
        }
        if let Some(when) = self.when {
            schedule.when = when;
            schedule.anchor = now;
        }
        if let Some(catch_up) = self.catch_up {
            schedule.catch_up = catch_up;
        }
        if let Some(check) = self.check {
            schedule.check = check;
        }
        if let Some(retries) = self.retries {
            schedule.retries = retries;
        }
    }
}

fn first_time(schedule: &Schedule, now: u64) -> Fallible<u64> {
    schedule.when.plan(schedule.anchor)?.next(now).ok_or_else(|| {
        let (field, what) = match &schedule.when.at {
            Some(at) => ("when.at", format!("{at} is in the past")),
            None => ("when.cron", "this time never occurs".to_owned()),
        };
        ApiError::invalid(field, what).hint("name a time in the future")
    })
}

/// The id of a timer.
fn timer_of(what: &str) -> String {
    format!("schedules/{what}")
}

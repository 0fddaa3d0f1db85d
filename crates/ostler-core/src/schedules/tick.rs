//! The timer loop: claims what is due, one server at a time, and handles it.

use std::sync::Arc;
use std::time::Duration;

use ostler_base::error::Fallible;
use ostler_store::{DueClaim, Error, Filter, Timestamp};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinSet;

use super::record::{Firing, FiringState, Schedule, ScheduleState};
use super::{Schedules, catch_up};
use crate::model::run::Run;

/// How often the store is asked what is due.
const TICK: Duration = Duration::from_secs(1);
/// The pause after an error.
const PAUSE: Duration = Duration::from_secs(5);
/// How long one server has a due item; a check may take a while.
const LEASE: Duration = Duration::from_secs(10 * 60);
/// How many due items are handled at the same time.
const AT_ONCE: usize = 16;

impl Schedules {
    /// Continues the work of an earlier server, and then follows all schedules until [`Schedules::shut_down`].
    pub async fn keep_time(self: Arc<Self>) {
        let news = self.sessions.news();
        if let Err(error) = self.take_up().await {
            tracing::error!(%error, "schedules of an earlier server could not be continued");
        }
        tokio::select! {
            () = self.work(news) => {}
            () = self.stopping.cancelled() => {}
        }
        self.ended.cancel();
    }

    /// Stops the loop. Due items that were not handled are handled when a server starts again.
    pub async fn shut_down(&self) {
        self.stopping.cancel();
        self.ended.cancelled().await;
    }

    /// Timers and records may differ if a server was killed in between, and runs may have ended.
    async fn take_up(&self) -> Fallible<()> {
        for schedule in self.records.all::<Schedule>(in_state("active")).await? {
            self.set_timer(&schedule).await?;
        }
        for state in ["due", "retrying"] {
            for firing in self.records.all::<Firing>(in_state(state)).await? {
                self.wake_at(&firing, firing.retry_at.unwrap_or(firing.planned)).await?;
            }
        }
        self.look_at_started().await
    }

    async fn look_at_started(&self) -> Fallible<()> {
        for firing in self.records.all::<Firing>(in_state("started")).await? {
            self.follow(&firing).await?;
        }
        Ok(())
    }

    async fn work(self: &Arc<Self>, mut news: broadcast::Receiver<Arc<Run>>) {
        let mut works = JoinSet::new();
        loop {
            let room = AT_ONCE - works.len();
            let mut pause = TICK;
            match self.store.claim_due(&self.node, LEASE, room).await {
                Ok(claims) => {
                    for claim in claims {
                        works.spawn(Arc::clone(self).see_to(claim));
                    }
                }
                Err(Error::Closed) => return,
                Err(error) => {
                    tracing::error!(%error, "due schedules cannot be read");
                    pause = PAUSE;
                }
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.wake.notified(), if works.len() < AT_ONCE => {}
                Some(_) = works.join_next() => {}
                ended = news.recv() => self.heard(ended).await,
            }
        }
    }

    /// Handles the end of a run.
    async fn heard(&self, ended: Result<Arc<Run>, RecvError>) {
        let looked = match ended {
            Ok(run) => {
                let firing = {
                    let at_work = self.at_work.lock();
                    at_work.get(&run.id).cloned()
                };
                let Some(firing) = firing else { return };
                self.settle(&firing, &run).await
            }
            Err(RecvError::Lagged(_)) => self.look_at_started().await,
            // The sessions live as long as this does.
            Err(RecvError::Closed) => Ok(()),
        };
        if let Err(error) = looked {
            tracing::error!(%error, "the result of a schedule could not be stored");
        }
    }

    async fn see_to(self: Arc<Self>, claim: DueClaim) {
        let Some(what) = claim.due.id.strip_prefix("schedules/") else { return };
        let done = if what.starts_with("firing_") {
            self.fire(what).await
        } else {
            self.come_due(what).await
        };
        let next = match done {
            Ok(next) => next,
            Err(error) => {
                tracing::error!(due = what, %error, "a due schedule could not be handled");
                Some(self.clock.now() + u64::try_from(PAUSE.as_millis()).unwrap_or(u64::MAX))
            }
        };
        let next = next.map(|at| Timestamp::from_millis(i64::try_from(at).unwrap_or(i64::MAX)));
        match self.store.complete(&claim, next).await {
            // It was changed meanwhile, which set its timer too.
            Ok(()) | Err(Error::Fenced { .. }) => {}
            Err(error) => tracing::error!(due = what, %error, "a timer could not be set"),
        }
    }

    /// Creates the firings of a due schedule, and sets its next time. Returns that time.
    async fn come_due(&self, id: &str) -> Fallible<Option<u64>> {
        let Some((schedule, _)) = self.records.find::<Schedule>(id).await? else {
            return Ok(None);
        };
        let Some(due) = schedule.next.filter(|_| schedule.state == ScheduleState::Active) else {
            return Ok(None);
        };
        let now = self.clock.now();
        if due > now {
            return Ok(Some(due));
        }
        let plan = schedule.when.plan(schedule.anchor)?;
        let to_do = catch_up::now(&plan, schedule.catch_up, due, now);
        if let Some((first, last)) = to_do.missed {
            let note = "missed: the server was not running, or not in time".to_owned();
            let missed = Firing {
                state: FiringState::Skipped,
                until: Some(last),
                note: Some(note),
                ended: Some(now),
                ..Firing::new(&schedule, first)
            };
            self.make(&missed).await?;
        }
        for planned in to_do.starts {
            let firing = Firing::new(&schedule, planned);
            self.make(&firing).await?;
            self.wake_at(&firing, now).await?;
        }
        self.prune(id).await?;
        let (schedule, ()) = self
            .records
            .update::<Schedule, ()>(id, |schedule| {
                // The schedule may have got another plan at this moment.
                if schedule.next == Some(due) && schedule.state == ScheduleState::Active {
                    schedule.next = to_do.next;
                    if to_do.next.is_none() {
                        schedule.state = ScheduleState::Ended;
                    }
                }
                Ok(())
            })
            .await?;
        Ok(schedule.next.filter(|_| schedule.state == ScheduleState::Active))
    }

    /// Creates a firing, unless it exists.
    async fn make(&self, firing: &Firing) -> Fallible<()> {
        match self.records.create(firing).await {
            Err(error) if error.detail().code == "changed" => Ok(()),
            made => made,
        }
    }
}

fn in_state(word: &str) -> Filter {
    Filter { field: Some(("state".to_owned(), word.to_owned())), ..Filter::default() }
}

//! Limits for all processes of a command together, by control groups (version 2), where the system lets this process make
//! some. Where it does not, limits hold for each process (`helper/inner.rs`).
//!
//! Each session has a group, and each command one in it. It is ended with everything in it when the command is over. If
//! this process is killed, the watchdog of `ostler-process` has that done, and otherwise the next process that makes groups there.

mod events;
mod group;
mod leftovers;
mod parent;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use ostler_process::sweep;

pub(crate) use self::events::cpu_time;
use self::group::Group;
pub(crate) use self::leftovers::sweep as sweep_groups;
use crate::error::SandboxError;
use crate::limits::{Limits, SessionLimits};
use crate::owner;
use crate::reached::{FirstReached, ReachedLimit, Resource, Scope};

/// Precedes the path of groups in the list of what to clean up after this process.
pub(crate) const TO_SWEEP: &str = "cgroup:";

/// The controllers with which groups can be limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Controllers {
    pub(crate) processes: bool,
    pub(crate) memory: bool,
}

impl Controllers {
    /// Of a list of the kernel.
    fn of(list: &str) -> Self {
        let has = |name: &str| list.split_whitespace().any(|listed| listed == name);
        Self { processes: has("pids"), memory: has("memory") }
    }

    fn any(self) -> bool {
        self.processes || self.memory
    }
}

/// Where this process makes groups.
#[derive(Debug)]
pub(crate) struct ControlGroups {
    /// The group that they are in.
    parent: PathBuf,
    pub(crate) controllers: Controllers,
    /// How the names of this process's groups begin.
    prefix: String,
    number: AtomicU64,
}

impl ControlGroups {
    /// Those of this process, if the system lets it make some.
    pub(crate) fn of_this_process() -> Option<&'static Self> {
        static GROUPS: OnceLock<Option<ControlGroups>> = OnceLock::new();
        GROUPS.get_or_init(|| Self::in_folder(parent::find()?)).as_ref()
    }

    /// Groups in this one, if it can have some with limits. That is tried.
    fn in_folder(parent: PathBuf) -> Option<Self> {
        leftovers::remove_of_others(&parent);
        let prefix = owner::prefix()?;
        let listed = fs::read_to_string(parent.join("cgroup.subtree_control")).ok()?;
        let controllers = Controllers::of(&listed);
        let groups = Self { controllers, parent, prefix, number: AtomicU64::new(0) };
        (controllers.any() && groups.attempt().is_ok()).then_some(groups)
    }

    /// Makes a group in another one, and removes both.
    fn attempt(&self) -> std::io::Result<()> {
        let trial = Limits { processes: Some(64), memory: Some(1 << 30), ..Limits::NONE };
        let session = SessionLimits { processes: Some(64), ..SessionLimits::NONE };
        let outer = Group::make_for_session(&self.next(&self.parent), self.controllers, &session)?;
        let inner = Group::make(&self.next(outer.path()), self.controllers, &trial)?;
        drop(inner);
        Ok(())
    }

    /// The group of a session with these limits.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) fn session(
        &'static self,
        limits: &SessionLimits,
        sweeper: &Path,
    ) -> Result<SessionGroup, SandboxError> {
        let path = self.next(&self.parent);
        // All groups of this process at once, before the first one exists.
        let all = format!("{TO_SWEEP}{}", self.parent.join(&self.prefix).display());
        sweep::add(sweeper, Path::new(&all)).map_err(SandboxError::io(&path))?;
        let group = Group::make_for_session(&path, self.controllers, limits);
        let group = group.map_err(SandboxError::io(&path))?;
        Ok(SessionGroup { group, groups: self, limits: limits.clone() })
    }

    /// Whether one of these limits needs a group.
    pub(crate) fn are_needed(&self, limits: &Limits) -> bool {
        let Limits { processes, memory, session, .. } = limits;
        let has = |one: &Option<u64>, other: &Option<u64>| one.is_some() || other.is_some();
        (self.controllers.processes && has(processes, &session.processes))
            || (self.controllers.memory && has(memory, &session.memory))
    }

    fn next(&self, parent: &Path) -> PathBuf {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        parent.join(format!("{}{number}", self.prefix))
    }
}

/// The group of a session. Dropping it ends everything in it.
#[derive(Debug)]
pub(crate) struct SessionGroup {
    group: Group,
    groups: &'static ControlGroups,
    limits: SessionLimits,
}

impl SessionGroup {
    /// A group in it for a command with these limits.
    ///
    /// # Errors
    /// When it cannot be made. Then the command must not run: its limits were attested.
    pub(crate) fn command(
        self: &Arc<Self>,
        limits: &Limits,
        reached: FirstReached,
    ) -> Result<LimitedGroup, SandboxError> {
        let path = self.groups.next(self.group.path());
        let group = Group::make(&path, self.groups.controllers, limits);
        let group = group.map_err(SandboxError::io(&path))?;
        let n_refused = events::refused_processes(self.group.path());
        let session = Arc::clone(self);
        Ok(LimitedGroup { group, session, limits: limits.clone(), reached, n_refused })
    }
}

/// The group of a command. Dropping it ends everything in it, and records which limit was reached.
#[derive(Debug)]
pub(crate) struct LimitedGroup {
    group: Group,
    session: Arc<SessionGroup>,
    limits: Limits,
    reached: FirstReached,
    /// How many processes the session's limit had refused before.
    n_refused: u64,
}

impl LimitedGroup {
    pub(crate) fn path(&self) -> &Path {
        self.group.path()
    }
}

impl Drop for LimitedGroup {
    fn drop(&mut self) {
        let found = events::of(self.group.path());
        let is_of_session = events::refused_processes(self.session.group.path()) > self.n_refused;
        let (own, session) = (&self.limits, &self.session.limits);
        let limit = |resource, is_own: bool, own: Option<u64>, session: Option<u64>| {
            let (scope, most) = match is_own && own.is_some() {
                true => (Scope::Command, own),
                false => (Scope::Session, session),
            };
            most.map(|most| ReachedLimit { resource, scope, most })
        };
        let reached = if found.processes || is_of_session {
            limit(Resource::Processes, !is_of_session, own.processes, session.processes)
        } else if found.memory {
            limit(Resource::Memory, found.is_own_memory, own.memory, session.memory)
        } else {
            None
        };
        reached.into_iter().for_each(|limit| self.reached.set(limit));
    }
}

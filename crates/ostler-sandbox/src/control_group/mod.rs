//! Limits for all processes of a command together, by control groups (version 2), where the system lets this process make
//! some. Where it does not, limits hold for each process (`helper/inner.rs`).
//!
//! Each command gets a group next to the others of this process. It is ended with everything in it when the command is over. If
//! this process is killed, the watchdog of `ostler-process` has that done, and otherwise the next process that makes groups there.

mod events;
mod group;
mod leftovers;
mod parent;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use ostler_process::sweep;

use self::group::Group;
pub(crate) use self::leftovers::sweep as sweep_groups;
use crate::boundary::Limits;
use crate::error::SandboxError;
use crate::owner;

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
    /// What commands have reached since it was last asked.
    reached: Mutex<Vec<Reached>>,
}

/// A limit that a command has reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reached {
    Processes(u64),
    Memory(u64),
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
        let groups = Self {
            controllers: Controllers::of(&listed),
            parent,
            prefix,
            number: AtomicU64::new(0),
            reached: Mutex::default(),
        };
        let trial = Limits { processes: Some(64), memory: Some(1 << 30), ..Limits::NONE };
        let is_usable = groups.controllers.any()
            && Group::make(&groups.next(), groups.controllers, &trial).is_ok();
        is_usable.then_some(groups)
    }

    /// A group for a command with these limits; `None` if none of them needs one.
    ///
    /// # Errors
    /// When it cannot be made. Then the command must not run: its limits were attested.
    pub(crate) fn group(
        &'static self,
        limits: &Limits,
        sweeper: &Path,
    ) -> Result<Option<LimitedGroup>, SandboxError> {
        let is_needed = (self.controllers.processes && limits.processes.is_some())
            || (self.controllers.memory && limits.memory.is_some());
        if !is_needed {
            return Ok(None);
        }
        let path = self.next();
        // All groups of this process at once, before the first one exists.
        let all = format!("{TO_SWEEP}{}", self.parent.join(&self.prefix).display());
        sweep::add(sweeper, Path::new(&all)).map_err(SandboxError::io(&path))?;
        let group =
            Group::make(&path, self.controllers, limits).map_err(SandboxError::io(&path))?;
        Ok(Some(LimitedGroup { group, groups: self, limits: limits.clone() }))
    }

    fn next(&self) -> PathBuf {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        self.parent.join(format!("{}{number}", self.prefix))
    }

    /// What commands have reached since this was last called.
    pub(crate) fn take_reached(&self) -> Vec<Reached> {
        std::mem::take(&mut *self.reached.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The group of a command. Dropping it ends everything in it, and records which limits were reached.
#[derive(Debug)]
pub(crate) struct LimitedGroup {
    group: Group,
    groups: &'static ControlGroups,
    limits: Limits,
}

impl LimitedGroup {
    pub(crate) fn path(&self) -> &Path {
        self.group.path()
    }
}

impl Drop for LimitedGroup {
    fn drop(&mut self) {
        let Limits { processes, memory, .. } = &self.limits;
        let reached = events::of(self.group.path());
        let processes = processes.filter(|_| reached.processes).map(Reached::Processes);
        let memory = memory.filter(|_| reached.memory).map(Reached::Memory);
        let mut all = self.groups.reached.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend(processes.into_iter().chain(memory));
    }
}

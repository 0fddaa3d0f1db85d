//! Looks now and then at what the running commands use, and ends those that use too much: for limits that the operating
//! system does not enforce itself. One thread does it for all sessions of this process.
//!
//! It sees commands that run longer than [`PAUSE`], so a command can use more than its limit for that long.

mod cpu;
mod disk;
mod disk_watch;
mod verdict;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ostler_process::usage::{self, TreeUsage};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

use self::cpu::CpuTime;
use self::disk_watch::DiskWatch;
use self::verdict::CommandUse;
use crate::control_group;
use crate::limits::Limits;
use crate::reached::{FirstReached, ReachedLimit, Resource, Scope};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(200);
/// Looking takes at most one part of this many of a processor, unless that would make pauses too long.
const SHARE: u32 = 20;
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The running commands of all sessions, by number.
static RUNNING: Mutex<BTreeMap<u64, Arc<Running>>> = Mutex::new(BTreeMap::new());
static STARTED: Condvar = Condvar::new();
static HAS_THREAD: Mutex<bool> = Mutex::new(false);

fn running() -> MutexGuard<'static, BTreeMap<u64, Arc<Running>>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the commands of a session have used together.
#[derive(Debug, Default)]
pub(crate) struct SessionUse {
    /// The processor time of commands that are over.
    earlier: Mutex<Duration>,
    disk: Mutex<DiskWatch>,
}

/// A command to watch.
#[derive(Debug)]
pub(crate) struct Watch {
    number: u64,
    session: Arc<SessionUse>,
    /// Those that are enforced here.
    limits: Limits,
    reached: FirstReached,
    /// Where it can write.
    roots: Vec<PathBuf>,
    /// Its control group, if it has one.
    group: Option<PathBuf>,
}

#[derive(Debug)]
struct Running {
    leader: i32,
    handle: OwnedFd,
    since: Instant,
    session: Arc<SessionUse>,
    limits: Limits,
    reached: FirstReached,
    cpu: Mutex<CpuTime>,
    disk: Mutex<DiskWatch>,
    group: Option<PathBuf>,
    /// At how many looks in a row it had all processes that it may have.
    n_full: AtomicU32,
    is_ended: AtomicBool,
}

/// A command that is about to start.
#[derive(Debug)]
pub(crate) struct ToWatch {
    /// The limits that are enforced here.
    pub(crate) limits: Limits,
    /// Where to record the limit that it reaches.
    pub(crate) reached: FirstReached,
    /// Where it can write.
    pub(crate) roots: Vec<PathBuf>,
    /// Its control group, if it has one.
    pub(crate) group: Option<PathBuf>,
}

impl Watch {
    /// Prepares to watch a command; `None` if no limit needs that.
    ///
    /// # Errors
    /// When nothing can watch it. Then it must not run: its limits were attested.
    pub(crate) fn new(session: &Arc<SessionUse>, command: ToWatch) -> io::Result<Option<Self>> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let ToWatch { limits, reached, roots, group } = command;
        let Limits { processes, memory, cpu_seconds, disk, files, session: of_session, .. } =
            &limits;
        let own = [processes, memory, cpu_seconds, disk, files];
        if own.iter().all(|most| most.is_none()) && !of_session.is_some() {
            return Ok(None);
        }
        start_thread()?;
        if limits.session.has_disk() {
            session.disk().starting(&roots);
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let session = Arc::clone(session);
        Ok(Some(Self { number, session, limits, reached, roots, group }))
    }

    /// The command has started as this child, which was not waited for yet.
    pub(crate) fn started(&self, child: u32) {
        let Some(leader) = Pid::from_raw(child.cast_signed()) else { return };
        let Ok(handle) = pidfd_open(leader, PidfdFlags::empty()) else {
            // It cannot be watched, so it must not run.
            let _ = kill_process(leader, Signal::KILL);
            return;
        };
        let mut disk = DiskWatch::default();
        if self.limits.disk.is_some() || self.limits.files.is_some() {
            disk.add(&self.roots);
        }
        let command = Running {
            leader: leader.as_raw_pid(),
            handle,
            since: Instant::now(),
            session: Arc::clone(&self.session),
            limits: self.limits.clone(),
            reached: self.reached.clone(),
            cpu: Mutex::default(),
            disk: Mutex::new(disk),
            group: self.group.clone(),
            n_full: AtomicU32::new(0),
            is_ended: AtomicBool::new(false),
        };
        running().insert(self.number, Arc::new(command));
        STARTED.notify_one();
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let Some(command) = running().remove(&self.number) else { return };
        let seen = command.cpu().total();
        *self.session.earlier() += seen.max(command.time_of_group());
    }
}

impl SessionUse {
    fn earlier(&self) -> MutexGuard<'_, Duration> {
        self.earlier.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn disk(&self) -> MutexGuard<'_, DiskWatch> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time that commands of this session have used, if it is the most that they may use.
    pub(crate) fn used_up(&self, limits: &Limits) -> Option<ReachedLimit> {
        verdict::of_session(&limits.session, &[], *self.earlier())
    }
}

impl Running {
    fn cpu(&self) -> MutexGuard<'_, CpuTime> {
        self.cpu.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn usage(&self, tree: &TreeUsage) -> CommandUse {
        let cpu = self.cpu().update(tree).max(self.time_of_group());
        let processes = tree.threads();
        let is_full = self.limits.processes.is_some_and(|most| processes >= most);
        let n_full = if is_full { self.n_full.load(Ordering::Relaxed) + 1 } else { 0 };
        self.n_full.store(n_full, Ordering::Relaxed);
        CommandUse { processes, memory: self.memory(tree), cpu, n_full }
    }

    /// The exact processor time, if it has a control group.
    fn time_of_group(&self) -> Duration {
        self.group.as_deref().map(control_group::cpu_time).unwrap_or_default()
    }

    /// Its memory. If that seems too much, what its processes share is counted once.
    fn memory(&self, tree: &TreeUsage) -> u64 {
        if self.limits.memory.is_none() && self.limits.session.memory.is_none() {
            return 0;
        }
        let memory = tree.memory(false);
        let is_much = self.limits.memory.is_some_and(|most| memory > most);
        if is_much { tree.memory(true) } else { memory }
    }

    /// Ends it with everything in it: the first process of the sandbox ends with this one.
    fn end(&self, limit: ReachedLimit) {
        self.reached.set(limit);
        self.is_ended.store(true, Ordering::Relaxed);
        // Fails if it has just ended.
        let _ = pidfd_send_signal(&self.handle, Signal::KILL);
    }
}

/// Starts the thread that looks, once.
fn start_thread() -> io::Result<()> {
    let mut has_thread = HAS_THREAD.lock().unwrap_or_else(PoisonError::into_inner);
    if !*has_thread {
        let thread = std::thread::Builder::new().name("ostler-sandbox-limits".to_owned());
        thread.spawn(keep_looking)?;
        *has_thread = true;
    }
    Ok(())
}

fn keep_looking() {
    let mut pause = PAUSE;
    loop {
        let waiting = STARTED.wait_while(running(), |running| running.is_empty());
        drop(waiting.unwrap_or_else(PoisonError::into_inner));
        std::thread::sleep(pause);
        let begun = Instant::now();
        look();
        pause = (begun.elapsed() * SHARE).clamp(PAUSE, LONGEST_PAUSE);
    }
}

/// Looks at all commands that have run for a while.
fn look() {
    let is_due =
        |it: &&Arc<Running>| it.since.elapsed() >= PAUSE && !it.is_ended.load(Ordering::Relaxed);
    let commands: Vec<Arc<Running>> = running().values().filter(is_due).cloned().collect();
    if commands.is_empty() {
        return;
    }
    let leaders: Vec<i32> = commands.iter().map(|it| it.leader).collect();
    let mut sessions: BTreeMap<usize, Vec<(Arc<Running>, TreeUsage)>> = BTreeMap::new();
    for (command, tree) in commands.into_iter().zip(usage::of_trees(&leaders)) {
        let session = Arc::as_ptr(&command.session) as usize;
        sessions.entry(session).or_default().push((command, tree));
    }
    for (_, commands) in sessions {
        look_at_session(&commands);
    }
}

fn look_at_session(commands: &[(Arc<Running>, TreeUsage)]) {
    let mut usages: Vec<CommandUse> =
        commands.iter().map(|(command, tree)| command.usage(tree)).collect();
    for ((command, tree), usage) in commands.iter().zip(&usages) {
        let limits = &command.limits;
        let own = verdict::of_command(limits, usage);
        let disk = || {
            let mut disk = command.disk.lock().unwrap_or_else(PoisonError::into_inner);
            let limit = disk.look(limits.disk, limits.files, || tree.written());
            limit.map(|(resource, most)| ReachedLimit { resource, scope: Scope::Command, most })
        };
        if let Some(limit) = own.or_else(disk) {
            command.end(limit);
        }
    }
    // Boundaries of one session have the same limits for it.
    let Some((first, _)) = commands.first() else { return };
    let (session, limits) = (&first.session, &first.limits.session);
    let earlier = *session.earlier();
    let mut reached = verdict::of_session(limits, &usages, earlier);
    if reached.is_some_and(|it| it.resource == Resource::Memory) {
        for ((_, tree), usage) in commands.iter().zip(&mut usages) {
            usage.memory = tree.memory(true);
        }
        reached = verdict::of_session(limits, &usages, earlier);
    }
    if let Some(limit) = reached {
        for position in verdict::ended(&limit, &usages) {
            commands[position].0.end(limit);
        }
    }
    look_at_disk(commands);
}

/// Ends the command of a session that has written most, if all of them have written too much.
fn look_at_disk(commands: &[(Arc<Running>, TreeUsage)]) {
    let Some((first, _)) = commands.first() else { return };
    let (session, limits) = (&first.session, &first.limits.session);
    let written = || commands.iter().map(|(_, tree)| tree.written()).sum();
    let Some((resource, most)) = session.disk().look(limits.disk, limits.files, written) else {
        return;
    };
    let limit = ReachedLimit { resource, scope: Scope::Session, most };
    // Of equal ones the youngest, which is the last.
    let largest = commands.iter().max_by_key(|(_, tree)| tree.written());
    if let Some((command, _)) = largest {
        command.end(limit);
    }
}

//! Records the descendants of running children by repeated scans.
//!
//! A process that drops the marker from its environment, starts its own session and loses its parent cannot be traced
//! afterwards. So its ancestry is recorded while it is visible, and a program that calls [`adopt_orphans`] becomes
//! the parent of orphaned descendants. The watchdog gets the list, in case this process is killed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, WaitOptions, getpid, waitpid};

use crate::processes::{self, Process, ScanResult};
use crate::{children, marker, watchdog};

/// Between the start of a child and the first scan; the interval grows later. A scan reads `/proc`.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How often to look for what a child has left.
const ROUNDS: usize = 4;

/// The owner of orphans of unknown origin; children have higher numbers.
const STRAY: u64 = 0;

static ADOPTS: AtomicBool = AtomicBool::new(false);
static TRACKING: Mutex<Tracking> = Mutex::new(Tracking {
    children: BTreeMap::new(),
    strays: BTreeMap::new(),
    is_looking: false,
    has_news: false,
});
static NEWS: Condvar = Condvar::new();

/// Makes this process the parent of its children's orphaned descendants. From then on no such process outlives the
/// child, whatever it does to hide.
///
/// For programs whose child processes all come from this crate or share this program's session: it also ends daemons
/// that other code of the program starts while a child runs. Does nothing on systems without this feature.
pub fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    if rustix::process::set_child_subreaper(Some(getpid())).is_ok() {
        ADOPTS.store(true, Ordering::Relaxed);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    /// The watchdog ends it.
    HandedOver,
    /// It was ended here. Stays until the runtime has collected its exit status.
    Over,
}

struct Child {
    leader: i32,
    started: u64,
    state: State,
    /// Its descendants, with their start times: process ids are reused.
    found: BTreeMap<i32, u64>,
}

struct Tracking {
    children: BTreeMap<u64, Child>,
    /// Orphans of unknown origin, and their descendants.
    strays: BTreeMap<i32, u64>,
    is_looking: bool,
    has_news: bool,
}

fn tracking() -> MutexGuard<'static, Tracking> {
    TRACKING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a child, under the lock, because an unregistered child looks like an orphan.
pub(crate) fn start<T>(
    number: u64,
    spawn: impl FnOnce() -> io::Result<(T, Pid)>,
) -> io::Result<(T, Pid, u64)> {
    let mut tracking = tracking();
    let (leader, id) = spawn()?;
    let started = processes::started(id);
    let (state, found) = (State::Running, BTreeMap::new());
    tracking.children.insert(number, Child { leader: id.as_raw_pid(), started, state, found });
    tracking.has_news = true;
    if !tracking.is_looking {
        let looker = std::thread::Builder::new().name("ostler-tracking".to_owned());
        tracking.is_looking = looker.spawn(keep_looking).is_ok();
    }
    NEWS.notify_one();
    Ok((leader, id, started))
}

/// A child is about to be ended.
pub(crate) fn over(number: u64) {
    if let Some(child) = tracking().children.get_mut(&number) {
        child.state = State::Over;
    }
}

/// A child was dropped; if it was not ended, it has been handed over.
pub(crate) fn dropped(number: u64) {
    if let Some(child) = tracking().children.get_mut(&number)
        && child.state == State::Running
    {
        child.state = State::HandedOver;
    }
}

/// The recorded processes of a child that is being ended. Also collects orphans that have ended.
pub(crate) fn of(number: u64, processes: &[Process]) -> HashSet<i32> {
    let mut tracking = tracking();
    tracking.reap(processes);
    tracking.forget_gone(processes, Some(number));
    let found = tracking.children.get(&number).map(|child| &child.found);
    let is_found = |it: &Process| found.is_some_and(|found| found.get(&it.id) == Some(&it.started));
    let is_its = |it: &&Process| is_found(it) || tracking.is_orphan_of(number, it);
    processes.iter().filter(|it| !it.is_zombie).filter(is_its).map(|it| it.id).collect()
}

/// Ends what a child has left behind, if that can be done without looking at all processes. The child has ended, and its exit
/// status was collected. Returns whether certainly nothing of it is left.
///
/// Whatever it left has become a child of this process, or descends from such a one. So it is enough that every process
/// that this one may have adopted is a known child, or shares its session, as children of other code do.
pub(crate) fn end_leftovers(number: u64, leader: Pid) -> bool {
    if !ADOPTS.load(Ordering::Relaxed) {
        return false;
    }
    // What one of them has started is adopted when that one has ended.
    for _ in 0..ROUNDS {
        let Some(unknown) = unknown_adopted(number) else { return false };
        if unknown.is_empty() {
            return true;
        }
        let is_ended = |(id, process): &(Pid, Process)| {
            (process.is_zombie || process.session == leader.as_raw_pid()) && children::end(*id)
        };
        if !unknown.iter().all(is_ended) {
            return false;
        }
    }
    false
}

/// The processes that this one has adopted and that are no known children. If there are none, the child is forgotten.
/// `None` if they are not certain.
fn unknown_adopted(number: u64) -> Option<Vec<(Pid, Process)>> {
    // Under the lock, because an unregistered child looks like an orphan.
    let mut tracking = tracking();
    let (children, own) = (children::of_first_thread()?, processes::own()?);
    // A process whose first thread has ended gives orphans to another thread.
    if own.is_zombie {
        return None;
    }
    let mut unknown = Vec::new();
    for id in children {
        let process = processes::read(id)?;
        let is_leader = |child: &Child| child.leader == id && child.started == process.started;
        if process.session != own.session && !tracking.children.values().any(is_leader) {
            unknown.push((Pid::from_raw(id)?, process));
        }
    }
    if unknown.is_empty() {
        // Scans forget children that were ended and collected; this takes the place of a scan.
        tracking.children.remove(&number);
    }
    Some(unknown)
}

impl Tracking {
    /// An orphan of unknown origin belongs to the last child that may have started it: the end of one command must
    /// not disturb another.
    fn is_orphan_of(&self, number: u64, process: &Process) -> bool {
        let may_have_started = |(other, child): (&u64, &Child)| {
            *other != number && child.state != State::Over && child.started <= process.started
        };
        self.is_orphan(process)
            && !self.children.iter().any(may_have_started)
            && (!processes::has(process.id, marker::of_this_process())
                || processes::has(process.id, &marker::of_child(number)))
    }

    /// Whether this process has adopted it. Children always have their own session; other processes of this program
    /// share its session.
    fn is_orphan(&self, process: &Process) -> bool {
        ADOPTS.load(Ordering::Relaxed)
            && process.parent == getpid().as_raw_pid()
            && processes::own_session().is_some_and(|own| process.session != own)
            && !self.children.values().any(|child| child.leader == process.id)
    }

    fn reap(&self, processes: &[Process]) {
        let orphans = processes.iter().filter(|it| it.is_zombie && self.is_orphan(it));
        for id in orphans.filter_map(|it| Pid::from_raw(it.id)) {
            // Fails if another thread was faster.
            let _ = waitpid(Some(id), WaitOptions::NOHANG);
        }
    }

    /// Removes children that were ended and collected, except one that is still needed.
    fn forget_gone(&mut self, processes: &[Process], needed: Option<u64>) {
        let there: HashSet<i32> = processes.iter().map(|it| it.id).collect();
        self.children.retain(|number, it| {
            it.state != State::Over || there.contains(&it.leader) || Some(*number) == needed
        });
    }

    /// Records the descendants of every child. Returns the children that the watchdog has ended since the last scan.
    fn look(&mut self, processes: &[Process]) -> Vec<u64> {
        self.reap(processes);
        let alive: HashMap<i32, u64> =
            processes.iter().filter(|it| !it.is_zombie).map(|it| (it.id, it.started)).collect();
        let is_alive = |id: &i32, started: &u64| alive.get(id) == Some(started);
        self.forget_gone(processes, None);
        let mut owners = HashMap::new();
        for (number, child) in &mut self.children {
            child.found.retain(|id, started| is_alive(id, started));
            owners.extend(child.found.keys().map(|id| (*id, *number)));
            owners.insert(child.leader, *number);
        }
        let is_stray = |it: &&Process| !owners.contains_key(&it.id) && self.is_orphan(it);
        let strays: Vec<i32> =
            processes.iter().filter(|it| !it.is_zombie).filter(is_stray).map(|it| it.id).collect();
        owners.extend(strays.into_iter().map(|id| (id, STRAY)));
        loop {
            let before = owners.len();
            for it in processes.iter().filter(|it| !it.is_zombie) {
                let owner = [it.parent, it.session].iter().find_map(|id| owners.get(id).copied());
                if let Some(owner) = owner {
                    owners.entry(it.id).or_insert(owner);
                }
            }
            if owners.len() == before {
                break;
            }
        }
        self.note(&owners, &alive);
        let is_ended =
            |it: &Child| it.state == State::HandedOver && !is_alive(&it.leader, &it.started);
        self.children.iter().filter(|(_, it)| is_ended(it)).map(|(number, _)| *number).collect()
    }

    fn note(&mut self, owners: &HashMap<i32, u64>, alive: &HashMap<i32, u64>) {
        self.strays.clear();
        for (id, number) in owners {
            let Some(started) = alive.get(id) else { continue };
            match self.children.get_mut(number) {
                Some(child) if child.leader == *id => {}
                Some(child) => _ = child.found.insert(*id, *started),
                None => _ = self.strays.insert(*id, *started),
            }
        }
    }

    /// What the watchdog cannot find by group or marker alone.
    fn list(&self) -> String {
        let found = self.children.values().flat_map(|child| &child.found).chain(&self.strays);
        found.map(|(id, started)| format!(" {id}:{started}")).collect()
    }
}

/// Scans until no child is left.
fn keep_looking() {
    let mut pause = FIRST_PAUSE;
    loop {
        let (mut guard, waited) = NEWS
            .wait_timeout_while(tracking(), pause, |tracking| !tracking.has_news)
            .unwrap_or_else(PoisonError::into_inner);
        pause = (pause * 2).min(LONGEST_PAUSE);
        if !waited.timed_out() {
            guard.has_news = false;
            drop(guard);
            // A child that just started has no descendants yet.
            std::thread::sleep(FIRST_PAUSE);
            pause = FIRST_PAUSE;
            guard = tracking();
        }
        if guard.children.values().all(|child| child.state == State::Over) {
            guard.is_looking = false;
            return;
        }
        drop(guard);
        look();
    }
}

/// Scans now. For tests; otherwise scans happen by themselves.
#[doc(hidden)]
pub fn look() {
    let processes = processes::all();
    let mut guard = tracking();
    let ended = guard.look(&processes);
    let list = guard.list();
    drop(guard);
    watchdog::tell_tracked(&list);
    for number in ended {
        over(number);
        end_rest(number);
    }
}

/// Kills what is left of a child that the watchdog has ended.
fn end_rest(number: u64) {
    processes::end_all(|_| {
        let processes = processes::all();
        let members = processes::with_descendants(of(number, &processes), &processes);
        ScanResult { members, is_unclear: false }
    });
}

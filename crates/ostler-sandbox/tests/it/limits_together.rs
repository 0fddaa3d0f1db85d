//! Limits of all processes of a command together, and of all commands of a session: by control groups where the system lets
//! this process make some, otherwise by looking at them.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::{fs, path::Path};

use ostler_sandbox::{Guard, Layers, Limits, Sandbox, SessionLimits};

use crate::stage::Stage;

/// Starts processes that hold much, or do much, for at most 20 seconds or so.
const USES: &str = "import os, sys, time
def use(number):
    what, amount = sys.argv[1], int(sys.argv[3])
    if what == 'memory':
        held = bytearray(b'x' * (amount << 20))
    if what == 'shared':
        import mmap
        held = mmap.mmap(-1, amount << 20)
        held.write(b'x' * (amount << 20))
    if what == 'files':
        for n in range(amount):
            open(f'{number}-{n}', 'w').write('x')
    if what == 'disk':
        open(f'{amount}-{number}', 'wb').write(os.urandom(amount << 20))
    if what == 'nameless':
        held = open(f'{number}', 'wb')
        os.unlink(f'{number}')
        held.write(os.urandom(amount << 20)); held.flush()
    if what == 'time':
        end = time.monotonic() + amount
        while time.monotonic() < end: pass
    time.sleep(20)
for number in range(int(sys.argv[2]) - 1):
    try:
        if os.fork() == 0: use(number)
    except OSError: break
print('started', flush=True)
use('first')";

/// A command that runs.
struct Running {
    child: Child,
    guard: Guard,
    sandbox: Sandbox,
}

impl Running {
    /// Starts processes in a sandbox, as one of the commands of its session.
    fn new(stage: &Stage, session: &Sandbox, arguments: [&str; 3]) -> Self {
        let sandbox = session.with(session.boundary().clone()).unwrap();
        let all = ["-c", USES, arguments[0], arguments[1], arguments[2]];
        let inside = sandbox.command(Path::new("python3"), &all, &stage.path("work")).unwrap();
        let mut command = Command::new(&inside.program);
        command.args(&inside.arguments).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        inside.guard.started(child.id());
        let started = child.stdout.take().unwrap();
        BufReader::new(started).read_line(&mut String::new()).unwrap();
        Self { child, guard: inside.guard, sandbox }
    }

    /// Waits until it ends by itself. Returns the limit that it has reached.
    fn reason(mut self) -> Option<String> {
        let status = self.child.wait().unwrap();
        drop(self.guard);
        assert_eq!(status.success(), self.sandbox.reached_limit().is_none(), "{status}");
        self.sandbox.reason_of_failure("", status.code())
    }

    /// Ends it.
    fn end(mut self) {
        assert_eq!(self.child.try_wait().unwrap(), None, "it still runs");
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn stage(limits: Limits) -> (Stage, Sandbox) {
    let mut stage = Stage::new();
    stage.boundary.limits = limits;
    let sandbox = stage.sandbox(Layers::ALL);
    (stage, sandbox)
}

fn of_session(session: SessionLimits) -> (Stage, Sandbox) {
    stage(Limits { session, ..Limits::NONE })
}

/// Runs one command until it ends, and looks for the limit in the reason.
fn check(limits: Limits, arguments: [&str; 3], parts: [&str; 2]) {
    let (stage, sandbox) = stage(limits);
    let reason = Running::new(&stage, &sandbox, arguments).reason();
    let reason = reason.unwrap_or_else(|| panic!("{arguments:?} was not stopped"));
    assert!(parts.iter().all(|part| reason.contains(part)), "{reason}");
}

// Mutants: memory of each process is compared with the limit; memory that processes share is left out.
#[test]
fn many_small_processes_together_reach_the_limit_of_memory() {
    let limits = Limits { memory: Some(150 << 20), ..Limits::NONE };
    let parts = ["together to 150 MiB of memory", "(sandbox.limits.memory)"];
    check(limits.clone(), ["memory", "12", "20"], parts);
    // Memory that the limit of each process does not count.
    check(limits, ["shared", "2", "120"], parts);
}

// Mutant: a command that has all its processes is never ended.
#[test]
fn a_command_that_has_all_its_processes_for_long_is_stopped() {
    let limits = Limits { processes: Some(40), ..Limits::NONE };
    let parts = ["together to 40 processes", "(sandbox.limits.processes)"];
    check(limits, ["none", "60", "0"], parts);
}

// Mutant: shared memory is counted for each process that has it.
#[test]
fn memory_that_processes_share_is_counted_once() {
    let (stage, sandbox) = stage(Limits { memory: Some(150 << 20), ..Limits::NONE });
    let script = "python3 -c \"
import os, time
held = bytearray(b'x' * (60 << 20))
for _ in range(4):
    if os.fork() == 0:
        time.sleep(1.5)
        os._exit(0)
for _ in range(4): os.wait()
print('whole')\"";
    let output = stage.run(Layers::ALL, script);
    drop(sandbox);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(printed.contains("whole"), "{output:?}");
}

// Mutant: only the time of the first process counts.
#[test]
fn many_processes_together_reach_the_limit_of_processor_time() {
    let limits = Limits { cpu_seconds: Some(2), ..Limits::NONE };
    let parts = ["together to 2 s of processor time", "(sandbox.limits.cpuSeconds)"];
    check(limits, ["time", "3", "20"], parts);
}

// Mutants: only bytes count; only files with names count.
#[test]
fn a_command_that_fills_the_disk_is_stopped() {
    let files = Limits { files: Some(500), ..Limits::NONE };
    check(files, ["files", "2", "5000"], ["500 more files", "(sandbox.limits.files)"]);
    let disk = Limits { disk: Some(8 << 20), ..Limits::NONE };
    let parts = ["8 MiB more on disk", "(sandbox.limits.disk)"];
    check(disk.clone(), ["disk", "20", "1"], parts);
    check(disk, ["nameless", "2", "20"], parts);
}

// Mutants: the limits of a session are compared with each command; the smaller command ends.
#[test]
fn the_largest_command_ends_when_a_session_reaches_its_limit() {
    let memory = SessionLimits { memory: Some(175 << 20), ..SessionLimits::NONE };
    let processes = SessionLimits { processes: Some(60), ..SessionLimits::NONE };
    for (limits, small, large, part) in [
        (memory, ["memory", "4", "20"], ["memory", "5", "22"], "session.memory"),
        (processes, ["none", "15", "0"], ["none", "50", "0"], "session.processes"),
    ] {
        let (stage, session) = of_session(limits);
        let small = Running::new(&stage, &session, small);
        let reason = Running::new(&stage, &session, large).reason().unwrap();
        assert!(reason.contains("all commands of this session together"), "{reason}");
        assert!(reason.contains(&format!("(sandbox.limits.{part})")), "{reason}");
        small.end();
    }
}

// Mutants: the time of commands that are over does not count; the next command starts.
#[test]
fn a_session_that_has_used_its_processor_time_starts_nothing_more() {
    let limits = SessionLimits { cpu_seconds: Some(2), ..SessionLimits::NONE };
    let (stage, session) = of_session(limits);
    let reason = Running::new(&stage, &session, ["time", "2", "20"]).reason().unwrap();
    assert!(reason.contains("(sandbox.limits.session.cpuSeconds)"), "{reason}");
    let refusal = session.command(Path::new("true"), &[""; 0], &stage.path("work")).unwrap_err();
    assert!(refusal.to_string().contains("session.cpuSeconds"), "{refusal}");
}

// Mutants: a command that deletes files is ended too; what was added before a command started counts as its own.
#[test]
fn a_session_over_its_limit_of_disk_can_delete_files_but_not_write_more() {
    let limits = SessionLimits { disk: Some(8 << 20), ..SessionLimits::NONE };
    let (stage, session) = of_session(limits);
    for megabytes in ["2", "3"] {
        let reason = Running::new(&stage, &session, ["disk", "10", megabytes]).reason().unwrap();
        assert!(reason.contains("(sandbox.limits.session.disk)"), "{reason}");
    }
    let sandbox = session.with(session.boundary().clone()).unwrap();
    let script = "import glob, os, time
# Long enough to be seen while there is too much.
time.sleep(0.7)
[os.unlink(path) for path in glob.glob('[0-9]*')]";
    let arguments = ["-c", script];
    let inside = sandbox.command(Path::new("python3"), &arguments, &stage.path("work")).unwrap();
    let mut child =
        Command::new(&inside.program).args(&inside.arguments).stdin(Stdio::null()).spawn().unwrap();
    inside.guard.started(child.id());
    assert!(child.wait().unwrap().success(), "{:?}", sandbox.reached_limit());
    assert!(!fs::exists(stage.path("work").join("2-first")).unwrap());
}

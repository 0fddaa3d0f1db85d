//! Starts a program as the leader of its own session, by one system call instead of the utility `setsid`: a third of what a
//! short command costs.
//!
//! `posix_spawn` can make the session, but no safe wrapper of it can change the folder. So the thread that calls it must
//! have its own working directory (`unshare`): the calling thread, if the program has given it one
//! ([`separate_working_directory`]), otherwise a thread that starts all of these programs.

use std::cell::OnceCell;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::{OnceLock, mpsc};

use nix::sched::{CloneFlags, unshare};
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn};
use nix::sys::signal::{SIGPIPE, SigSet};
use rustix::fs::{Mode, OFlags};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, kill_process, pidfd_open, waitpid,
};
use tokio::io::unix::AsyncFd;
use tokio::process::{ChildStderr, ChildStdout};

use crate::piped::PipedCommand;

/// `POSIX_SPAWN_SETSID`, which the wrapper does not name.
const SET_SESSION: i32 = 0x80;

/// A running program with pipes.
#[derive(Debug)]
pub(crate) struct SessionLeader {
    id: Pid,
    /// Readable when the program has ended.
    handle: AsyncFd<OwnedFd>,
    status: Option<ExitStatus>,
    stdin: Option<OwnedFd>,
    pub(crate) stdout: Option<ChildStdout>,
    pub(crate) stderr: Option<ChildStderr>,
}

impl SessionLeader {
    pub(crate) fn id(&self) -> Pid {
        self.id
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.status.is_some()
    }

    pub(crate) fn stdin(&mut self) -> Option<OwnedFd> {
        self.stdin.take()
    }

    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.try_wait()? {
                return Ok(status);
            }
            self.handle.readable().await?.clear_ready();
        }
    }

    pub(crate) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none()
            && let Some((_, status)) = waitpid(Some(self.id), WaitOptions::NOHANG)?
        {
            self.status = Some(ExitStatus::from_raw(status.as_raw()));
        }
        Ok(self.status)
    }
}

thread_local! {
    /// The working directory of this thread, if it has its own.
    static OWN_DIRECTORY: OnceCell<OwnedFd> = const { OnceCell::new() };
}

/// Gives the calling thread its own working directory, so that it can start commands by itself. Without it, another
/// thread starts them, which takes longer.
///
/// For threads of an async runtime, in programs that never change their working directory: the change would not reach
/// this thread. Does nothing where the system does not allow it.
pub fn separate_working_directory() {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    if is_supported()
        && let Ok(directory) = rustix::fs::open(".", flags, Mode::empty())
        && unshare(CloneFlags::CLONE_FS).is_ok()
    {
        // If it has one already, that one is as good.
        let _ = OWN_DIRECTORY.with(|own| own.set(directory));
    }
}

/// Starts a program. `None` if this system does not let us do it in this way. `by_lasting_thread`: by a thread that lives as
/// long as this process. A program that ends with its parent (`bwrap --die-with-parent`) ends with the *thread* that started
/// it, and threads of a runtime end when they have had nothing to do for a while.
pub(crate) fn spawn(
    command: &PipedCommand<'_>,
    by_lasting_thread: bool,
) -> Option<io::Result<SessionLeader>> {
    OWN_DIRECTORY.with(|own| match own.get().filter(|_| !by_lasting_thread) {
        Some(directory) => Some(start(command, |command, pipes| {
            let started = perform(&command, &pipes);
            let back = rustix::process::fchdir(directory);
            // A thread that stayed in the folder would keep its file system from being unmounted.
            if back.is_err() {
                let _ = nix::unistd::chdir("/");
            }
            started
        })),
        None => {
            let spawner = spawner()?;
            Some(start(command, |command, pipes| ask(spawner, command, pipes)))
        }
    })
}

/// Has the other thread start a program.
fn ask(spawner: &mpsc::Sender<Request>, command: Strings, pipes: Pipes) -> io::Result<Pid> {
    let (answer, answered) = mpsc::channel();
    let is_gone = |_| io::Error::other("the thread that starts programs has ended");
    spawner.send(Request { command, pipes, answer }).map_err(|_| is_gone(()))?;
    answered.recv().map_err(|_| is_gone(()))?
}

fn start(
    command: &PipedCommand<'_>,
    perform: impl FnOnce(Strings, Pipes) -> io::Result<Pid>,
) -> io::Result<SessionLeader> {
    let (stdin, for_us) = io::pipe()?;
    let (out, stdout) = io::pipe()?;
    let (err, stderr) = io::pipe()?;
    let pipes = [stdin.into(), stdout.into(), stderr.into()];
    let id = perform(Strings::of(command)?, pipes)?;
    let attached = attach(id, for_us.into(), out.into(), err.into());
    if attached.is_err() {
        // It runs, but without descriptors of its own this process cannot follow it.
        let _ = kill_process(id, Signal::KILL);
        let _ = waitpid(Some(id), WaitOptions::empty());
    }
    attached
}

fn attach(id: Pid, stdin: OwnedFd, out: OwnedFd, err: OwnedFd) -> io::Result<SessionLeader> {
    // The system supports it, which was tried before.
    let handle = pidfd_open(id, PidfdFlags::NONBLOCK)?;
    #[expect(
        deprecated,
        reason = "an owned descriptor does not change; the new function is unsafe"
    )]
    let handle = AsyncFd::new(handle)?;
    Ok(SessionLeader {
        id,
        handle,
        status: None,
        stdin: Some(stdin),
        stdout: Some(ChildStdout::from_std(out.into())?),
        stderr: Some(ChildStderr::from_std(err.into())?),
    })
}

/// A program to start, in the form of the system call.
struct Strings {
    program: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
    folder: CString,
}

impl Strings {
    fn of(command: &PipedCommand<'_>) -> io::Result<Self> {
        use std::os::unix::ffi::OsStrExt as _;
        let text = |bytes: &[u8]| CString::new(bytes).map_err(io::Error::from);
        let arguments = command.arguments.iter().map(|argument| text(argument.as_bytes()));
        let variables = command
            .environment
            .iter()
            .map(|(name, value)| text(&[name.as_bytes(), b"=", value.as_bytes()].concat()));
        let program = text(command.program.as_os_str().as_bytes())?;
        Ok(Self {
            arguments: std::iter::once(Ok(program.clone()))
                .chain(arguments)
                .collect::<Result<_, _>>()?,
            program,
            environment: variables.collect::<Result<_, _>>()?,
            folder: text(command.folder.as_os_str().as_bytes())?,
        })
    }
}

/// The stdin, stdout and stderr of a program.
type Pipes = [OwnedFd; 3];

struct Request {
    command: Strings,
    pipes: Pipes,
    answer: mpsc::Sender<io::Result<Pid>>,
}

/// Whether the system can report the end of a program by a descriptor.
fn is_supported() -> bool {
    static IS_SUPPORTED: OnceLock<bool> = OnceLock::new();
    *IS_SUPPORTED.get_or_init(|| pidfd_open(getpid(), PidfdFlags::NONBLOCK).is_ok())
}

/// The thread that starts programs, unless something that it needs is missing or forbidden.
fn spawner() -> Option<&'static mpsc::Sender<Request>> {
    static SPAWNER: OnceLock<Option<mpsc::Sender<Request>>> = OnceLock::new();
    SPAWNER
        .get_or_init(|| {
            if !is_supported() {
                return None;
            }
            let (requests, received) = mpsc::channel::<Request>();
            let (ready, is_ready) = mpsc::channel();
            let thread = std::thread::Builder::new().name("ostler-spawner".to_owned());
            let work = move || {
                let separated = unshare(CloneFlags::CLONE_FS);
                if ready.send(separated.is_ok()).is_err() || separated.is_err() {
                    return;
                }
                for Request { command, pipes, answer } in received {
                    // The caller waits for it, so it is there.
                    let _ = answer.send(perform(&command, &pipes));
                    // A thread that stayed in the folder would keep its file system from being unmounted.
                    let _ = nix::unistd::chdir("/");
                }
            };
            thread.spawn(work).ok()?;
            is_ready.recv().ok()?.then_some(requests)
        })
        .as_ref()
}

fn perform(command: &Strings, pipes: &Pipes) -> io::Result<Pid> {
    // Of this thread only.
    nix::unistd::chdir(command.folder.as_c_str())?;
    let mut files = PosixSpawnFileActions::init()?;
    for (number, pipe) in (0..).zip(pipes) {
        files.add_dup2(pipe.as_raw_fd(), number)?;
    }
    let mut attributes = PosixSpawnAttr::init()?;
    let flags = PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF | PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK;
    attributes.set_flags(flags | PosixSpawnFlags::from_bits_retain(SET_SESSION))?;
    // As the standard library does it: Rust programs ignore SIGPIPE, others expect it.
    let mut defaults = SigSet::empty();
    defaults.add(SIGPIPE);
    attributes.set_sigdefault(&defaults)?;
    attributes.set_sigmask(&SigSet::empty())?;
    let Strings { program, arguments, environment, .. } = command;
    let id = posix_spawn(program.as_c_str(), &files, &attributes, arguments, environment)?;
    Pid::from_raw(id.as_raw()).ok_or_else(|| io::Error::other("the child has no process id"))
}

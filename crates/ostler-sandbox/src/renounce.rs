//! For a process of our own that reads data from strangers: it gives up everything but its memory and its open files.

use libc::c_long;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

/// What such a process may still do.
const ALLOWED: &[c_long] = &[
    // With open files.
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_lseek,
    libc::SYS_fstat,
    libc::SYS_close,
    libc::SYS_fcntl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    libc::SYS_ppoll,
    // With its memory.
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    // With its own thread, and to end.
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_tgkill,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
    // To read clocks and random numbers.
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_getrandom,
];

/// Lets this process only compute, and use the files that it has open: it can open no file, start no program or thread, and
/// use no network. This cannot be undone.
///
/// # Errors
/// When the kernel has no filter of system calls.
pub fn renounce() -> Result<(), String> {
    let failed =
        |error: &dyn std::fmt::Display| format!("cannot filter system calls (seccomp): {error}");
    rustix::thread::set_no_new_privs(true).map_err(|error| failed(&error))?;
    let arch: TargetArch = std::env::consts::ARCH.try_into().map_err(|error| failed(&error))?;
    let rules = ALLOWED.iter().map(|number| (*number, Vec::new())).collect();
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(rules, refuse, SeccompAction::Allow, arch);
    let program: BpfProgram = filter
        .and_then(TryInto::try_into)
        .map_err(|error: seccompiler::BackendError| failed(&error))?;
    seccompiler::apply_filter(&program).map_err(|error| failed(&error))
}

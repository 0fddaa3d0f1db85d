//! A process that renounces everything can still compute, and nothing else.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::process::{Command, Stdio};

/// Set in the process that tries it.
const TRY: &str = "OSTLER_TRY_TO_REACH";

// Mutants: `renounce` does nothing; `openat` or `clone3` in the list of what is allowed.
#[test]
fn it_reaches_no_file_no_network_and_no_program() {
    if let Some(renounces) = std::env::var_os(TRY) {
        return attempt(renounces == "with");
    }
    let reached = |renounces: &str| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let test = "renounce::it_reaches_no_file_no_network_and_no_program";
        command.args(["--exact", "--nocapture", "--test-threads=1", test]).env(TRY, renounces);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"data").unwrap();
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().find_map(|line| line.split_once("REACHED")).map(|(_, rest)| rest);
        line.unwrap_or_else(|| panic!("{text}")).trim().to_owned()
    };
    assert_eq!(reached("with"), "input memory");
    assert_eq!(
        reached("without"),
        "input memory file listing write datagram stream program thread",
        "the test itself does not work"
    );
}

/// Prints what can be reached and ends the process, because the test harness cannot do its work any more.
fn attempt(renounces: bool) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    if renounces {
        ostler_sandbox::renounce().unwrap();
    }
    let mut reached = Vec::new();
    let mut note = |name, works: bool| {
        if works {
            reached.push(name);
        }
    };
    let mut text = String::new();
    note("input", std::io::stdin().read_to_string(&mut text).is_ok() && text == "data");
    note("memory", vec![1_u8; 50 << 20].iter().all(|byte| *byte == 1));
    note("file", File::open("/etc/passwd").is_ok());
    note("listing", std::fs::read_dir("/").is_ok());
    note("write", std::fs::write(folder.path().join("x"), "x").is_ok());
    note("datagram", UdpSocket::bind("127.0.0.1:0").is_ok());
    note("stream", TcpStream::connect(address).is_ok());
    note("program", Command::new("/bin/true").status().is_ok());
    note("thread", std::thread::Builder::new().spawn(|| ()).is_ok());
    println!("REACHED {}", reached.join(" "));
    std::io::stdout().flush().unwrap();
    std::process::exit(0);
}

/// Set in the process that makes every system call.
const CALL: &str = "OSTLER_CALL_EVERYTHING";
/// Numbers of system calls are lower on every machine, today.
const MOST_CALLS: i64 = 1_000;

/// The test above shows what a program can do. Most of that needs several system calls, so this one makes each of them: all but
/// those that a process needs to compute are refused. Their arguments are not valid, so that one that is allowed has no effect.
///
/// Mutants: `renounce` does nothing; one of `openat`, `socket`, `clone`, `clone3`, `vfork`, `execve`, `connect`, `bind`, `unlink`,
/// `kill`, `ptrace` and `rename` is allowed.
#[test]
fn every_other_system_call_is_refused() {
    if std::env::var_os(CALL).is_some() {
        return call_everything();
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    let test = "renounce::every_other_system_call_is_refused";
    command.args(["--exact", "--nocapture", "--test-threads=1", test]).env(CALL, "1");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.split_once("NOT REFUSED")).map(|(_, rest)| rest);
    assert_eq!(line.unwrap_or_else(|| panic!("{text}")).trim(), "");
}

/// `uretprobe` and `uprobe`, by which the kernel returns from a probe. No filter sees them, and elsewhere they end the process.
#[cfg(target_arch = "x86_64")]
const OF_PROBES: &[libc::c_long] = &[335, 336];
#[cfg(not(target_arch = "x86_64"))]
const OF_PROBES: &[libc::c_long] = &[];

/// What a process needs to compute, to use its open files and to end.
const NEEDED: &[libc::c_long] = &[
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
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
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
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_getrandom,
];

/// Prints the system calls that were not refused and ends the process.
#[expect(unsafe_code, reason = "no crate has safe functions for all system calls")]
fn call_everything() {
    ostler_sandbox::renounce().unwrap();
    if std::fs::metadata("/").is_ok() {
        println!("NOT REFUSED anything: there is no filter");
        std::process::exit(0);
    }
    let mut allowed = Vec::new();
    let numbers = (0..MOST_CALLS).filter(|number| !NEEDED.contains(number));
    for number in numbers.filter(|number| !OF_PROBES.contains(number)) {
        let wrong = -1_i64;
        // SAFETY: the filter refuses the call before the kernel looks at the arguments. If it does not, the test has found
        // what it looks for, and the arguments point nowhere.
        let answer = unsafe { libc::syscall(number, wrong, wrong, wrong, wrong, wrong, wrong) };
        let error = std::io::Error::last_os_error().raw_os_error();
        if answer != -1 || error != Some(libc::EPERM) {
            allowed.push(number.to_string());
        }
    }
    println!("NOT REFUSED {}", allowed.join(" "));
    std::io::stdout().flush().unwrap();
    std::process::exit(0);
}

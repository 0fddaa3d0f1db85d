//! Whether a sandbox may be the reason why a command failed.

use crate::boundary::{Boundary, Network};
use crate::limits::Limits;
use crate::reached::{ReachedLimit, Resource, Scope};

/// What a command prints when the file system refuses a change.
const READ_ONLY: [&str; 2] = ["Read-only file system", "EROFS"];
/// When the filter of system calls or the kernel's rules refuse something.
const FORBIDDEN: [&str; 4] = ["Operation not permitted", "Permission denied", "EPERM", "EACCES"];
/// When no host can be reached.
const UNREACHABLE: [&str; 10] = [
    "Network is unreachable",
    "Could not resolve host",
    "Temporary failure in name resolution",
    "Name or service not known",
    "ENOTFOUND",
    "EAI_AGAIN",
    "ENETUNREACH",
    "Could not resolve proxy",
    "403 Forbidden",
    "dns error",
];
/// When there are too many processes.
const NO_PROCESS: [&str; 4] = [
    "fork: retry: Resource temporarily unavailable",
    "fork: Resource temporarily unavailable",
    "Cannot fork",
    "can't start new thread",
];
/// When a process has used its memory.
const NO_MEMORY: [&str; 6] = [
    "Cannot allocate memory",
    "MemoryError",
    "memory allocation of",
    "heap out of memory",
    "std::bad_alloc",
    "ENOMEM",
];
/// When a folder or a disk is full.
const NO_SPACE: [&str; 2] = ["No space left on device", "ENOSPC"];
/// Exit codes of shells after signals: the file is too long, the processor time is used up.
const FILE_TOO_LONG: i32 = 128 + 25;
const TIME_USED: i32 = 128 + 24;

/// Why a command that failed in a sandbox may have failed because of it, in one line.
pub(crate) fn reason(boundary: &Boundary, output: &str, code: Option<i32>) -> Option<String> {
    let prints = |texts: &[&str]| texts.iter().any(|text| output.contains(text));
    let Limits { processes, memory, file_size, cpu_seconds, temporary, .. } = &boundary.limits;
    if let (Some(FILE_TOO_LONG), Some(most)) = (code, file_size) {
        return Some(format!(
            "the sandbox limits files to {} (sandbox.limits.fileSize)",
            bytes(*most)
        ));
    }
    if let (Some(TIME_USED), Some(most)) = (code, cpu_seconds) {
        return Some(format!(
            "the sandbox limits each process to {most} s of processor time (sandbox.limits.cpuSeconds)"
        ));
    }
    if let (true, Some(most)) = (prints(&NO_PROCESS), processes) {
        return Some(format!(
            "the sandbox limits commands to {most} processes and threads (sandbox.limits.processes)"
        ));
    }
    if let (true, Some(most)) = (prints(&NO_MEMORY), memory) {
        return Some(format!(
            "the sandbox limits each process to {} of memory (sandbox.limits.memory)",
            bytes(*most)
        ));
    }
    if let (true, Some(most)) = (prints(&NO_SPACE), temporary) {
        return Some(format!(
            "the disk is full, or it is one of the folders in memory (/dev/shm, /run, /var/tmp), which the sandbox limits \
             to {} (sandbox.limits.temporary)",
            bytes(*most)
        ));
    }
    if prints(&UNREACHABLE) && boundary.network != Network::Host {
        return Some(match boundary.network {
            Network::None => "the sandbox has no network".to_owned(),
            Network::UserProxy(_) => {
                "the sandbox reaches hosts through your own proxy (sandbox.network.httpProxyPort)"
                    .to_owned()
            }
            _ => {
                "the sandbox reaches allowed hosts only (sandbox.network.allowedDomains)".to_owned()
            }
        });
    }
    if prints(&READ_ONLY) {
        let folders: Vec<_> =
            boundary.writable_roots().map(|path| path.display().to_string()).collect();
        return Some(format!(
            "the sandbox lets commands write only in {} and /tmp, and not in files that later run commands, such as \
             .git/hooks and .claude",
            folders.join(", ")
        ));
    }
    prints(&FORBIDDEN).then(|| {
        "the sandbox forbids Unix sockets, other processes, mounts and privileged operations"
            .to_owned()
    })
}

/// That a command was ended, or refused something, because of a limit.
pub(crate) fn reached(limit: &ReachedLimit) -> String {
    let who = match limit.scope {
        Scope::Command => "all processes of a command together",
        Scope::Session => "all commands of this session together",
    };
    let most = match limit.resource {
        Resource::Processes => format!("{} processes and threads", limit.most),
        Resource::Memory => format!("{} of memory", bytes(limit.most)),
        Resource::CpuSeconds => format!("{} s of processor time", limit.most),
        Resource::Disk => format!("{} more on disk than before", bytes(limit.most)),
        Resource::Files => format!("{} more files on disk than before", limit.most),
    };
    format!(
        "the sandbox limits {who} to {most} ({}), and this one was stopped because that limit was reached",
        limit.setting()
    )
}

fn bytes(number: u64) -> String {
    const MIB: u64 = 1024 * 1024;
    match number / MIB {
        0 => format!("{number} bytes"),
        mib if mib >= 1024 && mib.is_multiple_of(1024) => format!("{} GiB", mib / 1024),
        mib => format!("{mib} MiB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_fits_what_the_command_printed() {
        let limits = Limits { memory: Some(4 << 30), ..Limits::default() };
        let boundary = Boundary { writable: vec!["/w".into()], limits, ..Boundary::default() };
        let expected = [
            (
                "touch: cannot touch '/etc/x': Read-only file system",
                Some(1),
                Some("only in /w and /tmp"),
            ),
            ("curl: (6) Could not resolve host: example.com", Some(6), Some("no network")),
            (
                "bash: fork: retry: Resource temporarily unavailable",
                Some(254),
                Some("1024 processes"),
            ),
            ("MemoryError", Some(1), Some("4 GiB of memory")),
            ("", Some(153), Some("files to 2 GiB")),
            ("cp: No space left on device", Some(1), Some("to 1 GiB")),
            ("PermissionError: [Errno 1] Operation not permitted", Some(1), Some("Unix sockets")),
            ("assertion failed", Some(101), None),
            ("", None, None),
        ];
        for (output, code, part) in expected {
            let found = reason(&boundary, output, code);
            match part {
                Some(part) => {
                    assert!(
                        found.as_ref().is_some_and(|found| found.contains(part)),
                        "{output}: {found:?}"
                    );
                }
                None => assert_eq!(found, None, "{output}"),
            }
        }
    }
}

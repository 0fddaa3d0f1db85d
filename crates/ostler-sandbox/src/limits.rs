//! How much programs in a sandbox may use.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

/// How much a program and everything that it starts may use. `None` is without a limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Limits {
    /// The number of processes and threads, of all processes together.
    pub processes: Option<u64>,
    /// Memory in bytes of all processes together, and the data of each process.
    pub memory: Option<u64>,
    /// The size of each file that is written, in bytes.
    pub file_size: Option<u64>,
    /// The number of open files of each process.
    pub open_files: Option<u64>,
    /// The processor time of all processes together, and of each process, in seconds.
    pub cpu_seconds: Option<u64>,
    /// What a program may keep in each of its temporary folders in memory, in bytes: `/dev/shm`, `/run`, `/var/tmp`, and
    /// `/tmp` unless another folder is shown there.
    pub temporary: Option<u64>,
    /// How many bytes more than before the program's files may take up on disk.
    pub disk: Option<u64>,
    /// How many files more than before there may be on disk.
    pub files: Option<u64>,
    /// How much all programs of a sandbox, which are those of a session, may use together.
    pub session: SessionLimits,
}

/// How much all programs of a session may use together. `None` is without a limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct SessionLimits {
    /// The number of processes and threads at one time.
    pub processes: Option<u64>,
    /// Memory in bytes at one time.
    pub memory: Option<u64>,
    /// Processor time in seconds, from the first program to the last.
    pub cpu_seconds: Option<u64>,
    /// How many bytes more than before the first program the files may take up on disk.
    pub disk: Option<u64>,
    /// How many files more than before the first program there may be on disk.
    pub files: Option<u64>,
}

const GIB: u64 = 1024 * 1024 * 1024;
/// The memory that a program may always use.
const LEAST_MEMORY: u64 = 4 * GIB;

impl Default for Limits {
    /// Enough for compilers and test suites; too little to take the machine down.
    fn default() -> Self {
        Self {
            processes: Some(1024),
            memory: Some(LEAST_MEMORY.max(machine_memory() / 2)),
            file_size: Some(2 * GIB),
            open_files: Some(4096),
            cpu_seconds: None,
            temporary: Some(GIB),
            disk: None,
            files: None,
            session: SessionLimits::default(),
        }
    }
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            processes: Some(4096),
            memory: Some(LEAST_MEMORY.max(machine_memory() / 4 * 3)),
            ..Self::NONE
        }
    }
}

impl Limits {
    /// Without limits.
    pub const NONE: Self = Self {
        processes: None,
        memory: None,
        file_size: None,
        open_files: None,
        cpu_seconds: None,
        temporary: None,
        disk: None,
        files: None,
        session: SessionLimits::NONE,
    };

    /// All limits by the names of their settings.
    pub(crate) fn named(&self) -> [(&'static str, Option<u64>); 13] {
        let Self {
            processes,
            memory,
            file_size,
            open_files,
            cpu_seconds,
            temporary,
            disk,
            files,
            session,
        } = self;
        [
            ("processes", *processes),
            ("memory", *memory),
            ("fileSize", *file_size),
            ("openFiles", *open_files),
            ("cpuSeconds", *cpu_seconds),
            ("temporary", *temporary),
            ("disk", *disk),
            ("files", *files),
            ("session.processes", session.processes),
            ("session.memory", session.memory),
            ("session.cpuSeconds", session.cpu_seconds),
            ("session.disk", session.disk),
            ("session.files", session.files),
        ]
    }
}

impl SessionLimits {
    /// Without limits.
    pub const NONE: Self =
        Self { processes: None, memory: None, cpu_seconds: None, disk: None, files: None };

    #[cfg(target_os = "linux")]
    pub(crate) fn is_some(&self) -> bool {
        *self != Self::NONE
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn has_disk(&self) -> bool {
        self.disk.is_some() || self.files.is_some()
    }
}

/// The memory of this machine in bytes; 0 if it is not known.
fn machine_memory() -> u64 {
    static MEMORY: OnceLock<u64> = OnceLock::new();
    *MEMORY.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
        let kilobytes = total.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        kilobytes.unwrap_or_default().saturating_mul(1024)
    })
}

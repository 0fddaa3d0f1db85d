//! The filter of system calls (seccomp): sockets that lead out, other processes' memory, mounts, namespaces, and parts of the
//! kernel that no build needs.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Always refused.
const REFUSED: &[c_long] = &[
    // Memory and descriptors of other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_process_madvise,
    // System calls that this filter would not see.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // The view of files.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    // Keys of the user.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // The kernel and the machine.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_setns,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// `open_tree_attr` (Linux 6.15), which the crate does not name yet; the number is the same on all architectures.
const OPEN_TREE_ATTR: c_long = 467;

/// Hidden: programs use older calls instead, whose arguments the filter can see.
const HIDDEN: &[c_long] = &[libc::SYS_clone3, libc::SYS_openat2];

const NAMESPACES: [i32; 8] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
    // `CLONE_NEWTIME`, which the crate does not name on all systems.
    0x80,
];

/// The bits of a mode that let a file run with the rights of its owner or group.
const SET_ID: [u32; 2] = [libc::S_ISUID, libc::S_ISGID];

/// # Errors
/// When the filter cannot be built or is refused.
pub(super) fn apply(unix_sockets: bool, user_namespaces: bool) -> Result<(), String> {
    let failed =
        |error: &dyn std::fmt::Display| format!("cannot filter system calls (seccomp): {error}");
    let arch: TargetArch = std::env::consts::ARCH.try_into().map_err(|error| failed(&error))?;
    let refused = refused(unix_sockets, user_namespaces).map_err(|error| failed(&error))?;
    let hidden = HIDDEN.iter().map(|number| (*number, Vec::new())).collect();
    let program = |rules, error: i32| -> Result<BpfProgram, seccompiler::BackendError> {
        let error = SeccompAction::Errno(error.unsigned_abs());
        SeccompFilter::new(rules, SeccompAction::Allow, error, arch)?.try_into()
    };
    let programs = [
        foreign_numbers(),
        program(refused, libc::EPERM).map_err(|error| failed(&error))?,
        program(hidden, libc::ENOSYS).map_err(|error| failed(&error))?,
    ];
    for program in &programs {
        seccompiler::apply_filter(program).map_err(|error| failed(&error))?;
    }
    Ok(())
}

fn refused(unix_sockets: bool, user_namespaces: bool) -> Result<Rules, seccompiler::BackendError> {
    let mut rules: Rules = REFUSED.iter().map(|number| (*number, Vec::new())).collect();
    if !user_namespaces {
        let flags = |flag: i32| rule(&[has(0, flag.unsigned_abs())]);
        rules.insert(libc::SYS_unshare, Vec::new());
        rules.insert(libc::SYS_clone, NAMESPACES.into_iter().map(flags).collect::<Result<_, _>>()?);
    }
    let families: &[i32] = match unix_sockets {
        true => &[libc::AF_INET, libc::AF_INET6, libc::AF_UNIX],
        false => &[libc::AF_INET, libc::AF_INET6],
    };
    let other: Vec<_> = families.iter().map(|family| is_not(0, *family)).collect();
    // The lower bits of the second argument are the type, the others are flags.
    let raw = [(1, SeccompCmpOp::MaskedEq(0xf), libc::SOCK_RAW.unsigned_abs())];
    rules.insert(libc::SYS_socket, vec![rule(&other)?, rule(&raw)?]);
    let mut pairs = vec![rule(&[is_not(0, libc::AF_UNIX)])?];
    if !unix_sockets {
        // Each of two datagram sockets can be connected to another address later. A raw one is the same.
        for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW] {
            pairs.push(rule(&[(1, SeccompCmpOp::MaskedEq(0xf), kind.unsigned_abs())])?);
        }
    }
    rules.insert(libc::SYS_socketpair, pairs);
    // Both type into a terminal.
    let requests = [libc::TIOCSTI, libc::TIOCLINUX];
    let requests = requests.map(|request| rule(&[(1, SeccompCmpOp::Eq, low(request))]));
    rules.insert(libc::SYS_ioctl, requests.into_iter().collect::<Result<_, _>>()?);
    for (number, mode, flags) in MODES {
        rules.insert(*number, set_id(*mode, *flags)?);
    }
    Ok(rules)
}

/// System calls that set the mode of a file: the positions of the mode, and of the flags that say whether it counts.
const MODES: &[(c_long, u8, Option<u8>)] = &[
    (libc::SYS_fchmod, 1, None),
    (libc::SYS_fchmodat, 2, None),
    (libc::SYS_fchmodat2, 2, None),
    (libc::SYS_mknodat, 2, None),
    (libc::SYS_openat, 3, Some(2)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1, None),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1, None),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1, None),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 2, Some(1)),
];

/// Files that run with the rights of their owner: another user could start them later.
fn set_id(mode: u8, flags: Option<u8>) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let creating = [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY].map(i32::unsigned_abs);
    let mut rules = Vec::new();
    for bit in SET_ID {
        match flags {
            None => rules.push(rule(&[has(mode, bit)])?),
            Some(flags) => {
                for flag in creating {
                    rules.push(rule(&[has(mode, bit), has(flags, flag)])?);
                }
            }
        }
    }
    Ok(rules)
}

/// The position of an argument, a comparison of its lower half, and a value.
type Condition = (u8, SeccompCmpOp, u32);

fn has(position: u8, bit: u32) -> Condition {
    (position, SeccompCmpOp::MaskedEq(bit.into()), bit)
}

fn is_not(position: u8, value: i32) -> Condition {
    (position, SeccompCmpOp::Ne, value.unsigned_abs())
}

fn low(request: libc::Ioctl) -> u32 {
    u32::try_from(request).expect("these requests are small numbers")
}

fn rule(conditions: &[Condition]) -> Result<SeccompRule, seccompiler::BackendError> {
    let condition = |(position, operator, value): &Condition| {
        // The kernel ignores the upper half of these arguments, so the filter must too.
        let half = SeccompCmpArgLen::Dword;
        SeccompCondition::new(*position, half, operator.clone(), (*value).into())
    };
    SeccompRule::new(conditions.iter().map(condition).collect::<Result<_, _>>()?)
}

/// Hides system calls of the x32 interface: they have other numbers, which no rule names.
fn foreign_numbers() -> BpfProgram {
    const X32: u32 = 0x4000_0000;
    let load_number = sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 };
    let is_below = sock_filter { code: 0x35, jt: 0, jf: 1, k: X32 };
    let hide =
        sock_filter { code: 0x06, jt: 0, jf: 0, k: 0x0005_0000 | libc::ENOSYS.unsigned_abs() };
    let allow = sock_filter { code: 0x06, jt: 0, jf: 0, k: 0x7fff_0000 };
    vec![load_number, is_below, hide, allow]
}

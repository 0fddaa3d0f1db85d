//! More attacks, on parts of the kernel that builds seldom use. Each prints ESCAPED if the system does not refuse it.

use std::os::fd::AsRawFd as _;
use std::process::{Command, Stdio};

use ostler_sandbox::Layers;

use crate::probe::{self, NO_SECCOMP, NONE, ONLY_SECCOMP, Probe};
use crate::stage::{SECRET, Stage};

const PROBES: &[Probe] = &[
    // userfaultfd, for its own process only, which every user may do.
    Probe::new(
        28,
        NO_SECCOMP,
        "python3 -c \"import ctypes; print('ESCAPED' if ctypes.CDLL(None).syscall(323, 1) >= 0 else 'no')\"",
    ),
    // A key that other programs of the user could find.
    Probe::new(
        28,
        NO_SECCOMP,
        "python3 -c \"import ctypes; print('ESCAPED' if ctypes.CDLL(None).syscall(248, b'user', b'ostler-probe', \
         b'x', 1, -2) > 0 else 'no')\"",
    ),
    // Typing into a terminal, with bits in the request that the kernel ignores: any other error means that it was tried.
    Probe::new(
        28,
        NO_SECCOMP,
        "python3 - <<'E'
import ctypes, os
c = ctypes.CDLL(None, use_errno=True)
c.syscall.argtypes = [ctypes.c_long] * 4
for request in (0x5412, 0x541C):
    for high in (0, 1 << 32, 1 << 63):
        ctypes.set_errno(0)
        value = high | request
        value = value - (1 << 64) if value >= 1 << 63 else value
        c.syscall(16, 0, value, 0)
        if ctypes.get_errno() != 1: print('ESCAPED', hex(request), hex(high))
E",
    ),
    // System calls of 32-bit programs, whose numbers the filter does not know: this is getpid.
    // The shell prints the script if it ends by a signal, so the text is put together.
    #[cfg(target_arch = "x86_64")]
    Probe::new(
        28,
        NO_SECCOMP,
        "python3 - <<'E'
import ctypes, mmap
code = mmap.mmap(-1, 4096, prot=7)
code.write(bytes.fromhex('b814000000cd80c3'))
call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
print('ESC' + 'APED' if call() > 0 else 'no')
E",
    ),
    // Sockets to the hypervisor and to the kernel's cryptography.
    Probe::new(
        28,
        NO_SECCOMP,
        "python3 -c \"
import socket
for family in (38, 40):
    try: socket.socket(family, 5 if family == 38 else 1); print('ESCAPED')
    except OSError as error: print('ESCAPED' if error.errno not in (1, 97) else error)\"",
    ),
    // A program that exists in memory only, as a file that others can open.
    Probe::new(
        28,
        ONLY_SECCOMP,
        "python3 - <<'E'
import os
fd = os.memfd_create('x', 0)
os.write(fd, b'#!/bin/sh\\necho x > $OUTSIDE/planted\\n')
os.execve(f'/proc/self/fd/{fd}', ['x'], os.environ)
E",
    ),
    // The view of the first process, of a thread, and of the parent.
    Probe::new(
        28,
        ONLY_SECCOMP,
        "for p in 1 self thread-self $PPID $$; do for d in root cwd; do echo x > /proc/$p/$d$OUTSIDE/planted; \
         echo x > /proc/$p/$d/../../../../../..$OUTSIDE/planted; done; done 2>/dev/null",
    ),
    // A mount by a handle of the newest calls: open_tree_attr, and a new namespace file opened by path.
    Probe::new(
        28,
        NO_SECCOMP,
        "python3 -c \"
import ctypes
c = ctypes.CDLL(None, use_errno=True)
c.syscall(467, -100, b'.', 0, 0, 0)
print('no' if ctypes.get_errno() == 1 else 'ESCAPED')\"",
    ),
    // Priorities and processors of other programs.
    Probe::of_root(28, NONE, "renice -n 0 -p $SELF > /dev/null && echo ESCAPED"),
];

// Mutant: each script with the layers taken away that stop it; the test runs it.
#[test]
fn no_attack_on_seldom_used_parts_of_the_kernel_works() {
    probe::check(PROBES);
}

/// A descriptor of the folder with the secret, which a child inherits by mistake.
// Mutant: inherited descriptors stay open.
#[test]
fn inherited_descriptors_lead_nowhere() {
    let finds = |layers| {
        let stage = Stage::new();
        let folder = std::fs::File::open(stage.path("home")).unwrap();
        rustix::io::fcntl_setfd(&folder, rustix::io::FdFlags::empty()).unwrap();
        let number = folder.as_raw_fd();
        // Its own descriptors, and those of every process that it can see.
        let script = format!(
            "for p in self 1 2 3 4 5 6; do cat /proc/$p/fd/{number}/.ssh/id; done; cat <&{number}; \
             ls -l /proc/*/fd 2>/dev/null | grep home"
        );
        let sandbox = stage.sandbox(layers);
        let work = stage.path("work");
        let bash =
            sandbox.command(std::path::Path::new("/bin/bash"), &["-c", &script], &work).unwrap();
        let mut command = Command::new(&bash.program);
        let output = command.args(&bash.arguments).stdin(Stdio::null()).output().unwrap();
        String::from_utf8_lossy(&output.stdout).contains(SECRET)
    };
    assert!(!finds(Layers::ALL));
    let folder = Stage::new();
    let home = std::fs::File::open(folder.path("home")).unwrap();
    rustix::io::fcntl_setfd(&home, rustix::io::FdFlags::empty()).unwrap();
    let script = format!("cat /proc/self/fd/{}/.ssh/id", home.as_raw_fd());
    let output = Command::new("/bin/bash").args(["-c", &script]).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(printed.contains(SECRET), "the test itself does not work");
}

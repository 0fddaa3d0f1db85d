//! The sandbox for commands classified as harmless: if that is wrong, they must not damage the machine.
//!
//! The fuzzer starts itself again inside namespaces of its own (`unshare`): without network, without capabilities,
//! with a root folder in memory in which only the programs of the machine are mounted, read-only. The judge runs
//! there, too, because it must see the same files as the commands.

use std::ffi::OsString;
use std::process::{Command, ExitStatus};
use std::{env, fs};

use anyhow::{Context, Result, ensure};

const SCRIPT: &str = include_str!("confine.sh");

/// The variable that is set inside the sandbox, and nowhere else.
const MARK: &str = "OSTLER_FUZZ_CONFINED";

/// Whether this process is inside the sandbox. A variable alone does not prove it: the root folder must be the read-only one.
pub(super) fn is_confined() -> bool {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let is_our_root = |line: &str| {
        let fields: Vec<&str> = line.split(' ').collect();
        matches!(fields[..], [_, _, _, _, "/", options, ..] if options.split(',').any(|it| it == "ro"))
            && line.contains(" - tmpfs ")
    };
    env::var_os(MARK).is_some() && mounts.lines().any(is_our_root)
}

/// Starts this program again inside the sandbox, with the same arguments.
pub(super) fn start_confined(args: &[OsString]) -> Result<ExitStatus> {
    let root = env::temp_dir().join(format!("fuzz-judge-{}", std::process::id()));
    fs::create_dir(&root).with_context(|| format!("creating {}", root.display()))?;
    let fuzzer = env::current_exe().context("finding this program")?;
    // When this process is killed, everything in the sandbox is.
    let status = Command::new("setpriv")
        .args([
            "--pdeathsig",
            "KILL",
            "unshare",
            "--user",
            "--map-root-user",
            "--net",
            "--mount",
            "--pid",
            "--ipc",
            "--fork",
        ])
        .args(["--kill-child", "--", "/bin/bash", "-c", SCRIPT, "confine"])
        .arg(&root)
        .arg(fuzzer)
        .args(args)
        .status();
    // The mounts were in a namespace that is gone: what is left is the empty folder.
    let removed = fs::remove_dir(&root);
    let status = status.context(
        "starting `unshare` (util-linux), without which commands are not run: a judge's mistake could hurt the machine",
    )?;
    removed.with_context(|| format!("removing {}", root.display()))?;
    ensure!(
        status.code() != Some(1) || !needs_namespaces(),
        "the sandbox cannot be made: user namespaces are switched off here. Switch them on \
         (`sysctl kernel.unprivileged_userns_clone=1`, or in Docker `--security-opt seccomp=unconfined`)"
    );
    Ok(status)
}

/// Whether the machine refuses even an empty sandbox.
fn needs_namespaces() -> bool {
    let status =
        Command::new("unshare").args(["--user", "--map-root-user", "--mount", "true"]).status();
    !status.is_ok_and(|status| status.success())
}

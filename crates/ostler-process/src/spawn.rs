//! Starts a child in its own session without forking this process.
//!
//! The standard library starts a program with `posix_spawn`, which shares this process's memory until the program
//! runs, so its cost does not depend on the memory size. If something has to be called in the child first (`setsid`),
//! it forks instead and copies all page tables: 80 ms for a server of 1.7 GB. So the utility `setsid` makes that call
//! and then becomes the program. If the utility is missing, or the child has another user, the child is forked.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessSession};
use rustix::io::Errno;
use tokio::process::Command;

/// A command for [`Group::spawn`](crate::Group::spawn), which starts it without forking this process.
///
/// Any other [`Command`] does as well, at a cost that grows with the memory of this process.
///
/// ```
/// let mut command = ostler_process::command("cargo");
/// command.arg("--version");
/// ```
pub fn command(program: impl AsRef<OsStr>) -> Command {
    match utility() {
        Some(utility) => {
            let mut command = Command::new(utility);
            command.arg("--").arg(program);
            command
        }
        None => Command::new(program),
    }
}

/// The utility, by its full path: a file of a project on PATH must not replace it.
fn utility() -> Option<&'static Path> {
    static UTILITY: OnceLock<Option<&'static Path>> = OnceLock::new();
    let known = || ["/usr/bin/setsid", "/bin/setsid"].into_iter().map(Path::new);
    *UTILITY.get_or_init(|| known().find(|path| is_executable(path)))
}

/// The shell for commands of users and agents: bash, if there is one. By its full path: a file of a project on PATH must
/// not replace it.
pub fn shell() -> &'static str {
    let known = ["/bin/bash", "/usr/bin/bash"].into_iter().find(|shell| Path::new(shell).exists());
    known.unwrap_or("/bin/sh")
}

/// Starts the command as the leader of its own session.
pub(crate) fn spawn(mut command: Command) -> io::Result<Box<dyn ChildWrapper>> {
    if utility().is_some_and(|utility| command.as_std().get_program() == utility) {
        is_there(command.as_std())?;
        return Ok(Box::new(command.spawn()?));
    }
    // The wrapper's own `wait` would block a thread until the whole group is gone, so the plain child is taken out.
    Ok(CommandWrap::from(command).wrap(ProcessSession).spawn()?.into_inner())
}

/// Fails as the system would for a missing program, because the utility itself always starts.
fn is_there(command: &std::process::Command) -> io::Result<()> {
    let Some(program) = command.get_args().nth(1).map(Path::new) else { return Ok(()) };
    let folders = match program.components().count() {
        1 if !program.as_os_str().as_encoded_bytes().contains(&b'/') => search_path(command),
        _ => vec![command.get_current_dir().unwrap_or(Path::new("")).to_owned()],
    };
    let found: Vec<_> =
        folders.iter().map(|it| it.join(program)).filter(|it| it.exists()).collect();
    match found.iter().any(|it| is_executable(it)) {
        true => Ok(()),
        false if found.is_empty() => Err(Errno::NOENT.into()),
        false => Err(Errno::ACCESS.into()),
    }
}

/// Where the child looks for programs. Whether its environment was cleared is not visible here; then these are the
/// usual folders.
fn search_path(command: &std::process::Command) -> Vec<PathBuf> {
    let own = command.get_envs().find(|(name, _)| *name == "PATH").map(|(_, value)| value);
    let path = match own {
        Some(value) => value.map(OsStr::to_owned),
        None => std::env::var_os("PATH"),
    };
    let mut folders: Vec<_> = path.iter().flat_map(std::env::split_paths).collect();
    if own.is_none_or(|value| value.is_none()) {
        folders.extend(["/bin".into(), "/usr/bin".into()]);
    }
    folders
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

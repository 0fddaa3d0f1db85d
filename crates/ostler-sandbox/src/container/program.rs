//! The programs `podman` and `docker`, and the containers that this process starts with them.

use std::ffi::OsStr;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use ostler_process::sweep as watchdog;

use super::{SEARCH_PATH, TO_SWEEP, refused};
use crate::error::SandboxError;
use crate::owner;

/// Which program runs containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Podman,
    Docker,
}

impl Engine {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Podman => "podman",
            Self::Docker => "docker",
        }
    }

    /// Where packages install it. Never looked up by name: a file of a project must not replace it.
    fn known(self) -> [PathBuf; 2] {
        ["/usr/bin", "/usr/local/bin"].map(|folder| Path::new(folder).join(self.name()))
    }
}

/// A program that runs containers.
#[derive(Clone, Debug)]
pub(super) struct ContainerProgram {
    pub(super) engine: Engine,
    pub(super) path: PathBuf,
    pub(super) version: String,
}

impl ContainerProgram {
    pub(super) fn find(engine: Engine) -> Result<Self, SandboxError> {
        let name = engine.name();
        let missing = |reason: String| {
            let package = if engine == Engine::Podman { "podman" } else { "docker.io" };
            let way_out =
                format!("Install it, on Debian or Ubuntu: sudo apt-get install {package}");
            refused(&reason, &way_out)
        };
        let found = engine.known().into_iter().find(|path| path.is_file());
        let path = found.ok_or_else(|| {
            missing(format!("{name} is neither in /usr/bin nor in /usr/local/bin"))
        })?;
        let about = path.metadata().map_err(SandboxError::io(&path))?;
        if about.permissions().mode() & 0o022 != 0 && about.uid() != 0 {
            return Err(missing(format!("other users can write {}", path.display())));
        }
        let output = command(&path, &["--version"]).output();
        let output = output.map_err(|error| missing(format!("{}: {error}", path.display())))?;
        Ok(Self { engine, path, version: version(&String::from_utf8_lossy(&output.stdout)) })
    }

    /// A name for a new container, which is removed when the result is dropped, or by the watchdog if this process is killed.
    pub(super) fn container(&self, sweeper: &Path) -> Result<RunningContainer, SandboxError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let prefix = owner::prefix().ok_or_else(|| {
            refused("this process cannot read its own state in /proc", "Mount /proc")
        })?;
        // All containers of this process at once, before the first one exists.
        let all = format!("{TO_SWEEP}{}:{prefix}", self.path.display());
        watchdog::add(sweeper, Path::new(&all)).map_err(SandboxError::io(&self.path))?;
        Ok(RunningContainer { program: self.path.clone(), name: format!("{prefix}{number}") })
    }

    /// Removes containers of processes that are gone.
    pub(super) fn remove_leftovers(&self) {
        remove(&self.path, owner::PREFIX, owner::is_gone);
    }
}

/// A container that was started, or will be. Dropping it ends it.
#[derive(Debug)]
pub(super) struct RunningContainer {
    program: PathBuf,
    name: String,
}

impl RunningContainer {
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for RunningContainer {
    fn drop(&mut self) {
        // Its program may have ended without it: killing it does not reach the container.
        end(&self.program, std::slice::from_ref(&self.name));
    }
}

/// Ends and removes all containers of a process that is gone: `PROGRAM:PREFIX`.
///
/// # Errors
/// When the text does not name a known program and a prefix of containers that are made here.
pub(crate) fn sweep(text: &str) -> Result<(), String> {
    let found = text.split_once(':').filter(|(program, prefix)| {
        let engines = [Engine::Podman, Engine::Docker];
        let mut known = engines.iter().flat_map(|engine| engine.known());
        known.any(|known| known == Path::new(program)) && owner::is_prefix(prefix)
    });
    let (program, prefix) =
        found.ok_or_else(|| format!("{text} does not name containers of a sandbox"))?;
    remove(Path::new(program), prefix, |name| name.starts_with(prefix));
    Ok(())
}

fn remove(program: &Path, filter: &str, is_left: impl Fn(&str) -> bool) {
    let filter = format!("name={filter}");
    let arguments = ["ps", "--all", "--filter", &filter, "--format", "{{.Names}}"];
    let Ok(output) = command(program, &arguments).output() else { return };
    let names = String::from_utf8_lossy(&output.stdout).into_owned();
    let left: Vec<String> = names.lines().filter(|name| is_left(name)).map(str::to_owned).collect();
    if !left.is_empty() {
        end(program, &left);
    }
}

/// Ends containers at once, and removes them. Those that are gone are no problem.
fn end(program: &Path, names: &[String]) {
    for verb in ["kill", "rm"] {
        let options: &[&str] = if verb == "rm" { &["rm", "--force"] } else { &["kill"] };
        let _ = command(program, options).args(names).output();
    }
}

fn command(program: &Path, arguments: &[impl AsRef<OsStr>]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).env("PATH", SEARCH_PATH).current_dir("/").stdin(Stdio::null());
    command
}

/// The version in what the program prints: `podman version 4.3.1`, `Docker version 28.2.2, build e6534b4`.
fn version(text: &str) -> String {
    let mut words = text.split_whitespace().skip_while(|word| *word != "version");
    words.nth(1).unwrap_or("of unknown version").trim_end_matches(',').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_what_both_programs_print() {
        assert_eq!(version("podman version 4.3.1\n"), "4.3.1");
        assert_eq!(version("Docker version 28.2.2, build e6534b4\n"), "28.2.2");
        assert_eq!(version(""), "of unknown version");
    }

    // Mutant: any program may be named.
    #[test]
    fn the_sweeper_starts_only_known_programs_for_containers_of_a_sandbox() {
        let own = owner::prefix().unwrap();
        for refused in [
            format!("/bin/sh:{own}"),
            "/usr/bin/podman:".to_owned(),
            "/usr/bin/podman:database".to_owned(),
            format!("podman:{own}"),
            String::new(),
        ] {
            assert!(sweep(&refused).is_err(), "{refused}");
        }
    }
}

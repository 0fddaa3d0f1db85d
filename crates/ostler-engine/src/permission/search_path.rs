//! Which program a bare name starts.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Folders that hold the system's programs, wherever the session works.
const SYSTEM: &[&str] =
    &["/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin"];

/// The program that a bare name may start instead of the system's: one in a folder of the search path that is relative
/// or inside a working directory, where the agent and the project can put anything.
pub(crate) fn shadowed(
    name: &str,
    working: &[&Path],
    search_path: Option<&OsStr>,
) -> Option<PathBuf> {
    if name.contains('/') || ostler_shell::is_builtin(name) {
        return None;
    }
    let reals: Vec<_> = working.iter().filter_map(|folder| folder.canonicalize().ok()).collect();
    let is_changeable = |folder: &PathBuf| {
        let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        let is_system = SYSTEM.iter().any(|system| Path::new(system) == folder);
        folder.is_relative()
            || (!is_system && reals.iter().any(|working| real.starts_with(working)))
    };
    let is_there = |folder: &PathBuf| folder.is_relative() || folder.join(name).exists();
    let mut folders = std::env::split_paths(search_path?);
    folders.find(|folder| is_changeable(folder) && is_there(folder)).map(|folder| folder.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Mutant: `shadowed` returns `None`.
    #[test]
    fn a_program_that_the_project_put_on_the_search_path_is_not_the_system_s() {
        let cwd = tempfile::tempdir().unwrap();
        let bin = cwd.path().join("node_modules/.bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::write(bin.join("ls"), "").unwrap();
        let path = format!("{}:/usr/bin", bin.display());
        let of = |name: &str, path: &str| shadowed(name, &[cwd.path()], Some(OsStr::new(path)));
        assert!(of("ls", &path).is_some());
        assert!(of("cat", &path).is_none(), "there is no such program in the project");
        assert!(
            of("ls", "/usr/bin:.").is_some(),
            "what `.` holds is not known once the shell moves"
        );
        assert!(of("ls", "/usr/bin:").is_some(), "an empty folder is the current one");
        assert!(of("/bin/ls", &path).is_none());
        assert!(of("cd", &path).is_none());
        assert!(of("ls", "/usr/bin:/bin").is_none());
        let root = shadowed("ls", &[Path::new("/")], Some(OsStr::new("/usr/bin")));
        assert!(root.is_none(), "a session in / still has the system's programs");
    }
}

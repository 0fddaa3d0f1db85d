//! Finds out which program a bare name starts.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::disk::OnDisk as _;

/// Folders of the system's programs, wherever the session works.
const SYSTEM: &[&str] =
    &["/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin"];

/// The program that a bare name may start instead of the system's: one in a folder of the search path that is relative
/// or inside a working directory, where the agent and the project can put anything. `is_changed` returns whether a file
/// may be put into a folder before the program starts.
pub(crate) fn shadowed(
    name: &str,
    working: &[&Path],
    search_path: &OsStr,
    is_changed: impl Fn(&Path) -> bool,
) -> Option<PathBuf> {
    if name.contains('/') || ostler_shell::is_builtin(name) {
        return None;
    }
    // Scripts of the system that start another program by its bare name.
    let started = if matches!(name, "egrep" | "fgrep") { "grep" } else { name };
    let is_there = |folder: &Path| {
        let is_one = |name: &&str| folder.join(name).look().is_ok();
        [name, started].iter().any(is_one) || is_changed(folder)
    };
    let reals: Vec<_> =
        working.iter().filter_map(|folder| folder.with_links_followed().ok()).collect();
    let is_changeable = |folder: &PathBuf| {
        let real = folder.with_links_followed().unwrap_or_else(|_| folder.clone());
        let is_system = SYSTEM.iter().any(|system| Path::new(system) == folder);
        folder.is_relative()
            || (!is_system && reals.iter().any(|working| real.starts_with(working)))
    };
    let is_meant =
        |folder: &PathBuf| is_changeable(folder) && (folder.is_relative() || is_there(folder));
    std::env::split_paths(search_path).find(is_meant).map(|folder| folder.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Mutant: `shadowed` returns `None`.
    #[test]
    fn a_program_that_the_project_put_on_the_search_path_is_not_a_system_program() {
        let cwd = tempfile::tempdir().unwrap();
        let bin = cwd.path().join("node_modules/.bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::write(bin.join("ls"), "").unwrap();
        let path = format!("{}:/usr/bin", bin.display());
        let of =
            |name: &str, path: &str| shadowed(name, &[cwd.path()], OsStr::new(path), |_| false);
        assert!(of("ls", &path).is_some());
        assert!(of("cat", &path).is_none(), "there is no such program in the project");
        assert!(
            of("ls", "/usr/bin:.").is_some(),
            "the meaning of `.` changes with the shell's folder"
        );
        assert!(of("ls", "/usr/bin:").is_some(), "an empty folder is the current one");
        assert!(of("/bin/ls", &path).is_none());
        assert!(of("cd", &path).is_none());
        assert!(of("ls", "/usr/bin:/bin").is_none());
        assert!(of("ls", "").is_some(), "without a search path shells use their own");
        let grep = bin.join("grep");
        std::fs::write(&grep, "").unwrap();
        assert!(of("egrep", &path).is_some(), "egrep starts grep");
        let changed = shadowed("cat", &[cwd.path()], OsStr::new(&path), |folder| folder == bin);
        assert!(changed.is_some(), "the same command can put it there");
        let root = shadowed("ls", &[Path::new("/")], OsStr::new("/usr/bin"), |_| true);
        assert!(root.is_none(), "a session in / still has the system's programs");
    }
}

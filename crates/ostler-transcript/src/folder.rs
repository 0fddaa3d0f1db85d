//! The paths of session files: `<config>/projects/<folder of the working directory>/<session id>.jsonl`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use ostler_proto::SessionId;
use ostler_proto::project::MAX_NAME;
pub use ostler_proto::project::folder_name;

use super::StoreError;
use ostler_policy::project_file::Boundary;

/// The folder that holds the sessions of all working directories.
#[derive(Clone, Debug)]
pub struct Projects {
    root: PathBuf,
}

impl Projects {
    /// The sessions under a configuration folder.
    pub fn new(config: &Path) -> Self {
        Self { root: config.join("projects") }
    }

    /// The sessions under `$CLAUDE_CONFIG_DIR`, or else `~/.claude`.
    ///
    /// # Errors
    /// When the environment names neither.
    pub fn from_env(env: impl Fn(&str) -> Option<OsString>) -> Result<Self, StoreError> {
        let set = |name| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        set("CLAUDE_CONFIG_DIR")
            .or_else(|| set("HOME").map(|home| home.join(".claude")))
            .map(|config| Self::new(&config))
            .ok_or(StoreError::NoHome)
    }

    /// The folder for the sessions of a working directory; it may not exist yet.
    pub fn folder(&self, cwd: &Path) -> PathBuf {
        let name = folder_name(&real_path(cwd).to_string_lossy());
        let exact = self.root.join(&name);
        if name.len() <= MAX_NAME || exact.is_dir() {
            return exact;
        }
        // Programs hash differently, so any folder with the same prefix counts.
        let prefix = &name[..=MAX_NAME];
        let mut alike = self.folders();
        alike.retain(|path| file_name(path).starts_with(prefix));
        alike.into_iter().next().unwrap_or(exact)
    }

    /// The folders of all working directories, by name.
    pub(super) fn folders(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(&self.root) else { return Vec::new() };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut folders: Vec<_> = paths.filter(|path| path.is_dir()).collect();
        folders.sort();
        folders
    }

    /// The file of a session: that of the working directory if there is one, else that of any other.
    pub(super) fn file(&self, cwd: Option<&Path>, id: &SessionId) -> Option<PathBuf> {
        is_uuid(id.as_str()).then_some(())?;
        let here = cwd.map(|cwd| self.folder(cwd));
        let folders = here.into_iter().chain(self.folders());
        // An empty file is not a session: its writer died before the first line.
        folders
            .map(|folder| session_file(&folder, id))
            .find(|file| fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.len() > 0))
    }
}

/// The file of a session in a folder.
pub(super) fn session_file(folder: &Path, id: &SessionId) -> PathBuf {
    folder.join(format!("{id}.jsonl"))
}

/// Whether a text is a valid session id; this also keeps path separators out of file names.
pub(super) fn is_uuid(text: &str) -> bool {
    text.len() == 36 && uuid::Uuid::try_parse(text).is_ok()
}

/// The working directory with links followed; unchanged if that fails.
pub(super) fn real_path(path: &Path) -> PathBuf {
    fs::canonicalize(path)
        .or_else(|_| std::path::absolute(path))
        .unwrap_or_else(|_| path.to_owned())
}

pub(super) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The largest `.git` file and `HEAD`, in bytes.
const LONGEST_GIT_FILE: u64 = 4096;

/// The checked-out branch, without running git. `HEAD` without a branch; `None` outside a repository.
pub(super) fn git_branch(cwd: &Path) -> Option<String> {
    let dot_git = cwd.ancestors().map(|dir| dir.join(".git")).find(|path| path.exists())?;
    // Neither may be a pipe or endless; a worktree's folder lies elsewhere.
    let read = |path: &Path| Boundary::default().read_text(path, LONGEST_GIT_FILE);
    let git_dir = match read(&dot_git) {
        // A linked worktree: `.git` is a file with the path of the folder.
        Ok(text) => dot_git.parent()?.join(text.trim().strip_prefix("gitdir:")?.trim()),
        Err(_) => dot_git,
    };
    let head = read(&git_dir.join("HEAD")).ok()?;
    let branch = head.trim().strip_prefix("ref: refs/heads/").unwrap_or("HEAD");
    Some(branch.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_the_configuration_folder() {
        let root = |vars: &[(&str, &str)]| {
            let vars: Vec<_> = vars.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
            let env = move |name: &str| {
                vars.iter().find(|(key, _)| key == name).map(|(_, value)| value.into())
            };
            Projects::from_env(env).map(|projects| projects.root.display().to_string())
        };
        assert_eq!(root(&[("HOME", "/h")]).unwrap(), "/h/.claude/projects");
        assert_eq!(root(&[("HOME", "/h"), ("CLAUDE_CONFIG_DIR", "/c")]).unwrap(), "/c/projects");
        assert_eq!(
            root(&[("HOME", "/h"), ("CLAUDE_CONFIG_DIR", "")]).unwrap(),
            "/h/.claude/projects"
        );
        assert!(matches!(root(&[]), Err(StoreError::NoHome)));
    }
}

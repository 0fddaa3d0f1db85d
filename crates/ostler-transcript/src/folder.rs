//! Where sessions lie: `<config>/projects/<folder of the working directory>/<session id>.jsonl`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use ostler_proto::SessionId;

use super::StoreError;
use ostler_policy::project_file::Boundary;

/// Folder names are cut here, and a hash of the whole path follows.
const MAX_NAME: usize = 200;

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
        // Programs hash differently, so any folder with the same beginning is taken for the right one.
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
        // An empty file is not a session: something died before its first line.
        folders
            .map(|folder| session_file(&folder, id))
            .find(|file| fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.len() > 0))
    }
}

/// The folder name of a working directory: everything but ASCII letters and digits becomes `-`.
///
/// The vendor's programs count in UTF-16 code units, here and in the hash of names that are too long.
pub fn folder_name(path: &str) -> String {
    let units = path.encode_utf16();
    let mut name: String = units
        .map(|unit| u8::try_from(unit).ok().filter(u8::is_ascii_alphanumeric).unwrap_or(b'-'))
        .map(char::from)
        .collect();
    if name.len() > MAX_NAME {
        name.truncate(MAX_NAME);
        name.push('-');
        name.push_str(&base36(hash(path)));
    }
    name
}

/// The file of a session in a folder.
pub(super) fn session_file(folder: &Path, id: &SessionId) -> PathBuf {
    folder.join(format!("{id}.jsonl"))
}

/// Whether a session id can be one; this also keeps path separators out of file names.
pub(super) fn is_uuid(text: &str) -> bool {
    text.len() == 36 && uuid::Uuid::try_parse(text).is_ok()
}

/// The working directory without links; as it is if that cannot be found out.
pub(super) fn real_path(path: &Path) -> PathBuf {
    fs::canonicalize(path)
        .or_else(|_| std::path::absolute(path))
        .unwrap_or_else(|_| path.to_owned())
}

pub(super) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The most of `.git` and of `HEAD`, in bytes.
const LONGEST_GIT_FILE: u64 = 4096;

/// The branch that is checked out, without asking git. `HEAD` when none is; `None` outside a repository.
pub(super) fn git_branch(cwd: &Path) -> Option<String> {
    let dot_git = cwd.ancestors().map(|dir| dir.join(".git")).find(|path| path.exists())?;
    // Neither may be a pipe or have no end; a worktree's folder lies elsewhere.
    let read = |path: &Path| Boundary::default().read_text(path, LONGEST_GIT_FILE);
    let git_dir = match read(&dot_git) {
        // A linked worktree: a file that says where the folder is.
        Ok(text) => dot_git.parent()?.join(text.trim().strip_prefix("gitdir:")?.trim()),
        Err(_) => dot_git,
    };
    let head = read(&git_dir.join("HEAD")).ok()?;
    let branch = head.trim().strip_prefix("ref: refs/heads/").unwrap_or("HEAD");
    Some(branch.to_owned())
}

fn hash(text: &str) -> u32 {
    let hash = text
        .encode_utf16()
        .fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    hash.unsigned_abs()
}

fn base36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(number % 36, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            break digits.iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_named_after_its_path() {
        assert_eq!(folder_name("/srv/My_app.v2"), "-srv-My-app-v2");
        assert_eq!(folder_name("/é😀"), "----", "counted in UTF-16");
    }

    #[test]
    fn a_long_name_ends_in_a_hash_of_the_whole_path() {
        let path = format!("/{}", "a".repeat(250));
        let name = folder_name(&path);
        // Computed with the MIT-licensed Python SDK's rule.
        assert_eq!(name, format!("-{}-feo44x", "a".repeat(199)));
        assert_eq!(folder_name(&path[..200]).len(), 200, "200 is not too long");
        assert_eq!((base36(0), base36(35), base36(36)), ("0".into(), "z".into(), "10".into()));
    }

    #[test]
    fn the_environment_says_where_the_configuration_is() {
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

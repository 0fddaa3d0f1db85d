//! Lists sessions. Reads only the two ends of each file.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ostler_proto::SessionId;

use super::folder::is_uuid;
use super::scan::FileEnds;
use super::{Projects, StoreError};

/// An entry of a list of sessions.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionInfo {
    /// The session.
    pub id: SessionId,
    /// Its file.
    pub path: PathBuf,
    /// The best text to recognise it by: title, latest prompt, summary or first prompt.
    pub summary: String,
    /// The title from the user or the model.
    pub title: Option<String>,
    /// The first prompt, shortened.
    pub first_prompt: Option<String>,
    /// The working directory.
    pub cwd: Option<String>,
    /// The git branch it was last on.
    pub git_branch: Option<String>,
    /// Its tag.
    pub tag: Option<String>,
    /// When it began.
    pub created: Option<SystemTime>,
    /// When something was last written.
    pub modified: SystemTime,
    /// Bytes of the file.
    pub size: u64,
}

impl Projects {
    /// The sessions of a working directory, newest first.
    pub fn sessions(&self, cwd: &Path) -> Vec<SessionInfo> {
        newest_first(sessions_in(&self.folder(cwd)))
    }

    /// The sessions of all working directories, newest first.
    pub fn all_sessions(&self) -> Vec<SessionInfo> {
        newest_first(self.folders().iter().flat_map(|folder| sessions_in(folder)).collect())
    }

    /// The newest session of a working directory. Reads no file but that one.
    pub fn latest(&self, cwd: &Path) -> Option<SessionInfo> {
        newest(files_in(&self.folder(cwd)), 1, SessionInfo::read).0.pop()
    }

    /// The newest sessions of one working directory, or of all, and how many files were not read.
    pub fn newest(&self, cwd: Option<&Path>, limit: usize) -> (Vec<SessionInfo>, usize) {
        let files = match cwd {
            Some(cwd) => files_in(&self.folder(cwd)),
            None => self.folders().iter().flat_map(|folder| files_in(folder)).collect(),
        };
        newest(files, limit, SessionInfo::read)
    }

    /// The session with an id, a title or the beginning of an id. A whole id is searched in all working directories,
    /// anything else only in this one.
    ///
    /// # Errors
    /// When it is missing, or there is more than one.
    pub fn find(&self, cwd: &Path, key: &str) -> Result<SessionId, StoreError> {
        let id = SessionId::from(key.to_ascii_lowercase());
        if self.file(Some(cwd), &id).is_some() {
            return Ok(id);
        }
        if is_uuid(key) || key.is_empty() {
            return Err(StoreError::NotFound(key.to_owned()));
        }
        let sessions = self.sessions(cwd);
        let titled: Vec<_> =
            sessions.iter().filter(|session| session.title.as_deref() == Some(key)).collect();
        let found = if titled.is_empty() {
            sessions.iter().filter(|session| session.id.as_str().starts_with(id.as_str())).collect()
        } else {
            titled
        };
        match found[..] {
            [] => Err(StoreError::NotFound(key.to_owned())),
            [session] => Ok(session.id.clone()),
            _ => Err(StoreError::Ambiguous { key: key.to_owned(), n: found.len() }),
        }
    }
}

impl SessionInfo {
    /// Reads an entry; `None` for a file that is not a session or has nothing to show.
    pub(super) fn read(path: &Path) -> Option<Self> {
        let id = path.file_stem()?.to_str()?;
        if path.extension()? != "jsonl" || !is_uuid(id) {
            return None;
        }
        let ends = FileEnds::read(path).ok()?;
        if ends.is_sidechain() {
            return None;
        }
        let title = ends.last("customTitle").or_else(|| ends.last("aiTitle"));
        let first_prompt = ends.first_prompt();
        let summary = title
            .clone()
            .or_else(|| ends.last("lastPrompt"))
            .or_else(|| ends.last("summary"))
            .or_else(|| first_prompt.clone())?;
        let created = ends.first("timestamp").and_then(|text| text.parse::<jiff::Timestamp>().ok());
        Some(Self {
            id: id.into(),
            path: path.to_owned(),
            summary,
            title,
            first_prompt,
            cwd: ends.first("cwd"),
            git_branch: ends.last("gitBranch"),
            tag: ends.tag(),
            created: created.map(SystemTime::from),
            modified: ends.modified,
            size: ends.size,
        })
    }
}

fn sessions_in(folder: &Path) -> Vec<SessionInfo> {
    files_in(folder).iter().filter_map(|(_, path)| SessionInfo::read(path)).collect()
}

/// The files that may be sessions, and when each was last written.
pub(super) fn files_in(folder: &Path) -> Vec<(SystemTime, PathBuf)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let file = |entry: fs::DirEntry| {
        let path = entry.path();
        let is_named = path.extension()? == "jsonl" && is_uuid(path.file_stem()?.to_str()?);
        Some((is_named.then(|| path.metadata().and_then(|it| it.modified()).ok())??, path))
    };
    entries.filter_map(|entry| file(entry.ok()?)).collect()
}

/// Reads the newest files, up to `limit` sessions. Also returns how many files were not read.
pub(super) fn newest(
    mut files: Vec<(SystemTime, PathBuf)>,
    limit: usize,
    mut read: impl FnMut(&Path) -> Option<SessionInfo>,
) -> (Vec<SessionInfo>, usize) {
    files.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let (mut sessions, mut n_files) = (Vec::new(), files.len());
    for (_, path) in files {
        if sessions.len() == limit {
            break;
        }
        n_files -= 1;
        sessions.extend(read(&path));
    }
    (sessions, n_files)
}

fn newest_first(mut sessions: Vec<SessionInfo>) -> Vec<SessionInfo> {
    sessions.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.id.cmp(&b.id)));
    sessions
}

/// The default title of a fork.
pub(super) fn fork_title(source: &Path) -> String {
    let info = SessionInfo::read(source);
    let name = info.and_then(|info| info.title.or(info.first_prompt));
    format!("{} (fork)", name.as_deref().unwrap_or("Forked session"))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Mutant: all files are read before the newest is chosen.
    #[test]
    fn only_as_many_files_are_read_as_requested() {
        let folder = tempfile::tempdir().unwrap();
        let file = |n: u32| folder.path().join(format!("00000000-0000-4000-8000-{n:012}.jsonl"));
        for n in 0..6_u32 {
            // The newest one has nothing to show, and is not a session.
            let text = if n == 5 { String::new() } else { format!("{{\"summary\":\"{n}\"}}\n") };
            fs::write(file(n), text).unwrap();
            let at = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(u64::from(n) + 1);
            fs::File::options().write(true).open(file(n)).unwrap().set_modified(at).unwrap();
        }
        fs::write(folder.path().join("notes.jsonl"), "{\"summary\":\"no\"}").unwrap();
        let of = |limit| {
            let (sessions, n_more) = newest(files_in(folder.path()), limit, SessionInfo::read);
            (sessions.into_iter().map(|it| it.summary).collect::<Vec<_>>().join(" "), n_more)
        };
        assert_eq!(of(1), ("4".to_owned(), 4));
        assert_eq!(of(3), ("4 3 2".to_owned(), 2));
        assert_eq!(of(99), ("4 3 2 1 0".to_owned(), 0));
    }
}

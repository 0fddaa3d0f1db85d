//! Which sessions there are, from the two ends of each file and without reading what lies between.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ostler_proto::SessionId;

use super::folder::is_uuid;
use super::scan::Ends;
use super::{Projects, StoreError};

/// What a listing shows of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionInfo {
    /// The session.
    pub id: SessionId,
    /// Its file.
    pub path: PathBuf,
    /// The best there is to recognise it by: title, latest prompt, summary or first prompt.
    pub summary: String,
    /// The title somebody or the model gave.
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

    /// The newest session of a working directory.
    pub fn latest(&self, cwd: &Path) -> Option<SessionInfo> {
        self.sessions(cwd).into_iter().next()
    }

    /// The session with an id, a title or the beginning of an id. A whole id is found wherever the session ran,
    /// anything else only in its working directory.
    ///
    /// # Errors
    /// When there is none, or more than one.
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
    /// Reads what a listing shows; `None` for what is no session or has nothing to show.
    pub(super) fn read(path: &Path) -> Option<Self> {
        let id = path.file_stem()?.to_str()?;
        if path.extension()? != "jsonl" || !is_uuid(id) {
            return None;
        }
        let ends = Ends::read(path).ok()?;
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
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.filter_map(|entry| SessionInfo::read(&entry.ok()?.path())).collect()
}

fn newest_first(mut sessions: Vec<SessionInfo>) -> Vec<SessionInfo> {
    sessions.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.id.cmp(&b.id)));
    sessions
}

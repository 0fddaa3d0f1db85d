//! One session on disk, for programs that manage sessions without running them: read, rename, tag, delete, fork.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use ostler_proto::{SessionId, Uuid};

use super::edit::not_empty;
use super::folder::{is_uuid, session_file};
use super::list::{files_in, fork_title, newest};
use super::resume::clock;
use super::{
    Clock, LineContext, Projects, SessionInfo, StoreError, Transcript, TranscriptWriter, fork,
    io_error,
};
use crate::ids::fresh_uuid;

/// A session that exists, with its file.
#[derive(Clone, Debug)]
pub struct SessionFile {
    id: SessionId,
    path: PathBuf,
    /// The working directory in whose sessions it was found.
    cwd: Option<PathBuf>,
}

impl Projects {
    /// A session by its id: of these working directories, or of any if `None`.
    ///
    /// # Errors
    /// When the id is not a UUID, or there is no such session.
    pub fn session(
        &self,
        cwds: Option<&[PathBuf]>,
        id: &SessionId,
    ) -> Result<SessionFile, StoreError> {
        if !is_uuid(id.as_str()) {
            return Err(StoreError::NotAUuid(id.to_string()));
        }
        let id = SessionId::from(id.as_str().to_ascii_lowercase());
        for (folder, cwd) in self.folders_of(cwds) {
            let path = session_file(&folder, &id);
            // An empty file is not a session: its writer died before the first line.
            if fs::metadata(&path).is_ok_and(|meta| meta.is_file() && meta.len() > 0) {
                return Ok(SessionFile { id, path, cwd });
            }
        }
        Err(StoreError::NotFound(id.to_string()))
    }

    /// The sessions of these working directories, or of all if `None`, newest first, after the first `offset` of them.
    /// A session in two folders is listed once.
    pub fn page(
        &self,
        cwds: Option<&[PathBuf]>,
        offset: usize,
        limit: Option<usize>,
    ) -> Vec<SessionInfo> {
        let folders = self.folders_of(cwds);
        let files: Vec<_> = folders.iter().flat_map(|(folder, _)| files_in(folder)).collect();
        let up_to = limit.map_or(usize::MAX, |limit| offset.saturating_add(limit));
        let mut seen = HashSet::new();
        let (sessions, _) = newest(files, up_to, |path| {
            let (_, cwd) = folders.iter().find(|(folder, _)| path.starts_with(folder))?;
            let info = read(path, cwd.as_deref())?;
            seen.insert(info.id.clone()).then_some(info)
        });
        sessions.into_iter().skip(offset).collect()
    }

    /// The folders of sessions, each with its working directory if that is known.
    fn folders_of(&self, cwds: Option<&[PathBuf]>) -> Vec<(PathBuf, Option<PathBuf>)> {
        let Some(cwds) = cwds else {
            return self.folders().into_iter().map(|folder| (folder, None)).collect();
        };
        let mut seen = HashSet::new();
        let folders = cwds.iter().map(|cwd| (self.folder(cwd), Some(cwd.clone())));
        folders.filter(|(folder, _)| seen.insert(folder.clone())).collect()
    }
}

/// Reads an entry of a listing. A file without a working directory belongs to that of its folder.
fn read(path: &Path, cwd: Option<&Path>) -> Option<SessionInfo> {
    let mut info = SessionInfo::read(path)?;
    info.cwd = info.cwd.or_else(|| Some(cwd?.to_string_lossy().into_owned()));
    Some(info)
}

impl SessionFile {
    /// The session.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The entry for a listing; `None` for a subagent's file, and for one without a prompt, title or summary.
    pub fn info(&self) -> Option<SessionInfo> {
        read(&self.path, self.cwd.as_deref())
    }

    /// Reads the whole file.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn transcript(&self) -> Result<Transcript, StoreError> {
        Transcript::read(&self.path)
    }

    /// Gives the session a title.
    ///
    /// # Errors
    /// When the title is empty, or the write fails.
    pub fn rename(&self, title: &str) -> Result<(), StoreError> {
        self.appender().title(title)
    }

    /// Sets or removes the session's tag.
    ///
    /// # Errors
    /// When the tag is empty, or the write fails.
    pub fn tag(&self, tag: Option<&str>) -> Result<(), StoreError> {
        self.appender().tag(tag)
    }

    /// Removes the session, and the transcripts of its subagents.
    ///
    /// # Errors
    /// When a file cannot be removed.
    pub fn delete(&self) -> Result<(), StoreError> {
        fs::remove_file(&self.path).map_err(io_error("delete", &self.path))?;
        let folder = self.path.with_extension("");
        match fs::remove_dir_all(&folder) {
            Err(error) if folder.exists() => Err(io_error("delete", &folder)(error)),
            _ => Ok(()),
        }
    }

    /// Copies the conversation to a new session in the same folder, with new uuids: up to a message, or all of it. The
    /// copy has no file checkpoints.
    ///
    /// # Errors
    /// When there is no such message or nothing to copy, the title is empty, or the write fails.
    pub fn fork(&self, up_to: Option<&Uuid>, title: Option<&str>) -> Result<SessionId, StoreError> {
        let transcript = self.transcript()?;
        let tree = transcript.tree();
        let leaf = match up_to {
            None => {
                let nothing = || StoreError::NothingToFork(self.id.clone());
                tree.leaf().filter(|at| tree.is_ours(*at)).ok_or_else(nothing)?
            }
            Some(uuid) => {
                let missing = || StoreError::NoSuchMessage {
                    session: self.id.clone(),
                    message: uuid.clone(),
                };
                tree.position(uuid.as_str()).filter(|at| tree.is_ours(*at)).ok_or_else(missing)?
            }
        };
        let chain = tree.chain(leaf);
        let lines: Vec<_> = chain.iter().map(|at| &transcript.lines()[*at]).collect();
        let title = match title {
            Some(title) => not_empty("title", title)?,
            None => fork_title(&self.path),
        };
        let id = SessionId::from(fresh_uuid().as_str());
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let copy = session_file(folder, &id);
        fork::write(&copy, &lines, Vec::new(), &self.id, &id, &title, &mut clock(&transcript))?;
        Ok(id)
    }

    /// A writer for small lines only, which have no working directory.
    fn appender(&self) -> TranscriptWriter {
        let nowhere = LineContext {
            cwd: Path::new("/").to_owned(),
            version: String::new(),
            entrypoint: None,
        };
        TranscriptWriter::go_on(self.path.clone(), self.id.clone(), nowhere, None, Clock::default())
    }
}

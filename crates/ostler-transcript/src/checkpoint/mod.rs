//! File checkpoints: the state of files before each prompt, so that a host can restore them (`rewind_files`).
//!
//! A snapshot belongs to a prompt and names, for every file that a tool has ever changed, the backup with its state at
//! that time. A file is added to the newest snapshot just before a tool first changes it. Lines in the session's file
//! and names of backups are the vendor's, so that either program can rewind the other's changes.
//!
//! Changes by Bash commands are not recorded. Everything is plain blocking code.

mod backup;
mod rewind;

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ostler_files::RealPath;
use ostler_proto::Uuid;
use ostler_proto::build;
use ostler_proto::control::RewindFilesReply;
use ostler_proto::transcript::{
    FileBackup, FileHistoryDelta, FileHistorySnapshot, FileSnapshot, TranscriptLine,
};

use self::backup::Backups;

/// The checkpoints of a session. Cheap to clone; subagents share them.
#[derive(Clone, Debug)]
pub struct Checkpoints(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    backups: Backups,
    cwd: PathBuf,
    /// The oldest first.
    snapshots: Vec<FileSnapshot>,
}

impl Checkpoints {
    /// Checkpoints with backups in a folder, starting with those of a resumed session.
    pub fn new(folder: PathBuf, cwd: &Path, snapshots: Vec<FileSnapshot>) -> Self {
        let state = State { backups: Backups::new(folder), cwd: cwd.to_owned(), snapshots };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Starts a checkpoint for a prompt: backs up all known files that have changed. Returns the line for the
    /// transcript.
    pub fn begin(&self, prompt: &Uuid) -> TranscriptLine {
        let mut state = self.lock();
        let before = state.snapshots.last().map(|last| last.tracked_file_backups.clone());
        let mut files = BTreeMap::new();
        for (path, last) in before.unwrap_or_default() {
            let file = state.cwd.join(&path);
            // A file that cannot be read now, or was replaced by a link, keeps its last backup.
            let renewed = real_file(&state.cwd, &file, &last)
                .and_then(|real| state.backups.renew(&file, &real, &last));
            files.insert(path, renewed.unwrap_or(last));
        }
        let snapshot = build!(FileSnapshot {
            message_id: prompt.clone(),
            tracked_file_backups: files,
            timestamp: now(),
        });
        state.snapshots.retain(|known| known.message_id != *prompt);
        state.snapshots.push(snapshot.clone());
        TranscriptLine::FileHistorySnapshot(build!(FileHistorySnapshot {
            message_id: prompt.clone(),
            snapshot,
            is_snapshot_update: false,
        }))
    }

    /// Backs up a file before a tool changes it. Returns the line for the transcript, unless the file is known;
    /// `message` is the edit, and `real` the path with links followed that the tool may write.
    ///
    /// # Errors
    /// When no backup can be made: the file could not be restored.
    pub fn before_write(
        &self,
        path: &Path,
        real: &RealPath,
        message: Option<Uuid>,
    ) -> io::Result<Option<TranscriptLine>> {
        let mut state = self.lock();
        let Some(snapshot) = state.snapshots.last() else { return Ok(None) };
        let known = |name: &str| snapshot.tracked_file_backups.get(name);
        let parent = parent_of(real);
        let is_of = |backup: &FileBackup| {
            backup.real_parent_dir.is_none() || backup.real_parent_dir == parent
        };
        let mut file = written_file(path, real);
        // The name stands for a file in another folder by now.
        if known(&state.name(file)).is_some_and(|backup| !is_of(backup)) {
            file = real.as_path();
        }
        let name = state.name(file);
        if known(&name).is_some() {
            return Ok(None);
        }
        let snapshot_message_id = snapshot.message_id.clone();
        let backup = state.backups.make(file, real, 1)?;
        if let Some(snapshot) = state.snapshots.last_mut() {
            snapshot.tracked_file_backups.insert(name.clone(), backup.clone());
        }
        Ok(Some(TranscriptLine::FileHistoryDelta(build!(FileHistoryDelta {
            message_id: message.unwrap_or_else(|| snapshot_message_id.clone()),
            snapshot_message_id,
            tracking_path: name,
            timestamp: backup.backup_time.clone(),
            backup,
        }))))
    }

    /// Restores files to their state before a prompt, or only reports what that would change.
    ///
    /// # Errors
    /// As text for the host, when there is no such checkpoint or a file cannot be restored.
    pub fn rewind(&self, prompt: &Uuid, dry_run: bool) -> Result<RewindFilesReply, String> {
        let state = self.lock();
        let wanted = state
            .wanted(prompt)
            .ok_or_else(|| "No file checkpoint found for this message.".to_owned())?;
        rewind::run(&state.backups, &state.cwd, &wanted, dry_run)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

impl State {
    /// The name of a file in snapshots: relative to the working directory if it lies there.
    fn name(&self, file: &Path) -> String {
        file.strip_prefix(&self.cwd).unwrap_or(file).display().to_string()
    }

    /// The state of all files before a prompt. For a file that was first changed later, this is its first backup.
    fn wanted(&self, prompt: &Uuid) -> Option<BTreeMap<String, FileBackup>> {
        let at = self.snapshots.iter().position(|snapshot| snapshot.message_id == *prompt)?;
        let mut wanted = self.snapshots[at].tracked_file_backups.clone();
        for later in &self.snapshots[at + 1..] {
            for (path, backup) in &later.tracked_file_backups {
                wanted.entry(path.clone()).or_insert_with(|| backup.clone());
            }
        }
        Some(wanted)
    }
}

/// The snapshots in a session's file.
pub(crate) fn snapshots<'a>(
    lines: impl IntoIterator<Item = &'a TranscriptLine>,
) -> Vec<FileSnapshot> {
    let mut snapshots: Vec<FileSnapshot> = Vec::new();
    for line in lines {
        match line {
            TranscriptLine::FileHistorySnapshot(line) => {
                let of_same =
                    |known: &&mut FileSnapshot| known.message_id == line.snapshot.message_id;
                match snapshots.iter_mut().find(of_same) {
                    // The old level writes the first snapshot after its own update: files that are known already are
                    // kept.
                    Some(known) => known
                        .tracked_file_backups
                        .extend(line.snapshot.tracked_file_backups.clone()),
                    None => snapshots.push(line.snapshot.clone()),
                }
            }
            TranscriptLine::FileHistoryDelta(delta) => {
                let of_same =
                    |known: &&mut FileSnapshot| known.message_id == delta.snapshot_message_id;
                if let Some(known) = snapshots.iter_mut().find(of_same) {
                    let files = &mut known.tracked_file_backups;
                    files.entry(delta.tracking_path.clone()).or_insert(delta.backup.clone());
                }
            }
            _ => {}
        }
    }
    snapshots
}

/// The folder of a session's backups, in the vendor's layout.
pub fn folder_of(session: &Path) -> Option<PathBuf> {
    let config = session.ancestors().nth(3)?;
    Some(config.join("file-history").join(session.file_stem()?))
}

/// Copies the backups for a copy of a session. A backup that cannot be copied is reported when a rewind needs it.
pub(crate) fn copy_backups(from: &Path, to: &Path, snapshots: &[FileSnapshot]) {
    let (Some(from), Some(to)) = (folder_of(from), folder_of(to)) else { return };
    let (from, to) = (Backups::new(from), Backups::new(to));
    for backup in snapshots.iter().flat_map(|snapshot| snapshot.tracked_file_backups.values()) {
        let _ = from.copy_to(&to, backup);
    }
}

/// The file that a write to a path changes, as it is named in snapshots: the path as written, or a link's target.
fn written_file<'p>(path: &'p Path, real: &'p RealPath) -> &'p Path {
    // A link on the way is not a link itself.
    let is_itself = RealPath::resolve_parent(path).is_ok_and(|found| found == *real);
    if is_itself { path } else { real.as_path() }
}

/// The folder of a file as it is recorded in snapshots.
fn parent_of(real: &RealPath) -> Option<String> {
    Some(real.as_path().parent()?.display().to_string())
}

/// The path by which a tracked file is opened: the folder in which it was when it was backed up, and its name.
///
/// # Errors
/// When its folder is unknown and it lies outside the working directory by now.
fn real_file(cwd: &Path, file: &Path, backup: &FileBackup) -> io::Result<RealPath> {
    let name = file.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    if let Some(parent) = &backup.real_parent_dir {
        let parent = RealPath::from_resolved(parent.into()).ok_or(io::ErrorKind::InvalidInput)?;
        return Ok(parent.join(name));
    }
    // Old snapshots do not record the folder.
    let real = RealPath::resolve_parent(file)?;
    let is_inside = real.as_path().starts_with(RealPath::resolve(cwd)?.as_path());
    match is_inside || !file.starts_with(cwd) {
        true => Ok(real),
        false => {
            Err(io::Error::other("a folder on the way to it leads out of the working directory"))
        }
    }
}

fn now() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

#[cfg(test)]
mod tests;

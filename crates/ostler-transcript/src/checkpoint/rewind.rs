//! Restores files.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use imara_diff::{Algorithm, Diff, InternedInput};
use ostler_proto::build;
use ostler_proto::control::RewindFilesReply;
use ostler_proto::transcript::FileBackup;

use super::backup::{Backups, real_parent};

/// The change that restores a file.
struct Change {
    file: std::path::PathBuf,
    now: Option<Vec<u8>>,
    then: Option<Vec<u8>>,
    permissions: Option<fs::Permissions>,
}

/// Restores files, or only reports what would change. Everything is checked before anything is written: a missing
/// backup must not leave half of the files restored.
pub(super) fn run(
    backups: &Backups,
    cwd: &Path,
    wanted: &BTreeMap<String, FileBackup>,
    dry_run: bool,
) -> Result<RewindFilesReply, String> {
    let mut changes = Vec::new();
    let mut n_links = 0;
    for (path, backup) in wanted {
        let file = cwd.join(path);
        if leads_elsewhere(&file, backup) {
            n_links += 1;
            continue;
        }
        let change = look(backups, &file, backup)
            .map_err(|error| format!("{} cannot be restored: {error}", file.display()))?;
        changes.extend(change);
    }
    if dry_run {
        return Ok(tell(&changes));
    }
    for change in &changes {
        put_back(change)
            .map_err(|error| format!("{} was not restored: {error}", change.file.display()))?;
    }
    let skipped_links = Some(n_links);
    Ok(build!(RewindFilesReply { can_rewind: true, skipped_links }))
}

/// Whether a path has become a link, or lies behind one: another file would be written.
fn leads_elsewhere(file: &Path, backup: &FileBackup) -> bool {
    let is_link = file.symlink_metadata().is_ok_and(|found| found.is_symlink());
    let was = backup.real_parent_dir.as_deref().map(Path::new);
    let has_moved = was.is_some() && was != real_parent(file).as_deref();
    is_link || has_moved
}

/// The change that restores a file; `None` if it is unchanged.
fn look(backups: &Backups, file: &Path, backup: &FileBackup) -> io::Result<Option<Change>> {
    let then = backups.read(backup)?;
    let permissions = backups.permissions(backup)?;
    let found = match file.symlink_metadata() {
        Ok(found) if found.is_file() => Some(found),
        Ok(_) => return Err(io::Error::other("there is something other than a file in its place")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let now = found.as_ref().map(|_| ostler_files::read_bytes(file, u64::MAX)).transpose()?;
    let mode_now = found.map(|found| found.permissions());
    let is_same = now == then && (then.is_none() || mode_now == permissions);
    let file = file.to_owned();
    Ok((!is_same).then_some(Change { file, now, then, permissions }))
}

fn tell(changes: &[Change]) -> RewindFilesReply {
    let (mut insertions, mut deletions) = (0, 0);
    for change in changes {
        let (added, removed) = lines(change);
        insertions += added;
        deletions += removed;
    }
    let files = changes.iter().map(|change| change.file.display().to_string()).collect();
    build!(RewindFilesReply {
        can_rewind: true,
        files_changed: Some(files),
        insertions: Some(insertions),
        deletions: Some(deletions)
    })
}

/// How many lines would be added and removed; none in files that are not text.
fn lines(change: &Change) -> (u64, u64) {
    let text = |bytes: &Option<Vec<u8>>| String::from_utf8(bytes.clone().unwrap_or_default());
    let (Ok(now), Ok(then)) = (text(&change.now), text(&change.then)) else { return (0, 0) };
    let input = InternedInput::new(now.as_str(), then.as_str());
    let diff = Diff::compute(Algorithm::Histogram, &input);
    (u64::from(diff.count_additions()), u64::from(diff.count_removals()))
}

fn put_back(change: &Change) -> io::Result<()> {
    let Some(bytes) = &change.then else { return fs::remove_file(&change.file) };
    fs::create_dir_all(change.file.parent().unwrap_or(Path::new("/")))?;
    ostler_files::edit(&change.file, bytes, 0o600, change.permissions.clone())
}

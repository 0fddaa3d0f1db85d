//! Restores files.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use imara_diff::{Algorithm, Diff, InternedInput};
use ostler_files::RealPath;
use ostler_proto::build;
use ostler_proto::control::RewindFilesReply;
use ostler_proto::transcript::FileBackup;

use super::backup::Backups;

/// The change that restores a file.
struct Change {
    file: PathBuf,
    real: RealPath,
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
        // Everything below opens this path, and none that has become a link.
        let real = super::real_file(cwd, &file, backup);
        let Some(real) = real.ok().filter(|real| !leads_elsewhere(&file, real)) else {
            n_links += 1;
            continue;
        };
        let change = look(backups, file.clone(), real, backup)
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
fn leads_elsewhere(file: &Path, real: &RealPath) -> bool {
    let is_link = real.metadata().is_ok_and(|found| found.is_symlink());
    let has_moved = RealPath::resolve_parent(file).ok().as_ref() != Some(real);
    is_link || has_moved
}

/// The change that restores a file; `None` if it is unchanged.
fn look(
    backups: &Backups,
    file: PathBuf,
    real: RealPath,
    backup: &FileBackup,
) -> io::Result<Option<Change>> {
    let then = backups.read(backup)?;
    let permissions = backups.permissions(backup)?;
    let found = match real.metadata() {
        Ok(found) if found.is_file() => Some(found),
        Ok(_) => return Err(io::Error::other("there is something other than a file in its place")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let now = found.as_ref().map(|_| real.read_bytes(u64::MAX)).transpose()?;
    let mode_now = found.map(|found| found.permissions());
    let is_same = now == then && (then.is_none() || mode_now == permissions);
    Ok((!is_same).then_some(Change { file, real, now, then, permissions }))
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
    let Some(bytes) = &change.then else { return change.real.remove() };
    change.real.parent()?.create_folders(0o777)?;
    change.real.edit(bytes, 0o600, change.permissions.clone())
}

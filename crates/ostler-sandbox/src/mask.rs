//! Keeps the places of protected paths that do not exist, so that a program cannot create them.
//!
//! A mount needs something to be mounted on, so a placeholder takes the place while a program runs: a socket, which git does
//! not add to a commit, and which no program can read or write. Several programs, also of other processes, may need the same
//! placeholders. Each marks their folder as used, and the last one removes them. If this process is killed, the watchdog of
//! `ostler-process` has that done.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ostler_files::{PLACEHOLDER_MODE, is_placeholder as is_socket_placeholder};
use ostler_process::sweep;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::boundary::{Kind, Protected};
use crate::error::SandboxError;
use crate::mark::Mark;
use crate::usual;

/// How often, and after which pause, to look whether another process still removes placeholders.
const TRIES: usize = 400;
const PAUSE: Duration = Duration::from_millis(5);
/// The permissions of placeholders. The sticky bit, which means nothing here, tells them from other files. The user can write
/// folders, so that tools outside the sandbox can put something in them.
const FILE_MODE: u32 = PLACEHOLDER_MODE;
const FOLDER_MODE: u32 = STICKY | 0o755;
const STICKY: u32 = 0o1000;
/// The most bytes of a placeholder with text.
const MOST_TEXT: u64 = 16;

/// Where a protected path can be protected: at itself, or at its first parent that is missing or a placeholder.
pub(crate) fn place(protected: &Protected) -> (PathBuf, Kind) {
    let mut place = (protected.path.as_path(), protected.kind);
    for parent in protected.path.ancestors().skip(1) {
        match fs::symlink_metadata(parent) {
            Err(_) => place = (parent, Kind::Folder),
            Ok(about) if about.is_dir() && is_placeholder(parent, &about) => {
                place = (parent, Kind::Folder);
            }
            Ok(_) => break,
        }
    }
    (place.0.to_owned(), place.1)
}

/// Whether a path needs a placeholder, because nothing or a placeholder is there.
pub(crate) fn is_needed(path: &Path) -> bool {
    fs::symlink_metadata(path).map_or(true, |about| is_placeholder(path, &about))
}

/// The placeholders in one folder, which stay while this value does.
#[derive(Debug)]
pub(crate) struct Masks {
    folder: PathBuf,
    names: Vec<OsString>,
    mark: Mark,
}

impl Masks {
    /// Makes or joins placeholders in a folder.
    pub(crate) fn new(
        folder: &Path,
        names: &[(OsString, Kind)],
        sweeper: &Path,
    ) -> Result<Self, SandboxError> {
        Self::make(folder, names, sweeper).map_err(|error| match fs::symlink_metadata(folder) {
            Ok(about) if about.is_symlink() => SandboxError::Link(folder.to_owned()),
            _ => SandboxError::io(folder)(error),
        })
    }

    fn make(folder: &Path, names: &[(OsString, Kind)], sweeper: &Path) -> io::Result<Self> {
        let mark = Mark::used(open_folder(folder)?)?;
        // From now on no other user begins to remove them.
        let mut tries = 0;
        while mark.others_remove()? {
            tries += 1;
            if tries > TRIES {
                let reason = "another process does not finish removing its placeholders there";
                return Err(io::Error::other(reason));
            }
            std::thread::sleep(PAUSE);
        }
        // Before they exist, so that they never stay.
        sweep::add(sweeper, folder)?;
        let known = names.iter().map(|(name, _)| name.clone()).collect();
        // If one of them cannot be made, this value goes, and the others with it.
        let masks = Self { folder: folder.to_owned(), names: known, mark };
        let mut socket = None;
        for (name, kind) in names {
            create(masks.mark.folder(), name, *kind, &mut socket)?;
        }
        Ok(masks)
    }
}

impl Drop for Masks {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next command in the folder.
        let _ = self.mark.remove_if_last(|folder| remove(folder, &self.folder, &self.names));
        sweep::remove(&self.folder);
    }
}

/// Removes the unused placeholders in a folder.
pub(crate) fn sweep_folder(folder: &Path) {
    // Of folders that are gone nothing is left.
    let _ = open_folder(folder)
        .and_then(Mark::used)
        .and_then(|mut mark| mark.remove_if_last(|opened| remove(opened, folder, &[])));
}

fn open_folder(folder: &Path) -> io::Result<File> {
    let flags = (OFlags::DIRECTORY | OFlags::NOFOLLOW).bits().cast_signed();
    fs::OpenOptions::new().read(true).custom_flags(flags).open(folder)
}

/// Makes a placeholder. `socket` is the name of one that was made before.
fn create<'a>(
    folder: &File,
    name: &'a OsStr,
    kind: Kind,
    socket: &mut Option<&'a OsStr>,
) -> io::Result<()> {
    let made = match kind {
        Kind::Folder => rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(FOLDER_MODE)),
        Kind::Text(text) => create_text(folder, name, text),
        Kind::File => create_socket(folder, name, socket),
    };
    match made {
        Err(Errno::EXIST) => Ok(()),
        made => Ok(made?),
    }
}

/// One socket with many names: file systems are slow to find room for a new one if others were removed a moment ago.
fn create_socket<'a>(
    folder: &File,
    name: &'a OsStr,
    socket: &mut Option<&'a OsStr>,
) -> Result<(), Errno> {
    let link = |first: &OsStr| rustix::fs::linkat(folder, first, folder, name, AtFlags::empty());
    let make = || {
        let mode = Mode::from_raw_mode(FILE_MODE);
        rustix::fs::mknodat(folder, name, FileType::Socket, mode, 0)
    };
    let made = match socket.map(link) {
        // That of another user cannot get another name.
        None | Some(Err(Errno::PERM | Errno::NOENT | Errno::MLINK)) => make(),
        Some(made) => made,
    };
    match made {
        Ok(()) => _ = socket.get_or_insert(name),
        Err(Errno::EXIST) => {}
        // Some file systems have no sockets.
        Err(_) => return create_text(folder, name, ""),
    }
    Ok(())
}

/// Creates a file that is never seen without its text.
fn create_text(folder: &File, name: &OsStr, text: &str) -> Result<(), Errno> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    if rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
        return Ok(());
    }
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let temporary = format!("{TEMPORARY}{}-{number}", std::process::id());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, &temporary, flags, Mode::from_raw_mode(FILE_MODE))?;
    let written = rustix::io::write(&file, text.as_bytes());
    let flags = RenameFlags::NOREPLACE;
    let renamed =
        written.and_then(|_| rustix::fs::renameat_with(folder, &temporary, folder, name, flags));
    if renamed.is_err() {
        let _ = rustix::fs::unlinkat(folder, &temporary, AtFlags::empty());
    }
    renamed
}

/// How the names of files that become placeholders begin.
const TEMPORARY: &str = ".ostler-placeholder-";

/// Removes all placeholders in a folder, also those of other processes: sockets, and those of the usual and the given names.
fn remove(opened: &File, folder: &Path, names: &[OsString]) -> io::Result<()> {
    for entry in rustix::fs::Dir::read_from(opened)? {
        let entry = entry?;
        let name: &OsStr = std::os::unix::ffi::OsStrExt::from_bytes(entry.file_name().to_bytes());
        let is_known = || {
            usual::is_name(name)
                || names.iter().any(|known| known == name)
                || name.as_encoded_bytes().starts_with(TEMPORARY.as_bytes())
        };
        if entry.file_type() != FileType::Socket && !is_known() {
            continue;
        }
        let path = folder.join(name);
        let Ok(about) = fs::symlink_metadata(&path) else { continue };
        if is_placeholder(&path, &about) {
            let flags = if about.is_dir() { AtFlags::REMOVEDIR } else { AtFlags::empty() };
            // Fails if someone has put something in the folder.
            let _ = rustix::fs::unlinkat(opened, name, flags);
        }
    }
    Ok(())
}

/// Whether a file or folder, whose metadata is known, looks like a placeholder.
fn is_placeholder(path: &Path, about: &Metadata) -> bool {
    // The mask of new files may have removed more.
    let mode = about.mode() & 0o7777;
    let is_within = |most: u32| mode & STICKY != 0 && mode & !most == 0;
    let is_empty = || fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    let has_text = || {
        let is_known = |text: &str| Kind::TEXTS.contains(&text);
        about.len() <= MOST_TEXT && fs::read_to_string(path).is_ok_and(|text| is_known(&text))
    };
    let kind = about.file_type();
    is_socket_placeholder(about.mode())
        || (kind.is_dir() && is_within(FOLDER_MODE) && is_empty())
        || (kind.is_file() && is_within(FILE_MODE) && has_text())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [(&str, Kind); 4] = [
        ("file", Kind::File),
        (".claude", Kind::Folder),
        ("config.worktree", Kind::EMPTY),
        ("commondir", Kind::THIS_FOLDER),
    ];

    fn masks(folder: &Path, names: &[(&str, Kind)]) -> Masks {
        let names: Vec<_> = names.iter().map(|(name, kind)| ((*name).into(), *kind)).collect();
        Masks::new(folder, &names, Path::new("/bin/true")).unwrap()
    }

    fn listed(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap().map(|it| it.unwrap().file_name());
        let names = names.map(|it| it.into_string().unwrap());
        let mut names: Vec<_> = names.filter(|it| !it.starts_with(TEMPORARY)).collect();
        names.sort();
        names
    }

    // Mutants: the first user removes them; the last one removes only its own.
    #[test]
    fn placeholders_go_with_the_last_user_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let first = masks(folder.path(), &KINDS);
        let second = masks(folder.path(), &[("file", Kind::File)]);
        assert_eq!(listed(folder.path()), [".claude", "commondir", "config.worktree", "file"]);
        assert_eq!(fs::read_to_string(folder.path().join("commondir")).unwrap(), ".\n");
        drop(first);
        assert_eq!(listed(folder.path()).len(), 4);
        drop(second);
        assert!(listed(folder.path()).is_empty());
    }

    #[test]
    fn what_the_user_puts_there_is_neither_joined_nor_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "").unwrap();
        assert!(!is_needed(&path));
        drop(masks(folder.path(), &[("file", Kind::File)]));
        assert!(path.exists());
        fs::remove_file(&path).unwrap();
        assert!(is_needed(&path));
        // While they are used. Tools write a file elsewhere and rename it.
        let masks = masks(folder.path(), &KINDS);
        assert!(is_needed(&path));
        fs::write(folder.path().join("new"), "mine").unwrap();
        fs::rename(folder.path().join("new"), &path).unwrap();
        fs::write(folder.path().join(".claude/inner"), "mine").unwrap();
        drop(masks);
        assert_eq!(listed(folder.path()), [".claude", "file"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    }

    // Mutant: what was made before one fails stays.
    #[test]
    fn if_one_cannot_be_made_none_stays() {
        let folder = tempfile::tempdir().unwrap();
        let names: Vec<_> = KINDS.iter().map(|(name, kind)| ((*name).into(), *kind)).collect();
        let too_long = [(OsString::from("x".repeat(300)), Kind::File)];
        let made =
            Masks::new(folder.path(), &[names, too_long.into()].concat(), Path::new("/bin/true"));
        assert!(made.is_err());
        assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
    }

    // Mutant: a new user does not wait.
    #[test]
    fn a_new_user_waits_for_one_that_removes() {
        let folder = tempfile::tempdir().unwrap();
        let mut mark = Mark::used(open_folder(folder.path()).unwrap()).unwrap();
        let path = folder.path().to_owned();
        let mut user = None;
        let removed = mark.remove_if_last(|_| {
            user = Some(std::thread::spawn(move || masks(&path, &KINDS)));
            for _ in 0..20 {
                std::thread::sleep(Duration::from_millis(5));
                assert!(listed(folder.path()).is_empty(), "made while another one removes");
            }
            Ok(())
        });
        removed.unwrap();
        let masks = user.unwrap().join().unwrap();
        assert_eq!(listed(folder.path()).len(), KINDS.len());
        drop(masks);
    }

    // Mutant: one that removes does not look for users.
    #[test]
    fn of_many_users_that_begin_and_end_together_none_misses_a_placeholder() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..300 {
                        let masks = masks(folder.path(), &KINDS);
                        assert_eq!(listed(folder.path()).len(), KINDS.len());
                        drop(masks);
                    }
                });
            }
        });
        assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
    }

    #[test]
    fn what_a_killed_process_left_is_swept_unless_it_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let sweep = || sweep_folder(folder.path());
        let opened = open_folder(folder.path()).unwrap();
        for (name, kind) in KINDS {
            create(&opened, name.as_ref(), kind, &mut None).unwrap();
        }
        let user = Mark::used(open_folder(folder.path()).unwrap()).unwrap();
        sweep();
        assert_eq!(listed(folder.path()).len(), KINDS.len());
        drop(user);
        sweep();
        assert!(listed(folder.path()).is_empty());
    }

    #[test]
    fn a_missing_parent_is_protected_in_the_place_of_its_child() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str, kind| place(&Protected { path: folder.path().join(path), kind });
        assert_eq!(at("a", Kind::File), (folder.path().join("a"), Kind::File));
        assert_eq!(at("a/b/c", Kind::File), (folder.path().join("a"), Kind::Folder));
        let masks = masks(folder.path(), &[("a", Kind::Folder)]);
        assert_eq!(at("a/b/c", Kind::File), (folder.path().join("a"), Kind::Folder));
        drop(masks);
        fs::create_dir_all(folder.path().join("a")).unwrap();
        fs::write(folder.path().join("a/other"), "").unwrap();
        assert_eq!(at("a/b/c", Kind::File), (folder.path().join("a/b"), Kind::Folder));
    }
}

//! Copies a mount into a workspace.
//!
//! Nothing is opened by its path: see [`ostler_files::openat`]. Bytes are counted before they are written.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use ostler_files::openat::{self, Root};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use sha2::{Digest as _, Sha256};

use super::baseline::{Baseline, Original};
use super::error::{WorkspaceError, WorkspaceSecurityError};
use super::globs::Globs;
use super::mount::{HostMount, Mounted, SkipReason, Skipped};

/// The most entries of one mount.
const MOST_ENTRIES: u64 = 1_000_000;
/// The deepest level of folders. Two handles are open per level.
const DEEPEST: usize = 200;
/// How many skipped paths are recorded.
const KEPT_SKIPS: usize = 100;
/// How many file names are listed for the model.
const LISTED: usize = 40;

/// A copy in progress.
pub(super) struct Copier<'a> {
    pub(super) mount: &'a HostMount,
    pub(super) globs: &'a Globs,
    /// Links may lead into these folders.
    pub(super) boundary: &'a [Root],
    pub(super) mounted: Mounted,
    pub(super) baseline: &'a mut Baseline,
    /// The index of the mount.
    pub(super) number: usize,
    n_entries: u64,
    /// The folders from the mount to the current one, to detect a link to one of them.
    way: Vec<(u64, u64)>,
    /// How many of these folders were reached by a link.
    n_links: usize,
    buffer: Vec<u8>,
}

/// An entry to copy: its open folder and its name.
struct Entry<'a> {
    parent: &'a OwnedFd,
    name: &'a OsStr,
    /// Its real path.
    real: PathBuf,
    /// Its path below the mount.
    below: PathBuf,
}

impl<'a> Copier<'a> {
    pub(super) fn new(
        mount: &'a HostMount,
        globs: &'a Globs,
        boundary: &'a [Root],
        (host_path, mount_path): (PathBuf, PathBuf),
        baseline: &'a mut Baseline,
        number: usize,
    ) -> Self {
        let mounted = Mounted {
            host_path,
            mount_path,
            files: 0,
            bytes: 0,
            skipped: Vec::new(),
            n_skipped: 0,
            listed: Vec::new(),
        };
        Self {
            mount,
            globs,
            boundary,
            mounted,
            baseline,
            number,
            n_entries: 0,
            way: Vec::new(),
            n_links: 0,
            buffer: vec![0; 64 * 1024],
        }
    }

    /// Copies the mount's folder or file from below a root into a folder of the workspace.
    pub(super) fn run(&mut self, root: &Root, into: &OwnedFd) -> Result<(), WorkspaceError> {
        let real = self.mounted.host_path.clone();
        let swapped = || WorkspaceSecurityError::Swapped { path: real.clone() };
        let below = real.strip_prefix(&root.path).map_err(|_| swapped())?;
        let opening = |error: io::Error| match openat::is_swapped(&error) {
            true => WorkspaceError::from(swapped()),
            false => WorkspaceError::io("open", &real, error),
        };
        let (parent, name) = root.parent(below).map_err(opening)?;
        let place = self.mounted.mount_path.clone();
        let target = place.file_name().unwrap_or_default().to_owned();
        let Some(name) = name else {
            let folder = root.folder().map_err(opening)?;
            return self.folder(&folder, &real, Path::new(""), (into, &target));
        };
        let stat = openat::stat(&parent, name).map_err(opening)?;
        match openat::kind(&stat) {
            FileType::Directory => {
                let folder = openat::open_folder(&parent, name).map_err(opening)?;
                self.folder(&folder, &real, Path::new(""), (into, &target))
            }
            FileType::RegularFile if !self.globs.takes(Path::new(name)) => Ok(()),
            FileType::RegularFile => {
                let (file, stat) = openat::open_file(&parent, name).map_err(opening)?;
                self.file(file, &stat, &real, Path::new(""), (into, &target))
            }
            FileType::Symlink => Err(swapped().into()),
            _ => Err(WorkspaceError::NotAFile { path: real.clone() }),
        }
    }

    fn folder(
        &mut self,
        folder: &OwnedFd,
        real: &Path,
        below: &Path,
        (into, target): (&OwnedFd, &OsStr),
    ) -> Result<(), WorkspaceError> {
        let reading = |error| WorkspaceError::io("read", real, error);
        let stat = rustix::fs::fstat(folder).map_err(|error| reading(error.into()))?;
        let identity = (stat.st_dev, stat.st_ino);
        if self.way.contains(&identity) {
            self.skip(below, SkipReason::LeadsNowhere);
            return Ok(());
        }
        if self.way.len() >= DEEPEST {
            return Err(self.too_much(format!("folders are more than {DEEPEST} deep")));
        }
        let inside = openat::make_folder(into, target)
            .map_err(|error| WorkspaceError::io("create", &self.place(below), error))?;
        let before = self.mounted.files;
        self.way.push(identity);
        for name in openat::names(folder).map_err(reading)? {
            self.n_entries += 1;
            if self.n_entries > MOST_ENTRIES {
                return Err(self.too_much(format!("there are more than {MOST_ENTRIES} entries")));
            }
            let (real, below) = (real.join(&name), below.join(&name));
            self.entry(Entry { parent: folder, name: &name, real, below }, &inside)?;
        }
        self.way.pop();
        if self.globs.is_selective()
            && self.mounted.files == before
            && !below.as_os_str().is_empty()
        {
            // Fails if another mount has put a file there.
            let _ = rustix::fs::unlinkat(into, target, AtFlags::REMOVEDIR);
        }
        Ok(())
    }

    fn entry(&mut self, entry: Entry<'_>, inside: &OwnedFd) -> Result<(), WorkspaceError> {
        if self.globs.excludes(&entry.below) {
            return Ok(());
        }
        let stat = match openat::stat(entry.parent, entry.name) {
            Ok(stat) => stat,
            Err(error) => return self.lost(&entry, error),
        };
        match openat::kind(&stat) {
            FileType::Directory => match openat::open_folder(entry.parent, entry.name) {
                Ok(folder) => self.folder(&folder, &entry.real, &entry.below, (inside, entry.name)),
                Err(error) => self.lost(&entry, error),
            },
            FileType::RegularFile if !self.globs.takes(&entry.below) => Ok(()),
            FileType::RegularFile => match openat::open_file(entry.parent, entry.name) {
                Ok((file, stat)) => {
                    self.file(file, &stat, &entry.real, &entry.below, (inside, entry.name))
                }
                Err(error) => self.lost(&entry, error),
            },
            FileType::Symlink => self.link(&entry, inside),
            _ => {
                self.skip(&entry.below, SkipReason::Special);
                Ok(())
            }
        }
    }

    /// Follows a link, if that is enabled and its target is allowed.
    fn link(&mut self, entry: &Entry<'_>, inside: &OwnedFd) -> Result<(), WorkspaceError> {
        if !self.mount.follow_symlinks {
            self.skip(&entry.below, SkipReason::Link);
            return Ok(());
        }
        let Ok(real) = entry.real.canonicalize() else {
            self.skip(&entry.below, SkipReason::LeadsNowhere);
            return Ok(());
        };
        let found =
            self.boundary.iter().find_map(|root| Some((root, real.strip_prefix(&root.path).ok()?)));
        let Some((root, under)) = found else {
            self.skip(&entry.below, SkipReason::LeadsOutside);
            return Ok(());
        };
        // From here on only folders of the root are opened, even if the link is changed meanwhile.
        let place = (inside, entry.name);
        let (parent, name) = match root.parent(under) {
            Ok(found) => found,
            Err(error) => return self.lost(entry, error),
        };
        let folder = match name {
            None => root.folder(),
            Some(name) => match openat::stat(&parent, name).map(|stat| openat::kind(&stat)) {
                Ok(FileType::Directory) => openat::open_folder(&parent, name),
                Ok(FileType::RegularFile) if !self.globs.takes(&entry.below) => return Ok(()),
                Ok(FileType::RegularFile) => {
                    return match openat::open_file(&parent, name) {
                        Ok((file, stat)) => {
                            self.n_links += 1;
                            let copied = self.file(file, &stat, &real, &entry.below, place);
                            self.n_links -= 1;
                            copied
                        }
                        Err(error) => self.lost(entry, error),
                    };
                }
                Ok(FileType::Symlink) => {
                    self.skip(&entry.below, SkipReason::Swapped);
                    return Ok(());
                }
                Ok(_) => {
                    self.skip(&entry.below, SkipReason::Special);
                    return Ok(());
                }
                Err(error) => Err(error),
            },
        };
        match folder {
            Ok(folder) => {
                self.n_links += 1;
                let copied = self.folder(&folder, &real, &entry.below, place);
                self.n_links -= 1;
                copied
            }
            Err(error) => self.lost(entry, error),
        }
    }

    /// Skips an entry that was replaced or removed meanwhile. Returns an error for an entry that cannot be read.
    fn lost(&mut self, entry: &Entry<'_>, error: io::Error) -> Result<(), WorkspaceError> {
        if openat::is_swapped(&error) || error.kind() == io::ErrorKind::NotFound {
            self.skip(&entry.below, SkipReason::Swapped);
            return Ok(());
        }
        Err(WorkspaceError::io("read", &entry.real, error))
    }

    fn file(
        &mut self,
        file: OwnedFd,
        stat: &Stat,
        real: &Path,
        below: &Path,
        (into, target): (&OwnedFd, &OsStr),
    ) -> Result<(), WorkspaceError> {
        // A file whose size exceeds the limit is not copied at all.
        self.has_room(u64::try_from(stat.st_size).unwrap_or(0), real)?;
        let place = self.place(below);
        let mode = (stat.st_mode & 0o777) | 0o600;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let created = rustix::fs::openat(into, target, flags, Mode::from_raw_mode(mode));
        let copy = match created {
            Ok(copy) => copy,
            Err(rustix::io::Errno::EXIST) => return Err(WorkspaceError::Conflict { path: place }),
            Err(error) => return Err(WorkspaceError::io("create", &place, error)),
        };
        // Undoes this process's umask.
        rustix::fs::fchmod(&copy, Mode::from_raw_mode(mode))
            .map_err(|error| WorkspaceError::io("create", &place, error))?;
        let (digest, length) = self.bytes(File::from(file), File::from(copy), real, &place)?;
        self.mounted.files += 1;
        if self.mounted.listed.len() < LISTED {
            self.mounted.listed.push((place.clone(), length));
        }
        let applies = self.n_links == 0;
        let host_path = applies.then(|| real.to_owned());
        self.baseline.insert(place, Original { digest, mode, mount: self.number, host_path });
        Ok(())
    }

    fn bytes(
        &mut self,
        mut file: File,
        mut copy: File,
        real: &Path,
        place: &Path,
    ) -> Result<([u8; 32], u64), WorkspaceError> {
        let mut digest = Sha256::new();
        let mut length = 0;
        let mut buffer = std::mem::take(&mut self.buffer);
        loop {
            let read = match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(WorkspaceError::io("read", real, error)),
            };
            // The file may have grown since its size was read.
            self.has_room(read as u64, real)?;
            self.mounted.bytes += read as u64;
            length += read as u64;
            digest.update(&buffer[..read]);
            let written = copy.write_all(&buffer[..read]);
            written.map_err(|error| WorkspaceError::io("write", place, error))?;
        }
        self.buffer = buffer;
        Ok((digest.finalize().into(), length))
    }

    fn has_room(&self, bytes: u64, real: &Path) -> Result<(), WorkspaceError> {
        match self.mount.max_bytes {
            Some(limit) if self.mounted.bytes.saturating_add(bytes) > limit => {
                Err(WorkspaceError::TooLarge {
                    mount: self.mounted.host_path.clone(),
                    limit,
                    at: real.to_owned(),
                })
            }
            _ => Ok(()),
        }
    }

    /// The path in the workspace for a path below the mount.
    fn place(&self, below: &Path) -> PathBuf {
        match below.as_os_str().is_empty() {
            true => self.mounted.mount_path.clone(),
            false => self.mounted.mount_path.join(below),
        }
    }

    fn too_much(&self, what: String) -> WorkspaceError {
        WorkspaceError::TooMuch { mount: self.mounted.host_path.clone(), what }
    }

    fn skip(&mut self, below: &Path, reason: SkipReason) {
        self.mounted.n_skipped += 1;
        if self.mounted.skipped.len() < KEPT_SKIPS {
            self.mounted.skipped.push(Skipped { path: below.to_owned(), reason });
        }
    }
}

//! The changes in a workspace, as a value.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use imara_diff::{
    Algorithm, Diff, InternedInput, Interner, Token, UnifiedDiffConfig, UnifiedDiffPrinter,
};
use ostler_files::openat::{self, Root};
use rustix::fs::FileType;
use sha2::{Digest as _, Sha256};

use super::Workspace;
use super::error::WorkspaceError;

/// The deepest level that is searched.
const DEEPEST: usize = 400;
/// Larger files are not shown in the patch.
const LARGEST_SHOWN: u64 = 4 * 1024 * 1024;

/// The changes in a workspace when the list was made, sorted by path.
#[derive(Clone, Debug)]
pub struct Changes {
    pub(super) workspace: Workspace,
    pub(super) changes: Vec<Change>,
}

/// A changed file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// Its path in the workspace.
    pub path: PathBuf,
    /// How it was changed.
    pub kind: ChangeKind,
    /// The path of its original on the host; for a new file, where the original would be. `None` if there is none: the
    /// file is in no mount, the patterns of its mount exclude it, or it was reached by a link. Such a change is not
    /// applied.
    pub host_path: Option<PathBuf>,
    /// The hash before the change; `None` if the file did not exist.
    pub(super) before: Option<[u8; 32]>,
    /// The hash after the change; `None` if the file was removed.
    pub(super) after: Option<[u8; 32]>,
    /// Its mode now.
    pub(super) mode: u32,
    /// Its mount.
    pub(super) mount: Option<usize>,
}

/// How a file was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// Its contents or its executable bit changed.
    Modified,
    /// It was removed.
    Removed,
    /// It is new, and not a regular file but a link or a pipe, for example. It is not applied.
    Other,
}

impl Changes {
    /// The changes.
    pub fn iter(&self) -> std::slice::Iter<'_, Change> {
        self.changes.iter()
    }

    /// The number of changes.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Whether nothing was changed.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The current contents of a file; `None` if it was removed or is not a file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn contents(&self, change: &Change) -> Result<Option<Vec<u8>>, WorkspaceError> {
        if change.after.is_none() {
            return Ok(None);
        }
        read(self.workspace.path(), &change.path, u64::MAX)
            .map_err(|error| WorkspaceError::io("read", &change.path, error))
    }

    /// All changes as a patch in the format of `diff -u`. Binary files, large files, and files whose originals have
    /// changed meanwhile are only named.
    pub fn to_patch(&self) -> String {
        self.changes.iter().map(|change| self.patch(change)).collect()
    }

    fn patch(&self, change: &Change) -> String {
        let path = change.path.display();
        // A name with a line break could forge lines of the patch.
        if change.path.as_os_str().as_encoded_bytes().iter().any(u8::is_ascii_control) {
            return format!("# {:?}: {:?}, not shown\n", change.path, change.kind);
        }
        let (old, new) = match change.kind {
            ChangeKind::Added => ("/dev/null".to_owned(), format!("b/{path}")),
            ChangeKind::Modified => (format!("a/{path}"), format!("b/{path}")),
            ChangeKind::Removed => (format!("a/{path}"), "/dev/null".to_owned()),
            ChangeKind::Other => return format!("# {path}: not a regular file\n"),
        };
        let texts = self.before(change).zip(self.after(change));
        let Some((before, after)) = texts else {
            return format!("# {path}: {:?}, not shown\n", change.kind);
        };
        let input = InternedInput::new(before.as_str(), after.as_str());
        let mut diff = Diff::compute(Algorithm::Histogram, &input);
        diff.postprocess_lines(&input);
        let printer = Lines(&input.interner);
        let lines = diff.unified_diff(&printer, UnifiedDiffConfig::default(), &input);
        format!("--- {old}\n+++ {new}\n{lines}")
    }

    /// The text before the change, read from the original; `None` if the original has changed meanwhile.
    fn before(&self, change: &Change) -> Option<String> {
        let Some(digest) = change.before else { return Some(String::new()) };
        let host_path = self.workspace.0.baseline.get(&change.path)?.host_path.as_ref()?;
        let (folder, name) = (host_path.parent()?, host_path.file_name()?);
        let bytes = read(folder, Path::new(name), LARGEST_SHOWN).ok()??;
        (Sha256::digest(&bytes).as_slice() == digest).then(|| String::from_utf8(bytes).ok())?
    }

    fn after(&self, change: &Change) -> Option<String> {
        if change.after.is_none() {
            return Some(String::new());
        }
        let bytes = read(self.workspace.path(), &change.path, LARGEST_SHOWN).ok()??;
        String::from_utf8(bytes).ok()
    }
}

impl<'a> IntoIterator for &'a Changes {
    type Item = &'a Change;
    type IntoIter = std::slice::Iter<'a, Change>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Prints the lines of a patch in the usual format.
struct Lines<'a>(&'a Interner<&'a str>);

impl Lines<'_> {
    fn line(&self, mut f: impl fmt::Write, mark: char, token: Token) -> fmt::Result {
        let line = self.0[token];
        write!(f, "{mark}{line}")?;
        match line.ends_with('\n') {
            true => Ok(()),
            false => writeln!(f, "\n\\ No newline at end of file"),
        }
    }
}

impl UnifiedDiffPrinter for Lines<'_> {
    fn display_header(
        &self,
        mut f: impl fmt::Write,
        before: u32,
        after: u32,
        n_before: u32,
        n_after: u32,
    ) -> fmt::Result {
        // Lines are counted from 1; an empty range has the number of the line before it.
        let (before, after) = (before + u32::from(n_before > 0), after + u32::from(n_after > 0));
        writeln!(f, "@@ -{before},{n_before} +{after},{n_after} @@")
    }

    fn display_context_token(&self, f: impl fmt::Write, token: Token) -> fmt::Result {
        self.line(f, ' ', token)
    }

    fn display_hunk(
        &self,
        mut f: impl fmt::Write,
        before: &[Token],
        after: &[Token],
    ) -> fmt::Result {
        before.iter().try_for_each(|token| self.line(&mut f, '-', *token))?;
        after.iter().try_for_each(|token| self.line(&mut f, '+', *token))
    }
}

/// The bytes of a file below a folder; `None` if it is larger than the limit.
pub(super) fn read(folder: &Path, below: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let root = Root::open(folder)?;
    let (parent, name) = root.parent(below)?;
    let (file, stat) = openat::open_file(&parent, name.unwrap_or_default())?;
    if u64::try_from(stat.st_size).unwrap_or(u64::MAX) > limit {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    File::from(file).take(limit).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Compares a workspace with its baseline.
pub(super) fn find(workspace: &Workspace) -> Result<Changes, WorkspaceError> {
    let root = Root::open(workspace.path());
    let folder = root.and_then(|root| root.folder());
    let folder = folder.map_err(|error| WorkspaceError::io("read", workspace.path(), error))?;
    let mut search = Search { workspace, seen: BTreeSet::new(), changes: Vec::new() };
    search.folder(&folder, Path::new(""), 0)?;
    let Search { seen, mut changes, .. } = search;
    for (path, original) in &workspace.0.baseline {
        if !seen.contains(path) {
            changes.push(Change {
                path: path.clone(),
                kind: ChangeKind::Removed,
                host_path: original.host_path.clone(),
                before: Some(original.digest),
                after: None,
                mode: original.mode,
                mount: Some(original.mount),
            });
        }
    }
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(Changes { workspace: workspace.clone(), changes })
}

struct Search<'a> {
    workspace: &'a Workspace,
    seen: BTreeSet<PathBuf>,
    changes: Vec<Change>,
}

impl Search<'_> {
    fn folder(
        &mut self,
        folder: &OwnedFd,
        below: &Path,
        depth: usize,
    ) -> Result<(), WorkspaceError> {
        let reading = |path: &Path, error| WorkspaceError::io("read", path, error);
        for name in openat::names(folder).map_err(|error| reading(below, error))? {
            let path = below.join(&name);
            let stat = openat::stat(folder, &name).map_err(|error| reading(&path, error))?;
            match openat::kind(&stat) {
                FileType::Directory if depth < DEEPEST => {
                    let inside = openat::open_folder(folder, &name);
                    let inside = inside.map_err(|error| reading(&path, error))?;
                    self.folder(&inside, &path, depth + 1)?;
                }
                FileType::RegularFile => self.file(folder, &name, path)?,
                _ => self.changes.push(Change {
                    path,
                    kind: ChangeKind::Other,
                    host_path: None,
                    before: None,
                    after: None,
                    mode: 0,
                    mount: None,
                }),
            }
        }
        Ok(())
    }

    fn file(
        &mut self,
        folder: &OwnedFd,
        name: &OsStr,
        path: PathBuf,
    ) -> Result<(), WorkspaceError> {
        let reading = |error| WorkspaceError::io("read", &path, error);
        let (file, stat) = openat::open_file(folder, name).map_err(reading)?;
        let after = digest(File::from(file)).map_err(reading)?;
        let mode = stat.st_mode & 0o777;
        let original = self.workspace.0.baseline.get(&path);
        let same = original.is_some_and(|it| it.digest == after && it.mode & 0o111 == mode & 0o111);
        self.seen.insert(path.clone());
        if same {
            return Ok(());
        }
        let (kind, mount, host_path) = match original {
            Some(original) => {
                (ChangeKind::Modified, Some(original.mount), original.host_path.clone())
            }
            None => {
                let (mount, host_path) = self.home(&path).unzip();
                (ChangeKind::Added, mount, host_path)
            }
        };
        let before = original.map(|original| original.digest);
        self.changes.push(Change {
            path,
            kind,
            host_path,
            before,
            after: Some(after),
            mode,
            mount,
        });
        Ok(())
    }

    /// The mount and the host path of a new file. The deepest mount that contains it counts, if its patterns select the
    /// file.
    fn home(&self, path: &Path) -> Option<(usize, PathBuf)> {
        let inner = &self.workspace.0;
        let mounts = inner.mounts.iter().enumerate();
        let (number, mount, below) = mounts
            .filter_map(|(number, mount)| {
                Some((number, mount, path.strip_prefix(&mount.mount_path).ok()?))
            })
            .filter(|(.., below)| !below.as_os_str().is_empty())
            .max_by_key(|(_, mount, _)| mount.mount_path.components().count())?;
        inner.globs[number].takes(below).then(|| (number, mount.host_path.join(below)))
    }
}

fn digest(mut file: File) -> io::Result<[u8; 32]> {
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(digest.finalize().into()),
            Ok(read) => digest.update(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

//! CLAUDE.md and `.claude/rules`: standing instructions of the user and of the project, with what they import.
//!
//! The administrator's file comes first, then the user's, then those of the folders from the root down to the working
//! directory, so that the nearest file comes last and wins. A line may import another file with `@path`; inside code it is
//! only text. Files of folders below the working directory, and rules for some paths, follow when a file there is read
//! (`nested.rs`).
//!
//! The user's file may import any file. A file of the project, or of a folder above it, may import only files in its
//! own folder, unless the user trusts the project. Files that are left out are reported as problems.

mod nested;
mod rules;

use std::collections::HashSet;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use self::nested::NestedMemory;
pub use self::rules::PathRule;
use super::imports::imports;
use crate::permission::ReadGuard;
use ostler_files::read_at_most;

use crate::project_file::{Boundary, Refusal};
use crate::settings::Problem;

/// The most bytes that are read of one file. Longer instructions would leave too little room for the work.
const MAX_BYTES: usize = 64 * 1024;
/// The most bytes of all files together.
const MAX_TOTAL: usize = 512 * 1024;
/// How many files are read.
const MAX_FILES: usize = 100;
/// How deep imports may be nested.
const MAX_DEPTH: usize = 5;
/// How many problems are reported one by one.
const MAX_PROBLEMS: usize = 20;

/// A file with instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryFile {
    /// Where it lies.
    pub path: PathBuf,
    /// What it says.
    pub text: String,
}

/// The files, and what was left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The instructions, in the order the model reads them.
    pub files: Vec<MemoryFile>,
    /// Rules for files whose paths match; the model reads them when it reads such a file.
    pub path_rules: Vec<PathRule>,
    /// The files that were left out, and why.
    pub problems: Vec<Problem>,
}

/// Which instructions to load.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemorySources {
    /// The user's own, for all projects.
    pub user: bool,
    /// Those the project shares.
    pub project: bool,
    /// The user's own for this project.
    pub local: bool,
}

impl MemorySources {
    /// All of them.
    pub const ALL: Self = Self { user: true, project: true, local: true };
}

/// Where to look for instructions.
#[derive(Clone, Debug, Default)]
pub struct Lookup {
    /// The working directory.
    pub cwd: PathBuf,
    /// The administrator's folder.
    pub managed: Option<PathBuf>,
    /// The user's folder, `.claude` in the home directory.
    pub config: Option<PathBuf>,
    /// The home directory, for imports of `~/…`.
    pub home: Option<PathBuf>,
    /// The notes that an agent kept about this project.
    pub notes: Option<PathBuf>,
    /// Patterns of the absolute paths of files that are left out (`claudeMdExcludes`).
    pub excludes: Vec<String>,
    /// Which files are wanted.
    pub sources: MemorySources,
    /// Whether the files of the project may import files outside it.
    pub trusts_project: bool,
    /// Files that permission rules forbid to read; they are never imported.
    pub denied: Arc<ReadGuard>,
}

/// The most lines of an agent's notes.
const MAX_NOTES: usize = 200;

/// Loads the instructions for work in a folder. Files that are missing or not text are skipped.
pub fn load(lookup: &Lookup) -> Memory {
    let mut loader = Loader::new(lookup);
    let anywhere = lookup.anywhere();
    if let Some(managed) = &lookup.managed {
        loader.add(&managed.join("CLAUDE.md"), &anywhere);
    }
    if let Some(config) = lookup.config.as_deref().filter(|_| lookup.sources.user) {
        loader.add(&config.join("CLAUDE.md"), &anywhere);
        loader.add_rules(&config.join("rules"), &lookup.cwd, &anywhere);
    }
    let folders: Vec<&Path> = lookup.cwd.ancestors().collect();
    for folder in folders.into_iter().rev() {
        loader.add_folder(folder);
    }
    if let Some(notes) = lookup.notes.as_deref().filter(|_| lookup.sources.user) {
        loader.add_notes(notes, &anywhere);
    }
    loader.finish()
}

impl Lookup {
    fn anywhere(&self) -> Boundary {
        Boundary::anywhere(Arc::clone(&self.denied))
    }

    /// The area in which the files of a folder must lie.
    fn boundary(&self, folder: &Path) -> Boundary {
        match self.trusts_project {
            true => self.anywhere(),
            false => Boundary::inside(folder, Arc::clone(&self.denied)),
        }
    }

    /// Whether the user's settings leave a file out.
    fn excludes(&self, path: &Path) -> bool {
        self.excludes.iter().any(|pattern| rules::fits(Path::new("/"), pattern, path))
    }
}

/// Whether every user of the machine can write to a folder.
fn is_world_writable(folder: &Path) -> bool {
    fs::metadata(folder).is_ok_and(|folder| folder.permissions().mode() & 0o002 != 0)
}

struct Loader<'a> {
    lookup: &'a Lookup,
    seen: HashSet<PathBuf>,
    n_bytes: usize,
    memory: Memory,
    n_problems: usize,
}

impl<'a> Loader<'a> {
    fn new(lookup: &'a Lookup) -> Self {
        let (seen, memory) = (HashSet::new(), Memory::default());
        Self { lookup, seen, n_bytes: 0, memory, n_problems: 0 }
    }

    /// Adds the files of one folder of the project, or above it.
    fn add_folder(&mut self, folder: &Path) {
        let Lookup { cwd, sources, trusts_project, .. } = self.lookup;
        let boundary = self.lookup.boundary(folder);
        let usual = ["CLAUDE.md", ".claude/CLAUDE.md"];
        // A file for agents of all vendors stands in where there is none of the usual ones.
        let has_usual = usual.iter().any(|name| folder.join(name).exists());
        let shared = if has_usual { &usual[..] } else { &["AGENTS.md"] };
        let shared = shared.iter().copied().filter(|_| sources.project);
        let own = ["CLAUDE.local.md"].into_iter().filter(|_| sources.local);
        // Every user can put instructions into a folder such as /tmp, above the projects of all users.
        let is_open = !trusts_project && folder != cwd && is_world_writable(folder);
        for name in shared.chain(own) {
            let path = folder.join(name);
            if is_open && path.exists() {
                self.problem(&path, format!(
                    "the instructions are left out: every user can write to {}; pass --trust-project to use them",
                    folder.display()
                ));
                continue;
            }
            self.add(&path, &boundary);
        }
        if sources.project && !is_open {
            self.add_rules(&folder.join(".claude/rules"), folder, &boundary);
        }
    }

    /// Adds the beginning of the notes that an agent kept.
    fn add_notes(&mut self, path: &Path, boundary: &Boundary) {
        let Some(mut text) = boundary.open(path).ok().and_then(read) else { return };
        if let Some((end, _)) = text.match_indices('\n').nth(MAX_NOTES - 1) {
            text.truncate(end);
            text.push_str("\n[the rest of these notes was left out]");
        }
        self.memory.files.push(MemoryFile { path: path.to_owned(), text });
    }

    /// Adds a file at one of the usual places.
    fn add(&mut self, path: &Path, boundary: &Boundary) {
        self.add_opened(path, boundary, 0, Boundary::open);
    }

    /// Adds a file after those it imports, each file once.
    fn add_opened(
        &mut self,
        path: &Path,
        boundary: &Boundary,
        depth: usize,
        open: fn(&Boundary, &Path) -> Result<File, Refusal>,
    ) {
        let Ok(real) = path.canonicalize() else { return };
        // A word with an `@` that happens to be the name of a folder imports nothing.
        let is_out = depth > MAX_DEPTH || real.is_dir() || self.lookup.excludes(path);
        if is_out || !self.seen.insert(real) {
            return;
        }
        if self.memory.files.len() >= MAX_FILES || self.n_bytes >= MAX_TOTAL {
            let reason = format!(
                "the instructions are left out: more than {MAX_FILES} files or {MAX_TOTAL} bytes are not read"
            );
            return self.problem(path, reason);
        }
        let text = match open(boundary, path) {
            Ok(file) => read(file),
            Err(Refusal::Missing) => return,
            Err(refusal) => {
                return self.problem(path, format!("the instructions are left out: {refusal}"));
            }
        };
        let Some(text) = text else { return };
        self.n_bytes += text.len();
        let folder = path.parent().unwrap_or(Path::new("/"));
        for import in imports(&text) {
            let import = match (import.strip_prefix("~/"), &self.lookup.home) {
                (Some(rest), Some(home)) => home.join(rest),
                _ => folder.join(import),
            };
            self.add_opened(&import, boundary, depth + 1, Boundary::open_import);
        }
        self.memory.files.push(MemoryFile { path: path.to_owned(), text });
    }

    fn problem(&mut self, path: &Path, reason: String) {
        self.n_problems += 1;
        if self.n_problems <= MAX_PROBLEMS {
            let problem = Problem { path: path.to_owned(), pointer: String::new(), reason };
            self.memory.problems.push(problem);
        }
    }

    pub(super) fn finish(mut self) -> Memory {
        let n_more = self.n_problems.saturating_sub(MAX_PROBLEMS);
        if let Some(last) = self.memory.problems.last_mut().filter(|_| n_more > 0) {
            last.reason.push_str(&format!("; {n_more} more files are left out"));
        }
        self.memory
    }
}

/// The text of a file, cut if it is too long; nothing if it is empty or not text.
fn read(file: File) -> Option<String> {
    let mut bytes = read_at_most(file, MAX_BYTES as u64).ok()?;
    let is_cut = bytes.len() > MAX_BYTES;
    bytes.truncate(MAX_BYTES);
    if let Err(error) = std::str::from_utf8(&bytes)
        && is_cut
        && error.error_len().is_none()
    {
        // The cut went through a character.
        bytes.truncate(error.valid_up_to());
    }
    let mut text = String::from_utf8(bytes).ok()?;
    if is_cut {
        text.push_str("\n[the rest of this file was left out: it is too long]");
    }
    (!text.trim().is_empty()).then_some(text)
}

#[cfg(test)]
mod tests;

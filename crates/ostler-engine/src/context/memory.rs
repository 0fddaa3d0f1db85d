//! CLAUDE.md: standing instructions of the user and of the project, with what they import.
//!
//! The user's file comes first, then those of the folders from the root down to the working directory, so that the
//! nearest file comes last and wins. A line may import another file with `@path`; inside code it is only text.
//!
//! The user's file may import any file. A file of the project, or of a folder above it, may import only files in its
//! own folder, unless the user trusts the project. Files that are left out are reported as problems.

use std::collections::HashSet;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
    /// The files that were left out, and why.
    pub problems: Vec<Problem>,
}

/// Which instructions to load.
#[derive(Clone, Copy, Debug)]
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
#[derive(Clone, Debug)]
pub struct Lookup<'a> {
    /// The working directory.
    pub cwd: &'a Path,
    /// The user's folder, `.claude` in the home directory.
    pub config: Option<&'a Path>,
    /// The home directory, for imports of `~/…`.
    pub home: Option<&'a Path>,
    /// Which files are wanted.
    pub sources: MemorySources,
    /// Whether the files of the project may import files outside it.
    pub trusts_project: bool,
    /// Files that permission rules forbid to read; they are never imported.
    pub denied: Arc<ReadGuard>,
}

/// Loads the instructions for work in a folder. Files that are missing or not text are skipped.
pub fn load(lookup: &Lookup<'_>) -> Memory {
    let Lookup { cwd, config, home, sources, trusts_project, denied } = lookup;
    let mut loader = Loader { home: *home, ..Loader::default() };
    let anywhere = Boundary::anywhere(Arc::clone(denied));
    if let Some(config) = config.filter(|_| sources.user) {
        loader.add(&config.join("CLAUDE.md"), &anywhere);
    }
    let folders: Vec<&Path> = cwd.ancestors().collect();
    for folder in folders.into_iter().rev() {
        let inside = Boundary::inside(folder, Arc::clone(denied));
        let boundary = if *trusts_project { &anywhere } else { &inside };
        let shared = ["CLAUDE.md", ".claude/CLAUDE.md"].into_iter().filter(|_| sources.project);
        let own = ["CLAUDE.local.md"].into_iter().filter(|_| sources.local);
        for name in shared.chain(own) {
            let path = folder.join(name);
            // Every user can put instructions into a folder such as /tmp, above the projects of all users.
            if !trusts_project && folder != *cwd && is_world_writable(folder) && path.exists() {
                loader.problem(&path, format!(
                    "the instructions are left out: every user can write to {}; pass --trust-project to use them",
                    folder.display()
                ));
                continue;
            }
            loader.add(&path, boundary);
        }
    }
    loader.finish()
}

/// Whether every user of the machine can write to a folder.
fn is_world_writable(folder: &Path) -> bool {
    fs::metadata(folder).is_ok_and(|folder| folder.permissions().mode() & 0o002 != 0)
}

#[derive(Default)]
struct Loader<'a> {
    home: Option<&'a Path>,
    seen: HashSet<PathBuf>,
    n_bytes: usize,
    memory: Memory,
    n_problems: usize,
}

impl Loader<'_> {
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
        if depth > MAX_DEPTH || real.is_dir() || !self.seen.insert(real) {
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
            let import = match (import.strip_prefix("~/"), self.home) {
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

    fn finish(mut self) -> Memory {
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
mod tests {
    use super::*;

    fn write(folder: &Path, name: &str, text: &str) {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn load_all(
        cwd: &Path,
        config: Option<&Path>,
        home: Option<&Path>,
        sources: MemorySources,
    ) -> Vec<MemoryFile> {
        look(cwd, config, home, sources, true).files
    }

    fn look(
        cwd: &Path,
        config: Option<&Path>,
        home: Option<&Path>,
        sources: MemorySources,
        trusts_project: bool,
    ) -> Memory {
        load(&Lookup { cwd, config, home, sources, trusts_project, denied: Arc::default() })
    }

    fn texts(files: &[MemoryFile]) -> Vec<&str> {
        files.iter().map(|file| file.text.as_str()).collect()
    }

    #[test]
    fn the_nearest_file_comes_last() {
        let root = tempfile::tempdir().unwrap();
        let (config, cwd) = (root.path().join("config"), root.path().join("a/b"));
        write(&config, "CLAUDE.md", "user");
        write(root.path(), "a/CLAUDE.md", "outer");
        write(&cwd, "CLAUDE.md", "inner");
        write(&cwd, ".claude/CLAUDE.md", "inner too");
        write(&cwd, "CLAUDE.local.md", "mine");
        let files = load_all(&cwd, Some(&config), None, MemorySources::ALL);
        assert_eq!(texts(&files), ["user", "outer", "inner", "inner too", "mine"]);
        let only = MemorySources { user: false, project: true, local: false };
        assert_eq!(
            texts(&load_all(&cwd, Some(&config), None, only)),
            ["outer", "inner", "inner too"]
        );
    }

    #[test]
    fn imports_come_before_the_file_once_and_never_in_circles() {
        let root = tempfile::tempdir().unwrap();
        write(
            root.path(),
            "CLAUDE.md",
            "see @docs/style.md, and @docs/style.md\n`@code.md`\n```\n@fenced.md\n```\n@missing.md me@home.org",
        );
        write(root.path(), "docs/style.md", "tabs @../CLAUDE.md @~/own.md");
        write(root.path(), "home/own.md", "own");
        write(root.path(), "code.md", "no");
        write(root.path(), "fenced.md", "no");
        let home = root.path().join("home");
        let files = load_all(root.path(), None, Some(&home), MemorySources::ALL);
        assert_eq!(texts(&files)[..2], ["own", "tabs @../CLAUDE.md @~/own.md"]);
        assert_eq!(files.len(), 3);
    }

    #[test]
    fn a_file_that_is_too_long_is_cut_and_says_so() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "CLAUDE.md", &"é".repeat(MAX_BYTES));
        let files = load_all(root.path(), None, None, MemorySources::ALL);
        assert!(files[0].text.len() < MAX_BYTES + 100 && files[0].text.ends_with("too long]"));
    }

    #[test]
    fn a_file_that_is_not_text_is_skipped() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("CLAUDE.md"), [0xff, 0xfe, 0]).unwrap();
        write(root.path(), ".claude/CLAUDE.md", "  \n");
        assert_eq!(load_all(root.path(), None, None, MemorySources::ALL), []);
    }

    #[test]
    fn instructions_in_a_folder_that_every_user_can_write_to_are_ignored() {
        let root = tempfile::tempdir().unwrap();
        let (shared, cwd) = (root.path().join("shared"), root.path().join("shared/mine"));
        write(&shared, "CLAUDE.md", "from another user");
        write(&cwd, "CLAUDE.md", "own");
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
        let memory = look(&cwd, None, None, MemorySources::ALL, false);
        assert_eq!(texts(&memory.files), ["own"]);
        assert!(memory.problems[0].reason.contains("every user can write"), "{memory:?}");
        assert_eq!(
            texts(&load_all(&cwd, None, None, MemorySources::ALL)),
            ["from another user", "own"]
        );
    }

    #[test]
    fn many_imports_are_bounded_and_so_are_the_problems() {
        let root = tempfile::tempdir().unwrap();
        let cwd = root.path().join("project");
        let mut text = String::new();
        for n in 0..MAX_FILES + 50 {
            write(&cwd, &format!("{n}.md"), "short");
            write(root.path(), &format!("{n}.md"), "outside");
            text.push_str(&format!("@{n}.md @../{n}.md\n"));
        }
        write(&cwd, "CLAUDE.md", &text);
        let memory = look(&cwd, None, None, MemorySources::ALL, false);
        assert_eq!(memory.files.len(), MAX_FILES + 1, "the imports, and the file itself");
        assert!(!texts(&memory.files).contains(&"outside"));
        assert_eq!(memory.problems.len(), MAX_PROBLEMS);
        assert!(memory.problems.last().unwrap().reason.ends_with("more files are left out"));
    }
}

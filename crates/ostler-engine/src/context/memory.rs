//! CLAUDE.md: standing instructions of the user and of the project, with what they import.
//!
//! The user's file comes first, then those of the folders from the root down to the working directory, so that the
//! nearest has the last word. A line may import another file with `@path`; inside code it is only text.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The most of one file that is read. Instructions are short; more would crowd out the work.
const MAX_BYTES: usize = 64 * 1024;
/// How deep imports may be nested.
const MAX_DEPTH: usize = 5;

/// A file with instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryFile {
    /// Where it lies.
    pub path: PathBuf,
    /// What it says.
    pub text: String,
}

/// Which instructions to load.
#[derive(Clone, Copy, Debug)]
pub struct Sources {
    /// The user's own, for all projects.
    pub user: bool,
    /// Those the project shares.
    pub project: bool,
    /// The user's own for this project.
    pub local: bool,
}

impl Sources {
    /// All of them.
    pub const ALL: Self = Self { user: true, project: true, local: true };
}

/// Loads the instructions for work in `cwd`. Files that are missing or not text are passed over.
pub fn load(
    cwd: &Path,
    config: Option<&Path>,
    home: Option<&Path>,
    sources: Sources,
) -> Vec<MemoryFile> {
    let mut loader = Loader { home, seen: HashSet::new(), files: Vec::new() };
    if let Some(config) = config.filter(|_| sources.user) {
        loader.add(&config.join("CLAUDE.md"), 0);
    }
    let folders: Vec<&Path> = cwd.ancestors().collect();
    for folder in folders.into_iter().rev() {
        if sources.project {
            loader.add(&folder.join("CLAUDE.md"), 0);
            loader.add(&folder.join(".claude/CLAUDE.md"), 0);
        }
        if sources.local {
            loader.add(&folder.join("CLAUDE.local.md"), 0);
        }
    }
    loader.files
}

struct Loader<'a> {
    home: Option<&'a Path>,
    seen: HashSet<PathBuf>,
    files: Vec<MemoryFile>,
}

impl Loader<'_> {
    /// Adds a file after those it imports, each file once.
    fn add(&mut self, path: &Path, depth: usize) {
        let Ok(real) = path.canonicalize() else { return };
        if depth > MAX_DEPTH || !real.is_file() || !self.seen.insert(real) {
            return;
        }
        let Some(text) = read(path) else { return };
        let folder = path.parent().unwrap_or(Path::new("/"));
        for import in imports(&text) {
            let import = match (import.strip_prefix("~/"), self.home) {
                (Some(rest), Some(home)) => home.join(rest),
                _ => folder.join(import),
            };
            self.add(&import, depth + 1);
        }
        self.files.push(MemoryFile { path: path.to_owned(), text });
    }
}

fn read(path: &Path) -> Option<String> {
    let mut text = String::from_utf8(fs::read(path).ok()?).ok()?;
    if text.len() > MAX_BYTES {
        let end = (0..=MAX_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push_str("\n[the rest of this file was left out: it is too long]");
    }
    (!text.trim().is_empty()).then_some(text)
}

/// The paths a text imports.
fn imports(text: &str) -> Vec<&str> {
    let mut imports = Vec::new();
    let mut in_fence = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            in_fence = !in_fence;
        } else if !in_fence {
            // Every other piece between backticks is code.
            let prose = line.split('`').step_by(2).flat_map(str::split_whitespace);
            let paths = prose.filter_map(|word| word.strip_prefix('@'));
            imports.extend(
                paths
                    .map(|path| path.trim_end_matches([',', ';', ':', ')', '.']))
                    .filter(|path| !path.is_empty()),
            );
        }
    }
    imports
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, name: &str, text: &str) {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn texts(files: &[MemoryFile]) -> Vec<&str> {
        files.iter().map(|file| file.text.as_str()).collect()
    }

    #[test]
    fn the_nearest_file_has_the_last_word() {
        let root = tempfile::tempdir().unwrap();
        let (config, cwd) = (root.path().join("config"), root.path().join("a/b"));
        write(&config, "CLAUDE.md", "user");
        write(root.path(), "a/CLAUDE.md", "outer");
        write(&cwd, "CLAUDE.md", "inner");
        write(&cwd, ".claude/CLAUDE.md", "inner too");
        write(&cwd, "CLAUDE.local.md", "mine");
        let files = load(&cwd, Some(&config), None, Sources::ALL);
        assert_eq!(texts(&files), ["user", "outer", "inner", "inner too", "mine"]);
        let only = Sources { user: false, project: true, local: false };
        assert_eq!(texts(&load(&cwd, Some(&config), None, only)), ["outer", "inner", "inner too"]);
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
        let files = load(root.path(), None, Some(&home), Sources::ALL);
        assert_eq!(texts(&files)[..2], ["own", "tabs @../CLAUDE.md @~/own.md"]);
        assert_eq!(files.len(), 3);
    }

    #[test]
    fn a_file_that_is_too_long_is_cut_and_says_so() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "CLAUDE.md", &"é".repeat(MAX_BYTES));
        let files = load(root.path(), None, None, Sources::ALL);
        assert!(files[0].text.len() < MAX_BYTES + 100 && files[0].text.ends_with("too long]"));
    }

    #[test]
    fn what_is_not_text_is_passed_over() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("CLAUDE.md"), [0xff, 0xfe, 0]).unwrap();
        write(root.path(), ".claude/CLAUDE.md", "  \n");
        assert_eq!(load(root.path(), None, None, Sources::ALL), []);
    }
}

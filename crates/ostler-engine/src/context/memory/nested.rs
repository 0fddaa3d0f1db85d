//! Instructions that count for some files only: those of folders below the working directory, and rules with `paths`. The
//! model reads them once, after it has read such a file.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Loader, Lookup, MemoryFile, PathRule};

/// The instructions for some files, and which of them a conversation has already.
#[derive(Clone, Debug, Default)]
pub struct NestedMemory {
    places: Arc<Places>,
    seen: Arc<Mutex<HashSet<PathBuf>>>,
}

#[derive(Debug, Default)]
struct Places {
    lookup: Option<Lookup>,
    rules: Vec<PathRule>,
}

/// Why the model reads instructions during a session; the names are those of hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadReason {
    /// A file below the same folder was read.
    Folder,
    /// A file with a matching path was read.
    Paths,
}

impl LoadReason {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Folder => "nested_traversal",
            Self::Paths => "path_glob_match",
        }
    }
}

impl NestedMemory {
    /// For the places where the instructions of the session were found.
    pub fn new(lookup: Lookup, rules: Vec<PathRule>) -> Self {
        let places = Arc::new(Places { lookup: Some(lookup), rules });
        Self { places, ..Self::default() }
    }

    /// For a conversation that has read none of them.
    pub(crate) fn unread(&self) -> Self {
        Self { places: Arc::clone(&self.places), ..Self::default() }
    }

    /// The conversation was summarized, so the model reads everything again.
    pub(crate) fn forget(&self) {
        self.seen.lock().clear();
    }

    /// What the model has to know about a file that it has read, and does not know yet. Reads files.
    pub(crate) fn about(&self, path: &Path) -> Vec<(MemoryFile, LoadReason)> {
        let Some(lookup) = &self.places.lookup else { return Vec::new() };
        let mut found = Vec::new();
        let mut loader = Loader::new(lookup);
        let below = path.parent().into_iter().flat_map(Path::ancestors);
        let below: Vec<_> = below.take_while(|folder| *folder != lookup.cwd).collect();
        // Outside the working directory there are no instructions of the project.
        if path.starts_with(&lookup.cwd) {
            for folder in below.into_iter().rev() {
                loader.add_folder(folder);
            }
        }
        let memory = loader.finish();
        found.extend(memory.files.into_iter().map(|file| (file, LoadReason::Folder)));
        let rules = self.places.rules.iter().chain(&memory.path_rules);
        let rules = rules.filter(|rule| rule.is_for(path));
        found.extend(rules.map(|rule| (rule.file.clone(), LoadReason::Paths)));
        let mut seen = self.seen.lock();
        found.retain(|(file, _)| seen.insert(file.path.clone()));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MemorySources, load};
    use super::*;

    fn stage(files: &[(&str, &str)], trusts_project: bool) -> (tempfile::TempDir, NestedMemory) {
        let folder = tempfile::tempdir().unwrap();
        let cwd = folder.path().canonicalize().unwrap().join("project");
        for (name, text) in files {
            let path = cwd.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let sources = MemorySources::ALL;
        let lookup = Lookup { cwd, sources, trusts_project, ..Lookup::default() };
        let rules = load(&lookup).path_rules;
        (folder, NestedMemory::new(lookup, rules))
    }

    fn added(memory: &NestedMemory, path: &str) -> Vec<String> {
        let cwd = memory.places.lookup.as_ref().unwrap().cwd.clone();
        let about = memory.about(&cwd.join(path));
        about
            .into_iter()
            .map(|(file, reason)| format!("{} {}", reason.word(), file.text.trim()))
            .collect()
    }

    // Mutants: added with every read; the file of the working directory is added again; all rules are added.
    #[test]
    fn instructions_of_a_folder_and_for_a_path_are_added_once() {
        let (_folder, memory) = stage(
            &[
                ("CLAUDE.md", "top"),
                ("a/CLAUDE.md", "outer"),
                ("a/b/CLAUDE.md", "inner @more.md"),
                ("a/b/more.md", "imported"),
                ("c/CLAUDE.md", "elsewhere"),
                (".claude/rules/ts.md", "---\npaths: \"a/**/*.{ts,tsx}\"\n---\nUse types."),
                (".claude/rules/py.md", "---\npaths:\n  - \"**/*.py\"\n---\nUse black."),
                (".claude/rules/all.md", "Always."),
            ],
            false,
        );
        assert_eq!(added(&memory, "x.txt"), [""; 0]);
        let folder = ["nested_traversal outer", "nested_traversal imported"];
        let all = [&folder[..], &["nested_traversal inner @more.md", "path_glob_match Use types."]];
        assert_eq!(added(&memory, "a/b/x.ts"), all.concat());
        assert_eq!(added(&memory, "a/b/y.ts"), [""; 0]);
        assert_eq!(added(&memory, "a/x.py"), ["path_glob_match Use black."]);
        assert_eq!(added(&memory.unread(), "a/x.txt"), ["nested_traversal outer"]);
        memory.forget();
        assert_eq!(added(&memory, "a/x.txt"), ["nested_traversal outer"]);
        assert!(memory.about(Path::new("/etc/passwd")).is_empty());
    }

    // Mutant: `Lookup::boundary` is `anywhere`.
    #[test]
    fn a_folder_of_a_project_that_is_not_trusted_imports_nothing_from_outside() {
        let files = [("a/CLAUDE.md", "see @../../secret.md and @~/x"), ("a/x.txt", "")];
        for (trusts, expected) in [(false, 1), (true, 2)] {
            let (folder, memory) = stage(&files, trusts);
            std::fs::write(folder.path().join("secret.md"), "SECRET").unwrap();
            std::os::unix::fs::symlink(
                "../../secret.md",
                folder.path().join("project/a/CLAUDE.local.md"),
            )
            .unwrap();
            let texts = added(&memory, "a/x.txt").join("\n");
            assert_eq!(texts.matches("SECRET").count(), expected - 1, "{texts}");
        }
    }
}

//! `.claude/rules`: instructions in several files. One with `paths` in its head counts only for files whose paths match.

use std::path::{Path, PathBuf};

use ignore::gitignore::GitignoreBuilder;
use ostler_skill::Document;

use super::{Boundary, Loader, MemoryFile};

/// How deep folders of rules may be nested.
const MAX_DEPTH: usize = 8;

/// A rule for files whose paths match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRule {
    /// The file with the rule, and what it says.
    pub file: MemoryFile,
    /// The folder to which the patterns belong.
    base: PathBuf,
    patterns: Vec<String>,
}

impl PathRule {
    /// Whether it counts for a file.
    pub(super) fn is_for(&self, path: &Path) -> bool {
        self.patterns.iter().any(|pattern| fits(&self.base, pattern, path))
    }
}

/// Whether a path in a folder matches a pattern such as `src/**/*.{ts,tsx}`. An invalid pattern matches nothing.
pub(super) fn fits(base: &Path, pattern: &str, path: &Path) -> bool {
    let Ok(relative) = path.strip_prefix(base) else { return false };
    let pattern = pattern.trim().trim_start_matches("./");
    let absolute = pattern.strip_prefix(&*base.to_string_lossy());
    let anchored = format!("/{}", absolute.unwrap_or(pattern).trim_start_matches('/'));
    let mut builder = GitignoreBuilder::new("/");
    let is_valid = !pattern.is_empty() && builder.add_line(None, &anchored).is_ok();
    let matcher = builder.build().ok().filter(|_| is_valid);
    matcher.is_some_and(|it| it.matched_path_or_any_parents(relative, false).is_ignore())
}

/// Splits `a/*.{ts,tsx}, b` at the commas outside braces.
fn split(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let parts = text.split(|c: char| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

impl Loader<'_> {
    /// Adds the rules in a folder and the folders below it; `base` is where their patterns begin.
    pub(super) fn add_rules(&mut self, folder: &Path, base: &Path, boundary: &Boundary) {
        self.add_rules_below(folder, base, boundary, 0);
    }

    fn add_rules_below(&mut self, folder: &Path, base: &Path, boundary: &Boundary, depth: usize) {
        if depth > MAX_DEPTH || !folder.is_dir() {
            return;
        }
        let entries = match boundary.entries(folder) {
            Ok(entries) => entries,
            Err(refusal) => {
                return self.problem(folder, format!("the rules are left out: {refusal}"));
            }
        };
        for path in entries {
            if path.is_dir() {
                self.add_rules_below(&path, base, boundary, depth + 1);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                self.add_rule(&path, base, boundary);
            }
        }
    }

    /// Adds a rule with what it imports. Its head is not for the model.
    fn add_rule(&mut self, path: &Path, base: &Path, boundary: &Boundary) {
        let before = self.memory.files.len();
        self.add(path, boundary);
        if self.memory.files[before..].last().is_none_or(|last| last.path != path) {
            return;
        }
        let Some(mut file) = self.memory.files.pop() else { return };
        // A head that cannot be read limits nothing: the model reads the file as it is.
        if let Ok(Document { head, body }) = ostler_skill::read(file.text.as_bytes()) {
            let patterns = match head.0.get("paths").and_then(|paths| paths.as_str()) {
                Some(text) => split(text),
                None => head.list("paths").unwrap_or_default(),
            };
            file.text = body;
            if !patterns.is_empty() {
                self.memory.files.truncate(before);
                let base = base.to_owned();
                return self.memory.path_rules.push(PathRule { file, base, patterns });
            }
        }
        self.memory.files.push(file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_belong_to_a_folder() {
        for (pattern, path, expected) in [
            ("src/**/*.ts", "/p/src/a/b.ts", true),
            ("src/**/*.ts", "/p/src/b.ts", true),
            ("src/**/*.{ts,tsx}", "/p/src/b.tsx", true),
            ("src/**/*.ts", "/p/lib/src/b.ts", false),
            ("**/*.ts", "/p/a/b.ts", true),
            ("*.md", "/p/a.md", true),
            ("*.md", "/p/a/b.md", false),
            ("src", "/p/src/b.ts", true),
            ("./src/*.rs", "/p/src/a.rs", true),
            ("**/*.ts", "/q/b.ts", false),
            ("", "/p/b.ts", false),
            ("a{", "/p/b.ts", false),
        ] {
            assert_eq!(
                fits(Path::new("/p"), pattern, Path::new(path)),
                expected,
                "{pattern} {path}"
            );
        }
        assert!(fits(Path::new("/"), "**/other/CLAUDE.md", Path::new("/p/other/CLAUDE.md")));
        assert!(fits(Path::new("/"), "/p/x/**", Path::new("/p/x/CLAUDE.md")));
        assert_eq!(split("a/*.{ts,tsx}, b ,"), ["a/*.{ts,tsx}", "b"]);
    }
}

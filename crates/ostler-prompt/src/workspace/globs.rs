//! Selects the files of a mount.

use std::path::Path;

use globset::{Glob, GlobSet, GlobSetBuilder};

use super::error::WorkspaceError;

/// Patterns to include and to exclude.
///
/// A pattern is matched against the path below the mount, and against every suffix of it: `*.pyc` and `__pycache__/*`
/// match in every folder. A pattern that starts with a slash is matched against the whole path only. `*` and `?` also
/// match slashes, as in Python's `fnmatch`. A pattern that matches a folder applies to everything in it.
#[derive(Clone, Debug)]
pub(super) struct Globs {
    include: Option<GlobSet>,
    exclude: GlobSet,
}

impl Globs {
    pub(super) fn new(include: &[String], exclude: &[String]) -> Result<Self, WorkspaceError> {
        let include = if include.is_empty() { None } else { Some(set(include)?) };
        Ok(Self { include, exclude: set(exclude)? })
    }

    /// Whether a file is selected. Exclusion wins over inclusion.
    pub(super) fn takes(&self, path: &Path) -> bool {
        self.include.as_ref().is_none_or(|include| include.is_match(path)) && !self.excludes(path)
    }

    /// Whether a file, or everything in a folder, is excluded.
    pub(super) fn excludes(&self, path: &Path) -> bool {
        self.exclude.is_match(path)
    }

    /// Whether only some files are selected, so that folders without selected files are left out.
    pub(super) fn is_selective(&self) -> bool {
        self.include.is_some()
    }
}

fn set(patterns: &[String]) -> Result<GlobSet, WorkspaceError> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let wrong = |reason: String| WorkspaceError::Pattern { pattern: pattern.clone(), reason };
        let (whole, text) = match pattern.strip_prefix('/') {
            Some(rest) => (true, rest),
            None => (false, pattern.as_str()),
        };
        let text = text.trim_end_matches('/');
        if text.is_empty() {
            return Err(wrong("it is empty".to_owned()));
        }
        let ends = if whole { vec![] } else { vec![format!("**/{text}"), format!("**/{text}/**")] };
        for text in [text.to_owned(), format!("{text}/**")].into_iter().chain(ends) {
            set.add(Glob::new(&text).map_err(|error| wrong(error.kind().to_string()))?);
        }
    }
    set.build().map_err(|error| WorkspaceError::Pattern {
        pattern: patterns.join(", "),
        reason: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(include: &[&str], exclude: &[&str], path: &str, expected: bool) {
        let owned =
            |patterns: &[&str]| patterns.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let globs = Globs::new(&owned(include), &owned(exclude)).unwrap();
        assert_eq!(globs.takes(Path::new(path)), expected, "{include:?} {exclude:?} {path}");
    }

    #[test]
    fn every_file_is_selected_by_default() {
        check(&[], &[], "a/b.rs", true);
    }

    #[test]
    fn patterns_match_in_every_folder() {
        check(&["*.rs"], &[], "lib.rs", true);
        check(&["*.rs"], &[], "a/b/lib.rs", true);
        check(&["*.rs"], &[], "a/b/lib.py", false);
        check(&[], &["__pycache__/*"], "a/__pycache__/x.pyc", false);
        check(&[], &["__pycache__/*"], "__pycache__/deep/x.pyc", false);
        check(&[], &["node_modules"], "web/node_modules/a/b.js", false);
        check(&[], &["node_modules/"], "node_modules/b.js", false);
        check(&["src"], &[], "a/src/x", true);
    }

    #[test]
    fn a_leading_slash_matches_the_whole_path() {
        check(&["/src/*"], &[], "src/a.rs", true);
        check(&["/src/*"], &[], "old/src/a.rs", false);
    }

    #[test]
    fn exclusion_wins() {
        check(&["*.rs"], &["secret.rs"], "secret.rs", false);
        check(&["*.rs"], &["secret.rs"], "open.rs", true);
    }

    #[test]
    fn a_malformed_pattern_is_named() {
        for pattern in ["[", "", "/", "a{"] {
            let error = Globs::new(&[], &[pattern.to_owned()]).unwrap_err().to_string();
            assert!(error.contains(&format!("`{pattern}`")), "{error}");
        }
    }
}

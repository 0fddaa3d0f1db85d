//! Files in a working directory from which git outside the sandbox runs programs, because the configuration of a repository
//! names them: its hooks (`core.hooksPath`), and more configuration (`include.path`).

use std::path::{Component, Path, PathBuf};

use ostler_files::read_text;
use ostler_sandbox::{Kind, Protected};

/// How much of a configuration is read.
const MOST_BYTES: u64 = 1 << 20;

/// What a configuration names.
#[derive(Debug, PartialEq, Eq)]
enum Named {
    Hooks(String),
    Configuration(String),
}

/// The paths that the configuration of a repository names and that commands could write, and as texts those that cannot be
/// protected. `top` is the folder that the repository belongs to.
pub(super) fn of(config: &Path, top: &Path, roots: &[PathBuf]) -> (Vec<Protected>, Vec<String>) {
    let text = read_text(config, MOST_BYTES).unwrap_or_default();
    let (mut protected, mut missing) = (Vec::new(), Vec::new());
    // Paths in the home directory are not written by commands.
    let is_of_home = |named: &Named| {
        let (Named::Hooks(path) | Named::Configuration(path)) = named;
        path.starts_with('~')
    };
    for named in named(&text).into_iter().filter(|named| !is_of_home(named)) {
        let (path, kind) = match &named {
            Named::Hooks(path) => (top.join(path), Kind::Folder),
            Named::Configuration(path) => (config.parent().unwrap_or(top).join(path), Kind::File),
        };
        let path = without_dots(&path);
        let Some(root) = roots.iter().filter(|root| path.starts_with(root)).max() else { continue };
        let below = path.ancestors().take_while(|part| *part != root);
        let is_plain = path != *root && !below.into_iter().any(Path::is_symlink);
        // A file that is written while it is missing would be a placeholder that git reads.
        let kind = if kind == Kind::File && !path.exists() { Kind::EMPTY } else { kind };
        match is_plain {
            true => protected.push(Protected { path, kind }),
            false => missing.push(format!(
                "{}, from which git runs programs because {} names it",
                path.display(),
                config.display()
            )),
        }
    }
    (protected, missing)
}

/// A path without `.` and `..`. Links are not followed; a path with one is not protected, and that is stated.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => _ = plain.pop(),
            part => plain.push(part),
        }
    }
    plain
}

fn named(text: &str) -> Vec<Named> {
    let mut section = String::new();
    let mut all = Vec::new();
    for line in text.lines() {
        let mut line = line.trim();
        if let Some((header, rest)) = line.strip_prefix('[').and_then(|line| line.rsplit_once(']'))
        {
            let name = header.split([' ', '"', '.']).next().unwrap_or_default();
            section = name.to_ascii_lowercase();
            line = rest.trim();
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let key = key.trim().to_ascii_lowercase();
        match (section.as_str(), key.as_str()) {
            ("core", "hookspath") => all.push(Named::Hooks(plain(value))),
            ("include" | "includeif", "path") => all.push(Named::Configuration(plain(value))),
            _ => {}
        }
    }
    all
}

/// A value without quotes, escapes and comment.
fn plain(value: &str) -> String {
    let mut text = String::new();
    let mut is_quoted = false;
    let mut characters = value.trim().chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => is_quoted = !is_quoted,
            '\\' => text.extend(characters.next()),
            '#' | ';' if !is_quoted => break,
            other => text.push(other),
        }
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn every_spelling_of_git_is_read() {
        let text = "# [core] hooksPath = no\n[user]\nhooksPath = no\n[Core]\n\thookspath = \"my hooks\" ; mine\n\
            [core] HooksPath=b\n[include]\npath = a\\\\b # c\n[includeIf \"gitdir:/x[1]/\"]\n path = c\n";
        let hooks = |path: &str| Named::Hooks(path.to_owned());
        let more = |path: &str| Named::Configuration(path.to_owned());
        assert_eq!(named(text), [hooks("my hooks"), hooks("b"), more("a\\b"), more("c")]);
    }

    // Mutants: paths outside the folder are protected; the whole folder is; a path with a link is.
    #[test]
    fn only_paths_that_commands_could_write_are_protected() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::create_dir_all(root.join("tools/hooks")).unwrap();
        std::os::unix::fs::symlink("tools", root.join("link")).unwrap();
        let config = root.join(".git/config");
        let text = "[core]\nhooksPath = ./tools/../tools/hooks\n[include]\npath = ../shared.gitconfig\npath = /etc/git\n\
            path = ../../outside\npath = ~/x\n[core]\nhooksPath = .\nhooksPath = link/hooks\n";
        fs::write(&config, text).unwrap();
        let (protected, missing) = of(&config, &root, std::slice::from_ref(&root));
        let expected = [
            Protected { path: root.join("tools/hooks"), kind: Kind::Folder },
            Protected { path: root.join("shared.gitconfig"), kind: Kind::EMPTY },
        ];
        assert_eq!(protected, expected);
        assert_eq!(missing.len(), 2, "{missing:?}");
    }
}

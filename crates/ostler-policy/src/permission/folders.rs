//! The folders that the shell can be in while it runs a command, and the files that a word means there.

use std::path::{Path, PathBuf};

use ostler_shell::{Joint, Judged, Part, Word, WordKind};

use super::disk::OnDisk as _;
use super::path_forms::{PathForms, folded};

/// With more folders, the command requires approval.
const MOST_FOLDERS: usize = 32;
/// A pattern that matches more files requires approval.
const MOST_MATCHES: usize = 500;

/// The folders that the shell can be in before each part, and at the end.
///
/// After `cd a &&` it is in `a`. Otherwise it is not known beforehand whether a `cd` ran and succeeded (`x || cd a`),
/// so all possible folders count. `None` if a part leads to an unknown folder.
pub(crate) fn folders_of(
    start: &Path,
    list: &Judged,
    has_cdpath: bool,
) -> Option<Vec<Vec<PathBuf>>> {
    let mut all = vec![start.to_owned()];
    let mut now = all.clone();
    let mut before = Vec::new();
    for (index, part) in list.parts.iter().enumerate() {
        before.push(now.clone());
        let joint = list.joints.get(index).copied().unwrap_or(Joint::Other);
        if matches!(part.name(), "cd" | "pushd" | "popd") {
            let next = targets_of(part, &now, has_cdpath)?;
            all.extend(next.iter().cloned());
            all.sort_unstable();
            all.dedup();
            // In a pipe it runs in a subshell.
            let is_piped = index > 0 && list.joints.get(index - 1) == Some(&Joint::Pipe);
            now = if joint == Joint::And && !is_piped { next } else { all.clone() };
        }
        if joint == Joint::Other {
            now.clone_from(&all);
        }
        if all.len() > MOST_FOLDERS {
            return None;
        }
    }
    before.push(all);
    Some(before)
}

/// The folders that `cd` leads to from each of these folders.
fn targets_of(part: &Part, folders: &[PathBuf], has_cdpath: bool) -> Option<Vec<PathBuf>> {
    let [_, target] = part.argv.as_slice() else { return None };
    let target = target.as_literal().filter(|target| !target.starts_with(['-', '+']))?;
    if has_cdpath && !target.starts_with(['/', '.']) {
        return None;
    }
    let mut targets = Vec::new();
    for folder in folders {
        let path = folder.join(target);
        // The shell removes `..` by name, the system follows links first.
        targets.push(folded(&path));
        targets.extend(path.with_links_followed().ok());
    }
    targets.sort_unstable();
    targets.dedup();
    Some(targets)
}

/// The files that a word can mean in a folder: for a pattern all matches, and the pattern itself, which the shell keeps
/// if nothing matches.
///
/// # Errors
/// Why they are unknown beforehand.
pub(crate) fn places_of(
    word: &Word,
    folder: &Path,
    home: Option<&Path>,
) -> Result<Vec<PathForms>, String> {
    let unknown = || format!("the path {} is not known beforehand", word.text);
    match word.kind {
        WordKind::Literal => Ok(vec![PathForms::of(&folder.join(&word.text))]),
        WordKind::Tilde => {
            let rest =
                word.text.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
            let (rest, home) = rest.zip(home).ok_or_else(unknown)?;
            Ok(vec![PathForms::of(&home.join(rest.trim_start_matches('/')))])
        }
        WordKind::Glob if word.text.contains(['[', '{', '\\']) => Err(unknown()),
        WordKind::Glob => {
            let mut places = vec![PathForms::of(&folder.join(&word.text))];
            for name in expand(&word.text, folder).ok_or_else(unknown)? {
                // An option, a list of files (`@x`), an expression (`!`): programs give such names a meaning.
                if name.starts_with(|c: char| c.is_ascii_punctuation() && !"._/".contains(c)) {
                    return Err(format!("{} matches {name}, which may be an option", word.text));
                }
                places.push(PathForms::of(&folder.join(&name)));
            }
            Ok(places)
        }
        WordKind::Unknown => Err(unknown()),
    }
}

/// The names that match a pattern, as the shell would write them; `None` when there are too many. Names that differ in
/// case or begin with a dot count as matches: it depends on options of the shell.
fn expand(pattern: &str, folder: &Path) -> Option<Vec<String>> {
    let mut found = vec![if pattern.starts_with('/') { "/".to_owned() } else { String::new() }];
    for piece in pattern.split('/').filter(|piece| !piece.is_empty()) {
        let mut next = Vec::new();
        for beginning in found {
            if !piece.contains(['*', '?']) {
                next.push(format!("{beginning}{piece}/"));
                continue;
            }
            for entry in folder.join(&beginning).entries().into_iter().flatten().flatten() {
                let name = entry.file_name();
                let name = name.to_str()?;
                if fits(piece, name) {
                    next.push(format!("{beginning}{name}/"));
                }
                if next.len() > MOST_MATCHES {
                    return None;
                }
            }
        }
        found = next;
    }
    Some(found.into_iter().map(|name| name.trim_end_matches('/').to_owned()).collect())
}

/// Whether a name matches a pattern of `*` and `?`.
fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.to_lowercase().chars().collect(), name.to_lowercase().chars().collect());
    // Row by row: which prefixes of the name match the pattern so far.
    let mut row = vec![false; name.len() + 1];
    row[0] = true;
    for c in pattern {
        let mut next = vec![false; name.len() + 1];
        next[0] = row[0] && c == '*';
        for at in 0..name.len() {
            next[at + 1] = match c {
                '*' => next[at] || row[at + 1],
                '?' => row[at],
                c => row[at] && name[at] == c,
            };
        }
        row = next;
    }
    row[name.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_expanded_to_all_matching_names() {
        for (pattern, name, expected) in [
            ("*.rs", "main.rs", true),
            ("*.rs", "main.rc", false),
            ("?f", "@f", true),
            ("*", ".env", true),
            (".E*", ".env", true),
            ("a*b*c", "axxbxc", true),
            ("a?c", "ac", false),
            ("", "", true),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }
}

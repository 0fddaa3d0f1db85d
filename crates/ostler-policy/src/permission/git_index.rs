//! Finds the submodules in git's index.

use std::path::PathBuf;

/// Submodules of an index.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Gitlinks {
    /// Where they are in the working tree.
    Paths(Vec<PathBuf>),
    /// The format of the index is not supported here.
    Unknown,
}

/// The bits of a mode that say what an entry is, and those of a submodule.
const KIND: u32 = 0o170_000;
const GITLINK: u32 = 0o160_000;
/// Times, numbers and sizes before the object's name (20 bytes) and the flags (2 bytes).
const N_STAT: usize = 40;
const N_ENTRY: usize = N_STAT + 20 + 2;

/// Finds the submodules. Versions 2 and 3 with names of 20 bytes are read, without a shared part.
pub(crate) fn gitlinks(index: &[u8]) -> Gitlinks {
    read(index).map_or(Gitlinks::Unknown, Gitlinks::Paths)
}

fn read(index: &[u8]) -> Option<Vec<PathBuf>> {
    let number = |at: usize| Some(u32::from_be_bytes(index.get(at..at + 4)?.try_into().ok()?));
    if index.get(..4)? != b"DIRC" || !matches!(number(4)?, 2 | 3) {
        return None;
    }
    let mut paths = Vec::new();
    let mut at = 12;
    for _ in 0..number(8)? {
        let mode = number(at + 24)?;
        let flags = u16::from_be_bytes(index.get(at + 60..at + 62)?.try_into().ok()?);
        let is_extended = flags & 0x4000 != 0;
        let start = at + N_ENTRY + if is_extended { 2 } else { 0 };
        let n_name = index.get(start..)?.iter().position(|byte| *byte == 0)?;
        let name = index.get(start..start + n_name)?;
        match mode & KIND {
            GITLINK => paths.push(PathBuf::from(String::from_utf8(name.to_vec()).ok()?)),
            // A folder as an entry: the index is sparse.
            0o040_000 => return None,
            _ => {}
        }
        // Entries are padded with one to eight zero bytes to a multiple of eight.
        let n_entry = start + n_name - at;
        at += (n_entry + 8) & !7;
    }
    // Extensions; `link` means that entries are in another file.
    while at + 20 < index.len() {
        if index.get(at..at + 4)? == b"link" {
            return None;
        }
        at += 8 + usize::try_from(number(at + 4)?).ok()?;
    }
    (at + 20 == index.len()).then_some(paths)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn git(folder: &std::path::Path, words: &[&str]) {
        let mut command = Command::new("git");
        command.args([
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "-c",
            "advice.addEmbeddedRepo=false",
        ]);
        let output = command.args(words).current_dir(folder).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    // Mutant: `GITLINK` is another mode.
    #[test]
    fn submodules_are_found_among_files_with_names_of_every_length() {
        let folder = tempfile::tempdir().unwrap();
        git(folder.path(), &["init", "-q"]);
        for n in 1..20 {
            std::fs::write(folder.path().join("f".repeat(n)), "x").unwrap();
        }
        for name in ["sub", "lib/deep"] {
            let sub = folder.path().join(name);
            std::fs::create_dir_all(&sub).unwrap();
            git(&sub, &["init", "-q"]);
            git(&sub, &["commit", "-q", "--allow-empty", "-m", "x"]);
        }
        git(folder.path(), &["add", "."]);
        let read = || std::fs::read(folder.path().join(".git/index")).unwrap();
        let expected = Gitlinks::Paths(vec!["lib/deep".into(), "sub".into()]);
        assert_eq!(gitlinks(&read()), expected);
        git(folder.path(), &["update-index", "--index-version", "4"]);
        assert_eq!(gitlinks(&read()), Gitlinks::Unknown);
        assert_eq!(gitlinks(b"DIRC"), Gitlinks::Unknown);
        git(folder.path(), &["update-index", "--index-version", "2"]);
        git(folder.path(), &["update-index", "--split-index"]);
        assert_eq!(gitlinks(&read()), Gitlinks::Unknown);
    }
}

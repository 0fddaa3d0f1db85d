//! Lists and reads the files of the repository.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

/// A file as the rules see it.
pub(super) struct File {
    pub(super) size: u64,
    /// `None` if it is not text.
    pub(super) text: Option<String>,
}

/// All files under version control, or that would be; paths from the top, with `/`.
pub(super) fn list(root: &Path) -> Result<Vec<String>> {
    let git = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output();
    if let Ok(output) = git
        && output.status.success()
    {
        let names = output.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        return Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect());
    }
    // A source archive, or a machine without git.
    let mut paths = Vec::new();
    walk(root, "", &mut paths)?;
    paths.sort();
    Ok(paths)
}

/// `None` for a listed file that does not exist, such as a deleted one that is not committed.
pub(super) fn read(root: &Path, path: &str) -> Result<Option<File>> {
    let full = root.join(path);
    let Ok(metadata) = fs::symlink_metadata(&full) else { return Ok(None) };
    if !metadata.is_file() {
        return Ok(None);
    }
    let bytes = fs::read(&full).with_context(|| format!("reading {path}"))?;
    Ok(Some(File { size: metadata.len(), text: String::from_utf8(bytes).ok() }))
}

fn walk(root: &Path, folder: &str, paths: &mut Vec<String>) -> Result<()> {
    let entries = fs::read_dir(root.join(folder)).with_context(|| format!("reading {folder:?}"))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("reading {folder:?}"))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        let kind = entry.file_type().with_context(|| format!("reading {path}"))?;
        if kind.is_file() {
            paths.push(path);
        } else if kind.is_dir()
            && !["target", "node_modules", ".git", ".cache"].contains(&name.as_str())
        {
            walk(root, &path, paths)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{list, read, walk};
    use crate::cargo;

    #[test]
    fn both_ways_of_listing_find_this_file() {
        let root = cargo::root();
        let mut walked = Vec::new();
        walk(&root, "", &mut walked).unwrap();
        for paths in [list(&root).unwrap(), walked] {
            assert!(paths.iter().any(|path| path == "xtask/src/tidy/files.rs"));
            assert!(
                !paths.iter().any(|path| path.starts_with("target/") || path.starts_with(".git/"))
            );
        }
    }

    #[test]
    fn a_deleted_file_is_skipped() {
        assert!(read(&cargo::root(), "no/such/file.rs").unwrap().is_none());
    }
}

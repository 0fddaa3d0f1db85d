//! The working trees of a git repository, without running git.

use std::fs;
use std::path::{Path, PathBuf};

use ostler_policy::project_file::Boundary;

/// The most bytes of `.git`, `commondir` and `gitdir`.
const LONGEST_FILE: u64 = 4096;

/// The working directory and all working trees of its repository, whose sessions belong together. Outside a repository
/// only the working directory.
pub fn worktrees(cwd: &Path) -> Vec<PathBuf> {
    let cwd = super::folder::real_path(cwd);
    let mut trees = vec![cwd.clone()];
    let Some(common) = common_folder(&cwd) else { return trees };
    if common.file_name().is_some_and(|name| name == ".git") {
        trees.extend(common.parent().map(Path::to_owned));
    }
    let Ok(linked) = fs::read_dir(common.join("worktrees")) else { return trees };
    let mut linked: Vec<_> = linked.filter_map(|entry| linked_tree(&entry.ok()?.path())).collect();
    linked.sort();
    trees.extend(linked);
    trees
}

/// The folder that all working trees of a repository share, usually the `.git` of the first one.
fn common_folder(cwd: &Path) -> Option<PathBuf> {
    let dot_git = cwd.ancestors().map(|dir| dir.join(".git")).find(|path| path.exists())?;
    if dot_git.is_dir() {
        return fs::canonicalize(dot_git).ok();
    }
    // In a linked working tree `.git` is a file that names the folder.
    let folder = dot_git.parent()?.join(read(&dot_git)?.strip_prefix("gitdir:")?.trim());
    fs::canonicalize(folder.join(read(&folder.join("commondir"))?)).ok()
}

/// The working tree of an entry of `worktrees`: its file `gitdir` names the tree's `.git`.
fn linked_tree(entry: &Path) -> Option<PathBuf> {
    let dot_git = entry.join(read(&entry.join("gitdir"))?);
    Some(super::folder::real_path(dot_git.parent()?))
}

fn read(file: &Path) -> Option<String> {
    let text = Boundary::default().read_text(file, LONGEST_FILE).ok()?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_working_trees_are_found_from_each_of_them() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let (main, linked) = (root.join("main"), root.join("linked"));
        let entry = main.join(".git/worktrees/linked");
        for folder in [&main.join("src"), &linked, &entry] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(linked.join(".git"), format!("gitdir: {}\n", entry.display())).unwrap();
        fs::write(entry.join("commondir"), "../..\n").unwrap();
        fs::write(entry.join("gitdir"), format!("{}\n", linked.join(".git").display())).unwrap();
        assert_eq!(worktrees(&main), [main.clone(), main.clone(), linked.clone()]);
        assert_eq!(worktrees(&linked), [linked.clone(), main.clone(), linked.clone()]);
        let inner = main.join("src");
        assert_eq!(worktrees(&inner), [inner.clone(), main.clone(), linked]);
        assert_eq!(worktrees(&root), std::slice::from_ref(&root), "outside a repository");
    }
}

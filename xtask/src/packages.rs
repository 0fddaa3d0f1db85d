//! Compiled third-party packages, kept in the cache folder, so that a new checkout compiles only its own crates.
//!
//! Cargo itself decides whether it can use a compiled package: a package of another version, compiler or profile has
//! another name. Files are hard links, which keep their times (cargo compares them) and need no space; where links
//! are not possible, they are copies with the same times.

use std::collections::BTreeSet;
use std::fs::{self, File, FileTimes};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::checksum::checksum;
use crate::{cargo, peers};

/// The folders of a build in which cargo looks for compiled packages.
const FOLDERS: [&str; 3] = [".fingerprint", "build", "deps"];

/// A file in a build folder that has its packages.
const MARK: &str = ".has-packages";

/// How many lists of packages are kept. Branches with another `Cargo.lock` have their own.
const KEPT: usize = 3;

/// Puts compiled packages into a build folder that has none. Returns whether it did.
pub(crate) fn restore() -> Result<bool> {
    let (build, cache) = (build_folder()?, folder()?);
    if build.join(MARK).exists() || !cache.is_dir() {
        return Ok(false);
    }
    for name in FOLDERS {
        link_tree(&cache.join(name), &build.join(name))?;
    }
    Ok(true)
}

/// Keeps the compiled packages of a build for other checkouts.
pub(crate) fn keep() -> Result<()> {
    let (build, cache) = (build_folder()?, folder()?);
    fs::write(build.join(MARK), "").context("marking the build folder")?;
    if cache.is_dir() {
        return Ok(());
    }
    let members = members()?;
    let partial = cache.with_extension(format!("partial-{}", std::process::id()));
    for name in FOLDERS {
        let (from, to) = (build.join(name), partial.join(name));
        fs::create_dir_all(&to).with_context(|| format!("creating {}", to.display()))?;
        for entry in entries(&from)?.iter().filter(|entry| !belongs_to(&members, entry)) {
            link_tree(&from.join(entry), &to.join(entry))?;
        }
    }
    // Another process may have been faster; its packages are equal.
    if fs::rename(&partial, &cache).is_err() {
        fs::remove_dir_all(&partial).ok();
    }
    prune(&peers::cache_folder()?)
}

/// The folder for the packages of this `Cargo.lock`, compiler and profile.
fn folder() -> Result<PathBuf> {
    let root = cargo::root();
    let read =
        |name| fs::read_to_string(root.join(name)).with_context(|| format!("reading {name}"));
    let compiler = Command::new("rustc").arg("-vV").output().context("starting rustc")?;
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    let parts = [
        read("Cargo.lock")?,
        read("Cargo.toml")?,
        String::from_utf8_lossy(&compiler.stdout).into_owned(),
        flags,
    ];
    Ok(peers::cache_folder()?.join(format!("packages-{:016x}", checksum(&parts.join("\n")))))
}

/// The folder into which cargo compiles the tests.
fn build_folder() -> Result<PathBuf> {
    let metadata = metadata()?;
    let target = metadata["target_directory"].as_str().context("cargo names no target folder")?;
    Ok(Path::new(target).join("debug"))
}

/// The names of this workspace's packages and of their targets, as cargo writes them into file names.
fn members() -> Result<BTreeSet<String>> {
    let metadata = metadata()?;
    let mut names = BTreeSet::new();
    for package in metadata["packages"].as_array().context("cargo names no packages")? {
        let targets = package["targets"].as_array().into_iter().flatten();
        let all = std::iter::once(package).chain(targets).filter_map(|it| it["name"].as_str());
        for name in all {
            names.extend([name.to_owned(), name.replace('-', "_")]);
        }
    }
    ensure!(names.contains("xtask"), "cargo does not list this program");
    Ok(names)
}

fn metadata() -> Result<Value> {
    let output = cargo::cargo(&["metadata", "--no-deps", "--format-version=1", "--offline"])
        .output()
        .context("starting cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata ended with {}", output.status);
    serde_json::from_slice(&output.stdout).context("reading cargo's metadata")
}

/// Whether a file or folder of a build comes from one of these packages: `libNAME-HASH.rlib`, `NAME-HASH.d`, `NAME-HASH`.
fn belongs_to(members: &BTreeSet<String>, entry: &str) -> bool {
    // Files without a hash are cargo's own, or programs of this workspace.
    let Some((name, _)) = entry.rsplit_once('-') else { return true };
    members.contains(name) || name.strip_prefix("lib").is_some_and(|name| members.contains(name))
}

fn entries(folder: &Path) -> Result<Vec<String>> {
    let reading = || format!("reading {}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(reading)? {
        names.extend(entry.with_context(reading)?.file_name().into_string().ok());
    }
    Ok(names)
}

/// Links a file, or a folder with everything in it. Existing files are replaced: this program's own packages were compiled
/// just now, and cargo would compile everything again that depends on something newer.
fn link_tree(from: &Path, to: &Path) -> Result<()> {
    if !from.is_dir() {
        return link(from, to);
    }
    fs::create_dir_all(to).with_context(|| format!("creating {}", to.display()))?;
    for entry in entries(from)? {
        link_tree(&from.join(&entry), &to.join(entry))?;
    }
    Ok(())
}

fn link(from: &Path, to: &Path) -> Result<()> {
    fs::remove_file(to).ok();
    if fs::hard_link(from, to).is_ok() {
        return Ok(());
    }
    let copying = || format!("copying {} to {}", from.display(), to.display());
    fs::copy(from, to).with_context(copying)?;
    let modified = fs::metadata(from).and_then(|file| file.modified()).with_context(copying)?;
    let times = FileTimes::new().set_modified(modified);
    File::options()
        .write(true)
        .open(to)
        .and_then(|file| file.set_times(times))
        .with_context(copying)
}

/// Removes all but the newest lists of packages.
fn prune(cache: &Path) -> Result<()> {
    let age = |name: &String| fs::metadata(cache.join(name)).and_then(|file| file.modified()).ok();
    let mut kept = entries(cache)?;
    kept.retain(|name| name.starts_with("packages-"));
    kept.sort_by_key(|name| std::cmp::Reverse(age(name)));
    for name in kept.iter().skip(KEPT) {
        fs::remove_dir_all(cache.join(name)).with_context(|| format!("removing {name}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::PathBuf;

    use super::{KEPT, belongs_to, link_tree, prune};

    fn temporary(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
        fs::remove_dir_all(&folder).ok();
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn own_crates_are_not_kept() {
        let members = BTreeSet::from(["ostler-cli", "ostler_cli", "it"].map(str::to_owned));
        for own in
            ["ostler-cli-0a1b", "libostler_cli-0a1b.rlib", "ostler_cli-0a1b.d", "it-0a1b", ".lock"]
        {
            assert!(belongs_to(&members, own), "{own}");
        }
        for other in ["serde-0a1b", "libserde_json-0a1b.rmeta", "libit_x-0a1b.so", "cli-0a1b.d"] {
            assert!(!belongs_to(&members, other), "{other}");
        }
    }

    #[test]
    fn linked_files_keep_their_times_and_replace_existing_ones() {
        let folder = temporary("packages-link");
        let (from, to) = (folder.join("from"), folder.join("to"));
        fs::create_dir_all(from.join("deep")).unwrap();
        fs::write(from.join("deep/a"), "new").unwrap();
        fs::write(from.join("b"), "new").unwrap();
        fs::create_dir_all(&to).unwrap();
        fs::write(to.join("b"), "old").unwrap();
        link_tree(&from, &to).unwrap();
        let modified = |path: PathBuf| fs::metadata(path).unwrap().modified().unwrap();
        assert_eq!(modified(from.join("deep/a")), modified(to.join("deep/a")));
        assert_eq!(fs::read_to_string(to.join("b")).unwrap(), "new");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn only_the_newest_lists_of_packages_stay() {
        let cache = temporary("packages-prune");
        for number in 0..KEPT + 2 {
            fs::create_dir(cache.join(format!("packages-{number}"))).unwrap();
        }
        fs::create_dir(cache.join("peers-1")).unwrap();
        prune(&cache).unwrap();
        let left = super::entries(&cache).unwrap();
        assert_eq!(left.len(), KEPT + 1, "{left:?}");
        assert!(left.contains(&"peers-1".to_owned()));
        fs::remove_dir_all(cache).unwrap();
    }
}

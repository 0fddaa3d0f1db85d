//! The skills that a run can see, in a private folder that is removed when the run ends.
//!
//! The engine loads the folder as a plugin. Two runs never share a folder, and a run never sees the files that another
//! run left.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use ostler_base::paths::open_beneath;
use ostler_base::private;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::definition::Skill;

/// The name of the plugin: skills are `task:NAME`, or `NAME` for short.
pub(crate) const PLUGIN: &str = "task";
const PREFIX: &str = "run-";
const DEEPEST: usize = 8;
const MOST_FILES: usize = 1_000;
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// A run's folder. It is removed on drop.
#[derive(Debug)]
pub(crate) struct RunFolder(TempDir);

impl RunFolder {
    /// Creates a folder below `parent` with these skills. Their text is unchanged: engines run command lines in it, so
    /// parameters must never get there.
    ///
    /// # Errors
    /// When the folder cannot be written. It is removed then.
    pub(crate) fn new(parent: &Path, skills: &[&Skill]) -> io::Result<Self> {
        private::folder(parent)?;
        let mode = std::fs::Permissions::from_mode(0o700);
        let folder =
            tempfile::Builder::new().prefix(PREFIX).permissions(mode).tempdir_in(parent)?;
        // Resolves links now: rules about the folder need its real path.
        let root = folder.path().canonicalize()?;
        make_folder(&root.join(".claude-plugin"))?;
        let manifest = json!({"name": PLUGIN, "description": "The skills of this task"});
        write(&root.join(".claude-plugin/plugin.json"), manifest.to_string().as_bytes(), false)?;
        make_folder(&root.join("skills"))?;
        for skill in skills {
            let place = root.join("skills").join(&skill.name);
            make_folder(&place)?;
            if let Some(from) = &skill.folder {
                Copy { from, n_files: 0, n_bytes: 0 }.folder(Path::new(""), &place, 0)?;
            }
            write(&place.join("SKILL.md"), file(skill).as_bytes(), false)?;
        }
        Ok(Self(folder))
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap_or_else(|_| self.0.path().to_owned())
    }
}

/// Removes the folders of runs that ended with an earlier process. For the start of the server, when nothing runs.
pub fn sweep(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) {
            // A folder that cannot be removed does no harm.
            _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// A `SKILL.md` with the fields the engine needs. The server enforces all others.
fn file(skill: &Skill) -> String {
    let quoted = |text: &str| Value::from(text).to_string();
    let description = if skill.description.is_empty() { &skill.name } else { &skill.description };
    format!(
        "---\nname: {}\ndescription: {}\n---\n\n{}",
        quoted(&skill.name),
        quoted(description),
        skill.content
    )
}

fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

fn write(path: &Path, bytes: &[u8], is_program: bool) -> io::Result<()> {
    let mode = if is_program { 0o700 } else { 0o600 };
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(bytes)
}

/// Copies a skill's files, as far as they lie inside the skill's folder.
struct Copy<'a> {
    from: &'a Path,
    n_files: usize,
    n_bytes: u64,
}

impl Copy<'_> {
    fn folder(&mut self, below: &Path, to: &Path, depth: usize) -> io::Result<()> {
        for entry in std::fs::read_dir(self.from.join(below))? {
            let entry = entry?;
            let (name, kind) = (entry.file_name(), entry.file_type()?);
            let path = below.join(&name);
            if depth == 0 && name == "SKILL.md" {
                continue;
            }
            if kind.is_dir() {
                if depth + 1 >= DEEPEST {
                    return Err(too_much(self.from, "folders in folders"));
                }
                make_folder(&to.join(&name))?;
                self.folder(&path, &to.join(&name), depth + 1)?;
            } else if let Ok(file) = open_beneath(self.from, &path) {
                // Links out of the folder, and links to folders, are skipped.
                self.file(file, &to.join(&name))?;
            }
        }
        Ok(())
    }

    fn file(&mut self, file: std::fs::File, to: &Path) -> io::Result<()> {
        self.n_files += 1;
        let about = file.metadata()?;
        self.n_bytes += about.len();
        if self.n_files > MOST_FILES || self.n_bytes > MOST_BYTES {
            return Err(too_much(self.from, "files"));
        }
        let mut bytes = Vec::new();
        file.take(MOST_BYTES).read_to_end(&mut bytes)?;
        write(to, &bytes, about.permissions().mode() & 0o100 != 0)
    }
}

fn too_much(folder: &Path, what: &str) -> io::Error {
    io::Error::other(format!("the skill in {} has too many {what}", folder.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::super::folder::Folder;
    use super::*;

    fn skills(place: &Path) -> Vec<Skill> {
        let root = place.join("skills");
        for name in ["one", "two"] {
            std::fs::create_dir_all(root.join(name).join("scripts")).unwrap();
            std::fs::write(
                root.join(name).join("SKILL.md"),
                "---\ndescription: \"a: b\"\n---\nraw",
            )
            .unwrap();
            std::fs::write(root.join(name).join("scripts/run.sh"), name).unwrap();
        }
        let script = root.join("one/scripts/run.sh");
        std::fs::set_permissions(script, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::write(place.join("secret"), "secret").unwrap();
        symlink("../../secret", root.join("one/leak")).unwrap();
        symlink("../two", root.join("one/other")).unwrap();
        symlink("scripts/run.sh", root.join("one/near")).unwrap();
        Folder(root).list().skills
    }

    fn all_files(folder: &Path) -> Vec<String> {
        let mut found = Vec::new();
        let mut left = vec![folder.to_owned()];
        while let Some(next) = left.pop() {
            for entry in std::fs::read_dir(next).unwrap().flatten() {
                if entry.file_type().unwrap().is_dir() {
                    left.push(entry.path());
                } else {
                    found.push(entry.path().strip_prefix(folder).unwrap().display().to_string());
                }
            }
        }
        found.sort();
        found
    }

    // Seen to fail when links are copied as what they lead to.
    #[test]
    fn a_run_sees_only_its_own_skills() {
        let place = tempfile::tempdir().unwrap();
        let skills = skills(place.path());
        let runs = place.path().join("runs");
        let one = RunFolder::new(&runs, &[&skills[0]]).unwrap();
        let expected = [
            ".claude-plugin/plugin.json",
            "skills/one/SKILL.md",
            "skills/one/near",
            "skills/one/scripts/run.sh",
        ];
        assert_eq!(all_files(&one.path()), expected);
        let text = std::fs::read_to_string(one.path().join("skills/one/SKILL.md")).unwrap();
        assert_eq!(text, "---\nname: \"one\"\ndescription: \"a: b\"\n---\n\nraw");
        let mode = |path: &str| {
            std::fs::metadata(one.path().join(path)).unwrap().permissions().mode() & 0o777
        };
        assert_eq!((mode(""), mode("skills"), mode("skills/one/SKILL.md")), (0o700, 0o700, 0o600));
        assert_eq!(mode("skills/one/scripts/run.sh"), 0o700, "a program stays executable");
        let both = RunFolder::new(&runs, &[&skills[0], &skills[1]]).unwrap();
        assert_ne!(one.path(), both.path());
        assert!(both.path().join("skills/two/SKILL.md").exists());
    }

    #[test]
    fn the_folder_is_removed_after_the_run_also_after_a_crash() {
        let place = tempfile::tempdir().unwrap();
        let skills = skills(place.path());
        let runs = place.path().join("runs");
        let path = {
            let run = RunFolder::new(&runs, &[&skills[0]]).unwrap();
            std::fs::write(run.path().join("left-behind"), "x").unwrap();
            run.path()
        };
        assert!(!path.exists());
        std::mem::forget(RunFolder::new(&runs, &[&skills[0]]).unwrap());
        std::fs::write(runs.join("other"), "not ours").unwrap();
        sweep(&runs);
        assert_eq!(all_files(&runs), ["other"]);
        sweep(&place.path().join("none"));
    }

    #[test]
    fn a_skill_that_is_too_large_is_refused_and_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        let skills = skills(place.path());
        let deep = place.path().join("skills/one").join("d/".repeat(DEEPEST));
        std::fs::create_dir_all(deep).unwrap();
        let runs = place.path().join("runs");
        let error = RunFolder::new(&runs, &[&skills[0]]).unwrap_err().to_string();
        assert!(error.contains("too many folders"), "{error}");
        assert!(all_files(&runs).is_empty());
    }
}

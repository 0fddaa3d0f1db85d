//! Skills in a folder: `NAME/SKILL.md`, and the other files of the skill next to it.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use ostler_base::paths::{confined, open_beneath};

use super::definition::{Skill, Source, is_name};
use super::listing::{Listed, SkillError};

const FILE: &str = "SKILL.md";
const LONGEST: u64 = 1024 * 1024;
const MOST: usize = 1_000;

/// A folder of skills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder(pub PathBuf);

impl Folder {
    /// Reads the skill with this id or name.
    ///
    /// # Errors
    /// When the skill exists and cannot be used.
    pub fn find(&self, id: &str) -> Result<Option<Skill>, SkillError> {
        // An invalid name could be a path to another place.
        if !is_name(id) {
            return Ok(None);
        }
        match self.read(id)? {
            Some(skill) => Ok(Some(skill)),
            None => Ok(self.list().skills.into_iter().find(|skill| skill.name == id)),
        }
    }

    /// All skills, and which were left out.
    pub fn list(&self) -> Listed {
        let mut listed = Listed::default();
        let Ok(entries) = std::fs::read_dir(&self.0) else {
            listed.problems.push(format!("{} cannot be read", self.0.display()));
            return listed;
        };
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> =
            names.filter(|name| !name.starts_with('.')).take(MOST).collect();
        names.sort();
        for name in names {
            if !is_name(&name) {
                listed
                    .problems
                    .push(format!("{} is left out: its name cannot be used", name.escape_debug()));
                continue;
            }
            match self.read(&name) {
                Ok(skill) => listed.skills.extend(skill),
                Err(error) => listed.problems.push(error.to_string()),
            }
        }
        listed
    }

    fn read(&self, id: &str) -> Result<Option<Skill>, SkillError> {
        let broken = |reason: String| SkillError::Broken { id: id.to_owned(), reason };
        let mut file = match open_beneath(&self.0, &Path::new(id).join(FILE)) {
            Ok(file) => file.take(LONGEST + 1),
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(broken(error.to_string())),
        };
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(|error| broken(error.to_string()))?;
        if text.len() as u64 > LONGEST {
            return Err(broken(format!("{FILE} is longer than {LONGEST} bytes")));
        }
        let document = ostler_skill::document(&text).map_err(broken)?;
        let mut skill = Skill::new(id, document, Source::Folder).map_err(broken)?;
        let folder = confined(&self.0, Path::new(id)).map_err(|error| broken(error.to_string()))?;
        skill.folder = Some(folder);
        Ok(Some(skill))
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn put(root: &Path, name: &str, text: &str) {
        std::fs::create_dir_all(root.join(name)).unwrap();
        std::fs::write(root.join(name).join(FILE), text).unwrap();
    }

    #[test]
    fn skills_are_found_by_folder_or_name_and_read_again_each_time() {
        let root = tempfile::tempdir().unwrap();
        put(root.path(), "one", "---\nname: first\ndescription: d\n---\nA");
        put(root.path(), "two", "B");
        put(root.path(), "bad", "---\nallowed-tools: 3\n---\n");
        std::fs::create_dir(root.path().join("empty")).unwrap();
        std::fs::write(root.path().join("README.md"), "x").unwrap();
        let folder = Folder(root.path().to_owned());
        assert_eq!(folder.find("one").unwrap().unwrap().name, "first");
        assert_eq!(folder.find("first").unwrap().unwrap().id, "one");
        assert_eq!(folder.find("two").unwrap().unwrap().content, "B");
        assert!(folder.find("bad").unwrap_err().to_string().contains("allowed-tools"));
        assert_eq!(folder.find("three").unwrap(), None);
        let listed = folder.list();
        assert_eq!(
            listed.skills.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(),
            ["one", "two"]
        );
        assert_eq!(listed.problems.len(), 1, "{:?}", listed.problems);
        put(root.path(), "two", "C");
        assert_eq!(folder.find("two").unwrap().unwrap().content, "C");
    }

    // Seen to fail when names are not checked, and when links are followed wherever they lead.
    #[test]
    fn neither_names_nor_links_lead_out_of_the_folder() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("skills");
        put(place.path(), "outside", "---\nname: outside\n---\nsecret");
        put(&root, "inside", "x");
        let folder = Folder(root.clone());
        for name in [
            "../outside",
            "..",
            "",
            ".",
            "/",
            "inside/../../outside",
            "a\0b",
            "inside/SKILL.md",
            "%2e%2e%2foutside",
        ] {
            assert_eq!(folder.find(name).unwrap(), None, "{name}");
        }
        symlink("../outside", root.join("link")).unwrap();
        std::fs::create_dir(root.join("half")).unwrap();
        symlink("../../outside/SKILL.md", root.join("half").join(FILE)).unwrap();
        symlink("inside", root.join("alias")).unwrap();
        for name in ["link", "half"] {
            assert!(folder.find(name).unwrap_err().to_string().contains("leads out"), "{name}");
        }
        assert_eq!(
            folder.find("alias").unwrap().unwrap().content,
            "x",
            "a link that stays inside the folder"
        );
        assert!(!folder.list().skills.iter().any(|skill| skill.content.contains("secret")));
    }
}

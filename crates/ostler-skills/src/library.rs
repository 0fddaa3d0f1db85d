//! All skills that a server has: those of its folders, then those of its content management system.
//!
//! Nothing is cached: each run reads its skill again, so a change applies from the next run.

use ostler_base::error::shown;

use super::cms::Cms;
use super::definition::Skill;
use super::folder::Folder;
pub use super::listing::{Listed, SkillError};

/// The sources of skills.
#[derive(Clone, Debug, Default)]
pub struct Skills {
    pub folders: Vec<Folder>,
    pub cms: Option<Cms>,
}

impl Skills {
    /// Reads the skill with this id or name.
    ///
    /// # Errors
    /// When no source has the skill, or it cannot be used or fetched.
    pub async fn find(&self, id: &str) -> Result<Skill, SkillError> {
        for folder in &self.folders {
            if let Some(skill) = folder.find(id)? {
                return Ok(skill);
            }
        }
        let found = match &self.cms {
            Some(cms) => cms.find(id).await?,
            None => None,
        };
        found.ok_or_else(|| SkillError::NotFound(shown(id)))
    }

    /// All skills. Of two with the same name the first counts. A failing source is reported in `problems`.
    pub async fn list(&self) -> Listed {
        let mut all = Listed::default();
        let mut add = |listed: Listed| {
            all.problems.extend(listed.problems);
            for skill in listed.skills {
                if all.skills.iter().any(|known| known.name == skill.name) {
                    all.problems
                        .push(format!("{} is left out: another skill has the same name", skill.id));
                } else {
                    all.skills.push(skill);
                }
            }
        };
        self.folders.iter().for_each(|folder| add(folder.list()));
        if let Some(cms) = &self.cms {
            match cms.list().await {
                Ok(listed) => add(listed),
                Err(error) => {
                    add(Listed { problems: vec![error.to_string()], ..Listed::default() })
                }
            }
        }
        all
    }
}

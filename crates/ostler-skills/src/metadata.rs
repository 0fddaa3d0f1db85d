//! What is recorded about an execution: which skill, where it came from, and what else the run could see.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::definition::Skill;

/// Which skills a run can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// The selected skill.
    Full,
    /// All skills; the selected one comes first.
    Partial,
    /// No skills.
    None,
}

impl Isolation {
    /// The default for a task of this type.
    pub(crate) fn of_task(kind: TaskType) -> Self {
        match kind {
            TaskType::Skill => Self::Full,
            TaskType::Agent => Self::Partial,
        }
    }
}

/// The type of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TaskType {
    /// Runs one skill.
    Skill,
    /// An agent follows the prompt, and may use skills.
    Agent,
}

/// The metadata of one execution, as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) selected_skill_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) selected_skill_name: Option<String>,
    pub source: String,
    pub(crate) isolation_level: Isolation,
    pub(crate) system_prompt_source: String,
    pub(crate) other_skills_accessible: bool,
}

impl Metadata {
    /// The metadata of a run with this skill, or without one.
    pub(crate) fn new(skill: Option<&Skill>, isolation: Isolation, others: usize) -> Self {
        // Without a skill in its prompt a run has the engine's own prompt.
        let skill = skill.filter(|_| isolation != Isolation::None);
        Self {
            selected_skill_id: skill.map(|skill| skill.id.clone()),
            selected_skill_name: skill.map(|skill| skill.name.clone()),
            source: skill.map_or("none", |skill| skill.source.word()).to_owned(),
            isolation_level: isolation,
            system_prompt_source: if skill.is_some() { "skill.content" } else { "engine" }
                .to_owned(),
            other_skills_accessible: isolation == Isolation::Partial && others > 0,
        }
    }
}

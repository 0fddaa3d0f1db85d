//! What a source of skills answers: a list, or why there is no skill.

use std::time::Duration;

use axum::http::StatusCode;
use ostler_base::error::ApiError;

use super::definition::Skill;

/// What a source has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listed {
    pub skills: Vec<Skill>,
    /// What was left out, and why.
    pub problems: Vec<String>,
}

/// Why there is no skill.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SkillError {
    #[error("there is no skill {0}")]
    NotFound(String),
    #[error("the skill {id} cannot be used: {reason}")]
    Broken { id: String, reason: String },
    #[error("the skills cannot be fetched: {0}")]
    Unreachable(String),
    #[error("the skills did not come within {} s", .0.as_secs())]
    TooSlow(Duration),
}

impl From<SkillError> for ApiError {
    fn from(error: SkillError) -> Self {
        let message = error.to_string();
        match error {
            SkillError::NotFound(_) => {
                Self::not_found(message).hint("list them to see which there are")
            }
            SkillError::Broken { .. } => {
                let error = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "skill_broken", message);
                error.hint("correct the skill; the next run reads it again")
            }
            SkillError::Unreachable(_) => {
                Self::new(StatusCode::BAD_GATEWAY, "skill_source_failed", message)
            }
            SkillError::TooSlow(_) => {
                Self::new(StatusCode::GATEWAY_TIMEOUT, "skill_source_too_slow", message)
            }
        }
    }
}

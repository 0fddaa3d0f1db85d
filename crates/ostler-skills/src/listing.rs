//! The answer of a source of skills: a list, or an error.

use std::time::Duration;

use axum::http::StatusCode;
use ostler_base::error::ApiError;

use super::definition::Skill;

/// The skills of a source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listed {
    pub skills: Vec<Skill>,
    /// Which skills were left out, and why.
    pub problems: Vec<String>,
}

/// Why a skill is not available.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SkillError {
    #[error("there is no skill {0}")]
    NotFound(String),
    #[error("the skill {id} cannot be used: {reason}")]
    Broken { id: String, reason: String },
    #[error("the skills cannot be fetched: {0}")]
    Unreachable(String),
    #[error("the skills could not be fetched within {} s", .0.as_secs())]
    TooSlow(Duration),
}

impl From<SkillError> for ApiError {
    fn from(error: SkillError) -> Self {
        let message = error.to_string();
        match error {
            SkillError::NotFound(_) => {
                Self::not_found(message).hint("list the skills to see their names")
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

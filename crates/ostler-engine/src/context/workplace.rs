//! Where and when a session works, as the model reads it with every form of system prompt.

use std::path::Path;

use ostler_model::base_prompt::{ENVIRONMENT, platform};

/// The place and the time, for the model. They are found once, at the start: every request begins with the same bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workplace {
    /// The date at the start, such as 2026-11-18.
    pub date: Option<String>,
    /// The repository at the start: its branch, and if the project is trusted also its state.
    pub repository: Option<String>,
}

/// The date now, in the time zone of this machine.
pub fn today() -> String {
    jiff::Zoned::now().date().to_string()
}

impl Workplace {
    /// The section of the system prompt.
    pub(crate) fn text(&self, cwd: &Path) -> String {
        let place = format!("Working directory: {}", cwd.display());
        let date = self.date.as_ref().map(|date| format!("Date: {date}"));
        let repository = self.repository.clone().unwrap_or_else(|| "Git repository: no".to_owned());
        let lines = [Some(place), Some(platform()), date, Some(repository)];
        let lines = lines.into_iter().flatten().collect::<Vec<_>>().join("\n");
        format!("<{ENVIRONMENT}>\n{lines}\n</{ENVIRONMENT}>")
    }
}

//! `Skill`: the model loads the instructions of a skill or command when it needs them.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::expand::{grant, text};
use crate::drive::TurnContext;
use crate::library::{Command, Library};
use crate::tool::{AnyTool, Described, Effect, Tool, ToolCx, ToolError, ToolOutput};

/// The longest list of skills in a request, in characters.
const MAX_LIST: usize = 8_000;
/// The most characters of one description.
const MAX_DESCRIPTION: usize = 250;

/// The tool, with the context in which its command lines run.
pub(crate) struct Skill(TurnContext);

impl Skill {
    pub(crate) const NAME: &'static str = "Skill";

    /// The tool as the model sees it: its description lists the skills. `None` without skills.
    pub(crate) fn offered(context: TurnContext) -> Option<Arc<dyn AnyTool>> {
        let description = description(&context.library)?;
        Some(Arc::new(Described::new(Self(context), description)))
    }
}

fn description(library: &Library) -> Option<String> {
    let mut text = <Skill as Tool>::DESCRIPTION.to_owned();
    let mut n_left = 0;
    let mut skills = library.commands.iter().filter(|command| command.is_for_model).peekable();
    skills.peek()?;
    for skill in skills {
        let what: String = skill.description.chars().take(MAX_DESCRIPTION).collect();
        let line = format!("\n- {}: {}", skill.name, what.replace('\n', " "));
        match text.len() + line.len() <= MAX_LIST {
            true => text.push_str(&line),
            false => n_left += 1,
        }
    }
    if n_left > 0 {
        text.push_str(&format!("\n[{n_left} more; ask the user for their names]"));
    }
    Some(text)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// Its name.
    skill: String,
    /// What to pass to it.
    args: Option<String>,
}

impl Tool for Skill {
    const NAME: &'static str = Self::NAME;
    const DESCRIPTION: &'static str = "Loads the instructions of a skill. When one fits what is asked for, load it \
        before you begin. Skills:";
    type Args = Args;

    fn effect(&self, _: &ToolCx, _: &Args) -> Effect {
        // Instructions are only text; each call that follows from them is decided by itself.
        Effect::Nothing
    }

    async fn run(&self, cx: &ToolCx, args: Args) -> Result<ToolOutput, ToolError> {
        let name = args.skill.trim_start_matches('/');
        let known = self.0.library.command(name).filter(|command| command.is_for_model);
        let command = known.ok_or_else(|| {
            ToolError::Refused(format!("there is no skill {name}; use one of those listed"))
        })?;
        let context = TurnContext { cx: cx.clone(), ..self.0.clone() };
        grant(&context, command).await;
        let text = text(&context, command, args.args.as_deref().unwrap_or_default()).await;
        let text = text.map_err(ToolError::Failed)?;
        let started = format!("The skill {} is loaded; its instructions follow.", command.name);
        let structured = json!({"success": true, "commandName": command.name});
        Ok(ToolOutput { follow_up: Some(text), ..ToolOutput::new(started, structured) })
    }
}

/// The instructions of a skill for an agent that begins with them; its command lines stay as they are.
///
/// # Errors
/// When its file cannot be read.
pub(crate) fn skill_text(skill: &Command) -> Result<String, String> {
    let body = skill.body()?;
    let folder = skill.folder().map(|folder| folder.display().to_string()).unwrap_or_default();
    Ok(format!("Base directory for this skill: {folder}\n\n{body}"))
}

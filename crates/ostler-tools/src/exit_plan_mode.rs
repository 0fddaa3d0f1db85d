//! `ExitPlanMode`: shows the plan to the user, who allows the call or not. Allowing it ends plan mode.

use ostler_engine::tool::{Effect, Tool, ToolCx, ToolError, ToolOutput};
use ostler_proto::build;
use ostler_proto::tool::ExitPlanModeOutput;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

pub(crate) struct ExitPlanMode;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The whole plan, in Markdown.
    #[schemars(required)]
    plan: Option<String>,
    #[serde(rename = "allowedPrompts")]
    #[schemars(skip)]
    #[expect(
        dead_code,
        reason = "models may describe permissions as text; they are decided call by call"
    )]
    allowed_prompts: Option<Value>,
}

impl Tool for ExitPlanMode {
    const NAME: &'static str = "ExitPlanMode";
    const DESCRIPTION: &'static str = "Puts your plan before the user and, if they agree, ends plan mode. Only for work that changes something.";
    type Args = Args;

    fn effect(&self, _: &ToolCx, _: &Args) -> Effect {
        Effect::AskUser
    }

    async fn run(&self, cx: &ToolCx, args: Args) -> Result<ToolOutput, ToolError> {
        let session = cx.session.as_ref();
        let session = session.ok_or_else(|| ToolError::Failed("there is no session".to_owned()))?;
        session.plan(false).await;
        let plan = args.plan.filter(|plan| !plan.trim().is_empty());
        // The user may have changed it.
        let text = match &plan {
            Some(plan) => {
                format!("The user agrees. Plan mode is over; carry the plan out:\n\n{plan}")
            }
            None => "The user agrees. Plan mode is over; begin.".to_owned(),
        };
        Ok(ToolOutput::new(text, build!(ExitPlanModeOutput { plan })))
    }
}

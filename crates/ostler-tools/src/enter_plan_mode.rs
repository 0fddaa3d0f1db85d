//! `EnterPlanMode`: the model wants to plan before it changes anything. That is stricter, so it needs no approval.

use ostler_engine::tool::{Effect, Tool, ToolCx, ToolError, ToolOutput};
use ostler_proto::build;
use ostler_proto::tool::EnterPlanModeOutput;
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) struct EnterPlanMode;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {}

impl Tool for EnterPlanMode {
    const NAME: &'static str = "EnterPlanMode";
    const DESCRIPTION: &'static str = "Begins plan mode, in which nothing is changed. For large work where the user \
        should agree on the way first.";
    type Args = Args;

    fn effect(&self, _: &ToolCx, _: &Args) -> Effect {
        Effect::Nothing
    }

    async fn run(&self, cx: &ToolCx, _: Args) -> Result<ToolOutput, ToolError> {
        let session = cx.session.as_ref();
        let session = session.ok_or_else(|| ToolError::Failed("there is no session".to_owned()))?;
        let message = session.plan(true).await;
        let structured = build!(EnterPlanModeOutput { message: message.clone() });
        Ok(ToolOutput::new(message, structured))
    }
}

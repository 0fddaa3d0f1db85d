//! Tools for tests: one that reads, one that writes, one that waits, one that breaks.

use std::sync::Arc;

use ostler_engine::tasks::{Task, TaskResult};
use ostler_engine::tool::{AnyTool, Effect, Tool, ToolCx, ToolError, ToolOutput, erase};
use ostler_proto::message::system::TaskOutcome;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

pub(crate) fn all() -> Vec<Arc<dyn AnyTool>> {
    vec![erase(Look), erase(Change), erase(Hang), erase(Break), erase(Later)]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// A word that the tool returns.
    word: String,
}

macro_rules! tool {
    ($name:ident, $effect:expr, |$args:ident| $run:expr) => {
        tool!($name, stringify!($name), $effect, |$args| $run);
    };
    ($name:ident, $called:expr, $effect:expr, |$args:ident| $run:expr) => {
        struct $name;

        impl Tool for $name {
            const NAME: &'static str = $called;
            const DESCRIPTION: &'static str = "For tests.";
            type Args = Args;

            fn effect(&self, _: &ToolCx, _: &Args) -> Effect {
                $effect
            }

            async fn run(&self, _: &ToolCx, $args: Args) -> Result<ToolOutput, ToolError> {
                $run
            }
        }
    };
}

tool!(Look, Effect::Nothing, |args| Ok(ToolOutput::new(
    format!("saw {}", args.word),
    json!({"saw": args.word})
)));
tool!(Change, Effect::Execute("change".into()), |args| {
    Ok(ToolOutput::new(format!("changed {}", args.word), json!({"changed": args.word})))
});
tool!(Hang, Effect::Nothing, |_args| std::future::pending().await);
tool!(Break, Effect::Nothing, |args| panic!("broken by {}", args.word));
tool!(Add, "mcp__calc__add", Effect::Nothing, |args| Ok(ToolOutput::new(args.word, json!(null))));

/// A tool as an MCP server would offer it.
pub(crate) fn of_server() -> Arc<dyn AnyTool> {
    erase(Add)
}

#[derive(Deserialize, JsonSchema)]
struct CommandArgs {
    command: String,
}

struct Bash;

impl Tool for Bash {
    const NAME: &'static str = "Bash";
    const DESCRIPTION: &'static str = "For tests; runs nothing.";
    type Args = CommandArgs;

    fn effect(&self, _: &ToolCx, args: &CommandArgs) -> Effect {
        Effect::Execute(args.command.clone())
    }

    async fn run(&self, _: &ToolCx, args: CommandArgs) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::new(args.command, json!(null)))
    }
}

/// A tool that looks like a shell.
pub(crate) fn shell() -> Arc<dyn AnyTool> {
    erase(Bash)
}

/// Starts a background task that ends when a file of the given name appears.
struct Later;

impl Tool for Later {
    const NAME: &'static str = "Later";
    const DESCRIPTION: &'static str = "For tests.";
    type Args = Args;

    fn effect(&self, _: &ToolCx, _: &Args) -> Effect {
        Effect::Nothing
    }

    async fn run(&self, cx: &ToolCx, args: Args) -> Result<ToolOutput, ToolError> {
        let task = Task::command(&cx.call, &cx.scratch, "wait", "Wait for it").unwrap();
        std::fs::write(&task.output_file, "what it wrote\n").unwrap();
        let work = async move {
            while !std::path::Path::new(&args.word).exists() {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
            TaskResult::new(TaskOutcome::Completed, "\"Wait for it\" is done")
        };
        cx.tasks.start(task.clone(), work).await?;
        Ok(ToolOutput::new("started", json!({"backgroundTaskId": task.id})))
    }
}

#[derive(Deserialize, JsonSchema)]
struct ReadArgs {
    file_path: std::path::PathBuf,
}

struct Read;

impl Tool for Read {
    const NAME: &'static str = "Read";
    const DESCRIPTION: &'static str = "For tests.";
    type Args = ReadArgs;

    fn effect(&self, _: &ToolCx, args: &ReadArgs) -> Effect {
        Effect::Read(args.file_path.clone())
    }

    async fn run(&self, _: &ToolCx, args: ReadArgs) -> Result<ToolOutput, ToolError> {
        let text = std::fs::read_to_string(args.file_path);
        text.map(|text| ToolOutput::new(text, json!(null)))
            .map_err(|error| ToolError::Failed(error.to_string()))
    }
}

/// A tool that reads files.
pub(crate) fn read() -> Arc<dyn AnyTool> {
    erase(Read)
}

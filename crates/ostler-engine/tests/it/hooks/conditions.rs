//! A hook's `if` is decided on what the call really touches, not on what its arguments look like.

use std::sync::Arc;

use ostler_engine::tool::{AnyTool, Effect, Tool, ToolCx, ToolError, ToolOutput, erase};
use ostler_proto::permission::PermissionMode;
use serde_json::{Map, Value, json};

use super::HookLog;
use crate::host::TestHost;
use crate::modes::{Room, calling};

/// A tool that touches something its arguments do not name: a search finds folders in its pattern, a shell runs in the
/// directory to which an earlier command changed.
struct Odd<const N: usize>(Effect);

macro_rules! odd {
    ($n:literal, $name:literal) => {
        impl Tool for Odd<$n> {
            const NAME: &'static str = $name;
            const DESCRIPTION: &'static str = "For tests.";
            type Args = Map<String, Value>;

            fn effect(&self, _: &ToolCx, _: &Map<String, Value>) -> Effect {
                self.0.clone()
            }

            async fn run(
                &self,
                _: &ToolCx,
                _: Map<String, Value>,
            ) -> Result<ToolOutput, ToolError> {
                Ok(ToolOutput::new("ran", json!({})))
            }
        }
    };
}

odd!(0, "Glob");
odd!(1, "Bash");

/// Whether a hook with this `if` runs for a call of the tool, for an event around it.
async fn runs(event: &str, tool: Arc<dyn AnyTool>, input: Value, condition: &str) -> bool {
    let (room, ledger) = (Room::new(), HookLog::new());
    let hook = json!({"type": "command", "command": ledger.note("ran"), "if": condition});
    let name = if input.get("command").is_some() { "Bash" } else { "Glob" };
    let mut host = TestHost::with(calling([(name, input)]), |options| {
        room.furnish(options, PermissionMode::BypassPermissions, &[]);
        options.tools = vec![tool];
        options.hooks = vec![json!({event: [{"hooks": [hook]}]})];
    })
    .await;
    host.prompt("go").await;
    host.result().await;
    ledger.has("ran")
}

// Mutant: the effect is guessed from the name and the arguments (the old `effect_of`).
#[tokio::test]
async fn a_condition_is_decided_on_what_the_call_touches_and_not_on_its_arguments() {
    let search = || erase(Odd::<0>(Effect::Read("/etc".into())));
    let folder = || "/nowhere/work".into();
    let shell =
        || erase(Odd::<1>(Effect::ExecuteIn { folder: folder(), command: "cat key".to_owned() }));
    let pattern = json!({"pattern": "/etc/*"});
    let command = json!({"command": "cat key"});
    for event in ["PreToolUse", "PostToolUse"] {
        assert!(runs(event, search(), pattern.clone(), "Read(//etc/**)").await, "{event}");
        assert!(!runs(event, search(), pattern.clone(), "Read(//srv/**)").await, "{event}");
        assert!(runs(event, shell(), command.clone(), "Read(//nowhere/work/key)").await, "{event}");
        assert!(!runs(event, shell(), command.clone(), "Bash(git:*)").await, "{event}");
    }
}

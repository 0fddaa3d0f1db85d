//! The scenarios: those that were recorded from the vendor's SDKs, retold.

mod agents;
mod background;
mod checkpoints;
mod engine_options;
mod hooks;
mod interruptions;
mod mcp;
mod methods;
mod model_options;
mod permissions;
mod servers;
mod sessions;
mod talk;
mod troubles;

use ostler::{Decision, Options};
use ostler_testkit::{Reply, Script, reply, when};
use serde_json::json;

use super::Scenario;
use super::stage::Stage;

pub(super) fn all() -> Vec<Scenario> {
    let parts = [
        talk::all(),
        permissions::all(),
        hooks::all(),
        interruptions::all(),
        troubles::all(),
        sessions::all(),
        background::all(),
        agents::all(),
        methods::all(),
        model_options::all(),
        engine_options::all(),
        servers::all(),
        mcp::all(),
        checkpoints::all(),
    ];
    parts.into_iter().flatten().collect()
}

/// One reply after another, whatever is asked.
fn replies(replies: Vec<Reply>) -> Script {
    Script::new().rule(when(), replies)
}

/// The model wants to run a command.
fn touch(name: &str) -> Reply {
    reply().tool_use("Bash", json!({"command": format!("touch {name}"), "description": "Make it"}))
}

/// A call of a command, then a last word.
fn touch_script() -> Script {
    replies(vec![touch("made.txt"), reply().text("Done.")])
}

/// Options whose permission questions are noted and answered with `decision`.
fn deciding(stage: &Stage, decision: Decision) -> Options {
    let log = stage.asked.clone();
    stage.options().on_permission(move |request| {
        log.add(format!("may {}?", request.tool_name));
        let decision = decision.clone();
        async move { decision }
    })
}

//! The scenarios, after recordings of the vendor's SDKs.

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

/// The scenarios of one file.
pub(super) struct Group {
    pub(super) name: &'static str,
    pub(super) source: &'static str,
    pub(super) scenarios: Vec<Scenario>,
}

macro_rules! groups {
    ($($name:ident)*) => {
        vec![$(Group {
            name: stringify!($name),
            source: include_str!(concat!(stringify!($name), ".rs")),
            scenarios: $name::all(),
        }),*]
    };
}

pub(super) fn groups() -> Vec<Group> {
    groups! {
        talk permissions hooks interruptions troubles sessions background agents methods model_options
        engine_options servers mcp checkpoints
    }
}

pub(super) fn all() -> Vec<Scenario> {
    groups().into_iter().flat_map(|group| group.scenarios).collect()
}

/// One reply after another, whatever the request.
fn replies(replies: Vec<Reply>) -> Script {
    Script::new().rule(when(), replies)
}

/// The model wants to run a command.
fn touch(name: &str) -> Reply {
    reply().tool_use("Bash", json!({"command": format!("touch {name}"), "description": "Make it"}))
}

/// A call of a command, then an answer.
fn touch_script() -> Script {
    replies(vec![touch("made.txt"), reply().text("Done.")])
}

/// Options that note permission requests and answer them with `decision`.
fn deciding(stage: &Stage, decision: Decision) -> Options {
    let log = stage.asked.clone();
    stage.options().on_permission(move |request| {
        log.add(format!("may {}?", request.tool_name));
        let decision = decision.clone();
        async move { decision }
    })
}

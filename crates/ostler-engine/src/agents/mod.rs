//! Subagents: pieces of work, each handed to a separate conversation.
//!
//! A subagent is a turn in a conversation that begins with its task. Its kind says which model, tools and system prompt
//! it has; its permissions are its parent's or less (`narrow.rs` of `permission/`), and it has no tool to make further
//! subagents. Every one is a task (`tasks/`): the conversation waits for it or continues without it, and the host can
//! stop it either way.

mod finished;
mod report;
mod run;
mod tool;

use ostler_proto::agent::AgentDefinition;
use ostler_proto::api::ToolUseBlock;
use ostler_proto::build;
use ostler_proto::control::AgentInfo;

pub(crate) use self::finished::FinishedSubagents;

pub(crate) use self::run::{context_of, has_tool};
pub(crate) use self::tool::Agent;
use crate::call::Tools;
use crate::library::{AgentKind, Library, Origin};

/// The built-in kind of subagent, which needs no file.
pub(crate) const GENERAL: &str = "general-purpose";
/// The name of the tool that starts subagents.
pub(crate) const NAME: &str = "Agent";
/// Its older name; models, rules and hosts may still use it.
pub(crate) const OLD_NAME: &str = "Task";

/// Whether a name is one of the two names of the tool that starts subagents.
pub(crate) fn is_name(name: &str) -> bool {
    matches!(name, NAME | OLD_NAME)
}

/// The call with the tool's current name, if it uses the older name of the tool that starts subagents.
pub(crate) fn by_name(call: &ToolUseBlock, tools: &Tools) -> ToolUseBlock {
    let mut call = call.clone();
    if call.name == OLD_NAME && !tools.contains_key(OLD_NAME) && tools.contains_key(NAME) {
        NAME.clone_into(&mut call.name);
    }
    call
}

/// How work is handed to subagents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delegation {
    /// Whether the conversation continues without waiting for them, unless the call says otherwise.
    pub in_background: bool,
    /// Whether the result of a turn waits for those in the background, for hosts that stop listening at a result.
    pub holds_results: bool,
    /// Whether the host sees their text in addition to their calls.
    pub forwards_text: bool,
}

/// All kinds of subagents, by name.
pub(crate) fn kinds(library: &Library) -> Vec<AgentKind> {
    let general = (!library.agents.contains_key(GENERAL)).then(general);
    let mut kinds: Vec<_> = library.agents.values().cloned().chain(general).collect();
    kinds.sort_by(|left, right| left.name.cmp(&right.name));
    kinds
}

/// A kind by its name.
pub(crate) fn kind(library: &Library, name: &str) -> Option<AgentKind> {
    let known = library.agents.get(name).cloned();
    known.or_else(|| (name == GENERAL).then(general))
}

/// The kinds as hosts see them.
pub(crate) fn listed(library: &Library) -> Vec<AgentInfo> {
    let info = |kind: AgentKind| {
        build!(AgentInfo {
            name: kind.name,
            description: kind.definition.description,
            model: kind.definition.model
        })
    };
    kinds(library).into_iter().map(info).collect()
}

fn general() -> AgentKind {
    let description = "any piece of work that takes several steps".to_owned();
    let definition = AgentDefinition { description, ..AgentDefinition::default() };
    AgentKind::new(GENERAL, definition, Origin::BuiltIn)
}

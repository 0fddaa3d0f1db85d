//! `Agent`, which older peers call `Task`: work given to a subagent.

use ostler_proto_derive::Wire;

use crate::api::{ContentBlock, Usage};
use crate::permission::PermissionMode;
use crate::{AgentId, Extra, Num, TaskId, UnknownObject};

/// Work for a subagent.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct AgentInput {
    /// What it is about, in a few words.
    pub description: String,
    /// The whole task.
    pub prompt: String,
    /// The kind of agent. Older peers require it.
    pub subagent_type: Option<String>,
    /// The model: `sonnet`, `opus`, `haiku` and so on.
    pub model: Option<String>,
    /// Its effort: `low` to `max`. Newer peers only.
    pub effort: Option<String>,
    /// An earlier subagent to resume. Older peers only.
    pub resume: Option<String>,
    /// Whether to continue without waiting for it.
    pub run_in_background: Option<bool>,
    /// How often it may ask its model. Older peers only.
    pub max_turns: Option<u64>,
    /// A name to reach it by.
    pub name: Option<String>,
    /// The team it joins.
    pub team_name: Option<String>,
    /// Its permission mode.
    pub mode: Option<PermissionMode>,
    /// Where it works, if not here.
    pub isolation: Option<AgentIsolation>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Where a subagent works.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum AgentIsolation {
    /// In a separate git worktree.
    Worktree,
    /// On another machine. Newer peers only.
    Remote,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// The outcome of a subagent.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tag = "status")]
#[non_exhaustive]
pub enum AgentOutput {
    /// It is done.
    Completed(Box<AgentCompleted>),
    /// It works in the background.
    AsyncLaunched(AgentLaunched),
    /// It works on another machine. Newer peers only.
    RemoteLaunched(AgentRemote),
    /// The conversation continues inside it. Older peers only.
    SubAgentEntered(AgentEntered),
    /// Another kind, kept whole.
    #[wire(other)]
    Unknown(UnknownObject),
}

/// A subagent is done.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct AgentCompleted {
    /// The subagent.
    pub agent_id: AgentId,
    /// Its kind. Newer peers only.
    pub agent_type: Option<String>,
    /// Its report.
    pub content: Vec<ContentBlock>,
    /// The model it used. Newer peers only.
    pub resolved_model: Option<String>,
    /// All models it used. Newer peers only.
    pub models_used: Option<Vec<String>>,
    /// How many tools it called.
    pub total_tool_use_count: u64,
    /// How long it took.
    pub total_duration_ms: Num,
    /// How many tokens it used.
    pub total_tokens: u64,
    /// The tokens in detail, of its last request.
    pub usage: Usage,
    /// Which tools it called. Newer peers only.
    pub tools_used: Option<Vec<String>>,
    /// Counts per kind of tool. Newer peers only.
    pub tool_stats: Option<AgentToolStats>,
    /// Its task.
    pub prompt: String,
    /// The worktree it left behind. Newer peers only.
    pub worktree_path: Option<String>,
    /// That worktree's branch. Newer peers only.
    pub worktree_branch: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A subagent's counts per kind of tool.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct AgentToolStats {
    /// Files read.
    pub read_count: u64,
    /// Searches.
    pub search_count: u64,
    /// Commands.
    pub bash_count: u64,
    /// Files changed.
    pub edit_file_count: u64,
    /// Lines added.
    pub lines_added: u64,
    /// Lines removed.
    pub lines_removed: u64,
    /// Other tools.
    pub other_tool_count: u64,
    /// Frames.
    pub frame_count: Option<u64>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A subagent works in the background.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct AgentLaunched {
    /// Always `true` where present.
    pub is_async: Option<bool>,
    /// The subagent.
    pub agent_id: AgentId,
    /// What it is about.
    pub description: String,
    /// The model it uses. Newer peers only.
    pub resolved_model: Option<String>,
    /// All models it uses. Newer peers only.
    pub models_used: Option<Vec<String>>,
    /// Its task.
    pub prompt: String,
    /// The file that will hold its report.
    pub output_file: String,
    /// Whether the caller has a tool to read it.
    pub can_read_output_file: Option<bool>,
    /// Whether it accepts further messages. Newer peers only.
    pub can_continue_agent: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A subagent works on another machine.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct AgentRemote {
    /// The task.
    pub task_id: TaskId,
    /// The URL to watch it.
    pub session_url: String,
    /// What it is about.
    pub description: String,
    /// Its task.
    pub prompt: String,
    /// The file that will hold its report.
    pub output_file: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// The conversation continues inside a subagent.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct AgentEntered {
    /// What it is about.
    pub description: String,
    /// The same as text.
    pub message: String,
    /// Unknown fields.
    pub extra: Extra,
}

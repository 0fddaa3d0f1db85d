//! `EnterPlanMode`, `ExitPlanMode`, `EnterWorktree`, `ExitWorktree`, `Skill` and `Config`: how and where to work.

use ostler_proto_derive::Wire;
use serde::de::{Deserialize, Deserializer, Error, Unexpected};
use serde::ser::{Serialize, Serializer};
use serde_json::Value;

use crate::{Extra, Num};

/// Asks to plan before acting.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct EnterPlanModeInput {
    /// Unknown fields.
    pub extra: Extra,
}

/// Planning begins.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct EnterPlanModeOutput {
    /// The same as text.
    pub message: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// A plan is ready.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct ExitPlanModeInput {
    /// The plan. Newer peers keep it in a file instead.
    pub plan: Option<String>,
    /// What the plan needs permission for.
    pub allowed_prompts: Option<Vec<AllowedPrompt>>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Something a plan needs permission for.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct AllowedPrompt {
    /// The tool, as yet only `Bash`.
    pub tool: String,
    /// What it will be used for, as text.
    pub prompt: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// The plan was accepted.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct ExitPlanModeOutput {
    /// The plan.
    #[wire(nullable)]
    pub plan: Option<String>,
    /// Whether a subagent made it.
    pub is_agent: bool,
    /// The file that holds it.
    pub file_path: Option<String>,
    /// Whether there is a tool for subagents.
    pub has_task_tool: Option<bool>,
    /// Whether the user changed it. Newer peers only.
    pub plan_was_edited: Option<bool>,
    /// Whether the team leader must still approve.
    pub awaiting_leader_approval: Option<bool>,
    /// The request for that.
    pub request_id: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Asks for a git worktree to work in.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct EnterWorktreeInput {
    /// The name of a new one.
    pub name: Option<String>,
    /// An existing one. Newer peers only.
    pub path: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Work continues in a worktree.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct EnterWorktreeOutput {
    /// Its path.
    pub worktree_path: String,
    /// Its branch.
    pub worktree_branch: Option<String>,
    /// The same as text.
    pub message: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// Asks to leave the worktree.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tree, new(action))]
#[non_exhaustive]
pub struct ExitWorktreeInput {
    /// What to do with it.
    pub action: WorktreeAction,
    /// Whether unsaved work may be lost.
    pub discard_changes: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// What to do with a worktree.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum WorktreeAction {
    /// It stays.
    Keep,
    /// It is removed.
    Remove,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// Work continues in the original directory.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase", new(action))]
#[non_exhaustive]
pub struct ExitWorktreeOutput {
    /// What happened to the worktree.
    pub action: WorktreeAction,
    /// The original directory.
    pub original_cwd: String,
    /// The path of the worktree.
    pub worktree_path: String,
    /// Its branch.
    pub worktree_branch: Option<String>,
    /// Its terminal session.
    pub tmux_session_name: Option<String>,
    /// How many changed files were lost.
    pub discarded_files: Option<u64>,
    /// How many commits were lost.
    pub discarded_commits: Option<u64>,
    /// The same as text.
    pub message: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// A skill to use.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct SkillInput {
    /// Its name.
    pub skill: String,
    /// Its arguments.
    pub args: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A setting to look up or change. Older peers only.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ConfigInput {
    /// The setting.
    pub setting: String,
    /// The new value; absent to look it up.
    pub value: Option<ConfigValue>,
    /// Unknown fields.
    pub extra: Extra,
}

/// The value of a setting.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ConfigValue {
    /// A string.
    Text(String),
    /// Yes or no.
    Flag(bool),
    /// A number.
    Number(Num),
}

impl Serialize for ConfigValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => text.serialize(serializer),
            Self::Flag(flag) => flag.serialize(serializer),
            Self::Number(number) => number.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ConfigValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = &"a string, a boolean or a number";
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self::Text(text)),
            Value::Bool(flag) => Ok(Self::Flag(flag)),
            number @ Value::Number(_) => {
                Num::deserialize(number).map(Self::Number).map_err(Error::custom)
            }
            Value::Null => Err(Error::invalid_type(Unexpected::Unit, expected)),
            Value::Array(_) => Err(Error::invalid_type(Unexpected::Seq, expected)),
            Value::Object(_) => Err(Error::invalid_type(Unexpected::Map, expected)),
        }
    }
}

/// A setting was looked up or changed.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct ConfigOutput {
    /// Whether it succeeded.
    pub success: bool,
    /// Which of the two.
    pub operation: Option<ConfigOperation>,
    /// The setting.
    pub setting: Option<String>,
    /// Its value.
    pub value: Option<Value>,
    /// Its value before.
    pub previous_value: Option<Value>,
    /// Its value now.
    pub new_value: Option<Value>,
    /// What went wrong.
    pub error: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// What was done with a setting.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum ConfigOperation {
    /// It was looked up.
    Get,
    /// It was changed.
    Set,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

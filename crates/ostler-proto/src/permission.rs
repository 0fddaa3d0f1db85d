//! Permissions: modes, rules, and the host's answer to `can_use_tool`.

use ostler_proto_derive::Wire;
use serde_json::Value;

use crate::{Extra, ToolUseId, UnknownObject};

/// The permission mode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Wire)]
#[wire(rename_all = "camelCase")]
#[non_exhaustive]
pub enum PermissionMode {
    /// Reads and harmless commands run, other calls require approval.
    #[default]
    Default,
    /// Edits inside the working directory run too.
    AcceptEdits,
    /// Everything runs, except calls that only a user can answer.
    BypassPermissions,
    /// Nothing that changes anything runs.
    Plan,
    /// Calls that require approval are denied.
    DontAsk,
    /// A classifier decides.
    Auto,
    /// A mode this version does not know. Treat it as the strictest.
    #[wire(other)]
    Other(Box<str>),
}

/// What a rule does.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Wire)]
#[non_exhaustive]
pub enum PermissionBehavior {
    /// Run without asking.
    Allow,
    /// Do not run.
    Deny,
    /// Ask the host.
    Ask,
    /// A behaviour this version does not know. Treat it as a denial.
    #[wire(other)]
    Other(Box<str>),
}

/// Where a change of permissions is saved.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Wire)]
#[wire(rename_all = "camelCase")]
#[non_exhaustive]
pub enum PermissionDestination {
    /// The user's settings file.
    UserSettings,
    /// The project's shared settings file.
    ProjectSettings,
    /// The project's private settings file.
    LocalSettings,
    /// Memory only.
    Session,
    /// As if given on the command line.
    CliArg,
    /// A place this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// A tool, or some uses of it: `{"toolName":"Bash","ruleContent":"git:*"}` is written `Bash(git:*)` in settings.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
pub struct PermissionRule {
    /// The tool.
    pub tool_name: String,
    /// Which uses; all when absent.
    pub rule_content: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A change of permissions, suggested by the engine or requested by the host.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tag = "type", tree, rename_all = "camelCase")]
#[non_exhaustive]
pub enum PermissionUpdate {
    /// Add rules.
    AddRules(RulesUpdate),
    /// Replace all rules of that behaviour at that destination.
    ReplaceRules(RulesUpdate),
    /// Remove rules.
    RemoveRules(RulesUpdate),
    /// Change the mode.
    SetMode(SetModeUpdate),
    /// Allow more directories.
    AddDirectories(DirectoriesUpdate),
    /// Allow fewer directories.
    RemoveDirectories(DirectoriesUpdate),
    /// A change this version does not know. Do not apply it.
    #[wire(other)]
    Unknown(UnknownObject),
}

/// `addRules`, `replaceRules`, `removeRules`.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct RulesUpdate {
    /// The rules.
    pub rules: Vec<PermissionRule>,
    /// What they do.
    pub behavior: PermissionBehavior,
    /// Where they are saved.
    pub destination: PermissionDestination,
    /// Unknown fields.
    pub extra: Extra,
}

/// `setMode`.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct SetModeUpdate {
    /// The mode.
    pub mode: PermissionMode,
    /// Where it is saved.
    pub destination: PermissionDestination,
    /// Unknown fields.
    pub extra: Extra,
}

/// `addDirectories`, `removeDirectories`.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct DirectoriesUpdate {
    /// The directories.
    pub directories: Vec<String>,
    /// Where they are saved.
    pub destination: PermissionDestination,
    /// Unknown fields.
    pub extra: Extra,
}

/// The host's answer to `can_use_tool`.
///
/// A host sends it through [`crate::quirks::complete_answer`], which fills in the fields that old engines require.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tag = "behavior")]
#[non_exhaustive]
pub enum PermissionResult {
    /// Run it.
    Allow(Allow),
    /// Do not run it.
    Deny(Deny),
    /// An answer this version does not know. Treat it as a denial.
    #[wire(other)]
    Unknown(UnknownObject),
}

/// `allow`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
pub struct Allow {
    /// Replaces the whole input; absent means unchanged.
    pub updated_input: Option<Value>,
    /// Changes to apply before the tool runs.
    pub updated_permissions: Option<Vec<PermissionUpdate>>,
    /// The call.
    #[wire(name = "toolUseID")]
    pub tool_use_id: Option<ToolUseId>,
    /// The user's choice.
    pub decision_classification: Option<DecisionClassification>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `deny`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
pub struct Deny {
    /// The message for the model.
    pub message: String,
    /// Whether the turn ends too.
    pub interrupt: Option<bool>,
    /// The call.
    #[wire(name = "toolUseID")]
    pub tool_use_id: Option<ToolUseId>,
    /// The user's choice.
    pub decision_classification: Option<DecisionClassification>,
    /// Unknown fields.
    pub extra: Extra,
}

/// The user's choice.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum DecisionClassification {
    /// Allow once.
    UserTemporary,
    /// Always allow.
    UserPermanent,
    /// Deny.
    UserReject,
    /// A meaning this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

//! Requests of an engine to its host.

use ostler_proto_derive::Wire;
use serde_json::Value;

use crate::hook::HookInput;
use crate::mcp::McpServerProvenance;
use crate::permission::PermissionUpdate;
use crate::{AgentId, Extra, ToolUseId, UnknownObject};

/// A request to the host. May arrive at any time, also after a `result`, while background work continues.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tag = "subtype", tree)]
#[non_exhaustive]
pub enum AskHost {
    /// Ask whether a tool may run. Without a handler answer with an error; the engine then denies.
    CanUseTool(Box<CanUseTool>),
    /// Run a callback hook.
    HookCallback(Box<HookCallback>),
    /// A message to an in-process MCP server.
    McpMessage(McpMessage),
    /// An MCP server asks the user something.
    Elicitation(Elicitation),
    /// Show a dialog.
    RequestUserDialog(RequestUserDialog),
    /// A request this version does not know. Answer it with an error.
    #[wire(other)]
    Unknown(UnknownObject),
}

/// `can_use_tool`. Questions to the user (`AskUserQuestion`) and finished plans (`ExitPlanMode`) come this way too.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct CanUseTool {
    /// The tool.
    pub tool_name: String,
    /// Its arguments.
    pub input: Value,
    /// The call. Always sent; hosts tolerate its absence.
    pub tool_use_id: Option<ToolUseId>,
    /// Changes that would make this question unnecessary next time.
    pub permission_suggestions: Option<Vec<PermissionUpdate>>,
    /// The path that caused the question.
    pub blocked_path: Option<String>,
    /// Why the engine asks.
    pub decision_reason: Option<String>,
    /// The kind of reason.
    pub decision_reason_type: Option<DecisionReasonType>,
    /// The hook event that requires the question.
    pub decision_reason_hook_event: Option<String>,
    /// Where that hook is configured.
    pub decision_reason_hook_source: Option<String>,
    /// The subagent that wants to use it.
    pub agent_id: Option<AgentId>,
    /// A name for people.
    pub display_name: Option<String>,
    /// What the call does, in a sentence.
    pub description: Option<String>,
    /// The question, in a few words.
    pub title: Option<String>,
    /// The server the tool comes from.
    pub mcp_server: Option<McpServerProvenance>,
    /// Whether only a person can answer.
    pub requires_user_interaction: Option<bool>,
    /// Whether a classifier could have answered.
    pub classifier_approvable: Option<bool>,
    /// Whether not to offer "always allow".
    pub suppress_always_allow_rule: Option<bool>,
    /// Whether "no" is the suggested answer.
    pub default_to_no: Option<bool>,
    /// The rule that requires the question.
    pub matched_ask_rule: Option<MatchedAskRule>,
    /// Whether only the server's own policy requires the question.
    pub server_policy_ask_only: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Our own field of [`CanUseTool`], which hosts may ignore: the steps of the decision, in order, as a list of
/// `{"looked_at", "result"}`. The last one decided.
pub const DECISION_STEPS: &str = "decision_steps";

/// Our own field of [`CanUseTool`], which hosts may ignore: everything that an MCP server says about its tool, as the
/// model reads it. It is untrusted text: the user sees it to notice instructions to the model in it.
pub const SERVER_TEXT: &str = "mcp_server_text";

/// Why an engine asks for permission.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[wire(rename_all = "camelCase")]
#[non_exhaustive]
pub enum DecisionReasonType {
    /// A rule.
    Rule,
    /// The mode.
    Mode,
    /// A part of a compound command.
    SubcommandResults,
    /// A permission tool.
    PermissionPromptTool,
    /// A hook.
    Hook,
    /// A background agent.
    AsyncAgent,
    /// A command that wants to run outside the sandbox.
    SandboxOverride,
    /// A path outside the working directories.
    WorkingDir,
    /// A safety check.
    SafetyCheck,
    /// A classifier.
    Classifier,
    /// Something else.
    #[wire(name = "other")]
    Unspecified,
    /// A reason this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// The rule that requires the question.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct MatchedAskRule {
    /// Its source.
    pub source: String,
    /// The tool.
    pub tool_name: String,
    /// Which uses.
    pub rule_content: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `hook_callback`. All matching callbacks are asked at once; one answer each.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tree, new(callback_id, input))]
#[non_exhaustive]
pub struct HookCallback {
    /// The callback, as named in `initialize`.
    pub callback_id: String,
    /// The event.
    pub input: HookInput,
    /// The call for tool events, otherwise a random UUID.
    pub tool_use_id: Option<ToolUseId>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `mcp_message`, in both directions: one JSON-RPC message. Notifications are answered too, with anything.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct McpMessage {
    /// The in-process server.
    pub server_name: String,
    /// The JSON-RPC message.
    pub message: Value,
    /// Unknown fields.
    pub extra: Extra,
}

/// `elicitation`: an MCP server asks the user something.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct Elicitation {
    /// The server.
    pub mcp_server_name: String,
    /// The question.
    pub message: String,
    /// `form` or `url`.
    pub mode: Option<String>,
    /// Where to go, for `url`.
    pub url: Option<String>,
    /// Names the question.
    pub elicitation_id: Option<String>,
    /// What to ask, for `form`.
    pub requested_schema: Option<Value>,
    /// The order of the fields.
    pub property_order: Option<Vec<String>>,
    /// A heading.
    pub title: Option<String>,
    /// The server's name for people.
    pub display_name: Option<String>,
    /// Details.
    pub description: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `request_user_dialog`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct RequestUserDialog {
    /// Which dialog; one of `supportedDialogKinds`.
    pub dialog_kind: String,
    /// What it shows.
    pub payload: Value,
    /// The call it belongs to.
    pub tool_use_id: Option<ToolUseId>,
    /// Unknown fields.
    pub extra: Extra,
}

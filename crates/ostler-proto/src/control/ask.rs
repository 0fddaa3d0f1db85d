//! Matches answers to requests.

use serde::de::DeserializeOwned;
use serde::{Deserialize as _, Serialize};
use serde_json::Value;

use super::*;
use crate::hook::HookOutput;
use crate::permission::PermissionResult;
use crate::{DecodeError, Extra};

/// A control request whose answer has a known shape.
///
/// ```
/// use ostler_proto::control::{Ask, Interrupt};
///
/// let payload = serde_json::json!({"still_queued": []});
/// let reply = Interrupt::read_reply(Some(&payload)).unwrap();
/// assert_eq!(reply.still_queued, Some(vec![]));
/// // Older engines send no payload at all.
/// assert_eq!(Interrupt::read_reply(None).unwrap().still_queued, None);
/// ```
pub trait Ask {
    /// The request's `subtype`.
    const SUBTYPE: &'static str;
    /// The payload of a successful answer.
    type Reply: Serialize + DeserializeOwned;

    /// Reads the payload of a successful answer; an absent one counts as `{}`.
    ///
    /// # Errors
    /// When the payload is not of the shape; the error names the request and the field.
    fn read_reply(response: Option<&Value>) -> Result<Self::Reply, DecodeError> {
        let empty = Value::Object(serde_json::Map::new());
        let payload = response.unwrap_or(&empty);
        Self::Reply::deserialize(payload).map_err(|error| {
            DecodeError::malformed(
                format!("answer to {}", Self::SUBTYPE),
                error.to_string(),
                &payload.to_string(),
            )
        })
    }
}

macro_rules! answers {
    ($($request:ident $subtype:literal => $reply:ty;)*) => {
        /// Reads the payload of a successful answer to a request of the given subtype, and writes it back.
        ///
        /// To check or normalise an answer without knowing the request's type. The answer to an unknown request may
        /// have any form.
        ///
        /// # Errors
        /// When the payload is not of the shape; the error names the request and the field.
        pub fn reread_reply(subtype: &str, response: Option<&Value>) -> Result<Value, DecodeError> {
            let reply = match subtype {
                $($subtype => serde_json::to_value($request::read_reply(response)?),)*
                _ => return Ok(response.cloned().unwrap_or_default()),
            };
            Ok(reply.expect("wire types have string keys and finite numbers"))
        }

        $(impl Ask for $request {
            const SUBTYPE: &'static str = $subtype;
            type Reply = $reply;
        })*
    };
}

answers! {
    Initialize "initialize" => InitializeReply;
    Interrupt "interrupt" => InterruptReply;
    SetPermissionMode "set_permission_mode" => SetPermissionModeReply;
    SetModel "set_model" => SetModelReply;
    SetMaxThinkingTokens "set_max_thinking_tokens" => Ack;
    McpStatus "mcp_status" => McpStatusReply;
    McpReconnect "mcp_reconnect" => Ack;
    McpToggle "mcp_toggle" => Ack;
    McpAuthenticate "mcp_authenticate" => McpAuthenticateReply;
    McpOauthCallbackUrl "mcp_oauth_callback_url" => Ack;
    McpClearAuth "mcp_clear_auth" => Ack;
    McpSetServers "mcp_set_servers" => McpSetServersReply;
    RewindFiles "rewind_files" => RewindFilesReply;
    StopTask "stop_task" => Ack;
    ApplyFlagSettings "apply_flag_settings" => Ack;
    ClaimSession "claim_session" => ClaimSessionReply;
    GetContextUsage "get_context_usage" => ContextUsageReply;
    GetUsage "get_usage" => UsageReply;
    ReloadSkills "reload_skills" => ReloadSkillsReply;
    ReloadPlugins "reload_plugins" => ReloadPluginsReply;
    ReloadOutputStyles "reload_output_styles" => ReloadOutputStylesReply;
    ReadFile "read_file" => ReadFileReply;
    SeedReadState "seed_read_state" => Ack;
    BackgroundTasks "background_tasks" => Ack;
    SetMcpPermissionModeOverride "set_mcp_permission_mode_override" => SetMcpPermissionModeOverrideReply;
    UpdateSettings "update_settings" => Ack;
    CancelAsyncMessage "cancel_async_message" => CancelAsyncMessageReply;
    GetSettings "get_settings" => GetSettingsReply;
    GetSessionCost "get_session_cost" => GetSessionCostReply;
    ListModels "list_models" => ListModelsReply;
    GetBinaryVersion "get_binary_version" => GetBinaryVersionReply;
    ListPermissionRules "list_permission_rules" => ListPermissionRulesReply;
    GetHooksListing "get_hooks_listing" => HooksListingReply;
    RenameSession "rename_session" => Ack;
    RegisterRepoRoot "register_repo_root" => Ack;
    SetHasSubscribers "set_has_subscribers" => Ack;
    SetColor "set_color" => Ack;
    EndSession "end_session" => Ack;
    FileSuggestions "file_suggestions" => FileSuggestionsReply;
    GetTaskOutput "get_task_output" => GetTaskOutputReply;
    McpReadResource "mcp_read_resource" => McpReadResourceReply;
    McpCall "mcp_call" => Value;
    McpMessage "mcp_message" => McpMessageReply;
    CanUseTool "can_use_tool" => PermissionResult;
    HookCallback "hook_callback" => HookOutput;
    Elicitation "elicitation" => ElicitationReply;
    RequestUserDialog "request_user_dialog" => UserDialogReply;
}

/// A bare acknowledgement.
#[derive(Clone, Debug, Default, PartialEq, ostler_proto_derive::Wire)]
#[non_exhaustive]
pub struct Ack {
    /// Unknown fields.
    pub extra: Extra,
}

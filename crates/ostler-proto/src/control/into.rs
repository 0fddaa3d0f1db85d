//! Conversions of every request type into [`AskEngine`].

use super::*;

macro_rules! requests {
    ($($request:ident,)*) => {
        $(impl From<$request> for AskEngine {
            fn from(request: $request) -> Self {
                // Some are boxed; `into` does that for those, and nothing for the others.
                Self::$request(request.into())
            }
        })*
    };
}

requests! {
    Initialize,
    Interrupt,
    SetPermissionMode,
    SetModel,
    SetMaxThinkingTokens,
    McpStatus,
    McpReconnect,
    McpToggle,
    McpAuthenticate,
    McpOauthCallbackUrl,
    McpClearAuth,
    McpSetServers,
    McpMessage,
    RewindFiles,
    StopTask,
    ApplyFlagSettings,
    ClaimSession,
    GetContextUsage,
    GetUsage,
    ReloadSkills,
    ReloadPlugins,
    ReloadOutputStyles,
    ReadFile,
    SeedReadState,
    BackgroundTasks,
    SetMcpPermissionModeOverride,
    UpdateSettings,
    CancelAsyncMessage,
    GetSettings,
    GetSessionCost,
    ListModels,
    GetBinaryVersion,
    ListPermissionRules,
    GetHooksListing,
    RenameSession,
    RegisterRepoRoot,
    SetHasSubscribers,
    SetColor,
    EndSession,
    FileSuggestions,
    GetTaskOutput,
    McpReadResource,
    McpCall,
}

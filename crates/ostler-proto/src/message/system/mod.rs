//! `system`: reports of the engine, distinguished by `subtype`.

mod hook;
mod init;
mod notice;
mod task;

use ostler_proto_derive::Wire;

pub use self::hook::*;
pub use self::init::*;
pub use self::notice::*;
pub use self::task::*;
use crate::UnknownObject;

/// A `system` message.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tag = "subtype")]
#[non_exhaustive]
pub enum System {
    /// A turn begins.
    Init(Box<Init>),
    /// The mode changed, or compaction or a request is in progress.
    Status(Status),
    /// The conversation was compacted here.
    CompactBoundary(CompactBoundary),
    /// A command hook began.
    HookStarted(HookStarted),
    /// A command hook printed something.
    HookProgress(HookProgress),
    /// A command hook ended.
    HookResponse(HookResponse),
    /// A background task began.
    TaskStarted(TaskStarted),
    /// A background task made progress.
    TaskProgress(TaskProgress),
    /// Something about a background task changed.
    TaskUpdated(TaskUpdated),
    /// A background task ended.
    TaskNotification(TaskNotification),
    /// The set of background tasks changed.
    BackgroundTasksChanged(BackgroundTasksChanged),
    /// The session's state changed.
    SessionStateChanged(SessionStateChanged),
    /// The session got a title.
    SessionTitleChanged(SessionTitleChanged),
    /// A request to the API failed and will be retried.
    ApiRetry(ApiRetry),
    /// A tool call was denied without asking the host.
    PermissionDenied(PermissionDenied),
    /// A message for the user.
    Informational(Informational),
    /// A transient message for the user interface.
    Notification(Notification),
    /// Another model took over after repeated overload.
    ModelFallback(ModelFallback),
    /// Another model took over after a refusal.
    ModelRefusalFallback(ModelRefusalFallback),
    /// The model refused and no other takes over.
    ModelRefusalNoFallback(ModelRefusalNoFallback),
    /// An estimate of hidden thinking.
    ThinkingTokens(ThinkingTokens),
    /// The slash commands changed.
    CommandsChanged(CommandsChanged),
    /// Progress of a slow control request.
    ControlRequestProgress(ControlRequestProgress),
    /// Files were stored at the API.
    FilesPersisted(FilesPersisted),
    /// Output of a local slash command.
    LocalCommandOutput(LocalCommandOutput),
    /// A plugin is being installed.
    PluginInstall(PluginInstall),
    /// Memories were recalled.
    MemoryRecall(MemoryRecall),
    /// A question of an MCP server was answered elsewhere.
    ElicitationComplete(ElicitationComplete),
    /// The disk is full; data was not saved.
    SessionWritesLost(SessionWritesLost),
    /// A remote worker is about to end.
    WorkerShuttingDown(WorkerShuttingDown),
    /// A view should be drawn again.
    UiInvalidate(UiInvalidate),
    /// Made by an SDK, never by an engine: its copy of the transcript failed.
    MirrorError(MirrorError),
    /// A subtype this version does not know.
    #[wire(other)]
    Unknown(UnknownObject),
}

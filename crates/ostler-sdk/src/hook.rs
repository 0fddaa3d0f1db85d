//! Hooks as closures, one type of input per event.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
pub use ostler_proto::hook::*;
use ostler_proto::{Num, ToolUseId};
use tokio_util::sync::CancellationToken;

use crate::callback::Reply;

/// A hook: an event, an optional matcher, and a closure that runs at the event.
///
/// The type of the closure's input determines the event. The closure returns its output, a future of it, or `()` if it
/// only observes:
///
/// ```
/// use ostler_sdk::Hook;
/// use ostler_sdk::hook::{HookOutput, PreToolUseInput};
///
/// let no_force = Hook::new(|call: PreToolUseInput, _| match call.tool_input["command"].as_str() {
///     Some(command) if command.contains("--force") => HookOutput::deny("not by force"),
///     _ => HookOutput::none(),
/// })
/// .matching("Bash");
///
/// let show = Hook::new(|call: PreToolUseInput, _| println!("{}", call.tool_name));
/// ```
#[derive(Clone)]
pub struct Hook {
    pub(crate) event: HookEvent,
    pub(crate) matcher: Option<String>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) on_failure: Option<OnFailure>,
    pub(crate) callback: Callback,
}

pub(crate) type Callback = Arc<
    dyn Fn(HookInput, HookContext) -> BoxFuture<'static, Result<HookOutput, String>> + Send + Sync,
>;

/// What a hook receives in addition to its input.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HookContext {
    /// The call, for events about tools.
    pub tool_use_id: Option<ToolUseId>,
    /// Fires when the engine no longer waits for an answer.
    pub cancelled: CancellationToken,
}

impl Hook {
    /// A hook for the event that the closure's input belongs to.
    pub fn new<I, F, R, K>(callback: F) -> Self
    where
        I: EventInput,
        F: Fn(I, HookContext) -> R + Send + Sync + 'static,
        R: Reply<HookOutput, K>,
    {
        Self::with(I::EVENT, move |input, context| match I::of(input) {
            Some(input) => callback(input, context).into_future().map(Ok).boxed(),
            None => async { Err(format!("this hook is for {}", I::EVENT)) }.boxed(),
        })
    }

    /// A hook for any event, including events that this version has no type for.
    pub fn on<F, R, K>(event: HookEvent, callback: F) -> Self
    where
        F: Fn(HookInput, HookContext) -> R + Send + Sync + 'static,
        R: Reply<HookOutput, K>,
    {
        Self::with(event, move |input, context| {
            callback(input, context).into_future().map(Ok).boxed()
        })
    }

    fn with(
        event: HookEvent,
        callback: impl Fn(HookInput, HookContext) -> BoxFuture<'static, Result<HookOutput, String>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self { event, matcher: None, timeout: None, on_failure: None, callback: Arc::new(callback) }
    }

    /// Runs the hook only for tools with this name or pattern; for events without tools, only for such kinds.
    #[must_use]
    pub fn matching(mut self, matcher: impl Into<String>) -> Self {
        self.matcher = Some(matcher.into());
        self
    }

    /// How long the engine waits for the hook. A hook that takes longer counts as failed. The SDK sets no limit by
    /// default.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// Whether the call that a hook guards is stopped if the hook fails. Newer engines only.
    #[must_use]
    pub fn on_failure(mut self, what: OnFailure) -> Self {
        self.on_failure = Some(what);
        self
    }

    pub(crate) fn matcher(&self, id: String) -> HookMatcher {
        HookMatcher {
            matcher: self.matcher.clone(),
            hook_callback_ids: vec![id],
            timeout: self.timeout.map(|limit| Num::from(limit.as_secs_f64())),
            on_failure: self.on_failure.clone(),
            ..HookMatcher::default()
        }
    }
}

/// A hook that only observes; see [`Reply`].
#[derive(Debug)]
pub struct OnlyLooks;

impl Reply<HookOutput, OnlyLooks> for () {
    fn into_future(self) -> BoxFuture<'static, HookOutput> {
        std::future::ready(HookOutput::none()).boxed()
    }
}

/// The input of one event.
pub trait EventInput: Sized + Send + 'static {
    /// The event.
    const EVENT: HookEvent;

    /// The input if it belongs to this event, `None` otherwise.
    fn of(input: HookInput) -> Option<Self>;
}

macro_rules! inputs {
    ($($event:ident $input:ident,)*) => {
        $(impl EventInput for $input {
            const EVENT: HookEvent = HookEvent::$event;

            fn of(input: HookInput) -> Option<Self> {
                match input {
                    HookInput::$event(input) => Some(input),
                    _ => None,
                }
            }
        })*
    };
}

inputs! {
    PreToolUse PreToolUseInput,
    PostToolUse PostToolUseInput,
    PostToolUseFailure PostToolUseFailureInput,
    PostToolBatch PostToolBatchInput,
    Notification NotificationInput,
    UserPromptSubmit UserPromptSubmitInput,
    UserPromptExpansion UserPromptExpansionInput,
    SessionStart SessionStartInput,
    SessionEnd SessionEndInput,
    Stop StopInput,
    StopFailure StopFailureInput,
    SubagentStart SubagentStartInput,
    SubagentStop SubagentStopInput,
    PreCompact PreCompactInput,
    PostCompact PostCompactInput,
    PreModelSwitch PreModelSwitchInput,
    PostModelSwitch PostModelSwitchInput,
    PermissionRequest PermissionRequestInput,
    PermissionDenied PermissionDeniedInput,
    Setup SetupInput,
    TeammateIdle TeammateIdleInput,
    TaskCreated TaskCreatedInput,
    TaskCompleted TaskCompletedInput,
    Elicitation ElicitationInput,
    ElicitationResult ElicitationResultInput,
    ConfigChange ConfigChangeInput,
    WorktreeCreate WorktreeCreateInput,
    WorktreeRemove WorktreeRemoveInput,
    InstructionsLoaded InstructionsLoadedInput,
    CwdChanged CwdChangedInput,
    FileChanged FileChangedInput,
    DirectoryAdded DirectoryAddedInput,
    MessageDisplay MessageDisplayInput,
}

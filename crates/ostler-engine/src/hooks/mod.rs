//! Hooks: the user's commands, servers and the host's callbacks, which the engine runs at events.
//!
//! All hooks of an event run in parallel; their answers are combined into one [`Verdict`]. Hooks that guard something
//! (a tool call, a prompt, a permission) fail closed: one that fails, hangs or disappears is an objection, unless it
//! says `onFailure: continue`. Hooks that only watch fail open, and their failure is reported.
//!
//! `registry.rs` reads hooks from settings, `list.rs` stores them, `due.rs` selects those for an event, `event.rs` has
//! the properties of each event, `run.rs` runs one hook, `triggers.rs` and `config_change.rs` have the events that need
//! more than one line.

mod background;
mod command;
mod config_change;
mod due;
pub(crate) mod elicit;
mod event;
mod frames;
mod http;
mod list;
mod listing;
mod matcher;
mod mcp;
mod question;
pub(crate) mod registry;
mod run;
pub(crate) mod triggers;
mod truncate;
pub(crate) mod verdict;
pub(crate) mod watch;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use futures::future::join_all;
use ostler_process::Environment;
use ostler_proto::ToolUseId;
use ostler_proto::hook::{ExitReason, HookEvent, SetupTrigger};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use self::background::Background;
use self::due::subject;
use self::list::HookList;
pub(crate) use self::question::HookModel;
use self::registry::{FailurePolicy, Hook, Kind};
use self::run::HookCall;
use self::verdict::Verdict;
use self::watch::Watch;
use crate::disk::on_disk;
use crate::hook_report::HookReport;
use crate::mcp::Servers;
use crate::model::ledger::Ledger;
use crate::outbox::Outbox;
use crate::permission::Effect;
use crate::permissions::Permissions;
use crate::sandbox::SessionSandbox;
use crate::scratch::Scratch;

/// The hooks of a conversation, with all they need to run. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Hooks {
    list: HookList,
    shared: Shared,
    scope: Arc<HookScope>,
    /// No turn waits for them: the session's task sends their frames.
    in_background: bool,
}

/// The conversation that hooks run for.
#[derive(Clone, Debug)]
pub(crate) struct HookScope {
    /// Where their frames and questions go.
    pub(crate) outbox: Outbox,
    pub(crate) permissions: Permissions,
    /// Where the requests of prompt hooks are counted.
    pub(crate) ledger: Ledger,
    /// The environment of commands.
    pub(crate) env: Arc<Environment>,
    /// The sandbox of commands.
    pub(crate) sandbox: Option<Arc<dyn SessionSandbox>>,
    /// When the time of the prompt is up. Hooks that the turn waits for end then.
    pub(crate) deadline: Option<Instant>,
}

/// What all hooks of a session have in common.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared {
    /// Where the session begins.
    cwd: Arc<PathBuf>,
    /// The project, for commands to find their files.
    project: Arc<PathBuf>,
    /// The file of the main conversation.
    transcript: String,
    /// Whether the host receives frames about hooks.
    shows_hooks: bool,
    /// The prompt that is being answered.
    prompt: Arc<Mutex<Option<String>>>,
    background: Arc<Background>,
    /// The directory of the session's shell.
    place: Arc<Mutex<Option<PathBuf>>>,
    watch: Arc<Watch>,
    /// Locked while the watched files are looked at, so that a change is reported once.
    looking: Arc<tokio::sync::Mutex<()>>,
    helpers: Arc<OnceLock<HookServices>>,
    /// The clients for HTTP hooks.
    http: Arc<http::Clients>,
}

/// The services that hooks of some types need.
pub(crate) struct HookServices {
    pub(crate) judge: HookModel,
    pub(crate) servers: Servers,
    /// Stores texts that are too long for the conversation.
    pub(crate) scratch: Scratch,
}

impl fmt::Debug for HookServices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookServices").finish_non_exhaustive()
    }
}

/// An event that hooks run for.
pub(crate) struct Event<'a> {
    pub(crate) event: HookEvent,
    /// The tool, for events around a call.
    pub(crate) tool: Option<&'a str>,
    /// The call, for events around one.
    pub(crate) call: Option<&'a ToolUseId>,
    /// What the call would touch, as permissions decide on it. A hook's `if` is decided on this alone.
    pub(crate) effect: Option<&'a Effect>,
    /// The event's own fields, in addition to the common ones.
    pub(crate) fields: Value,
}

impl Event<'_> {
    /// An event that is not about a call.
    pub(crate) fn new(event: HookEvent, fields: Value) -> Self {
        Self { event, tool: None, call: None, effect: None, fields }
    }
}

impl Hooks {
    /// Sets the services that hooks of some types need. Only the first call counts.
    pub(crate) fn equip(&self, helpers: HookServices) {
        let _ = self.shared.helpers.set(helpers);
    }

    /// Notes which prompt is being answered.
    pub(crate) fn begin_prompt(&self, id: Option<String>) {
        *self.shared.prompt.lock() = id;
    }

    /// Takes the text of background hooks for the model.
    pub(crate) fn take_said(&self) -> Vec<String> {
        self.shared.background.take_said()
    }

    /// Stores text for the model, to go with the next prompt.
    pub(crate) fn say(&self, context: Vec<String>) {
        self.shared.background.say(context);
    }

    /// Runs all hooks for an event, and waits for their answers.
    pub(crate) async fn run(&self, event: Event<'_>) -> Verdict {
        let hooks = self.due_for_call(&event).await;
        if hooks.is_empty() {
            return Verdict::default();
        }
        let hook_call = self.hook_call(event);
        self.run_all(hooks, &hook_call).await
    }

    /// Runs all hooks for an event in the background.
    pub(crate) fn tell(&self, event: Event<'_>) {
        let hooks = self.due(&event);
        if hooks.is_empty() {
            return;
        }
        let hook_call = self.in_background().hook_call(event);
        for hook in hooks {
            self.shared.background.spawn(run::run_apart(hook, hook_call.clone()));
        }
    }

    /// The same hooks for a task that no turn waits for.
    pub(crate) fn in_background(&self) -> Self {
        Self { in_background: true, ..self.clone() }
    }

    /// Sends the user a message about a hook.
    async fn inform(&self, content: String, level: &'static str, tag: Option<&'static str>) {
        let outbox = &self.scope.outbox;
        if self.in_background {
            let session_id = outbox.session_id.clone();
            outbox.report(HookReport::Message { session_id, content, level, tag }).await;
        } else {
            outbox.inform(content, level, tag).await;
        }
    }

    /// Runs the `Setup` hooks before anything else. Only commands run, and they cannot object.
    pub(crate) async fn prepare(&self, trigger: &SetupTrigger) {
        let event = Event::new(HookEvent::Setup, json!({"trigger": trigger}));
        let mut hooks = self.due(&event);
        hooks.retain(|hook| matches!(hook.kind, Kind::Command { .. }));
        let hook_call = self.hook_call(event);
        let verdict = self.run_all(hooks, &hook_call).await;
        self.say(verdict.context);
    }

    /// Ends the session's hooks: runs those for its end that do not need the host, and stops all that still run.
    pub(crate) async fn finish(&self, reason: &ExitReason) {
        let event = Event::new(HookEvent::SessionEnd, json!({"reason": reason}));
        let mut hooks = self.due(&event);
        // The host no longer answers.
        hooks.retain(|hook| !matches!(hook.kind, Kind::Callback(_)));
        let hook_call = self.hook_call(event);
        hooks.iter_mut().for_each(|hook| hook.is_async = false);
        self.run_all(hooks, &hook_call).await;
        self.shared.background.stop().await;
    }

    /// Where hooks run, and the `cwd` in their input: the directory of the session's shell.
    fn place(&self) -> PathBuf {
        let place = self.shared.place.lock().clone();
        // A single look at the folder that the session works in.
        place.filter(|place| place.is_dir()).unwrap_or_else(|| self.shared.cwd.to_path_buf())
    }

    async fn run_all(&self, hooks: Vec<Hook>, hook_call: &HookCall) -> Verdict {
        let (apart, hooks): (Vec<_>, Vec<_>) = hooks.into_iter().partition(|hook| hook.is_async);
        for hook in apart {
            self.shared.background.spawn(run::run_apart(hook, hook_call.in_background()));
        }
        let deadline = self.scope.deadline;
        let outcomes = hooks.iter().map(|hook| run::run(hook, hook_call, deadline));
        let outcomes = join_all(outcomes).await;
        let mut verdict = Verdict::default();
        for (hook, outcome) in hooks.iter().zip(outcomes) {
            match outcome {
                Ok(output) => verdict.add(output),
                Err(why) => failed(&mut verdict, hook, hook_call, &why).await,
            }
        }
        self.shared.shorten(&mut verdict).await;
        for warning in &verdict.warnings {
            self.inform(warning.clone(), "warning", None).await;
        }
        if let Some(paths) = &verdict.watch_paths {
            let (watch, paths) = (Arc::clone(&self.shared.watch), paths.clone());
            on_disk(move || watch.ask_for(paths)).await;
        }
        verdict
    }

    fn hook_call(&self, event: Event<'_>) -> HookCall {
        HookCall {
            hooks: self.clone(),
            cwd: self.place(),
            subject: subject(&event),
            call: event.call.cloned(),
            input: self.input(&event),
            event: event.event,
        }
    }

    /// The input of hooks: what all events have in common, and the event's own fields.
    fn input(&self, event: &Event<'_>) -> Value {
        let HookScope { outbox, permissions, .. } = &*self.scope;
        let mut input = json!({
            "session_id": outbox.session_id,
            "transcript_path": self.shared.transcript,
            "cwd": self.place().display().to_string(),
            "hook_event_name": event.event,
        });
        if let Some(prompt) = &*self.shared.prompt.lock() {
            input["prompt_id"] = json!(prompt);
        }
        if event::has_mode(&event.event) {
            input["permission_mode"] = json!(permissions.mode());
        }
        if let Some(subagent) = &outbox.subagent {
            input["agent_id"] = json!(subagent.id);
            input["agent_type"] = json!(subagent.kind);
        }
        if let (Value::Object(input), Value::Object(fields)) = (&mut input, &event.fields) {
            input.extend(fields.clone());
        }
        input
    }
}

/// Handles a hook that gave no answer: an objection where it guards, a warning where it watches.
async fn failed(verdict: &mut Verdict, hook: &Hook, hook_call: &HookCall, why: &str) {
    let event = &hook_call.event;
    let text = format!("{event} hook {why}");
    if event::is_guarded(event) && hook.on_failure != FailurePolicy::Continue {
        verdict.fail(text);
        return;
    }
    let is_callback = matches!(hook.kind, Kind::Callback(_));
    let tag = if is_callback { "hook_callback_failed" } else { "hook_failed" };
    hook_call.hooks.inform(text, "warning", Some(tag)).await;
}

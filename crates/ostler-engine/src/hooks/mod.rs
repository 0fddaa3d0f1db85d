//! Hooks: what the user's commands, servers and the host's callbacks have to say about what is going on.
//!
//! All hooks of an event run side by side; what they say is folded into one [`Verdict`]. Hooks that guard something
//! (a tool call, a prompt, a permission) fail closed: one that breaks, hangs or disappears is an objection, unless it
//! says `onFailure: continue`. Hooks that only watch fail open, and their failure is told.
//!
//! `registry.rs` reads which hooks there are, `event.rs` knows what each event is like, `run.rs` runs one hook,
//! `triggers.rs` has the moments that need more than one line.

mod background;
mod command;
pub(crate) mod elicit;
mod event;
mod frames;
mod http;
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
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use futures::future::join_all;
use ostler_proto::ToolUseId;
use ostler_proto::hook::{ExitReason, HookEvent, SetupTrigger};
use serde_json::{Value, json};

use self::background::Background;
pub(crate) use self::question::HookModel;
use self::registry::{FailurePolicy, Hook, Kind};
use self::run::HookCall;
use self::verdict::Verdict;
use self::watch::Watch;
use crate::disk::on_disk;
use crate::host::Host;
use crate::mcp::Servers;
use crate::model::pricing;
use crate::permission::{Behavior, CallFacts, Effect, Match, ResolvedCall, Rule, Source, matches};
use crate::scratch::Scratch;

/// The hooks of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hooks {
    hooks: Arc<Vec<Hook>>,
    shared: Shared,
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
    /// Whether the host sees hooks run.
    shows_hooks: bool,
    /// The prompt that is being answered.
    prompt: Arc<Mutex<Option<String>>>,
    background: Arc<Background>,
    /// Where the session's shell has gone.
    place: Arc<Mutex<Option<PathBuf>>>,
    watch: Arc<Watch>,
    /// Held by whoever looks at the watched files, so that a change is told once.
    looking: Arc<tokio::sync::Mutex<()>>,
    helpers: Arc<OnceLock<HookServices>>,
    /// What asks servers.
    http: Arc<http::Clients>,
}

/// Whom hooks of some types need.
pub(crate) struct HookServices {
    pub(crate) judge: HookModel,
    pub(crate) servers: Servers,
    /// Where what is too long for the conversation is kept.
    pub(crate) scratch: Scratch,
}

impl fmt::Debug for HookServices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookServices").finish_non_exhaustive()
    }
}

/// What happened, for hooks to look at.
pub(crate) struct Event<'a> {
    pub(crate) event: HookEvent,
    /// The tool, for events around a call.
    pub(crate) tool: Option<&'a str>,
    /// The call, for events around one.
    pub(crate) call: Option<&'a ToolUseId>,
    /// What the call would touch, as permissions judge it. An `if` is judged on this and nothing else.
    pub(crate) effect: Option<&'a Effect>,
    /// The fields of the event beyond those all have.
    pub(crate) fields: Value,
}

impl Event<'_> {
    /// An event that is about no call.
    pub(crate) fn new(event: HookEvent, fields: Value) -> Self {
        Self { event, tool: None, call: None, effect: None, fields }
    }
}

impl Hooks {
    /// No hooks yet, in a session that begins in `cwd`, works for `project` and is kept in `transcript`.
    pub(crate) fn new(
        cwd: &Path,
        project: &Path,
        transcript: Option<PathBuf>,
        shows_hooks: bool,
    ) -> Self {
        let transcript = transcript.map(|path| path.display().to_string()).unwrap_or_default();
        let shared = Shared {
            cwd: Arc::new(cwd.to_owned()),
            project: Arc::new(project.to_owned()),
            transcript,
            shows_hooks,
            ..Shared::default()
        };
        Self { shared, ..Self::default() }
    }

    /// The same for a session that is kept in another file.
    pub(crate) fn kept_in(&self, transcript: Option<PathBuf>) -> Self {
        let mut hooks = self.clone();
        hooks.shared.transcript =
            transcript.map(|path| path.display().to_string()).unwrap_or_default();
        hooks
    }

    /// The same and more.
    pub(crate) fn with(&self, more: Vec<Hook>) -> Self {
        let hooks = Arc::new([(*self.hooks).clone(), more].concat());
        let hooks = Self { hooks, shared: self.shared.clone() };
        // Whoever keeps watch looks at the new files at once. Not here: the caller may hold a lock.
        hooks.shared.watch.bell.notify_one();
        hooks
    }

    /// Whether any hook names files that it wants to hear of.
    pub(crate) fn watches_files(&self) -> bool {
        self.hooks.iter().any(|hook| !hook.files.is_empty())
    }

    /// Takes the watched files as they are now: what happens from here on is news. Touches the disk.
    pub(crate) fn note_watched(&self) {
        self.shared.watch.note(&self.watched(&self.shared.cwd));
    }

    /// The same with other hooks from some settings.
    pub(crate) fn replacing(&self, is_old: impl Fn(Source) -> bool, new: Vec<Hook>) -> Self {
        let stays = |hook: &&Hook| !hook.source.is_some_and(&is_old);
        let hooks = self.hooks.iter().filter(stays).cloned().collect();
        Self { hooks: Arc::new(hooks), shared: self.shared.clone() }.with(new)
    }

    /// The same with other hooks from plugins.
    pub(crate) fn replacing_plugins(&self, new: Vec<Hook>) -> Self {
        let stays = |hook: &&Hook| hook.plugin.is_none();
        let hooks = self.hooks.iter().filter(stays).cloned().collect();
        Self { hooks: Arc::new(hooks), shared: self.shared.clone() }.with(new)
    }

    /// The same with other callbacks of the host. A host that introduces itself again has not more hooks than before.
    pub(crate) fn replacing_callbacks(&self, new: Vec<Hook>) -> Self {
        let stays = |hook: &&Hook| !matches!(hook.kind, Kind::Callback(_));
        let hooks = self.hooks.iter().filter(stays).cloned().collect();
        Self { hooks: Arc::new(hooks), shared: self.shared.clone() }.with(new)
    }

    /// Names those whom hooks of some types need. The first word counts.
    pub(crate) fn equip(&self, helpers: HookServices) {
        let _ = self.shared.helpers.set(helpers);
    }

    /// Whether any hook is registered for an event.
    pub(crate) fn any_for(&self, event: &HookEvent) -> bool {
        self.hooks.iter().any(|hook| hook.event == *event)
    }

    /// The events that settings have hooks for and that nothing in this version sets off.
    pub(crate) fn idle_events(&self) -> Vec<&'static str> {
        let is_written = |event: &HookEvent| {
            let hooks = self.hooks.iter().filter(|hook| hook.event == *event);
            hooks.into_iter().any(|hook| !matches!(hook.kind, Kind::Callback(_)))
        };
        let events = event::WITHOUT_OCCASION.iter().filter(|event| is_written(event));
        events.map(HookEvent::as_str).collect()
    }

    /// Notes which prompt is being answered.
    pub(crate) fn begin_prompt(&self, id: Option<String>) {
        *self.shared.prompt.lock().unwrap_or_else(PoisonError::into_inner) = id;
    }

    /// What hooks that nobody waited for want the model to read.
    pub(crate) fn take_said(&self) -> Vec<String> {
        self.shared.background.take_said()
    }

    /// Keeps text for the model, to go with the next prompt.
    pub(crate) fn say(&self, context: Vec<String>) {
        self.shared.background.say(context);
    }

    /// Tells all hooks that want to hear of it, and waits for what they say.
    pub(crate) async fn run(&self, host: &Host, cwd: &Path, event: Event<'_>) -> Verdict {
        let hooks = self.due_for_call(host, &event).await;
        if hooks.is_empty() {
            return Verdict::default();
        }
        let hook_call = self.hook_call(host, cwd, event);
        self.run_all(hooks, &hook_call).await
    }

    /// Tells all hooks that want to hear of it, and does not wait.
    pub(crate) fn tell(&self, host: &Host, cwd: &Path, event: Event<'_>) {
        let hooks = self.due(&event);
        if hooks.is_empty() {
            return;
        }
        let hook_call = self.hook_call(host, cwd, event);
        for hook in hooks {
            self.shared.background.spawn(run::run_apart(hook, hook_call.clone()));
        }
    }

    /// The folder is to be prepared or tended before anything else. Only commands can, and nobody can object.
    pub(crate) async fn prepare(&self, host: &Host, cwd: &Path, trigger: &SetupTrigger) {
        let event = Event::new(HookEvent::Setup, json!({"trigger": trigger}));
        let mut hooks = self.due(&event);
        hooks.retain(|hook| matches!(hook.kind, Kind::Command { .. }));
        let hook_call = self.hook_call(host, cwd, event);
        let verdict = self.run_all(hooks, &hook_call).await;
        self.say(verdict.context);
    }

    /// The session is over: tells the hooks that do not need the host, and ends all that still run.
    pub(crate) async fn finish(&self, host: &Host, cwd: &Path, reason: &ExitReason) {
        let event = Event::new(HookEvent::SessionEnd, json!({"reason": reason}));
        let mut hooks = self.due(&event);
        // Nobody is there to answer.
        hooks.retain(|hook| !matches!(hook.kind, Kind::Callback(_)));
        let hook_call = self.hook_call(host, cwd, event);
        hooks.iter_mut().for_each(|hook| hook.is_async = false);
        self.run_all(hooks, &hook_call).await;
        self.shared.background.stop().await;
    }

    /// Where hooks run, and what they are told about where the session works: where its shell stands.
    fn place(&self, cwd: &Path) -> PathBuf {
        let place = self.shared.place.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // One look, at the folder that the session works in.
        place.filter(|place| place.is_dir()).unwrap_or_else(|| cwd.to_owned())
    }

    async fn run_all(&self, hooks: Vec<Hook>, hook_call: &HookCall) -> Verdict {
        let (apart, hooks): (Vec<_>, Vec<_>) = hooks.into_iter().partition(|hook| hook.is_async);
        for hook in apart {
            self.shared.background.spawn(run::run_apart(hook, hook_call.clone()));
        }
        let outcomes = join_all(hooks.iter().map(|hook| run::run(hook, hook_call))).await;
        let mut verdict = Verdict::default();
        for (hook, outcome) in hooks.iter().zip(outcomes) {
            match outcome {
                Ok(output) => verdict.add(output),
                Err(why) => failed(&mut verdict, hook, hook_call, &why).await,
            }
        }
        hook_call.shared.shorten(&mut verdict).await;
        for warning in &verdict.warnings {
            hook_call.host.inform(warning.clone(), "warning", None).await;
        }
        if let Some(paths) = &verdict.watch_paths {
            let (watch, paths) = (Arc::clone(&self.shared.watch), paths.clone());
            on_disk(move || watch.ask_for(paths)).await;
        }
        verdict
    }

    /// The hooks that are to hear of this, which is about no call.
    fn due(&self, event: &Event<'_>) -> Vec<Hook> {
        // A hook that asks about calls is for no other event.
        each_once(self.named_for(event).filter(|hook| hook.condition.is_none()))
    }

    /// The hooks that are to hear of this, which may be about a call.
    async fn due_for_call(&self, host: &Host, event: &Event<'_>) -> Vec<Hook> {
        let (Some(tool), Some(input)) = (event.tool, event.fields.get("tool_input")) else {
            return self.due(event);
        };
        let rules = self.named_for(event).filter_map(|hook| hook.condition.clone());
        let rules: Vec<Rule> = rules.collect();
        let Some(effect) = event.effect.filter(|_| !rules.is_empty()) else {
            // Where it cannot be told, the hook runs and can see for itself.
            return each_once(self.named_for(event));
        };
        let (policy, tool) = (host.policy(), tool.to_owned());
        let (input, effect) = (input.clone(), effect.clone());
        // Paths are resolved for it.
        let fitting = on_disk(move || {
            let seen = ResolvedCall::new(
                &policy,
                CallFacts { tool: &tool, input: &input, effect: &effect },
            );
            let fits = |rule: &Rule| {
                matches(&policy, rule, Behavior::Deny, Source::Session, &seen) != Match::No
            };
            rules.into_iter().filter(fits).collect::<Vec<_>>()
        })
        .await;
        let fits = |hook: &&Hook| {
            hook.condition.as_ref().is_none_or(|condition| fitting.contains(condition))
        };
        each_once(self.named_for(event).filter(fits))
    }

    /// The hooks for an event whose matcher fits it.
    fn named_for(&self, event: &Event<'_>) -> impl Iterator<Item = &Hook> {
        let (kind, subject) = (event.event.clone(), subject(event));
        self.hooks.iter().filter(move |hook| hook.is_for(&kind, subject.as_deref()))
    }

    fn hook_call(&self, host: &Host, cwd: &Path, event: Event<'_>) -> HookCall {
        HookCall {
            host: host.clone(),
            shared: self.shared.clone(),
            cwd: self.place(cwd),
            subject: subject(&event),
            call: event.call.cloned(),
            input: self.input(host, cwd, &event),
            event: event.event,
        }
    }

    /// What hooks are told: what all events have in common, and the event's own fields.
    fn input(&self, host: &Host, cwd: &Path, event: &Event<'_>) -> Value {
        let mut input = json!({
            "session_id": host.session_id,
            "transcript_path": self.shared.transcript,
            "cwd": self.place(cwd).display().to_string(),
            "hook_event_name": event.event,
        });
        if let Some(prompt) = &*self.shared.prompt.lock().unwrap_or_else(PoisonError::into_inner) {
            input["prompt_id"] = json!(prompt);
        }
        if event::has_mode(&event.event) {
            input["permission_mode"] = json!(host.mode());
        }
        if let Some(agent) = &host.agent {
            input["agent_id"] = json!(agent);
            input["agent_type"] = json!(host.subagent.as_ref().map(|subagent| &subagent.kind));
        }
        if let (Value::Object(input), Value::Object(fields)) = (&mut input, &event.fields) {
            input.extend(fields.clone());
        }
        input
    }
}

/// What matchers are compared with.
fn subject(event: &Event<'_>) -> Option<String> {
    let subject = event.fields.get(event::subject(&event.event)?)?.as_str()?;
    match event.event {
        HookEvent::FileChanged => Some(Path::new(subject).file_name()?.to_string_lossy().into()),
        // All spellings of a model are one. Of a model nobody knows, every hook that might object is told.
        HookEvent::PreModelSwitch => pricing::family(subject).map(|family| family.name.to_owned()),
        HookEvent::PostModelSwitch => {
            Some(pricing::family(subject).map_or(subject, |family| family.name).to_owned())
        }
        _ => Some(subject.to_owned()),
    }
}

/// The same hook only once, however many files name it.
fn each_once<'h>(hooks: impl Iterator<Item = &'h Hook>) -> Vec<Hook> {
    let mut due: Vec<Hook> = Vec::new();
    for hook in hooks {
        let is_known = !matches!(hook.kind, Kind::Callback(_))
            && due.iter().any(|known| known.kind == hook.kind);
        if !is_known && hook.take_turn() {
            due.push(hook.clone());
        }
    }
    due
}

/// A hook that gave no answer: an objection where it guards, a warning where it watches.
async fn failed(verdict: &mut Verdict, hook: &Hook, hook_call: &HookCall, why: &str) {
    let event = &hook_call.event;
    let text = format!("{event} hook {why}");
    if event::is_guarded(event) && hook.on_failure != FailurePolicy::Continue {
        verdict.fail(text);
        return;
    }
    let is_callback = matches!(hook.kind, Kind::Callback(_));
    let tag = if is_callback { "hook_callback_failed" } else { "hook_failed" };
    hook_call.host.inform(text, "warning", Some(tag)).await;
}

//! A session: one conversation with one host, from the first frame to the last.
//!
//! The interface of the engine is the wire protocol itself: frames in, frames out. The program at the other end
//! (a terminal, the SDK, a pipe) needs to know nothing else. One task owns everything here; turns run next to it
//! and reach the host through it.

mod asides;
mod call;
mod clear;
mod control;
mod disk_requests;
mod hook_reports;
mod lifecycle;
mod options;
pub(crate) mod prompt;
pub(crate) mod queue;
pub(crate) mod report;
mod requests;
mod servers;
mod setup;
mod state;
mod suggest;
mod switch;
mod tasks;
mod tool_caller;
mod waiting;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ostler_proto::api::{Content, Role};
use ostler_proto::control::{AskHost, ControlRequest, Elicitation, ElicitationReply};
use ostler_proto::frame::{ToEngine, ToHost};
use ostler_proto::hook::{ExitReason, HookEvent};
use ostler_proto::launch::Answerer;
use ostler_proto::message::system::SessionState;
use ostler_proto::message::{CommandState, User};
use ostler_proto::peer::{CallError, Peer};
use ostler_proto::{RequestId, SessionId, Uuid};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use self::asides::Asides;
use self::disk_requests::DiskRequests;
pub use self::options::{BACKGROUND_WAIT, Reload, SessionOptions};
use self::prompt::SessionStartInfo;
use self::queue::{Answers, Queue};
use self::report::Totals;
use self::requests::find::FileListCache;
use self::setup::Setup;
use self::state::ReportedState;
pub use self::state::StateEvents;
use self::switch::{ModelHookResult, ModelRequest};
pub use self::tool_caller::{CalledTool, ToolCaller};
pub use crate::agents::Delegation;
use crate::call::apply_updates;
use crate::checkpoint::{self, Checkpoints};
use crate::commands::{self, BuiltIn, CommandCall};
pub use crate::compact::Compaction;
use crate::drive::{TurnContext, TurnOutcome};
use crate::hooks::elicit::elicit;
use crate::hooks::{Event, HookModel, HookScope, HookServices, Hooks, registry, triggers};
use crate::host_calls::{Calls, HostCall, Question};
use crate::ids::fresh_uuid;
use crate::model::ChatMessage;
use crate::model::ledger::Ledger;
pub use crate::outbox::Notice;
use crate::outbox::Outbox;
use crate::permissions::Permissions;
use crate::rescue::{LentConversation, Rescue};
use crate::scratch::Scratch;
use crate::session_records::SessionRecords;
use crate::settings_watcher::SettingsWatcher;
use crate::store::OpenedSession;
use crate::store::SharedTranscript;
use crate::structured::StructuredOutput;
use crate::turn::Ending;

/// How many frames may wait for a slow host before the engine waits too.
const FRAMES_AHEAD: usize = 256;

/// The host's end of a session. Dropping the sender ends it, once all prompts are answered.
#[derive(Debug)]
pub struct Connection {
    /// To the engine.
    pub to_engine: mpsc::Sender<ToEngine>,
    /// From the engine; ends when the session does.
    pub from_engine: mpsc::Receiver<ToHost>,
}

/// Starts a session on the current runtime.
///
/// # Errors
/// When the hooks of the settings are malformed (a guard must not be left out silently), or the schema for the answer
/// is invalid.
pub fn start(options: SessionOptions) -> Result<Connection, String> {
    start_with_tools(options).map(|(connection, _)| connection)
}

/// Starts a session whose tools the caller can call itself.
///
/// # Errors
/// Like [`start`].
pub fn start_with_tools(mut options: SessionOptions) -> Result<(Connection, ToolCaller), String> {
    let (to_engine, inbox) = mpsc::channel(FRAMES_AHEAD);
    let (frames, from_engine) = mpsc::channel(FRAMES_AHEAD);
    let (calls, called) = mpsc::channel(FRAMES_AHEAD);
    let fresh = || SessionId::from(uuid::Uuid::new_v4().to_string());
    let scratch = Scratch::default();
    let checkpoints = options.checkpoints.then(|| checkpoints(&options, &scratch));
    let (session_id, conversation, transcript, resumed) = match options.opened.take() {
        Some(OpenedSession { mut writer, conversation, resumed, is_in_use, .. }) => {
            if is_in_use {
                options.notices.push(in_use(writer.session_id()));
            }
            if options.launch.session_mirror {
                writer.mirror();
            }
            (
                writer.session_id().clone(),
                conversation,
                Some(SharedTranscript::new(writer)),
                resumed,
            )
        }
        None => {
            let named = options.launch.session.id.as_deref().map(SessionId::from);
            (named.unwrap_or_else(fresh), Vec::new(), None, false)
        }
    };
    options.policy.scratch = Some(scratch.path().to_owned());
    options.policy.set_environment(&options.env);
    let outbox = Outbox {
        in_background: false,
        session_id,
        transcript,
        frames,
        calls: Calls::new(calls),
        subagent: None,
        partial_messages: options.launch.output.partial_messages,
        notices: Arc::new(Mutex::new(std::mem::take(&mut options.notices))),
    };
    let permissions = Permissions::new(
        options.policy.clone(),
        options.folders.clone(),
        options.live.clone().map(SettingsWatcher::new),
        options.launch.permission_prompts.clone().unwrap_or(Answerer::Host),
    );
    let records = SessionRecords {
        ledger: Ledger::new(options.prices.clone()),
        checkpoints,
        recording: options.tape.take(),
    };
    let env = Arc::new(std::mem::take(&mut options.env));
    let ledger = records.ledger.clone();
    let sandbox = options.sandbox.clone();
    let scope = HookScope { outbox, permissions, ledger, env, sandbox, deadline: None };
    let hooks = hooks(&options, scope.clone());
    for written in &options.hooks {
        hooks.add(registry::commands(written)?);
    }
    hooks.add(registry::of_plugins(&options.library)?);
    if let Some(live) = &options.live {
        hooks.add(registry::of_settings(&live.now.hooks)?);
    }
    // Blocking is harmless here because nothing else runs yet; later, changes could be missed.
    hooks.note_watched();
    let answer = options.launch.output.schema.as_ref().map(StructuredOutput::new).transpose()?;
    let source = if resumed { "resume" } else { "startup" };
    let memory = options.memory.iter().map(|file| file.path.clone()).collect();
    let (idle_notice, background_wait) = (options.idle_notice, options.background_wait);
    let reported_state = ReportedState::new(options.state_events);
    let own = options.aliases.for_mode(options.model.name(), false);
    let judge = options.small_model.take().unwrap_or(own);
    let is_conversation = options.is_conversation;
    let setup = Setup::new(options, scope, hooks, records, scratch, answer);
    let TurnContext { hooks, servers, model, cx, aliases, .. } = &setup.base;
    let judge = HookModel { model: Arc::clone(model), name: judge, aliases: Arc::clone(aliases) };
    hooks.equip(HookServices { judge, servers: servers.clone(), scratch: cx.scratch.clone() });
    let watcher = tokio::spawn(triggers::keep_watch(hooks.in_background()));
    let session = Session {
        watcher: AbortOnDropHandle::new(watcher),
        switches: JoinSet::new(),
        wanted_models: VecDeque::new(),
        is_conversation,
        context: setup.context(),
        setup,
        peer: Peer::new("engine-"),
        asked: HashMap::new(),
        asked_person: HashMap::new(),
        asked_behind: HashSet::new(),
        reported_state,
        queue: Queue::default(),
        answering: Vec::new(),
        conversation,
        rescue: Rescue::default(),
        start: Some(SessionStartInfo { source, memory, title: None }),
        idle_notice,
        idle_since: None,
        turns: JoinSet::new(),
        interrupt: CancellationToken::new(),
        totals: Totals::default(),
        background_wait,
        deadline: None,
        held: None,
        asides: Asides::default(),
        answers: JoinSet::new(),
        disk: DiskRequests::default(),
        walks: FileListCache::default(),
        begun: Instant::now(),
        must_end: false,
        wants_suggestions: false,
        suggesting: JoinSet::new(),
        guessing: None,
    };
    let caller = ToolCaller::new(session.context.clone());
    // The one task of the session; it ends when the host drops its end.
    tokio::spawn(session.run(inbox, called));
    Ok((Connection { to_engine, from_engine }, caller))
}

/// The notice about a session that is open elsewhere.
fn in_use(session: &SessionId) -> Notice {
    let content = format!(
        "Session {session} is open in another program too. Both write to one file, so the conversation that is resumed \
         later will have the messages of both. Use --fork-session to continue in a copy."
    );
    Notice { content, level: "warning" }
}

/// The checkpoints: backups next to the session files, in the vendor's layout. A session without a file removes its
/// backups when it ends.
fn checkpoints(options: &SessionOptions, scratch: &Scratch) -> Checkpoints {
    let Some(opened) = &options.opened else {
        let folder = scratch.folder().unwrap_or(scratch.path());
        return Checkpoints::new(folder.join("file-history"), &options.cwd, Vec::new());
    };
    let folder = checkpoint::folder_of(opened.writer.path());
    let folder = folder.unwrap_or_else(|| scratch.path().join("file-history"));
    Checkpoints::new(folder, &options.cwd, opened.snapshots.clone())
}

fn hooks(options: &SessionOptions, scope: HookScope) -> Hooks {
    let transcript = scope.outbox.transcript.as_ref().map(SharedTranscript::path);
    let project = &options.folders.project;
    let project = if project.as_os_str().is_empty() { &options.cwd } else { project };
    Hooks::new(scope, &options.cwd, project, transcript, options.launch.output.hook_events)
}

struct Session {
    setup: Setup,
    context: TurnContext,
    peer: Peer<oneshot::Sender<Result<ostler_proto::control::Success, CallError>>, ()>,
    /// The request ids of the questions of turns.
    asked: HashMap<u64, RequestId>,
    /// Those of them that only a person can answer.
    asked_person: HashMap<RequestId, ControlRequest<AskHost>>,
    /// Those of them that the turn does not wait for.
    asked_behind: HashSet<RequestId>,
    reported_state: ReportedState,
    queue: Queue,
    /// The prompts that the running turn answers, if the host gave them ids.
    answering: Vec<Uuid>,
    conversation: Vec<ChatMessage>,
    /// Where the turn that runs leaves the conversation if it panics.
    rescue: Rescue,
    /// What is reported with the first prompt.
    start: Option<SessionStartInfo>,
    idle_notice: Option<Duration>,
    /// When the last turn ended, until hooks were notified that the session waits for a prompt.
    idle_since: Option<Instant>,
    /// Holds at most one: the turn that runs.
    turns: JoinSet<TurnOutcome>,
    interrupt: CancellationToken,
    totals: Totals,
    background_wait: Option<Duration>,
    /// The deadline of the host's last prompt and of everything that follows from it.
    deadline: Option<Instant>,
    /// A result that waits for subagents in the background.
    held: Option<ToHost>,
    /// Polls the files that hooks watch.
    watcher: AbortOnDropHandle<()>,
    /// Hooks that run for a change of the model. No turn begins meanwhile.
    switches: JoinSet<ModelHookResult>,
    /// Requests for a model that wait for these hooks.
    wanted_models: VecDeque<ModelRequest>,
    is_conversation: bool,
    /// Answers to the host that may take long; cancelled with the session.
    asides: Asides,
    /// Answers to the host that come soon; the session does not end before them.
    answers: JoinSet<()>,
    /// Requests of the host that work on files. No turn begins meanwhile.
    disk: DiskRequests,
    /// The file list for file suggestions.
    walks: FileListCache,
    begun: Instant,
    /// The host ended the session.
    must_end: bool,
    /// The host wants suggestions for the next prompt.
    wants_suggestions: bool,
    /// Holds at most one: the suggestion under way.
    suggesting: JoinSet<()>,
    /// The conversation with the request for a suggestion, while one is under way: shared, because it may be long.
    guessing: Option<Arc<Vec<ChatMessage>>>,
}

impl Session {
    async fn run(
        mut self,
        mut inbox: mpsc::Receiver<ToEngine>,
        mut called: mpsc::Receiver<HostCall>,
    ) {
        self.prepare().await;
        let reason = match self.context.launch.only_setup {
            true => ExitReason::Other,
            false => self.serve(&mut inbox, &mut called).await,
        };
        self.end_hooks(&reason, called).await;
    }

    /// Runs the hooks that come before everything else, if the launch asks for them. The host has registered no
    /// callbacks by then.
    async fn prepare(&mut self) {
        let mut context = self.context.clone();
        let limit = context.limits.timeout;
        context.set_deadline(limit.and_then(|limit| Instant::now().checked_add(limit)));
        if let Some(trigger) = &context.launch.setup {
            context.hooks.prepare(trigger).await;
        }
        if context.launch.only_setup
            && let Some(start) = self.start.take()
        {
            prompt::begin(&context, start).await;
        }
    }

    async fn serve(
        &mut self,
        inbox: &mut mpsc::Receiver<ToEngine>,
        called: &mut mpsc::Receiver<HostCall>,
    ) -> ExitReason {
        let mut open = true;
        let mut reason = ExitReason::Other;
        let frames = self.context.outbox.frames.clone();
        self.context.outbox.calls.begin();
        // Since when only background tasks keep the session alive.
        let mut since = Instant::now();
        loop {
            if open && self.must_end {
                (open, since) = (false, Instant::now());
                self.tell_waiting("the host ended the session");
            }
            if self.turns.is_empty() && self.switches.is_empty() && self.disk.are_done() {
                match self.queue.take() {
                    Some(prompts) => self.begin(prompts, open).await,
                    None if open
                        || self.context.cx.tasks.are_open()
                        || !self.answers.is_empty()
                        || !self.suggesting.is_empty() => {}
                    None => {
                        self.reported_state.tell(&self.context.outbox, SessionState::Idle).await;
                        break;
                    }
                }
            }
            self.reported_state.tell(&self.context.outbox, self.state()).await;
            let is_waiting = !open && self.turns.is_empty();
            let end_of_wait = self.end_of_wait(since);
            tokio::select! {
                frame = inbox.recv(), if open => match frame {
                    Some(frame) => self.receive(frame).await,
                    None => {
                        (open, since) = (false, Instant::now());
                        reason = self.exit_reason();
                        self.tell_waiting("Stream closed");
                    }
                },
                Some(call) = called.recv() => match call {
                    HostCall::Ask(question) => self.ask(*question).await,
                    HostCall::Withdraw(token) => self.withdraw(token).await,
                    HostCall::Task(change) => self.task_changed(change).await,
                    HostCall::Hook(report) => {
                        hook_reports::send(&self.context.outbox, report).await;
                    }
                    HostCall::Wake(words) => self.queue.push(self.synthetic(words), false),
                    HostCall::Elicit { question, answer } => self.elicit(*question, answer),
                    HostCall::Sample { server, params, answer } => {
                        self.sample(server, params, answer);
                    }
                    HostCall::ChangePermissions { updates, done } => {
                        let context = self.context.clone();
                        self.aside(async move {
                            apply_updates(&context, &updates).await;
                            let _ = done.send(());
                        });
                    }
                },
                Some(finished) = self.turns.join_next() => {
                    self.end(finished).await;
                    since = Instant::now();
                }
                Some(heard) = self.switches.join_next() => self.heard_of_model(heard.ok()).await,
                Some(_) = self.suggesting.join_next() => self.end_guess().await,
                Some(_) = self.answers.join_next() => {}
                Some(done) = self.disk.next() => self.end_disk_work(done).await,
                () = waiting::until(end_of_wait), if is_waiting => break,
                () = idle(self.idle_since, self.idle_notice) => self.tell_idle(),
                // The host no longer reads: running work is stopped.
                () = frames.closed() => {
                    if open {
                        reason = self.exit_reason();
                    }
                    self.turns.shutdown().await;
                    break;
                }
            }
        }
        self.context.cx.tasks.shutdown().await;
        // A host that waits for the result gets no other.
        if let Some(result) = self.held.take() {
            self.context.outbox.send(result).await;
        }
        reason
    }

    /// Why the session ends, if the host leaves now.
    fn exit_reason(&self) -> ExitReason {
        match self.is_conversation && self.turns.is_empty() {
            true => ExitReason::PromptInputExit,
            false => ExitReason::Other,
        }
    }

    /// The state for `session_state_changed`.
    fn state(&self) -> SessionState {
        // Subagents in the background count: they may still have questions, and a turn follows from them.
        let is_quiet = self.turns.is_empty() && !self.context.cx.tasks.have_agents();
        match (is_quiet, self.asked_person.is_empty()) {
            (true, true) => SessionState::Idle,
            (_, false) => SessionState::RequiresAction,
            (false, true) => SessionState::Running,
        }
    }

    async fn receive(&mut self, frame: ToEngine) {
        match frame {
            ToEngine::User(user) if user.message.role == Role::User => self.enqueue(*user).await,
            ToEngine::ControlRequest(request) => self.control(request).await,
            ToEngine::ControlResponse(answer) => {
                let id = answer.response.request_id();
                self.asked.retain(|_, asked| Some(&*asked) != id.as_ref());
                if let Some(id) = &id {
                    self.asked_person.remove(id);
                    self.asked_behind.remove(id);
                }
                if let Some((waiting, result)) = self.peer.answered(answer) {
                    // The call that asked may have been interrupted meanwhile.
                    let _ = waiting.send(result);
                }
            }
            ToEngine::UpdateEnvironmentVariables(update) => {
                self.update_environment(update.variables)
            }
            // No request of a host can be cancelled yet; the other frames need no answer.
            _ => {}
        }
    }

    /// Gets an answer for an MCP server, for as long as the server waits for it.
    fn elicit(&mut self, question: Elicitation, mut answer: oneshot::Sender<ElicitationReply>) {
        let hooks = self.context.hooks.clone();
        self.aside(async move {
            let reply = tokio::select! {
                reply = elicit(&hooks, question) => reply,
                () = answer.closed() => return,
            };
            let _ = answer.send(reply);
        });
    }

    /// A prompt of the engine itself.
    fn synthetic(&self, words: String) -> User {
        let session_id = Some(self.context.outbox.session_id.clone());
        User { is_synthetic: Some(true), ..User::new(Content::Text(words), session_id) }
    }

    async fn ask(&mut self, question: Question) {
        match self.peer.ask(question.answer) {
            Ok(id) => {
                self.asked.insert(question.token, id.clone());
                if question.in_background {
                    self.asked_behind.insert(id.clone());
                }
                let request = ControlRequest::new(id.clone(), question.request);
                if matches!(request.request, AskHost::CanUseTool(_) | AskHost::Elicitation(_)) {
                    self.asked_person.insert(id, request.clone());
                }
                self.context.outbox.send(ToHost::ControlRequest(request)).await;
            }
            Err((waiting, error)) => _ = waiting.send(Err(error)),
        }
    }

    /// Withdraws a question whose asker no longer waits.
    async fn withdraw(&mut self, token: u64) {
        let cancelled = self.asked.remove(&token).and_then(|id| self.peer.cancel(&id));
        if let Some((_, cancel)) = cancelled {
            self.asked_person.remove(&cancel.request_id);
            self.asked_behind.remove(&cancel.request_id);
            self.context.outbox.send(ToHost::ControlCancelRequest(cancel)).await;
        }
    }

    /// Refuses the calls that wait for a permission, because the host will not answer any more.
    fn tell_waiting(&mut self, reason: &str) {
        self.asked_person.clear();
        self.asked_behind.clear();
        for (waiting, error) in self.peer.close(reason) {
            let _ = waiting.send(Err(error));
        }
    }

    async fn begin(&mut self, mut prompts: Vec<User>, is_host_there: bool) {
        self.idle_since = None;
        // The next turn has its own result.
        self.held = None;
        self.reported_state.tell(&self.context.outbox, SessionState::Running).await;
        self.tell_of_prompts(queue::named(&prompts), CommandState::Started).await;
        self.answering = queue::named(&prompts);
        self.end_guess().await;
        self.totals.begin(&self.context.records.ledger, Answers::to(&prompts));
        for prompt in &mut prompts {
            prompt.uuid.get_or_insert_with(fresh_uuid);
        }
        self.interrupt = CancellationToken::new();
        self.context.permissions.forget_grants();
        let mut context = self.context.clone();
        context.cx.cancelled = self.interrupt.clone();
        context.answering = self.answering.as_slice().into();
        // The same counter, reset: the tool that starts subagents shares it.
        context.tokens.store(0, Ordering::Relaxed);
        context.model.prompt_began();
        self.rescue = Rescue::default();
        let conversation = std::mem::take(&mut self.conversation);
        let conversation = LentConversation::new(conversation, self.rescue.clone());
        // The start of the session is reported with its first prompt; a built-in command does not count as one.
        let called = prompts.iter().find_map(|prompt| commands::read(&context.library, prompt));
        let is_own = matches!(called, Some(CommandCall::BuiltIn(..)));
        let start = if is_own { None } else { self.start.take() };
        let deadline = self.deadline_of(&prompts, is_host_there);
        self.turns.spawn(async move {
            let context = waiting::with_server_tools(context, deadline).await;
            prompt::answer(&context, conversation, prompts, start).await
        });
    }

    /// Notifies hooks that the session waits for a prompt.
    fn tell_idle(&mut self) {
        self.idle_since = None;
        let fields = json!({
            "message": "Waiting for your next prompt",
            "notification_type": "idle_prompt",
        });
        self.context.hooks.tell(Event::new(HookEvent::Notification, fields));
    }

    async fn end(&mut self, finished: Result<TurnOutcome, tokio::task::JoinError>) {
        self.idle_since = Some(Instant::now());
        let mut finished = match finished {
            Ok(finished) => finished,
            Err(error) => {
                // A bug in the engine or in code of the host. The session continues with the conversation so far.
                self.conversation = self.rescue.take();
                let result = self.totals.broken(&self.context, &error.to_string());
                self.context.outbox.send(result).await;
                return self.tell_of_end().await;
            }
        };
        self.conversation = std::mem::take(&mut finished.conversation);
        if matches!(&finished.ending, Ending::Command { name, .. } if name == BuiltIn::Clear.name())
        {
            self.clear().await;
        }
        let mut result = self.totals.result(&self.context, finished);
        if let ToHost::Result(result) = &mut result {
            result.queued_turn_count = Some(self.queue.n_turns());
        }
        self.held = Some(result);
        self.tell_result().await;
        self.tell_of_end().await;
        self.suggest();
    }

    /// Sends the last result, unless the host would take it for the end of everything while subagents still work.
    async fn tell_result(&mut self) {
        let waits = self.context.delegation.holds_results && self.context.cx.tasks.have_agents();
        if !waits && let Some(result) = self.held.take() {
            self.context.outbox.send(result).await;
        }
    }
}

/// Waits until `notice` has passed since the last turn; for ever without a turn or a time.
async fn idle(since: Option<Instant>, notice: Option<Duration>) {
    match since.zip(notice) {
        Some((since, notice)) => tokio::time::sleep_until(since + notice).await,
        None => std::future::pending().await,
    }
}

//! A session: one conversation with one host, from the first frame to the last.
//!
//! The front door of the engine is the wire protocol itself: frames in, frames out. Whoever holds the other end
//! (a terminal, the SDK, a pipe) needs to know nothing else. One task owns everything here; turns run beside it
//! and reach the host through it.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ostler_proto::api::Role;
use ostler_proto::control::{
    AskEngine, ControlRequest, ControlResponse, Failure, Response, UNSUPPORTED_REQUEST,
};
use ostler_proto::frame::{ToEngine, ToHost};
use ostler_proto::hook::HookEvent;
use ostler_proto::message::User;
use ostler_proto::peer::{CallError, Peer};
use ostler_proto::permission::{PermissionDestination, PermissionUpdate, SetModeUpdate};
use ostler_proto::{Extra, RequestId, SessionId};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::call::Tools;
use crate::context;
use crate::context::memory::MemoryFile;
pub use crate::drive::Limits;
use crate::drive::{Finished, World};
use crate::hooks::{Event, Hooks, registry};
use crate::host::{Host, HostCall, Question, fresh_uuid};
use crate::model::{Model, Said};
use crate::permission::Policy;
use crate::prompt::{self, Start};
use crate::report::Totals;
use crate::settings::Folders;
use crate::spent::Spent;
use crate::store::Opened;
use crate::structured::StructuredOutput;
use crate::subagent::Agent;
use crate::tool::{AnyTool, ToolCx, erase};
use crate::transcript::Transcript;

/// How many frames may wait for a slow host before the engine waits too.
const FRAMES_AHEAD: usize = 256;

/// What a session runs with.
pub struct SessionOptions {
    /// The model.
    pub model: Arc<dyn Model>,
    /// The tools on offer, beside `Agent`, which every session has.
    pub tools: Vec<Arc<dyn AnyTool>>,
    /// The working directory.
    pub cwd: PathBuf,
    /// What decides about tool calls.
    pub policy: Policy,
    /// Where changes of it are kept.
    pub folders: Folders,
    /// What ends a turn that the model would not end.
    pub limits: Limits,
    /// A system prompt in place of the engine's own. An empty one is a prompt too.
    pub system_prompt: Option<String>,
    /// Added to the system prompt.
    pub append_system_prompt: Option<String>,
    /// Standing instructions, see [`crate::context::memory::load`].
    pub memory: Vec<MemoryFile>,
    /// The session's file and what it holds, see [`crate::store::Projects::open`]; `None` keeps nothing.
    pub opened: Option<Opened>,
    /// The shape the answer must have.
    pub json_schema: Option<Value>,
    /// Hooks, as they stand under `hooks` in each settings file.
    pub hooks: Vec<Value>,
    /// Whether the events of a response are sent as they come.
    pub partial_messages: bool,
    /// Whether the host sees the hooks of settings run (`hook_started` and so on).
    pub hook_events: bool,
    /// How long the session waits for a prompt before hooks are told that it does; `None` tells them never.
    pub idle_notice: Option<Duration>,
}

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
/// In words, when the hooks of the settings are malformed (a guard must not be left out quietly), or the answer's
/// schema is not one.
pub fn start(mut options: SessionOptions) -> Result<Connection, String> {
    let (to_engine, inbox) = mpsc::channel(FRAMES_AHEAD);
    let (frames, from_engine) = mpsc::channel(FRAMES_AHEAD);
    let (calls, called) = mpsc::channel(FRAMES_AHEAD);
    let fresh = || SessionId::from(uuid::Uuid::new_v4().to_string());
    let (session_id, conversation, transcript, resumed) = match options.opened.take() {
        Some(Opened { writer, conversation, resumed, .. }) => {
            (writer.session_id().clone(), conversation, Some(Transcript::new(writer)), resumed)
        }
        None => (fresh(), Vec::new(), None, false),
    };
    let hooks = hooks(&options, transcript.as_ref());
    let host = Host {
        session_id,
        transcript,
        parent: None,
        frames,
        calls,
        partial_messages: options.partial_messages,
        agent: None,
        policy: Arc::new(Mutex::new(options.policy.clone())),
        folders: Arc::new(options.folders.clone()),
        spent: Spent::default(),
        hooks: Arc::new(Mutex::new(hooks)),
    };
    for hooks in &options.hooks {
        host.add_hooks(registry::commands(hooks)?);
    }
    let source = if resumed { "resume" } else { "startup" };
    let idle_notice = options.idle_notice;
    let memory = options.memory.iter().map(|file| file.path.clone()).collect();
    let answer = options.json_schema.as_ref().map(StructuredOutput::new).transpose()?;
    let session = Session {
        world: world(options, host, answer),
        peer: Peer::new("engine-"),
        asked: HashMap::new(),
        queue: VecDeque::new(),
        conversation,
        start: Some(Start { source, memory }),
        idle_notice,
        idle_since: None,
        turns: JoinSet::new(),
        interrupt: CancellationToken::new(),
        totals: Totals::default(),
    };
    // The one task of the session; it ends when the host drops its end.
    tokio::spawn(session.run(inbox, called));
    Ok(Connection { to_engine, from_engine })
}

fn hooks(options: &SessionOptions, transcript: Option<&Transcript>) -> Hooks {
    let project = &options.folders.project;
    let project = if project.as_os_str().is_empty() { &options.cwd } else { project };
    Hooks::new(project, transcript.map(Transcript::path), options.hook_events)
}

fn world(options: SessionOptions, host: Host, answer: Option<StructuredOutput>) -> World {
    let cx = ToolCx { cwd: options.cwd, ..ToolCx::default() };
    let specs: Vec<_> = options.tools.iter().map(|tool| tool.spec()).collect();
    let tools: Tools = specs.iter().map(|spec| spec.name.clone()).zip(options.tools).collect();
    let system = context::system_prompt(
        &cx.cwd,
        options.system_prompt.as_deref(),
        options.append_system_prompt.as_deref(),
        &options.memory,
    );
    let limits = options.limits;
    let world =
        World { model: options.model, tools: Arc::new(tools), specs, system, host, cx, limits };
    let world = with_tool(world.clone(), erase(Agent(world)));
    match answer {
        Some(answer) => with_tool(world, Arc::new(answer)),
        None => world,
    }
}

/// Adds a tool that only the main conversation has.
fn with_tool(world: World, tool: Arc<dyn AnyTool>) -> World {
    let spec = tool.spec();
    let mut tools = (*world.tools).clone();
    let mut specs = world.specs.clone();
    tools.insert(spec.name.clone(), tool);
    specs.push(spec);
    World { tools: Arc::new(tools), specs, ..world }
}

struct Session {
    world: World,
    peer: Peer<oneshot::Sender<Result<ostler_proto::control::Success, CallError>>, ()>,
    /// The ids that questions of turns were sent under.
    asked: HashMap<u64, RequestId>,
    queue: VecDeque<User>,
    conversation: Vec<Said>,
    /// What is told with the first prompt.
    start: Option<Start>,
    idle_notice: Option<Duration>,
    /// When the last turn ended, unless hooks have heard that a prompt is awaited.
    idle_since: Option<Instant>,
    /// Holds at most one: the turn that runs.
    turns: JoinSet<Finished>,
    interrupt: CancellationToken,
    totals: Totals,
}

impl Session {
    async fn run(mut self, inbox: mpsc::Receiver<ToEngine>, called: mpsc::Receiver<HostCall>) {
        self.serve(inbox, called).await;
        let World { host, cx, .. } = &self.world;
        host.hooks().finish(host, &cx.cwd, "other").await;
    }

    async fn serve(
        &mut self,
        mut inbox: mpsc::Receiver<ToEngine>,
        mut called: mpsc::Receiver<HostCall>,
    ) {
        let mut open = true;
        let frames = self.world.host.frames.clone();
        loop {
            if self.turns.is_empty() {
                match self.queue.pop_front() {
                    Some(prompt) => self.begin(prompt),
                    None if !open => return,
                    None => {}
                }
            }
            tokio::select! {
                frame = inbox.recv(), if open => match frame {
                    Some(frame) => self.receive(frame).await,
                    None => {
                        open = false;
                        self.tell_waiting("Stream closed");
                    }
                },
                Some(call) = called.recv() => match call {
                    HostCall::Ask(question) => self.ask(*question).await,
                    HostCall::Withdraw(token) => self.withdraw(token).await,
                },
                Some(finished) = self.turns.join_next() => self.end(finished).await,
                () = idle(self.idle_since, self.idle_notice) => self.tell_idle(),
                // Nobody reads any more: whatever runs is for nobody, and goes.
                () = frames.closed() => return self.turns.shutdown().await,
            }
        }
    }

    async fn receive(&mut self, frame: ToEngine) {
        match frame {
            ToEngine::User(user) if user.message.role == Role::User => self.queue.push_back(*user),
            ToEngine::ControlRequest(request) => self.control(request).await,
            ToEngine::ControlResponse(answer) => {
                let id = answer.response.request_id();
                self.asked.retain(|_, asked| Some(&*asked) != id.as_ref());
                if let Some((waiting, result)) = self.peer.answered(answer) {
                    // Whoever asked may have been interrupted meanwhile.
                    let _ = waiting.send(result);
                }
            }
            // Nothing that a host asks for takes long enough to be cancelled yet; the rest needs no answer.
            _ => {}
        }
    }

    async fn control(&mut self, request: ControlRequest<AskEngine>) {
        let payload = match &request.request {
            AskEngine::Initialize(initialize) => {
                let hooks = initialize.hooks.as_ref().map(registry::callbacks).unwrap_or_default();
                self.world.host.add_hooks(hooks);
                Ok(json!({
                "commands": [],
                "agents": [],
                "output_style": "default",
                "available_output_styles": ["default"],
                "models": [],
                "account": {},
                "pid": std::process::id(),
                "hook_on_failure_supported": true,
                }))
            }
            AskEngine::Interrupt(_) => {
                self.withdraw_questions().await;
                self.interrupt.cancel();
                Ok(json!({"still_queued": []}))
            }
            AskEngine::SetPermissionMode(set) => {
                let destination = PermissionDestination::Session;
                let update =
                    SetModeUpdate { mode: set.mode.clone(), destination, extra: Extra::default() };
                let changed = self.world.host.change_policy(&PermissionUpdate::SetMode(update));
                changed.map(|()| json!({"mode": set.mode})).map_err(|error| error.to_string())
            }
            other => Err(format!(
                "Unsupported control request subtype: {}",
                other.tag().unwrap_or("none")
            )),
        };
        let response = answer(request.request_id, payload);
        self.world.host.send(ToHost::ControlResponse(response)).await;
    }

    async fn ask(&mut self, question: Question) {
        match self.peer.ask(question.answer) {
            Ok(id) => {
                self.asked.insert(question.token, id.clone());
                let request = ControlRequest {
                    request_id: Some(id),
                    request: question.request,
                    extra: Extra::default(),
                };
                self.world.host.send(ToHost::ControlRequest(request)).await;
            }
            Err((waiting, error)) => _ = waiting.send(Err(error)),
        }
    }

    /// Whoever asked this does not wait any more.
    async fn withdraw(&mut self, token: u64) {
        let cancelled = self.asked.remove(&token).and_then(|id| self.peer.cancel(&id));
        if let Some((_, cancel)) = cancelled {
            self.world.host.send(ToHost::ControlCancelRequest(cancel)).await;
        }
    }

    /// The turn that asked is being stopped: the host should no longer show its questions.
    async fn withdraw_questions(&mut self) {
        for (_, cancel) in self.peer.cancel_all() {
            self.world.host.send(ToHost::ControlCancelRequest(cancel)).await;
        }
    }

    /// Nobody will answer any more: whoever waits for a permission does not get it.
    fn tell_waiting(&mut self, reason: &str) {
        for (waiting, error) in self.peer.close(reason) {
            let _ = waiting.send(Err(error));
        }
    }

    fn begin(&mut self, mut prompt: User) {
        prompt.uuid.get_or_insert_with(fresh_uuid);
        self.idle_since = None;
        self.interrupt = CancellationToken::new();
        let mut world = self.world.clone();
        world.cx.cancelled = self.interrupt.clone();
        let conversation = std::mem::take(&mut self.conversation);
        self.totals.begin();
        let start = self.start.take();
        self.turns.spawn(async move { prompt::answer(&world, conversation, prompt, start).await });
    }

    /// Tells hooks that a prompt is awaited.
    fn tell_idle(&mut self) {
        self.idle_since = None;
        let World { host, cx, .. } = &self.world;
        let fields = json!({
            "message": "Your next prompt is awaited",
            "notification_type": "idle_prompt",
        });
        host.hooks().tell(host, &cx.cwd, Event::new(HookEvent::Notification, fields));
    }

    async fn end(&mut self, finished: Result<Finished, tokio::task::JoinError>) {
        self.idle_since = Some(Instant::now());
        let mut finished = match finished {
            Ok(finished) => finished,
            Err(error) => {
                // A bug in the engine. The conversation is lost with the turn, the session is not.
                let result = self.totals.broken(&self.world.host, &error.to_string());
                return self.world.host.send(result).await;
            }
        };
        self.conversation = std::mem::take(&mut finished.conversation);
        let result = self.totals.result(&self.world, finished);
        self.world.host.send(result).await;
    }
}

/// Waits until nothing has happened for long enough; for ever when something does.
async fn idle(since: Option<Instant>, notice: Option<Duration>) {
    match since.zip(notice) {
        Some((since, notice)) => tokio::time::sleep_until(since + notice).await,
        None => std::future::pending().await,
    }
}

fn answer(request_id: Option<RequestId>, payload: Result<Value, String>) -> ControlResponse {
    let id = request_id.unwrap_or_default();
    match payload {
        Ok(payload) => ControlResponse::success(id, Some(payload)),
        Err(error) => {
            let unsupported = error.starts_with("Unsupported");
            let code = unsupported.then(|| UNSUPPORTED_REQUEST.to_owned());
            let failure =
                Failure { request_id: Some(id), error, error_code: code, ..Failure::default() };
            ControlResponse { response: Response::Error(failure), extra: Extra::default() }
        }
    }
}

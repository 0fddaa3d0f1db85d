//! The engine's line to its host: frames out, questions and their answers.

mod checkpoints;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use ostler_process::Environment;
use ostler_proto::api::{
    Content, ContentBlock, Message, Role, SYNTHETIC_MODEL, StopReason, StreamEvent,
    ToolResultBlock, ToolUseBlock, Usage,
};
use ostler_proto::control::{Ask, AskHost, CanUseTool, Elicitation, ElicitationReply, Success};
use ostler_proto::frame::ToHost;
use ostler_proto::launch::Answerer;
use ostler_proto::message::system::{
    ApiRetry, Informational, ModelFallback, ModelRefusalNoFallback, PermissionDenied,
    SessionWritesLost, Status,
};
use ostler_proto::message::{
    Assistant, AssistantError, StreamEventMessage, System, ToolResultMeta, User,
};
use ostler_proto::peer::CallError;
use ostler_proto::permission::{PermissionMode, PermissionResult, PermissionUpdate};
use ostler_proto::{AgentId, Extra, Num, SessionId, ToolUseId, Uuid};
use tokio::sync::{mpsc, oneshot};

use crate::agents::Speaker;
use crate::checkpoint::Checkpoints;
use crate::disk::on_disk;
use crate::hooks::Hooks;
use crate::hooks::registry::Hook;
use crate::ids::{fresh_uuid, timestamp};
use crate::live::Live;
use crate::model::ledger::{Spent, whole_usage};
use crate::model::{Fallback, ModelError, Retry};
use crate::permission::{Behavior, Decision, Narrowing, Policy, Rule, Source, UpdateError};
use crate::record::Tape;
use crate::response::{About, Envelope};
use crate::settings::{Folders, KeepError, kept_in, write};
use crate::store::SharedTranscript;
use crate::store::{StoreError, TranscriptWriter};
use crate::tasks::{TaskChange, TaskReporter};

/// What a turn needs to reach its host. Cheap to clone; a subagent gets one that knows its parent.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    pub(crate) session_id: SessionId,
    /// The session's file; a subagent has one of its own. `None` when nothing is kept. Before the frames, and so dropped
    /// before them: whoever sees their end may open the file.
    pub(crate) transcript: Option<SharedTranscript>,
    /// The call of the subagent that speaks; `None` in the main conversation.
    pub(crate) parent: Option<ToolUseId>,
    pub(crate) frames: mpsc::Sender<ToHost>,
    pub(crate) calls: Calls,
    pub(crate) partial_messages: bool,
    /// The subagent that speaks.
    pub(crate) agent: Option<AgentId>,
    /// What is known of it besides.
    pub(crate) speaker: Option<Arc<Speaker>>,
    /// What it may not do that its parent may.
    pub(crate) narrowing: Arc<Narrowing>,
    /// The mode that held before the model began to plan.
    pub(crate) before_planning: Arc<Mutex<Option<PermissionMode>>>,
    /// What runs without approval while this turn goes on, because a command says so.
    pub(crate) granted: Arc<Mutex<Vec<Rule>>>,
    /// What decides about calls; the host may change it at any moment. Subagents share it.
    pub(crate) policy: Arc<Mutex<Policy>>,
    /// Held while a change of it is written to a settings file, so that changes hold in the order of the files.
    pub(crate) keeping: Arc<tokio::sync::Mutex<()>>,
    /// Where changes of it are kept.
    pub(crate) folders: Arc<Folders>,
    /// What the session has cost so far.
    pub(crate) spent: Spent,
    /// The hooks, to which the host may add its own.
    pub(crate) hooks: Arc<Mutex<Hooks>>,
    /// Settings that may change; `None` where nobody looks at them again.
    pub(crate) live: Option<Arc<Live>>,
    /// The environment of what hooks start.
    pub(crate) env: Arc<Environment>,
    /// Who answers permission questions.
    pub(crate) answerer: Arc<Answerer>,
    /// Whether prompts are sent back as they are taken up.
    pub(crate) replays: bool,
    /// How files were before each prompt, if that is kept.
    pub(crate) checkpoints: Option<Checkpoints>,
    /// What calls are recorded on, or replayed from.
    pub(crate) tape: Option<Tape>,
    /// What the user should know about the start, until the host has been told.
    pub(crate) notices: Arc<Mutex<Vec<Notice>>>,
}

/// Something that the user should know about the start of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The text.
    pub content: String,
    /// `warning` or `info`.
    pub level: &'static str,
}

/// What turns want of the session's line to the host.
#[derive(Debug)]
pub(crate) enum HostCall {
    /// Ask this.
    Ask(Box<Question>),
    /// Nobody waits for the answer any more.
    Withdraw(u64),
    /// A background task has begun, ended or changed: the session tells the host.
    Task(TaskChange),
    /// A hook that nobody waited for wants the model to hear this, also if nobody says anything.
    Wake(String),
    /// An MCP server has a question for the user.
    Elicit { question: Box<Elicitation>, answer: oneshot::Sender<ElicitationReply> },
}

/// The way of turns, tasks and servers to the session's own task.
#[derive(Clone, Debug)]
pub(crate) struct Calls {
    sender: mpsc::Sender<HostCall>,
    /// Of the question that was asked last.
    last_token: Arc<AtomicU64>,
}

impl Calls {
    pub(crate) fn new(sender: mpsc::Sender<HostCall>) -> Self {
        Self { sender, last_token: Arc::default() }
    }

    /// Whether the session is still there to take it up.
    pub(crate) async fn send(&self, call: HostCall) -> bool {
        self.sender.send(call).await.is_ok()
    }
}

impl TaskReporter for Calls {
    fn report(&self, change: TaskChange) -> BoxFuture<'_, bool> {
        Box::pin(self.send(HostCall::Task(change)))
    }
}

/// A question on its way to the host, and where the answer is awaited.
#[derive(Debug)]
pub(crate) struct Question {
    /// Tells questions apart on the way to the session, which gives them their real ids.
    pub(crate) token: u64,
    pub(crate) request: AskHost,
    /// Whoever asks works in the background: an interruption of the turn is not meant for it.
    pub(crate) in_background: bool,
    pub(crate) answer: oneshot::Sender<Result<Success, CallError>>,
}

/// Withdraws a question when whoever asked it is gone before the answer came.
struct Waiting<'a> {
    token: u64,
    calls: &'a Calls,
    answered: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.answered {
            // With a full line the host keeps a question nobody waits for; its answer will be ignored.
            let _ = self.calls.sender.try_send(HostCall::Withdraw(self.token));
        }
    }
}

impl Host {
    pub(crate) fn policy(&self) -> Policy {
        let mut policy = self.policy.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for rule in self.granted.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            policy.add_rule(Behavior::Allow, rule.clone(), Source::Session);
        }
        policy.narrowed(&self.narrowing)
    }

    /// Commands are judged by the environment that they get.
    pub(crate) fn judge_environment(&self) {
        let mut policy = self.policy.lock().unwrap_or_else(PoisonError::into_inner);
        policy.set_environment(&self.env);
    }

    /// Lets calls run without approval until the turn is over.
    pub(crate) fn grant(&self, rule: Rule) {
        self.granted.lock().unwrap_or_else(PoisonError::into_inner).push(rule);
    }

    /// The turn is over.
    pub(crate) fn forget_grants(&self) {
        self.granted.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Whether a subagent speaks that the conversation does not wait for.
    fn is_in_background(&self) -> bool {
        self.speaker.as_ref().is_some_and(|speaker| speaker.is_in_background())
    }

    pub(crate) fn mode(&self) -> PermissionMode {
        self.policy().effective_mode()
    }

    /// Changes the permissions, in settings files too where that is meant.
    ///
    /// A change is written before it holds. The policy is not locked meanwhile: another session may hold the file, and
    /// every call of this one needs the policy.
    pub(crate) async fn change_policy(&self, update: &PermissionUpdate) -> Result<(), KeepError> {
        let Some(file) = kept_in(update, &self.folders)? else {
            return Ok(self.change_policy_here(update)?);
        };
        let _alone = self.keeping.lock().await;
        // A change that makes no sense must not be written.
        self.policy.lock().unwrap_or_else(PoisonError::into_inner).clone().apply(update)?;
        let (live, kept) = (self.live.clone(), update.clone());
        on_disk(move || {
            write::keep(&file, &kept)?;
            if let Some(live) = live {
                live.wrote(&file);
            }
            Ok::<_, KeepError>(())
        })
        .await?;
        Ok(self.change_policy_here(update)?)
    }

    /// Changes the permissions of this session; nothing is written.
    pub(crate) fn change_policy_here(&self, update: &PermissionUpdate) -> Result<(), UpdateError> {
        let before = self.policy();
        self.policy.lock().unwrap_or_else(PoisonError::into_inner).apply(update)?;
        if let PermissionUpdate::AddDirectories(_) = update {
            self.tell_of_directories(&before);
        }
        Ok(())
    }

    /// Tells hooks which directories were added, except those that were within reach before.
    fn tell_of_directories(&self, before: &Policy) {
        let now = self.policy();
        let is_known =
            |folder: &&Path| before.working_directories().any(|known| folder.starts_with(known));
        for folder in now.directories().filter(|folder| !is_known(folder)) {
            self.hooks().directory_added(self, &now.cwd, folder, "register_repo_root");
        }
    }

    /// Goes into plan mode, or back to the mode before; whether anything changed.
    pub(crate) fn set_planning(&self, is_on: bool) -> bool {
        let mut policy = self.policy.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = self.before_planning.lock().unwrap_or_else(PoisonError::into_inner);
        // With its answer the host may have chosen a mode already.
        if (policy.mode == PermissionMode::Plan) == is_on {
            return false;
        }
        let back = before.take().unwrap_or(PermissionMode::Default);
        let mode = if is_on { PermissionMode::Plan } else { back };
        let was = std::mem::replace(&mut policy.mode, mode);
        *before = is_on.then_some(was);
        true
    }

    /// Tells a host that follows responses that the model is asked.
    pub(crate) async fn tell_request(&self, answers: &[Uuid]) {
        if !self.partial_messages || self.parent.is_some() {
            return;
        }
        let status = Status {
            status: Some("requesting".to_owned()),
            user_message_uuids: Some(answers.to_vec()).filter(|answers| !answers.is_empty()),
            session_id: self.session_id.clone(),
            uuid: fresh_uuid(),
            ..Status::default()
        };
        self.send(ToHost::System(System::Status(status))).await;
    }

    /// Tells which mode holds now.
    pub(crate) async fn tell_mode(&self) {
        let status = Status {
            permission_mode: Some(self.mode()),
            session_id: self.session_id.clone(),
            uuid: fresh_uuid(),
            ..Status::default()
        };
        self.send(ToHost::System(System::Status(status))).await;
    }

    pub(crate) fn hooks(&self) -> Hooks {
        self.hooks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn add_hooks(&self, hooks: Vec<Hook>) {
        let mut known = self.hooks.lock().unwrap_or_else(PoisonError::into_inner);
        *known = known.with(hooks);
    }

    /// Takes over the host's callbacks in place of those it had before.
    pub(crate) fn replace_callbacks(&self, hooks: Vec<Hook>) {
        let mut known = self.hooks.lock().unwrap_or_else(PoisonError::into_inner);
        *known = known.replacing_callbacks(hooks);
    }

    /// Takes over the hooks of plugins in place of those that plugins had before.
    pub(crate) fn replace_plugin_hooks(&self, hooks: Vec<Hook>) {
        let mut known = self.hooks.lock().unwrap_or_else(PoisonError::into_inner);
        *known = known.replacing_plugins(hooks);
    }

    /// The same line with more hooks, which nobody else has.
    pub(crate) fn with_hooks(&self, hooks: Vec<Hook>) -> Self {
        let hooks = Arc::new(Mutex::new(self.hooks().with(hooks)));
        Self { hooks, ..self.clone() }
    }

    /// Sends a frame. A host that is gone misses nothing it could use.
    pub(crate) async fn send(&self, frame: ToHost) {
        // Disk before host: what the host has seen can be resumed.
        if let Some(lost) = self.record(|writer| writer.frame(&frame)) {
            let _ = self.frames.send(lost).await;
        }
        self.mirror().await;
        let is_init = matches!(frame, ToHost::System(System::Init(_)));
        self.show(frame).await;
        if is_init {
            self.send_notices().await;
        }
    }

    /// Tells the host what it should know about the start, once.
    async fn send_notices(&self) {
        let notices =
            std::mem::take(&mut *self.notices.lock().unwrap_or_else(PoisonError::into_inner));
        for Notice { content, level } in notices {
            Box::pin(self.inform(content, level, Some("startup"))).await;
        }
    }

    /// Lets the host see a frame, if it wants to see this speaker's.
    async fn show(&self, frame: ToHost) {
        let Some(speaker) = &self.speaker else {
            let _ = self.frames.send(frame).await;
            return;
        };
        if let Some(frame) = speaker.shown(frame) {
            let _ = self.frames.send(frame).await;
        }
    }

    /// Sends what was written to the session's file since the last time, if the host wants to have it too.
    pub(crate) async fn mirror(&self) {
        let Some(transcript) = &self.transcript else { return };
        while let Some(written) = transcript.mirrored() {
            let _ = self.frames.send(ToHost::TranscriptMirror(written)).await;
        }
    }

    /// Writes to the session's file, if there is one. Returns the frame that tells of a failure, the first time.
    pub(crate) fn record(
        &self,
        write: impl FnOnce(&mut TranscriptWriter) -> Result<(), StoreError>,
    ) -> Option<ToHost> {
        let error = self.transcript.as_ref()?.write(write)?;
        let lost = SessionWritesLost {
            error_code: error.code().unwrap_or("EIO").to_owned(),
            lost: vec!["transcript".to_owned()],
            session_id: self.session_id.clone(),
            uuid: fresh_uuid(),
            ..SessionWritesLost::default()
        };
        Some(ToHost::System(System::SessionWritesLost(lost)))
    }

    /// Sends one finished block of a response.
    pub(crate) async fn say(&self, response: &Envelope, block: ContentBlock) {
        self.say_block(response, block, None).await;
    }

    /// Sends what there is of a block that an interruption cut short.
    pub(crate) async fn say_cut_short(&self, response: &Envelope, block: ContentBlock) {
        self.say_block(response, block, Some(true)).await;
    }

    /// Sends one finished block with other words than the model's; the session's file keeps the model's.
    pub(crate) async fn say_otherwise(
        &self,
        response: &Envelope,
        block: ContentBlock,
        text: String,
    ) {
        let mut said = self.assistant(response, block, None);
        let lost = self.record(|writer| writer.frame(&ToHost::Assistant(Box::new(said.clone()))));
        if let Some(lost) = lost {
            let _ = self.frames.send(lost).await;
        }
        self.mirror().await;
        said.message.content = vec![ContentBlock::text(text)];
        self.show(ToHost::Assistant(Box::new(said))).await;
    }

    async fn say_block(&self, response: &Envelope, block: ContentBlock, aborted: Option<bool>) {
        let progress = match (&self.speaker, &block) {
            (Some(speaker), ContentBlock::ToolUse(call)) => speaker.progress(self, call),
            _ => None,
        };
        let assistant = self.assistant(response, block, aborted);
        self.send(ToHost::Assistant(Box::new(assistant))).await;
        if let Some(progress) = progress {
            self.send(progress).await;
        }
    }

    fn assistant(
        &self,
        response: &Envelope,
        block: ContentBlock,
        aborted: Option<bool>,
    ) -> Assistant {
        let Envelope { message, request_id, answers, call } = response.clone();
        Assistant {
            message: Message { content: vec![block], ..message },
            request_id,
            user_message_uuid: answers.last().cloned(),
            user_message_uuids: Some(answers).filter(|answers| !answers.is_empty()),
            timestamp: Some(timestamp()),
            tool_use_meta: call.map(|call| vec![call]),
            parent_tool_use_id: self.parent.clone(),
            session_id: self.session_id.clone(),
            uuid: fresh_uuid(),
            agent_id: self.agent.clone(),
            aborted,
            ..Assistant::default()
        }
    }

    /// Sends the result of a call.
    pub(crate) async fn say_result(
        &self,
        result: ToolResultBlock,
        structured: Option<serde_json::Value>,
        meta: Option<ToolResultMeta>,
    ) {
        let mut user = self.user(vec![ContentBlock::ToolResult(result)].into());
        user.tool_use_result = structured;
        user.tool_result_meta = meta.map(|meta| vec![meta]);
        self.send(ToHost::User(Box::new(user))).await;
    }

    /// Sends a message of the user's side: a marker, words of a command.
    pub(crate) async fn say_as_user(&self, content: Vec<ContentBlock>) {
        self.send(ToHost::User(Box::new(self.user(content.into())))).await;
    }

    /// Notes a prompt that the host knows without being told.
    pub(crate) async fn note_prompt(&self, content: Vec<ContentBlock>) {
        let frame = ToHost::User(Box::new(self.user(content.into())));
        if let Some(lost) = self.record(|writer| writer.frame(&frame)) {
            let _ = self.frames.send(lost).await;
        }
        self.mirror().await;
    }

    fn user(&self, content: Content) -> User {
        User {
            parent_tool_use_id: self.parent.clone(),
            agent_id: self.agent.clone(),
            uuid: Some(fresh_uuid()),
            timestamp: Some(timestamp()),
            ..User::new(content, Some(self.session_id.clone()))
        }
    }

    /// Sends a prompt back as it is taken up.
    pub(crate) async fn replay(&self, prompt: User) {
        let replay = User {
            session_id: Some(self.session_id.clone()),
            timestamp: Some(timestamp()),
            is_replay: Some(true),
            ..prompt
        };
        self.send(ToHost::User(Box::new(replay))).await;
    }

    /// Sends words of the engine itself on the user's side.
    pub(crate) async fn say_synthetic(&self, words: String) {
        self.send(ToHost::User(Box::new(self.synthetic(words)))).await;
    }

    fn synthetic(&self, words: String) -> User {
        User { is_synthetic: Some(true), ..self.user(Content::Text(words)) }
    }

    /// Sends words of the engine itself in the model's place, because the model has none.
    pub(crate) async fn say_error(&self, words: String, error: AssistantError) {
        let failure = self.failure(words, error, StopReason::StopSequence);
        self.send(ToHost::Assistant(Box::new(failure))).await;
    }

    /// A response was stopped as unsafe, and the model is asked once more: for the user, and for the model.
    pub(crate) async fn refused_once(&self, refused: &Message, words: String) {
        let text =
            format!("{} was stopped by its safeguards; it is asked once more.", refused.model);
        self.inform(text, "notice", None).await;
        let user = User { refused_message_id: refused.id.clone(), ..self.synthetic(words) };
        self.send(ToHost::User(Box::new(user))).await;
    }

    /// The model would not answer, and no other takes over.
    pub(crate) async fn refused(&self, refused: &Message, words: &str) {
        let detail = |name: &str| {
            let details = refused.stop_details.as_ref()?;
            details.get(name)?.as_str().map(str::to_owned)
        };
        let frame = ModelRefusalNoFallback {
            original_model: refused.model.clone(),
            api_refusal_category: detail("category"),
            api_refusal_explanation: detail("explanation"),
            refused_user_message_uuid: self.transcript.as_ref().and_then(|it| it.prompt_line()),
            content: words.to_owned(),
            session_id: self.session_id.clone(),
            uuid: fresh_uuid(),
            ..ModelRefusalNoFallback::default()
        };
        self.send(ToHost::System(System::ModelRefusalNoFallback(frame))).await;
        let failure = Assistant {
            refused_message_id: refused.id.clone(),
            ..self.failure(words.to_owned(), AssistantError::InvalidRequest, StopReason::Refusal)
        };
        self.send(ToHost::Assistant(Box::new(failure))).await;
    }

    /// The same for an answer of the API, with its status: whoever resumes the session must know what was refused.
    pub(crate) async fn say_api_error(&self, error: &ModelError) {
        let failure = Assistant {
            api_error_status: error.status(),
            api_error_type: error.api_type().map(str::to_owned),
            ..self.failure(error.to_string(), error.kind(), StopReason::StopSequence)
        };
        self.send(ToHost::Assistant(Box::new(failure))).await;
    }

    fn failure(&self, words: String, error: AssistantError, stop_reason: StopReason) -> Assistant {
        let message = Message {
            id: Some(fresh_uuid().to_string()),
            r#type: Some("message".to_owned()),
            role: Role::Assistant,
            model: SYNTHETIC_MODEL.to_owned(),
            content: vec![ContentBlock::text(words)],
            stop_reason: Some(stop_reason),
            stop_sequence: Some(String::new()),
            usage: Some(whole_usage(Usage::default())),
            ..Message::default()
        };
        Assistant {
            message,
            timestamp: Some(timestamp()),
            parent_tool_use_id: self.parent.clone(),
            session_id: self.session_id.clone(),
            uuid: fresh_uuid(),
            agent_id: self.agent.clone(),
            error: Some(error),
            is_api_error_message: Some(true),
            ..Assistant::default()
        }
    }

    /// Sends an event of the response, if the host wants to see them. Subagents keep theirs to themselves, and signs
    /// of life of the API are nobody's business.
    pub(crate) async fn stream(&self, event: StreamEvent, about: About) {
        if !self.partial_messages || self.parent.is_some() || matches!(event, StreamEvent::Ping(_))
        {
            return;
        }
        let About { message_id, time_to_first, answers, abandoned_blocks } = about;
        let event = StreamEventMessage {
            api_message_id: message_id,
            ttft_ms: time_to_first.map(|time| Num::from(time.as_millis() as u64)),
            user_message_uuid: answers.last().cloned(),
            user_message_uuids: Some(answers).filter(|answers| !answers.is_empty()),
            abandoned_blocks,
            ..StreamEventMessage::new(event, self.session_id.clone(), fresh_uuid())
        };
        self.send(ToHost::StreamEvent(Box::new(event))).await;
    }

    /// Tells that a request to the model will be tried again.
    pub(crate) async fn retrying(&self, retry: &Retry) {
        let frame = ApiRetry {
            attempt: retry.attempt,
            max_retries: retry.max_retries,
            retry_delay_ms: Num::from(retry.delay.as_millis() as u64),
            error_status: retry.status,
            error: retry.error.clone(),
            no_response: None,
            session_id: self.session_id.clone(),
            uuid: fresh_uuid(),
            extra: Extra::default(),
        };
        self.send(ToHost::System(System::ApiRetry(frame))).await;
    }

    /// Tells that another model takes over.
    pub(crate) async fn fell_back(&self, fallback: Fallback) {
        let content =
            format!("{} is overloaded or out of order; {} takes over", fallback.from, fallback.to);
        let frame = ModelFallback {
            trigger: "overloaded".to_owned(),
            original_model: fallback.from,
            fallback_model: fallback.to,
            content,
            session_id: self.session_id.clone(),
            uuid: fresh_uuid(),
            ..ModelFallback::default()
        };
        self.send(ToHost::System(System::ModelFallback(frame))).await;
    }

    /// Asks the host, see [`ask`].
    pub(crate) async fn ask<Q: Ask>(&self, request: AskHost) -> Result<Q::Reply, String> {
        ask::<Q>(&self.calls, request, self.is_in_background()).await
    }

    /// Asks whether a tool may run.
    pub(crate) async fn may_use(&self, request: CanUseTool) -> Result<PermissionResult, String> {
        self.ask::<CanUseTool>(AskHost::CanUseTool(Box::new(request))).await
    }

    /// Tells that a call was denied without a question.
    pub(crate) async fn denied(&self, call: &ToolUseBlock, decision: &Decision) {
        let frame = PermissionDenied {
            tool_name: call.name.clone(),
            tool_use_id: call.id.clone(),
            agent_id: self.agent.clone(),
            decision_reason_type: Some(decision.reason_type.to_string()),
            decision_reason: Some(decision.reason.clone()),
            message: decision.reason.clone(),
            session_id: self.session_id.clone(),
            uuid: fresh_uuid(),
            ..PermissionDenied::default()
        };
        self.send(ToHost::System(System::PermissionDenied(frame))).await;
    }

    /// Tells the user something, through the host.
    pub(crate) async fn inform(&self, content: String, level: &str, tag: Option<&str>) {
        let frame = Informational {
            content,
            level: level.to_owned(),
            tag: tag.map(str::to_owned),
            session_id: self.session_id.clone(),
            uuid: fresh_uuid(),
            ..Informational::default()
        };
        self.send(ToHost::System(System::Informational(frame))).await;
    }
}

/// Asks the host. No answer, and an answer that makes no sense, are errors; dropping the future takes the
/// question back.
pub(crate) async fn ask<Q: Ask>(
    calls: &Calls,
    request: AskHost,
    in_background: bool,
) -> Result<Q::Reply, String> {
    let token = calls.last_token.fetch_add(1, Ordering::Relaxed);
    let (answer, answered) = oneshot::channel();
    let question = Box::new(Question { token, request, in_background, answer });
    let gone = || "the session has ended".to_owned();
    if !calls.send(HostCall::Ask(question)).await {
        return Err(gone());
    }
    let mut waiting = Waiting { token, calls, answered: false };
    let success = answered.await;
    waiting.answered = true;
    let success = success.map_err(|_| gone())?.map_err(|error| error.to_string())?;
    Q::read_reply(success.response.as_ref()).map_err(|error| error.to_string())
}

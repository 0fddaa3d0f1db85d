//! Control requests of the host, and their answers.

use std::sync::Arc;

use ostler_proto::build;
use ostler_proto::control::{
    AskEngine, AskHost, ControlRequest, ControlResponse, Failure, GetTaskOutput,
    GetTaskOutputReply, Initialize, Interrupt, Response, SetMaxThinkingTokens, SetPermissionMode,
    Success, UNSUPPORTED_REQUEST,
};
use ostler_proto::frame::ToHost;
use ostler_proto::message::CommandState;
use ostler_proto::permission::{PermissionDestination, PermissionUpdate, SetModeUpdate};
use ostler_proto::quirks::system_prompt_text;
use ostler_proto::{Extra, RequestId, TaskId};
use serde_json::{Value, json};

use super::Session;
use super::disk_requests::Offers;
use super::requests::models;
use super::setup::HostOffers;
use crate::agents;
use crate::commands;
use crate::disk::on_disk;
use crate::drive::TurnContext;
use crate::hooks::registry;
use crate::library;
use crate::model::{Thinking, ThinkingDisplay};
use crate::outbox::Notice;
use crate::structured::StructuredOutput;
use crate::tasks::{Tasks, output};

/// The most bytes of a task's output that a host receives.
const SHOWN_OUTPUT: u64 = 8 * 1024;

impl Session {
    /// Answers a request of the host.
    pub(super) async fn control(&mut self, request: ControlRequest<AskEngine>) {
        let payload = match &request.request {
            AskEngine::Initialize(initialize) => {
                return self.initialize(request.request_id, initialize).await;
            }
            AskEngine::Interrupt(interrupt) => {
                return self.interrupt(request.request_id, interrupt).await;
            }
            AskEngine::SetPermissionMode(set) => {
                return self.set_mode(request.request_id, set).await;
            }
            AskEngine::SetModel(set) => return self.set_model(request.request_id, set).await,
            AskEngine::SetMaxThinkingTokens(set) => self.set_thinking(set),
            AskEngine::McpStatus(_) => Ok(json!({"mcpServers": self.context.servers.status()})),
            AskEngine::McpReconnect(it) => match self.context.servers.reconnect(&it.server_name) {
                Ok(()) => return self.connect(request.request_id, it.server_name.clone()),
                Err(error) => Err(error),
            },
            AskEngine::McpToggle(it) => {
                match self.context.servers.toggle(&it.server_name, it.enabled) {
                    Ok(()) if it.enabled => {
                        return self.connect(request.request_id, it.server_name.clone());
                    }
                    toggled => toggled.map(|()| json!({})),
                }
            }
            AskEngine::McpAuthenticate(it) => {
                return self.sign_in(request.request_id, it.server_name.clone());
            }
            AskEngine::McpOauthCallbackUrl(it) => {
                return self.finish_sign_in(request.request_id, it.clone());
            }
            AskEngine::McpClearAuth(it) => {
                return self.sign_out(request.request_id, it.server_name.clone());
            }
            AskEngine::McpSetServers(set) => return self.set_servers(request.request_id, set),
            AskEngine::McpMessage(it) => {
                let servers = self.context.servers.clone();
                servers.deliver(&it.server_name, it.message.clone()).await.map(|()| json!({}))
            }
            AskEngine::McpCall(call) => return self.call_tool(request.request_id, call.clone()),
            AskEngine::FileSuggestions(it) => {
                return self.suggest_files(request.request_id, it);
            }
            AskEngine::ReloadPlugins(reload) => {
                return self.reload_plugins(request.request_id, reload).await;
            }
            AskEngine::ReloadSkills(_)
            | AskEngine::ReloadOutputStyles(_)
            | AskEngine::RewindFiles(_)
            | AskEngine::UpdateSettings(_)
            | AskEngine::RegisterRepoRoot(_)
            | AskEngine::SeedReadState(_) => {
                return self.on_disk(request.request_id, request.request).await;
            }
            AskEngine::ReadFile(read) => {
                let reading = self.reading(read);
                return self.answer_later(request.request_id, on_disk(reading));
            }
            AskEngine::McpReadResource(it) => match self.context.servers.find(&it.server_name) {
                Ok(server) => return self.read_resource(request.request_id, server, &it.uri),
                Err(error) => Err(error),
            },
            AskEngine::StopTask(stop) => {
                let stopping = stop_task(self.context.cx.tasks.clone(), stop.task_id.clone());
                return self.answer_later(request.request_id, stopping);
            }
            AskEngine::BackgroundTasks(it) => {
                let found = self.context.cx.tasks.promote(it.tool_use_id.as_ref());
                Ok(match &it.tool_use_id {
                    Some(_) => json!({"backgrounded": found}),
                    None => json!({}),
                })
            }
            AskEngine::GetTaskOutput(get) => {
                let (tasks, get) = (self.context.cx.tasks.clone(), get.clone());
                let output = on_disk(move || task_output(&tasks, &get));
                return self.answer_later(request.request_id, output);
            }
            AskEngine::CancelAsyncMessage(cancel) => {
                let cancelled = self.queue.withdraw(&cancel.message_uuid);
                if cancelled {
                    let named = vec![cancel.message_uuid.clone()];
                    self.tell_of_prompts(named, CommandState::Cancelled).await;
                }
                Ok(json!({"cancelled": cancelled}))
            }
            other => match self.look(other).await {
                Some(payload) => payload,
                None => {
                    let subtype = other.tag().unwrap_or("none");
                    let error = format!("Unsupported control request subtype: {subtype}");
                    let response = failure(request.request_id, error, Some(UNSUPPORTED_REQUEST));
                    return self.context.outbox.send(ToHost::ControlResponse(response)).await;
                }
            },
        };
        self.answer(request.request_id, payload).await;
    }

    /// Adds the open questions, for a host that sends `initialize` again.
    fn with_open_questions(&self, mut response: ControlResponse) -> ControlResponse {
        let open = |is_permission: bool| {
            let mut questions: Vec<_> = self
                .asked_person
                .iter()
                .filter(|(_, asked)| {
                    matches!(asked.request, AskHost::CanUseTool(_)) == is_permission
                })
                .collect();
            questions.sort_by_key(|(id, _)| (id.as_str().len(), (*id).clone()));
            let frame = |(_, asked): (_, &ControlRequest<AskHost>)| {
                serde_json::to_value(ToHost::ControlRequest(asked.clone())).ok()
            };
            let frames: Vec<Value> = questions.into_iter().filter_map(frame).collect();
            (!frames.is_empty()).then_some(frames)
        };
        if let Response::Success(success) = &mut response.response {
            success.pending_permission_requests = open(true);
            success.pending_elicitation_requests = open(false);
        }
        response
    }

    /// Handles `initialize`.
    async fn initialize(&mut self, id: Option<RequestId>, initialize: &Initialize) {
        let brought = self.offers_with(initialize);
        if !brought.plugins.is_empty() {
            // Plugins are folders, which have to be read.
            return self.on_disk(id, AskEngine::Initialize(initialize.clone().into())).await;
        }
        let mut library = (*self.setup.base.library).clone();
        brought.add_to(&mut library);
        let style_text = self.setup.style_text.clone();
        let offers = Offers { library, brought, style_text };
        let answer = self.initialize_with(initialize, offers);
        self.answer_initialize(id, answer).await;
    }

    /// Answers `initialize` once the watched files are noted, so that hooks are notified of every later change.
    pub(super) async fn answer_initialize(
        &mut self,
        id: Option<RequestId>,
        answer: Result<Value, String>,
    ) {
        let response = match answer {
            Ok(payload) => self.with_open_questions(success(id, payload)),
            Err(error) => failure(id, error, None),
        };
        let TurnContext { outbox, hooks, .. } = self.context.clone();
        if !hooks.watches_files() {
            return outbox.send(ToHost::ControlResponse(response)).await;
        }
        self.answers.spawn(async move {
            on_disk(move || hooks.note_watched()).await;
            outbox.send(ToHost::ControlResponse(response)).await;
        });
    }

    /// Takes over the contents of `initialize`. Prompts and schema hold from the next turn on.
    pub(super) fn initialize_with(
        &mut self,
        initialize: &Initialize,
        offers: Offers,
    ) -> Result<Value, String> {
        // All of it or nothing: an invalid schema must not leave half of the rest in force.
        let answer = initialize.json_schema.as_ref().map(StructuredOutput::new).transpose()?;
        self.take_offers(initialize, offers)?;
        if let Some(hooks) = &initialize.hooks {
            self.context.hooks.replace_callbacks(registry::callbacks(hooks));
        }
        let launch = Arc::make_mut(&mut self.setup.base.launch);
        if let Some(prompt) = &initialize.system_prompt {
            launch.system_prompt = Some(system_prompt_text(prompt));
        }
        if let Some(append) = &initialize.append_system_prompt {
            launch.append_system_prompt = Some(append.clone());
        }
        let parked = self.add_servers(initialize);
        if let (Some(title), Some(start)) = (&initialize.title, &mut self.start) {
            start.title = Some(title.clone());
        }
        self.wants_suggestions |= initialize.prompt_suggestions == Some(true);
        self.setup.answer = answer.map(Arc::new).or(self.setup.answer.take());
        self.context = self.setup.context();
        Ok(json!({
            "commands": commands::listed(&self.context.library),
            "agents": agents::listed(&self.context.library),
            "output_style": self.context.style.as_ref(),
            "available_output_styles": self.context.library.style_names(),
            "models": models(self.context.model.name()),
            "account": self.setup.account,
            "pid": std::process::id(),
            "claude_code_version": env!("CARGO_PKG_VERSION"),
            "ostler_version": env!("CARGO_PKG_VERSION"),
            "current_permission_mode": self.context.permissions.mode(),
            "hooks_applied": true,
            "hook_on_failure_supported": true,
            "sdk_mcp_manifests_parked": parked,
        }))
    }

    /// What the host has offered so far, and what this `initialize` adds.
    pub(super) fn offers_with(&self, initialize: &Initialize) -> HostOffers {
        let mut brought = self.setup.brought.clone();
        brought.take_plugins(initialize.plugins.as_ref());
        brought.agents.extend(initialize.agents.clone().unwrap_or_default());
        let names = initialize.skills.as_ref().and_then(Value::as_array);
        let names = names.map(|names| names.iter().filter_map(Value::as_str).map(str::to_owned));
        brought.skills = names.map(Iterator::collect).or(brought.skills.take());
        brought
    }

    /// Takes over what the host offers in addition to files.
    fn take_offers(&mut self, initialize: &Initialize, offers: Offers) -> Result<(), String> {
        self.use_offers(offers)?;
        let agents = initialize.agents.iter().flatten();
        let ignored = agents.filter_map(|(name, agent)| library::without_effect(name, agent));
        let warning = |content| Notice { content, level: "warning" };
        self.context.outbox.notify(ignored.map(warning));
        if let Some(words) = &initialize.plan_mode_instructions {
            self.setup.base.planning = words.as_str().into();
        }
        if let Some(forwards_text) = initialize.forward_subagent_text {
            self.setup.base.delegation.forwards_text = forwards_text;
        }
        Ok(())
    }

    /// Stops the turn that runs. The host receives the cancelled questions, then the answer, then the end of the turn.
    async fn interrupt(&mut self, request_id: Option<RequestId>, interrupt: &Interrupt) {
        // Kept until the turn was cancelled: a waiting call must not take the closed channel for an answer.
        let mut waiting = Vec::new();
        let mut asked: Vec<_> = self.asked.iter().map(|(token, id)| (*token, id.clone())).collect();
        asked.sort_unstable_by_key(|(token, _)| *token);
        for (_, id) in asked.iter().filter(|(_, id)| !self.asked_behind.contains(id)) {
            let Some((asker, cancel)) = self.peer.cancel(id) else { continue };
            self.asked_person.remove(&cancel.request_id);
            waiting.push(asker);
            self.context.outbox.send(ToHost::ControlCancelRequest(cancel)).await;
        }
        let mut cancelled = Vec::new();
        let payload = match interrupt.cancel_queued {
            Some(true) => {
                cancelled = self.queue.clear();
                json!({"still_queued": [], "cancelled": cancelled})
            }
            _ => json!({"still_queued": self.queue.named()}),
        };
        let response = success(request_id, payload);
        self.context.outbox.send(ToHost::ControlResponse(response)).await;
        self.tell_of_prompts(cancelled, CommandState::Cancelled).await;
        self.interrupt.cancel();
        drop(waiting);
    }

    /// Changes the mode. The `status` frame follows the answer.
    async fn set_mode(&mut self, request_id: Option<RequestId>, set: &SetPermissionMode) {
        let destination = PermissionDestination::Session;
        let update = SetModeUpdate { mode: set.mode.clone(), destination, extra: Extra::default() };
        let outbox = self.context.outbox.clone();
        let permissions = &self.context.permissions;
        match permissions.change_session(&PermissionUpdate::SetMode(update)) {
            Ok(_) => {
                let response = success(request_id, json!({"mode": set.mode}));
                outbox.send(ToHost::ControlResponse(response)).await;
                outbox.send_mode(permissions.mode()).await;
            }
            Err(error) => {
                let response = failure(request_id, error.to_string(), error.code());
                outbox.send(ToHost::ControlResponse(response)).await;
            }
        }
    }

    /// Sets how much the model may think, from the next turn on.
    fn set_thinking(&mut self, set: &SetMaxThinkingTokens) -> Result<Value, String> {
        let sampling = &mut self.setup.base.sampling;
        sampling.display = match set.thinking_display.as_deref() {
            None => sampling.display,
            Some("summarized") => Some(ThinkingDisplay::Summarized),
            Some("omitted") => Some(ThinkingDisplay::Omitted),
            Some(other) => return Err(format!("{other} is not a valid display of thinking")),
        };
        sampling.thinking = match set.max_thinking_tokens {
            None => None,
            Some(0) => Some(Thinking::Disabled),
            Some(tokens) => Some(Thinking::Budget(tokens)),
        };
        self.context = self.setup.context();
        Ok(json!({}))
    }
}

/// Ends a task, and waits until the host was notified of its end.
async fn stop_task(tasks: Tasks, id: TaskId) -> Result<Value, String> {
    // The task that a host stops may be over by now.
    if let Some((_, None)) = tasks.get(&id) {
        // It may even end between the check and the stop.
        let _ = tasks.stop(&id).await;
    }
    tasks.wait(&id).await;
    Ok(json!({}))
}

/// The end of a task's output. Touches the disk.
fn task_output(tasks: &Tasks, get: &GetTaskOutput) -> Result<Value, String> {
    let (task, _) =
        tasks.get(&get.task_id).ok_or_else(|| format!("there is no task {}", get.task_id))?;
    let end = output::end(&task.output_file, SHOWN_OUTPUT)
        .map_err(|error| format!("the output of task {} cannot be read: {error}", get.task_id))?;
    let reply = build!(GetTaskOutputReply {
        truncated: end.is_cut(),
        total_bytes: end.total,
        output: end.text,
    });
    serde_json::to_value(reply).map_err(|error| error.to_string())
}

/// A successful answer, with the id of the request if it has one.
pub(super) fn success(request_id: Option<RequestId>, payload: Value) -> ControlResponse {
    let response = Some(payload);
    let success = build!(Success { request_id, response });
    ControlResponse::new(Response::Success(success))
}

pub(super) fn failure(
    request_id: Option<RequestId>,
    error: String,
    code: Option<&str>,
) -> ControlResponse {
    let error_code = code.map(str::to_owned);
    let failure = build!(Failure { request_id, error, error_code });
    ControlResponse::new(Response::Error(failure))
}

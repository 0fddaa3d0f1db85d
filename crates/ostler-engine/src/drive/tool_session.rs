//! What a tool sees of the session around it: little, and only to ask.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use futures::StreamExt;
use futures::future::BoxFuture;
use ostler_proto::api::{Accumulator, Folded, Message};
use ostler_proto::hook::HookEvent;
use serde_json::json;

use crate::drive::TurnContext;
use crate::host::Host;
use crate::model::{Model, ModelError, ModelEvent, Request};
use crate::permission::ReadGuard;
use crate::tool::{TaskEntry, ToolEvent, ToolSession};

/// The inside of a session, for one call.
pub(crate) struct EngineToolSession {
    model: Arc<dyn Model>,
    /// The model that answers in this conversation, by its full name.
    model_name: String,
    host: Host,
    /// What the model is told while it plans.
    planning: Arc<str>,
    cwd: PathBuf,
    /// The rules as they were when the call first looked, so that a search judges all files alike.
    guard: OnceLock<ReadGuard>,
}

impl EngineToolSession {
    pub(crate) fn of(context: &TurnContext) -> Arc<dyn ToolSession> {
        let guard = OnceLock::new();
        let (model, host, cwd) =
            (Arc::clone(&context.model), context.host.clone(), context.cx.cwd.clone());
        let planning = Arc::clone(&context.planning);
        let model_name = context.asked_model();
        Arc::new(Self { model, model_name, host, planning, cwd, guard })
    }
}

impl fmt::Debug for EngineToolSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineToolSession")
            .field("session_id", &self.host.session_id)
            .finish_non_exhaustive()
    }
}

impl ToolSession for EngineToolSession {
    fn may_show(&self, path: &Path) -> bool {
        self.guard.get_or_init(|| self.host.policy().read_guard()).may_show(path)
    }

    fn names_host(&self, host: &str) -> bool {
        self.host.policy().names_host(host)
    }

    fn plan(&self, is_on: bool) -> BoxFuture<'static, String> {
        let (host, words) = (self.host.clone(), Arc::clone(&self.planning));
        Box::pin(async move {
            if host.set_planning(is_on) {
                host.tell_mode().await;
            }
            words.as_ref().to_owned()
        })
    }

    fn ask_model(&self, mut request: Request) -> BoxFuture<'static, Result<Message, ModelError>> {
        self.model_name.clone_into(&mut request.model);
        let (model, host) = (Arc::clone(&self.model), self.host.clone());
        Box::pin(async move { ask(&*model, &host, request).await })
    }

    fn announce(&self, event: ToolEvent) -> BoxFuture<'static, Result<(), String>> {
        let (host, cwd) = (self.host.clone(), self.cwd.clone());
        Box::pin(async move {
            let hooks = host.hooks();
            let (event, task) = match event {
                ToolEvent::Moved { from, to } => {
                    hooks.moved(&host, &cwd, &from, &to).await;
                    return Ok(());
                }
                ToolEvent::TaskCreated(task) => (HookEvent::TaskCreated, task),
                ToolEvent::TaskCompleted(task) => (HookEvent::TaskCompleted, task),
            };
            let TaskEntry { id, subject, description } = task;
            let fields =
                json!({"task_id": id, "task_subject": subject, "task_description": description});
            hooks.task(&host, &cwd, event, fields).await
        })
    }
}

/// Asks a model outside of a turn, and waits for the whole answer. It counts for the session's costs.
pub(crate) async fn ask(
    model: &dyn Model,
    host: &Host,
    request: Request,
) -> Result<Message, ModelError> {
    let mut events = model.respond(request);
    let mut response = Accumulator::default();
    while let Some(event) = events.next().await {
        let message = match event? {
            ModelEvent::Stream(event) => match response.push(&event) {
                Ok(Folded::Message(message)) => *message,
                Ok(Folded::Nothing | Folded::Block(_)) => continue,
                Err(error) => return Err(ModelError::Broken(error.to_string())),
            },
            ModelEvent::Whole(message) => message,
            ModelEvent::Named(_) => continue,
            ModelEvent::Retry(retry) => {
                host.retrying(&retry).await;
                continue;
            }
            ModelEvent::Fallback(fallback) => {
                host.fell_back(fallback).await;
                continue;
            }
        };
        host.ledger.add(&message.model, &message.usage.clone().unwrap_or_default());
        return Ok(message);
    }
    Err(ModelError::Broken("it has no end".to_owned()))
}

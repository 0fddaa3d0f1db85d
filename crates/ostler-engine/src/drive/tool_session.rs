//! What a tool can see and ask of its session.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use ostler_proto::api::Message;
use ostler_proto::hook::HookEvent;
use serde_json::json;

use crate::ask_model::ask_model;
use crate::call::CommandAsker;
use crate::drive::TurnContext;
use crate::hooks::Hooks;
use crate::model::ledger::Ledger;
use crate::model::{Model, ModelError, Request};
use crate::outbox::Outbox;
use crate::permission::ReadGuard;
use crate::permissions::Permissions;
use crate::sandbox::{Confinement, SessionSandbox};
use crate::tool::{TaskEntry, ToolEvent, ToolSession};

/// What one call may use of its session.
pub(crate) struct EngineToolSession {
    model: Arc<dyn Model>,
    /// The model that answers in this conversation, by its full name.
    model_name: String,
    outbox: Outbox,
    permissions: Permissions,
    hooks: Hooks,
    ledger: Ledger,
    /// The sandbox of commands, and what their questions about hosts need.
    sandbox: Option<(Arc<dyn SessionSandbox>, Box<TurnContext>)>,
    /// The instructions for plan mode.
    planning: Arc<str>,
    /// The rules as they were when the call first looked, so that a search judges all files alike.
    guard: OnceLock<ReadGuard>,
}

impl EngineToolSession {
    pub(crate) fn of(context: &TurnContext) -> Arc<dyn ToolSession> {
        Arc::new(Self {
            model: Arc::clone(&context.model),
            model_name: context.asked_model(),
            outbox: context.outbox.clone(),
            permissions: context.permissions.clone(),
            hooks: context.hooks.clone(),
            ledger: context.records.ledger.clone(),
            sandbox: context.sandbox.clone().map(|it| (it, Box::new(context.clone()))),
            planning: Arc::clone(&context.planning),
            guard: OnceLock::new(),
        })
    }
}

impl fmt::Debug for EngineToolSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineToolSession")
            .field("session_id", &self.outbox.session_id)
            .finish_non_exhaustive()
    }
}

impl ToolSession for EngineToolSession {
    fn may_show(&self, path: &Path) -> bool {
        self.guard.get_or_init(|| self.permissions.policy().read_guard()).may_show(path)
    }

    fn names_host(&self, host: &str) -> bool {
        self.permissions.policy().names_host(host)
    }

    fn has_sandbox(&self) -> bool {
        self.sandbox.is_some()
    }

    fn confinement(&self, folder: &Path, command: &str) -> Result<Confinement, String> {
        let Some((sandbox, context)) = &self.sandbox else { return Ok(Confinement::None) };
        let asker = CommandAsker::new((**context).clone(), command);
        Confinement::of(Some(sandbox), asker, folder, command)
    }

    fn plan(&self, is_on: bool) -> BoxFuture<'static, String> {
        let (outbox, permissions) = (self.outbox.clone(), self.permissions.clone());
        let instructions = self.planning.as_ref().to_owned();
        Box::pin(async move {
            if permissions.set_planning(is_on) {
                outbox.send_mode(permissions.mode()).await;
            }
            instructions
        })
    }

    fn ask_model(&self, mut request: Request) -> BoxFuture<'static, Result<Message, ModelError>> {
        self.model_name.clone_into(&mut request.model);
        let (model, outbox) = (Arc::clone(&self.model), self.outbox.clone());
        let ledger = self.ledger.clone();
        Box::pin(async move { ask_model(&*model, &outbox, &ledger, request).await })
    }

    fn announce(&self, event: ToolEvent) -> BoxFuture<'static, Result<(), String>> {
        let hooks = self.hooks.clone();
        Box::pin(async move {
            let (event, task) = match event {
                ToolEvent::Moved { from, to } => {
                    hooks.moved(&from, &to).await;
                    return Ok(());
                }
                ToolEvent::TaskCreated(task) => (HookEvent::TaskCreated, task),
                ToolEvent::TaskCompleted(task) => (HookEvent::TaskCompleted, task),
            };
            let TaskEntry { id, subject, description } = task;
            let fields =
                json!({"task_id": id, "task_subject": subject, "task_description": description});
            hooks.task(event, fields).await
        })
    }
}

//! What the engine asks, and the callbacks that answer. Whatever a callback does, there is an answer, and a doubtful
//! one is a no.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt as _};
use ostler_proto::RequestId;
use ostler_proto::control::{
    AskHost, CanUseTool, ControlResponse, Elicitation, HookCallback, McpMessage, RequestUserDialog,
};
use ostler_proto::quirks::complete_answer;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::dialog::{DialogRequest, OnDialog};
use crate::elicitation::{self, ElicitationRequest, OnElicitation};
use crate::hook::{Callback, HookContext};
use crate::mcp::{InProcessServer, ServerConnection};
use crate::options::{Options, hook_id};
use crate::permission::{self, ASKS, Decision, OnPermission, OnQuestion, PermissionRequest};

/// What a server in this process says unasked: its name, and the message.
pub(super) type Unasked = (String, Value);

/// Everything that answers.
#[derive(Clone)]
pub(super) struct Callbacks {
    on_permission: Option<OnPermission>,
    on_question: Option<OnQuestion>,
    on_elicitation: Option<OnElicitation>,
    on_dialog: Option<OnDialog>,
    timeout: Option<Duration>,
    hooks: Arc<HashMap<String, Callback>>,
    servers: Arc<HashMap<String, Arc<dyn ServerConnection>>>,
}

impl Callbacks {
    pub(super) fn new(options: &Options) -> Self {
        let hooks = options.hooks.iter().enumerate();
        Self {
            on_permission: options.permissions.on_permission.clone(),
            on_question: options.permissions.on_question.clone(),
            on_elicitation: options.permissions.on_elicitation.clone(),
            on_dialog: options.permissions.on_dialog.clone(),
            timeout: options.permissions.timeout,
            hooks: Arc::new(
                hooks.map(|(index, hook)| (hook_id(index), Arc::clone(&hook.callback))).collect(),
            ),
            servers: Arc::default(),
        }
    }

    /// Connects to a server in this process, in place of one of the same name; what it says unasked.
    pub(super) fn serve(&mut self, server: &dyn InProcessServer) -> BoxStream<'static, Unasked> {
        let (name, connection) =
            (server.name(), Arc::<dyn ServerConnection>::from(server.connect()));
        Arc::make_mut(&mut self.servers).insert(name.clone(), Arc::clone(&connection));
        futures::stream::unfold((name, connection), |(name, connection)| async move {
            let message = connection.next_notification().await?;
            Some(((name.clone(), message), (name, connection)))
        })
        .boxed()
    }

    /// The answer to a question of the engine.
    pub(super) fn answer(
        &self,
        id: RequestId,
        request: AskHost,
        cancelled: CancellationToken,
    ) -> BoxFuture<'static, (RequestId, ControlResponse)> {
        let callbacks = self.clone();
        async move {
            let payload = match request {
                AskHost::CanUseTool(question) => callbacks.permit(*question, cancelled).await,
                AskHost::HookCallback(call) => callbacks.hook(*call, cancelled).await,
                AskHost::McpMessage(message) => callbacks.mcp(message).await,
                AskHost::Elicitation(question) => callbacks.elicit(question, cancelled).await,
                AskHost::RequestUserDialog(question) => callbacks.show(question, cancelled).await,
                other => {
                    let subtype = other.tag().unwrap_or("none");
                    Err(format!("Unsupported control request subtype: {subtype}"))
                }
            };
            let response = match payload {
                Ok(payload) => ControlResponse::success(id.clone(), Some(payload)),
                Err(error) => ControlResponse::error(id.clone(), error),
            };
            (id, response)
        }
        .boxed()
    }

    async fn permit(
        &self,
        question: CanUseTool,
        cancelled: CancellationToken,
    ) -> Result<Value, String> {
        let decision = if question.tool_name == ASKS {
            permission::answer(self.on_question.clone(), question.clone(), cancelled).boxed()
        } else {
            let Some(callback) = &self.on_permission else {
                return Err("there is no callback for permissions".to_owned());
            };
            let request = PermissionRequest { question: question.clone(), cancelled };
            // A callback may panic before it returns its future, too.
            async { callback(request).await }.boxed()
        };
        let decision = AssertUnwindSafe(decision).catch_unwind();
        let decision = match self.timeout {
            Some(limit) => tokio::time::timeout(limit, decision).await.unwrap_or_else(|_| {
                let seconds = limit.as_secs_f64();
                Ok(Decision::deny(format!("Nobody answered within {seconds} s.")))
            }),
            None => decision.await,
        };
        let decision =
            decision.unwrap_or_else(|_| Decision::deny("The permission callback panicked."));
        let answer = complete_answer(&question, decision.into_result());
        serde_json::to_value(answer).map_err(|error| error.to_string())
    }

    async fn elicit(
        &self,
        question: Elicitation,
        cancelled: CancellationToken,
    ) -> Result<Value, String> {
        let request = ElicitationRequest { question, cancelled };
        let answer = elicitation::answer(self.on_elicitation.clone(), request, self.timeout).await;
        serde_json::to_value(answer).map_err(|error| error.to_string())
    }

    async fn show(
        &self,
        question: RequestUserDialog,
        cancelled: CancellationToken,
    ) -> Result<Value, String> {
        let Some(on_dialog) = &self.on_dialog else {
            return Err("there is no callback for dialogs".to_owned());
        };
        let shown = on_dialog.show(DialogRequest { question, cancelled }, self.timeout).await;
        serde_json::to_value(shown).map_err(|error| error.to_string())
    }

    async fn hook(
        &self,
        call: HookCallback,
        cancelled: CancellationToken,
    ) -> Result<Value, String> {
        let callback = self
            .hooks
            .get(&call.callback_id)
            .ok_or_else(|| format!("No hook callback found for ID: {}", call.callback_id))?;
        let context = HookContext { tool_use_id: call.tool_use_id, cancelled };
        let running = async { callback(call.input, context).await };
        let output = AssertUnwindSafe(running).catch_unwind().await;
        let output = output.unwrap_or_else(|_| Err("the hook panicked".to_owned()))?;
        serde_json::to_value(output).map_err(|error| error.to_string())
    }

    async fn mcp(
        &self,
        McpMessage { server_name, message, .. }: McpMessage,
    ) -> Result<Value, String> {
        let server = self
            .servers
            .get(&server_name)
            .ok_or_else(|| format!("SDK MCP server not found: {server_name}"))?;
        let id = message.get("id").cloned();
        let handled = AssertUnwindSafe(async { server.handle(message).await }).catch_unwind().await;
        let response = handled.unwrap_or_else(|_| {
            let error = json!({"code": -32603, "message": "the server panicked"});
            Some(json!({"jsonrpc": "2.0", "id": id, "error": error}))
        });
        // Notifications are answered too, with an empty result.
        let empty = || json!({"jsonrpc": "2.0", "result": {}, "id": 0});
        Ok(json!({"mcp_response": response.unwrap_or_else(empty)}))
    }
}

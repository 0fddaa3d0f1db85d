//! Has requests of the engine answered by callbacks. Every request gets an answer; if a callback fails, the answer is
//! no.

use std::collections::HashMap;
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

use crate::callback::called;
use crate::dialog::{DialogRequest, OnDialog};
use crate::elicitation::{self, ElicitationRequest, OnElicitation};
use crate::hook::{Callback, HookContext};
use crate::mcp::{InProcessServer, ServerConnection};
use crate::options::{Options, hook_id};
use crate::permission::{self, ASKS, Decision, OnPermission, OnQuestion, PermissionRequest};

/// A notification of a server in this process: the server's name and the message.
pub(super) type Unasked = (String, Value);

/// The answer to a request of the engine.
pub(super) struct Answered {
    pub(super) id: RequestId,
    pub(super) response: ControlResponse,
    /// The failure of a callback, reported to the host only. The engine just receives a no.
    pub(super) problem: Option<String>,
}

/// The answer or an error for the engine, and the failure to report to the host.
type Payload = (Result<Value, String>, Option<String>);

/// All callbacks and in-process servers of a session.
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

    /// Connects to a server in this process, replacing one of the same name. Returns the server's notifications.
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

    /// Answers a request of the engine. The token fires if the request ends without an answer of the callback, also
    /// because the engine has ended or the session was dropped. A program that shows a dialog for the request can then
    /// close it.
    pub(super) fn answer(
        &self,
        id: RequestId,
        request: AskHost,
        cancelled: CancellationToken,
    ) -> BoxFuture<'static, Answered> {
        let callbacks = self.clone();
        let unanswered = cancelled.clone().drop_guard();
        async move {
            let (payload, problem) = match request {
                AskHost::CanUseTool(question) => callbacks.permit(*question, cancelled).await,
                AskHost::HookCallback(call) => callbacks.hook(*call, cancelled).await,
                AskHost::McpMessage(message) => callbacks.mcp(message).await,
                AskHost::Elicitation(question) => callbacks.elicit(question, cancelled).await,
                AskHost::RequestUserDialog(question) => callbacks.show(question, cancelled).await,
                other => {
                    let subtype = other.tag().unwrap_or("none");
                    (Err(format!("Unsupported control request subtype: {subtype}")), None)
                }
            };
            if problem.is_none() {
                unanswered.disarm();
            }
            let response = match payload {
                Ok(payload) => ControlResponse::success(id.clone(), Some(payload)),
                Err(error) => ControlResponse::error(id.clone(), error),
            };
            Answered { id, response, problem }
        }
        .boxed()
    }

    async fn permit(&self, question: CanUseTool, cancelled: CancellationToken) -> Payload {
        let input = question.input.clone();
        let decision = if question.tool_name == ASKS {
            permission::answer(self.on_question.clone(), question.clone(), cancelled).boxed()
        } else {
            let Some(callback) = &self.on_permission else {
                return (Err("the host has no permission callback".to_owned()), None);
            };
            let request = PermissionRequest { question: question.clone(), cancelled };
            // A callback may panic before it returns its future, too.
            async { callback(request).await }.boxed()
        };
        // An edit of the input may panic as well.
        let decision = decision.map(|decision| decision.into_result(&input));
        let (decision, problem) = match called(decision, self.timeout).await {
            Ok(decision) => (decision, None),
            Err(failure) => {
                let problem =
                    failure.of(&format!("permission callback for {}", question.tool_name));
                let denial = Decision::deny(failure.denial()).into_result(&question.input);
                (denial, Some(format!("{problem} The call was denied.")))
            }
        };
        let answer = complete_answer(&question, decision);
        (serde_json::to_value(answer).map_err(|error| error.to_string()), problem)
    }

    async fn elicit(&self, question: Elicitation, cancelled: CancellationToken) -> Payload {
        let what = format!("elicitation callback for {}", question.mcp_server_name);
        let request = ElicitationRequest { question, cancelled };
        let answered =
            elicitation::answer(self.on_elicitation.clone(), request, self.timeout).await;
        let (answer, problem) = match answered {
            Ok(answer) => (answer, None),
            Err((answer, failure)) => (answer, Some(failure.of(&what))),
        };
        (serde_json::to_value(answer).map_err(|error| error.to_string()), problem)
    }

    async fn show(&self, question: RequestUserDialog, cancelled: CancellationToken) -> Payload {
        let Some(on_dialog) = &self.on_dialog else {
            return (Err("the host has no dialog callback".to_owned()), None);
        };
        let what = format!("dialog callback for {}", question.dialog_kind);
        let reply = on_dialog.show(DialogRequest { question, cancelled }, self.timeout).await;
        let (reply, problem) = match reply {
            Ok(reply) => (reply, None),
            Err((reply, failure)) => (reply, Some(failure.of(&what))),
        };
        (serde_json::to_value(reply).map_err(|error| error.to_string()), problem)
    }

    async fn hook(&self, call: HookCallback, cancelled: CancellationToken) -> Payload {
        let Some(callback) = self.hooks.get(&call.callback_id) else {
            let error = format!("No hook callback found for ID: {}", call.callback_id);
            return (Err(error.clone()), Some(error));
        };
        let what = format!("{} hook", call.input.tag().unwrap_or("unnamed"));
        let context = HookContext { tool_use_id: call.tool_use_id, cancelled };
        let output = called(async { callback(call.input, context).await }, None).await;
        let output = output.unwrap_or_else(|failure| Err(failure.text()));
        let problem = output.as_ref().err().map(|error| format!("The {what} failed: {error}."));
        let output = output
            .and_then(|output| serde_json::to_value(output).map_err(|error| error.to_string()));
        (output, problem)
    }

    async fn mcp(&self, McpMessage { server_name, message, .. }: McpMessage) -> Payload {
        let Some(server) = self.servers.get(&server_name) else {
            return (Err(format!("SDK MCP server not found: {server_name}")), None);
        };
        let id = message.get("id").cloned();
        let (response, problem) = match called(async { server.handle(message).await }, None).await {
            Ok(response) => (response, None),
            Err(failure) => {
                let error = json!({"code": -32603, "message": "the server panicked"});
                let response = json!({"jsonrpc": "2.0", "id": id, "error": error});
                (Some(response), Some(failure.of(&format!("MCP server {server_name}"))))
            }
        };
        // Notifications are answered too, with an empty result.
        let empty = || json!({"jsonrpc": "2.0", "result": {}, "id": 0});
        (Ok(json!({"mcp_response": response.unwrap_or_else(empty)})), problem)
    }
}

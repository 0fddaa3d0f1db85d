//! The built-in tools as an MCP server, for clients that have a model of their own.
//!
//! Every call takes the way of a session's calls: hooks, rules, sandbox. One that requires approval is asked through the
//! client (elicitation). Without that, or without a clear yes, it does not run.

use std::collections::HashMap;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use ostler_engine::session::{CalledTool, Connection, ToolCaller};
use ostler_mcp::{ClientCapability, Content, Context, Elicited, Output, Server, raw_tool};
use ostler_proto::api::{Content as ApiContent, ContentBlock};
use ostler_proto::control::{AskHost, CanUseTool, ControlResponse};
use ostler_proto::frame::{ToEngine, ToHost};
use ostler_proto::launch::{Answerer, ToolSet};
use ostler_proto::permission::PermissionUpdate;
use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::sync::{mpsc, oneshot};

use super::{StartContext, StartError, start};

/// The tools that need neither a model nor a conversation.
const OFFERED: &[&str] = &[
    "Bash",
    "Edit",
    "Glob",
    "Grep",
    "NotebookEdit",
    "Read",
    "TaskOutput",
    "TaskStop",
    "WebFetch",
    "Write",
];
/// How many questions of one call may wait.
const WAITING_QUESTIONS: usize = 8;
/// How much of a call's arguments a question shows, in characters.
const MOST_SHOWN: usize = 4_000;

/// The built-in tools as an MCP server. They end when it is dropped.
#[non_exhaustive]
pub struct ToolServer {
    /// The server.
    pub server: Server,
    /// Warnings about settings and options.
    pub warnings: Vec<String>,
    _host: tokio_util::task::AbortOnDropHandle<()>,
}

/// Makes a server of the built-in tools, under the settings and options of a session.
///
/// # Errors
/// When settings or options are invalid.
pub fn tool_server(context: &StartContext) -> Result<ToolServer, StartError> {
    let mut context = context.clone();
    (context.is_interactive, context.is_conversation) = (false, false);
    let launch = &mut context.launch;
    let is_wanted = |name: &str| match &launch.tools {
        Some(ToolSet::Only(wanted)) => wanted.iter().any(|it| it == name),
        _ => true,
    };
    let wanted = OFFERED.iter().filter(|name| is_wanted(name)).map(|name| (*name).to_owned());
    launch.tools = Some(ToolSet::Only(wanted.collect()));
    launch.permission_prompts = Some(Answerer::Host);
    launch.no_session_persistence = true;
    // Servers of others are for clients to connect to, not for this one to pass on.
    (launch.strict_mcp_config, launch.mcp_config) = (true, None);
    let (running, caller) = start::start_with_tools(&context)?;
    let warnings = running.warnings.iter().map(ToString::to_string);
    let warnings = warnings.chain(running.cautions.iter().cloned()).collect();
    let calls = Calls::default();
    let host = tokio::spawn(answer_engine(running.connection, calls.clone()));
    let server = Server::new("ostler", env!("CARGO_PKG_VERSION"))
        .title("Ostler's tools")
        .instructions(instructions(&context));
    for spec in caller.tools().into_iter().filter(|spec| OFFERED.contains(&spec.name.as_str())) {
        let (name, caller, calls) = (spec.name.clone(), caller.clone(), calls.clone());
        let tool =
            raw_tool(spec.name, spec.description, spec.input_schema, move |input, context| {
                let (name, caller, calls) = (name.clone(), caller.clone(), calls.clone());
                async move { Ok::<_, String>(call(&caller, &calls, &name, input, &context).await) }
            });
        server.add_tool(tool);
    }
    let _host = tokio_util::task::AbortOnDropHandle::new(host);
    Ok(ToolServer { server, warnings, _host })
}

impl ToolServer {
    /// Serves over standard input and output until the input ends.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub async fn serve_stdio(&self) -> std::io::Result<()> {
        self.server.serve_stdio().await
    }

    /// Serves over streamable HTTP, at the path `/mcp`, until `stop` is done. Every request needs the token.
    ///
    /// # Errors
    /// If the token is empty and the address can be reached from other machines.
    #[cfg(feature = "mcp-serve")]
    pub async fn serve_http(
        &self,
        listener: tokio::net::TcpListener,
        token: String,
        stop: impl Future<Output = ()>,
    ) -> std::io::Result<()> {
        let stopped = tokio_util::sync::CancellationToken::new();
        let options = ostler_mcp::HttpOptions::default().token(token);
        let mut serving =
            std::pin::pin!(self.server.serve_http(listener, options, stopped.clone()));
        tokio::select! {
            served = &mut serving => return served,
            () = stop => stopped.cancel(),
        }
        serving.await
    }
}

fn instructions(context: &StartContext) -> String {
    format!(
        "Tools for files and commands on this machine. Relative paths are relative to {}. Calls are subject to the \
         permission rules of this machine.",
        context.cwd.display()
    )
}

/// A permission question of a running call.
struct Question {
    request: CanUseTool,
    answer: oneshot::Sender<Value>,
}

/// The running calls by their ids: where their questions go.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<HashMap<String, mpsc::Sender<Question>>>>);

impl Calls {
    fn table(&self) -> parking_lot::MutexGuard<'_, HashMap<String, mpsc::Sender<Question>>> {
        self.0.lock()
    }
}

/// A running call. Dropping it ends its questions.
struct RunningCall<'a> {
    calls: &'a Calls,
    id: String,
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        self.calls.table().remove(&self.id);
    }
}

async fn call(
    caller: &ToolCaller,
    calls: &Calls,
    name: &str,
    input: Value,
    context: &Context,
) -> Output {
    let id = format!("mcp_{}", uuid::Uuid::new_v4());
    let (questions, mut asked) = mpsc::channel(WAITING_QUESTIONS);
    calls.table().insert(id.clone(), questions);
    let running = RunningCall { calls, id };
    let mut called = std::pin::pin!(caller.call(running.id.as_str().into(), name, input));
    let mut asking = FuturesUnordered::new();
    loop {
        tokio::select! {
            called = &mut called => return output(called),
            Some(question) = asked.recv() => asking.push(async {
                let Question { request, answer } = question;
                // The engine may have stopped waiting.
                answer.send(decide(name, &request, context).await).ok();
            }),
            Some(()) = asking.next() => {}
        }
    }
}

fn output(called: CalledTool) -> Output {
    let mut output = Output::new();
    output.is_error = called.is_error;
    match called.content {
        None => {}
        Some(ApiContent::Text(text)) => output = output.block(Content::text(text)),
        Some(ApiContent::Blocks(blocks)) => {
            output.content.extend(blocks.iter().map(block));
        }
    }
    output
}

fn block(block: &ContentBlock) -> Content {
    let value = serde_json::to_value(block).unwrap_or_default();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    match value["type"].as_str() {
        Some("image") => {
            let source = &value["source"];
            match (text(&source["data"]), text(&source["media_type"])) {
                (Some(data), Some(kind)) => Content::image(data, kind),
                _ => Content::text("(a picture that cannot be passed on)"),
            }
        }
        Some("text") => Content::text(text(&value["text"]).unwrap_or_default()),
        _ => Content::text(value.to_string()),
    }
}

/// Passes the engine's questions to the calls that they are about. Everything else is refused.
async fn answer_engine(connection: Connection, calls: Calls) {
    let Connection { to_engine, mut from_engine } = connection;
    while let Some(frame) = from_engine.recv().await {
        let ToHost::ControlRequest(request) = frame else { continue };
        let id = request.request_id.clone();
        let AskHost::CanUseTool(question) = request.request else {
            let error = "an MCP server cannot answer this".to_owned();
            reply(&to_engine, id.map(|id| ControlResponse::error(id, error))).await;
            continue;
        };
        let call = question.tool_use_id.as_ref().map(|id| id.as_str().to_owned());
        let call = call.and_then(|id| calls.table().get(&id).cloned());
        let to_engine = to_engine.clone();
        tokio::spawn(async move {
            let answer = ask(call, *question).await;
            reply(&to_engine, id.map(|id| ControlResponse::success(id, Some(answer)))).await;
        });
    }
}

async fn reply(to_engine: &mpsc::Sender<ToEngine>, response: Option<ControlResponse>) {
    if let Some(response) = response {
        // The session may have ended.
        to_engine.send(ToEngine::ControlResponse(response)).await.ok();
    }
}

async fn ask(call: Option<mpsc::Sender<Question>>, request: CanUseTool) -> Value {
    let refused = denied(format!("no client can be asked: {}", advice(&request)));
    let Some(call) = call else { return refused };
    let (answer, answered) = oneshot::channel();
    match call.send(Question { request, answer }).await {
        Ok(()) => answered.await.unwrap_or(refused),
        Err(_) => refused,
    }
}

/// Asks the client's user. Everything but a clear yes to exactly this call is a no.
async fn decide(called: &str, request: &CanUseTool, context: &Context) -> Value {
    if request.tool_name != called {
        // It is asked in the middle of the call: a client that repeats the call for the answer would do its work twice.
        return denied(format!("this cannot be asked while a call runs: {}", advice(request)));
    }
    if !context.client_supports(ClientCapability::Elicitation) {
        return denied(format!(
            "This call requires approval, and the MCP client cannot ask its user. {}",
            advice(request)
        ));
    }
    let arguments = shortened(&request.input.to_string());
    let reason = request.decision_reason.as_deref().unwrap_or_default();
    let message = format!("Allow {called}?\n{arguments}\n{reason}");
    let schema = json!({
        "type": "object",
        "properties": {"allow": {"type": "boolean", "title": "Allow this call", "default": false}},
        "required": ["allow"],
    });
    // The key stands for the arguments, so that an answer to one call does not count for another.
    let digest = Sha256::digest(request.input.to_string());
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let key = format!("allow {called} {digest}");
    match context.elicit(&key, message.trim_end(), schema).await {
        Ok(Elicited::Accepted(answer)) if answer.get("allow") == Some(&Value::Bool(true)) => {
            json!({"behavior": "allow", "updatedInput": request.input})
        }
        Ok(_) => denied("The user did not allow this call.".to_owned()),
        Err(error) => denied(format!("The user could not be asked: {error}. {}", advice(request))),
    }
}

fn denied(message: String) -> Value {
    json!({"behavior": "deny", "message": message})
}

/// Which rule or option would allow the call without a question.
fn advice(request: &CanUseTool) -> String {
    let updates = request.permission_suggestions.iter().flatten();
    // Each suggestion is one way to allow the call; its rules are needed together.
    let suggested = updates.filter_map(|update| match update {
        PermissionUpdate::AddRules(update) => Some(&update.rules),
        _ => None,
    });
    let rules: Vec<_> = suggested
        .take(1)
        .flatten()
        .map(|rule| match &rule.rule_content {
            Some(content) => format!("{}({content})", rule.tool_name),
            None => rule.tool_name.clone(),
        })
        .collect();
    let rule = if rules.is_empty() { request.tool_name.clone() } else { rules.join(", ") };
    format!(
        "To allow it, add the rule {rule} to permissions.allow in the settings, or start it with \
         ostler --allowed-tools='{rule}' mcp serve."
    )
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{}… ({} bytes in all)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}

//! What a tool is. The tools themselves live in `ostler-tools`, one file each.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use futures::future::BoxFuture;
use ostler_files::RealPath;
use ostler_process::Environment;
use ostler_proto::ToolUseId;
use ostler_proto::api::Message;
use ostler_proto::mcp::McpServerProvenance;
use ostler_proto::message::ToolUseMeta;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::model::{ModelError, Request, ToolSpec};
pub use crate::model::{ToolError, ToolOutput};
pub use crate::permission::{Effect, ServerToolPolicy};
use crate::sandbox::Confinement;
use crate::scratch::Scratch;
use crate::tasks::{TaskRefusal, Tasks};

/// A tool: what the model reads, what it may send, what it would touch, what it does.
pub trait Tool: Send + Sync + 'static {
    /// The name the model calls it by.
    const NAME: &'static str;
    /// What it does and when to use it, for the model.
    const DESCRIPTION: &'static str;
    /// The arguments. Doc comments of the fields become the schema's descriptions.
    type Args: DeserializeOwned + JsonSchema + Send + 'static;

    /// Arguments that only the host may fill in, with its answer. They are removed from the model's input.
    const HOST_ONLY: &'static [&'static str] = &[];

    /// What a call would touch. Pure: permissions are decided on this alone, before anything runs.
    fn effect(&self, cx: &ToolCx, args: &Self::Args) -> Effect;

    /// Notes that the model has seen a file by other means, for tools that require a file to be read before a change.
    fn note_read(&self, _path: &RealPath) {}

    /// Runs the call. When `cx.cancelled` fires the future is dropped at its next await; what it started must go with
    /// it.
    fn run(
        &self,
        cx: &ToolCx,
        args: Self::Args,
    ) -> impl Future<Output = Result<ToolOutput, ToolError>> + Send;
}

/// Where and for whom a tool runs.
#[derive(Clone, Debug, Default)]
pub struct ToolCx {
    /// The working directory; relative paths start here.
    pub cwd: PathBuf,
    /// The call that is being answered.
    pub call: ToolUseId,
    /// Fires when the turn is interrupted.
    pub cancelled: CancellationToken,
    /// Stores output that is too long for the conversation.
    pub scratch: Scratch,
    /// The background tasks.
    pub tasks: Tasks,
    /// The environment of programs that it starts.
    pub env: Arc<Environment>,
    /// The session it runs in; `None` for a tool that is run by itself.
    pub session: Option<Arc<dyn ToolSession>>,
    /// Where the path of the call's effect led when the call was permitted.
    pub permitted_path: PermittedPath,
    /// Reports how far the call is.
    pub progress: ProgressReporter,
}

/// Reports how far a call is. The host gets the newest report from time to time, and none after the call's result.
#[derive(Clone, Debug, Default)]
pub struct ProgressReporter(Option<Arc<watch::Sender<Option<CallProgress>>>>);

/// How far a call is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallProgress {
    /// How much is done.
    pub done: f64,
    /// How much there is to do, if that is known.
    pub total: Option<f64>,
    /// A text for users.
    pub message: Option<String>,
}

impl ProgressReporter {
    pub(crate) fn new() -> (Self, watch::Receiver<Option<CallProgress>>) {
        let (sender, receiver) = watch::channel(None);
        (Self(Some(Arc::new(sender))), receiver)
    }

    /// Reports how far the call is. Does not block.
    pub fn report(&self, progress: CallProgress) {
        if let Some(sender) = &self.0 {
            sender.send_replace(Some(progress));
        }
    }
}

/// Where the path of a call's effect led when the call was permitted. The call opens exactly this path: a link that
/// appears later leads nowhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PermittedPath {
    /// Nothing was decided: the tool is run by itself.
    #[default]
    Undecided,
    /// The path could not be resolved; it was a dangling link, for example.
    Nowhere,
    /// The path with links followed.
    Real(RealPath),
}

/// What a tool may ask of the session it runs in.
pub trait ToolSession: fmt::Debug + Send + Sync {
    /// Whether a search may show the content of a file: no rule denies reading it or asks about it.
    fn may_show(&self, path: &Path) -> bool;

    /// Whether a rule allows requests to exactly this host, by its name or address.
    fn names_host(&self, host: &str) -> bool;

    /// Whether the session has a sandbox for commands.
    fn has_sandbox(&self) -> bool {
        false
    }

    /// Whether a command runs in the sandbox. Reads files.
    ///
    /// # Errors
    /// When it must, and cannot.
    fn confinement(&self, folder: &Path, command: &str) -> Result<Confinement, String> {
        let _ = (folder, command);
        Ok(Confinement::None)
    }

    /// Enters or leaves plan mode, and notifies the host. Returns the text for the model.
    fn plan(&self, is_on: bool) -> BoxFuture<'static, String> {
        let _ = is_on;
        Box::pin(async { String::new() })
    }

    /// Asks the session's model, outside the conversation. Its usage counts for the session. The request's own `model`
    /// is ignored.
    fn ask_model(&self, request: Request) -> BoxFuture<'static, Result<Message, ModelError>>;

    /// Notifies hooks of something that a tool does. An objection is an error, as text for the model.
    fn announce(&self, _: ToolEvent) -> BoxFuture<'static, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }
}

/// Something a tool does that hooks are notified of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolEvent {
    /// The shell is in another directory. Hooks cannot object.
    Moved {
        /// Where it was.
        from: PathBuf,
        /// Where it is.
        to: PathBuf,
    },
    /// An entry of the task list is created.
    TaskCreated(TaskEntry),
    /// An entry of the task list is completed.
    TaskCompleted(TaskEntry),
}

/// An entry of the task list, for the input of hooks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskEntry {
    /// Its number.
    pub id: String,
    /// Its title.
    pub subject: String,
    /// The work to do.
    pub description: String,
}

impl ToolCx {
    /// The absolute path for a path that the model wrote.
    pub fn resolve(&self, path: &Path) -> PathBuf {
        self.cwd.join(path)
    }

    /// The path with links followed as it was when the call was permitted. `path` is that of the call's effect.
    ///
    /// # Errors
    /// When the path cannot be resolved.
    pub fn real_path(&self, path: &Path) -> io::Result<RealPath> {
        match &self.permitted_path {
            PermittedPath::Real(real) => Ok(real.clone()),
            // It is not resolved again: what it leads to by now was not decided.
            PermittedPath::Nowhere => Err(io::ErrorKind::NotFound.into()),
            PermittedPath::Undecided => RealPath::resolve(path),
        }
    }

    /// Whether a search may show the content of a file.
    pub fn may_show(&self, path: &Path) -> bool {
        self.session.as_ref().is_none_or(|session| session.may_show(path))
    }

    /// Whether the session has a sandbox for commands.
    pub fn has_sandbox(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.has_sandbox())
    }

    /// Whether a command runs in the sandbox. Reads files.
    ///
    /// # Errors
    /// When it must, and cannot.
    pub fn confinement(&self, folder: &Path, command: &str) -> Result<Confinement, String> {
        match &self.session {
            Some(session) => session.confinement(folder, command),
            None => Ok(Confinement::None),
        }
    }

    /// Notifies hooks of something the tool does.
    ///
    /// # Errors
    /// Their objection, as text for the model.
    pub async fn announce(&self, happening: ToolEvent) -> Result<(), String> {
        match &self.session {
            Some(session) => session.announce(happening).await,
            None => Ok(()),
        }
    }

    /// Whether a rule allows requests to exactly this host.
    pub fn names_host(&self, host: &str) -> bool {
        self.session.as_ref().is_some_and(|session| session.names_host(host))
    }
}

impl From<TaskRefusal> for ToolError {
    fn from(TaskRefusal(reason): TaskRefusal) -> Self {
        Self::Refused(reason)
    }
}

/// A tool without its types, as the engine stores it.
pub trait AnyTool: Send + Sync {
    /// What the model sees.
    fn spec(&self) -> ToolSpec;

    /// The model's input without the arguments that only the host may fill in.
    fn without_host_only(&self, input: &Value) -> Value;

    /// Notes that the model has seen a file by other means.
    fn note_read(&self, _path: &RealPath) {}

    /// The MCP server it belongs to.
    fn provenance(&self) -> Option<McpServerProvenance> {
        None
    }

    /// How its calls are displayed, if it belongs to an MCP server; without the call's id.
    fn shown(&self) -> Option<ToolUseMeta> {
        None
    }

    /// Reads the arguments of a call.
    ///
    /// # Errors
    /// As text for the model when the input does not fit the schema.
    fn prepare(self: Arc<Self>, cx: &ToolCx, input: &Value) -> Result<Prepared, String>;
}

/// A call that is ready to run, once it is permitted.
pub struct Prepared {
    /// What it would touch.
    pub effect: Effect,
    /// Runs it.
    pub run: Box<dyn FnOnce(ToolCx) -> RunFuture + Send>,
}

/// A running call.
pub type RunFuture = Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send>>;

/// Erases a tool's types, so that different tools fit one list.
pub fn erase<T: Tool>(tool: T) -> Arc<dyn AnyTool> {
    Arc::new(tool)
}

impl<T: Tool> AnyTool for T {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: T::NAME.to_owned(),
            description: T::DESCRIPTION.to_owned(),
            input_schema: input_schema::<T::Args>(),
        }
    }

    fn note_read(&self, path: &RealPath) {
        Tool::note_read(self, path);
    }

    fn without_host_only(&self, input: &Value) -> Value {
        let mut input = input.clone();
        if let Value::Object(arguments) = &mut input {
            arguments.retain(|name, _| !T::HOST_ONLY.contains(&name.as_str()));
        }
        input
    }

    fn prepare(self: Arc<Self>, cx: &ToolCx, input: &Value) -> Result<Prepared, String> {
        let args: T::Args = serde_json::from_value(input.clone())
            .map_err(|error| format!("{}: {error}", T::NAME))?;
        let effect = self.effect(cx, &args);
        Ok(Prepared {
            effect,
            run: Box::new(move |cx| Box::pin(async move { self.run(&cx, args).await })),
        })
    }
}

/// A tool whose description is written when the session starts, because it lists agents or skills.
pub(crate) struct Described<T> {
    tool: Arc<T>,
    description: String,
}

impl<T: Tool> Described<T> {
    pub(crate) fn new(tool: T, description: String) -> Self {
        Self { tool: Arc::new(tool), description }
    }
}

impl<T: Tool> AnyTool for Described<T> {
    fn spec(&self) -> ToolSpec {
        ToolSpec { description: self.description.clone(), ..self.tool.spec() }
    }

    fn without_host_only(&self, input: &Value) -> Value {
        self.tool.without_host_only(input)
    }

    fn prepare(self: Arc<Self>, cx: &ToolCx, input: &Value) -> Result<Prepared, String> {
        self.tool.clone().prepare(cx, input)
    }
}

fn input_schema<Args: JsonSchema>() -> Value {
    // Inlined and without `$schema`: the API wants one plain object, and every byte is paid for on every request.
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<Args>().to_value();
    if let Some(object) = schema.as_object_mut() {
        object.shift_remove("title");
    }
    schema
}

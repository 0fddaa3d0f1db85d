//! [`Adapter`]: runs prompts on an engine.

use std::future::IntoFuture;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use ostler_sdk::{IntoOptions, Options, PermissionMode};

use crate::budget::{Budget, BudgetTracker};
use crate::config::{ClientConfig, ModelConfig};
use crate::context::HookContext;
use crate::deadline::Deadline;
use crate::error::Error;
use crate::evaluation::Evaluation;
use crate::output::Output;
use crate::prompt::Prompt;
use crate::response::Response;
use crate::session::Session;
use crate::tool::{self, TOOL_SERVER};

/// The default name of the adapter in events.
pub const ADAPTER_NAME: &str = "claude_agent_sdk";

/// Runs prompts on an engine. Cheap to clone and reusable: it runs any number of prompts, also concurrently, on the
/// caller's runtime.
///
/// The [`Options`] choose the engine and everything else that is the same for all prompts: `ostler::Options::new()` for
/// the engine inside this process, `Options::new().executable("claude")` for a program.
///
/// ```no_run
/// # async fn example(prompt: ostler_prompt::Prompt<String>) -> Result<(), ostler_prompt::Error> {
/// use std::time::Duration;
/// use ostler_prompt::{Adapter, Budget, Deadline, Session};
///
/// let adapter = Adapter::new(ostler_sdk::Options::new().executable("claude"));
/// let session = Session::new();
/// let response = adapter
///     .evaluate(&prompt, &session)
///     .deadline(Deadline::after(Duration::from_secs(600)))
///     .budget(Budget::tokens(200_000))
///     .await?;
/// println!("{} for {} tokens", response.output, response.usage.total());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Adapter {
    name: Arc<str>,
    options: Arc<Options>,
    client: Arc<ClientConfig>,
    model: Arc<ModelConfig>,
    /// Whether the model was set with [`Adapter::with_model`].
    has_model: bool,
}

impl std::fmt::Debug for Adapter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Adapter")
            .field("name", &self.name)
            .field("client", &self.client)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

impl Adapter {
    /// An adapter with the default configuration. Model, permission mode, turns and folder of the options apply unless
    /// the configuration sets them. If options and configuration set different models or modes, running a prompt is an
    /// error.
    pub fn new(options: impl IntoOptions) -> Self {
        let options = options.into_options();
        Self {
            name: ADAPTER_NAME.into(),
            options: Arc::new(options),
            client: Arc::default(),
            model: Arc::default(),
            has_model: false,
        }
    }

    /// Sets the configuration.
    #[must_use]
    pub fn with_client(mut self, client: ClientConfig) -> Self {
        self.client = Arc::new(client);
        self
    }

    /// Sets the model.
    #[must_use]
    pub fn with_model(mut self, model: ModelConfig) -> Self {
        self.model = Arc::new(model);
        self.has_model = true;
        self
    }

    /// Sets its name in events.
    #[must_use]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// Its name in events.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its configuration.
    pub fn client(&self) -> &ClientConfig {
        &self.client
    }

    /// Its model.
    pub fn model(&self) -> &ModelConfig {
        &self.model
    }

    /// Prepares a run of a prompt. Await it for the [`Response`], or use [`Evaluate::stream`] for its messages as they
    /// arrive. Nothing happens before that.
    pub fn evaluate<T: Output>(&self, prompt: &Prompt<T>, session: &Session) -> Evaluate<T> {
        Evaluate {
            adapter: self.clone(),
            prompt: prompt.clone(),
            session: session.clone(),
            deadline: None,
            budget: None,
        }
    }

    /// The options of a session.
    fn options<T: Output>(
        &self,
        prompt: &Prompt<T>,
        context: &HookContext,
    ) -> Result<Options, Conflict> {
        let mut options = (*self.options).clone();
        options.model.name = Some(self.model_name()?);
        if let Some(tokens) = self.model.max_tokens() {
            options = options.env("CLAUDE_CODE_MAX_OUTPUT_TOKENS", tokens.to_string());
        }
        self.permit(&mut options, prompt)?;
        if let Some(turns) = self.client.max_turns() {
            options.limits.max_turns = Some(turns);
        }
        let dollars = context.budget_tracker().and_then(BudgetTracker::remaining_usd);
        if let Some(dollars) = dollars.filter(|dollars| dollars.is_finite()) {
            let own = options.limits.max_budget_usd.unwrap_or(f64::INFINITY);
            options.limits.max_budget_usd = Some(own.min(dollars));
        }
        options.context.cwd = match (self.client.cwd(), prompt.workspaces()) {
            (Some(cwd), _) => Some(cwd.to_owned()),
            (None, [workspace]) => Some(workspace.path().to_owned()),
            (None, _) => options.context.cwd,
        };
        options.output.schema = T::schema();
        if let Some(server) = tool::server(prompt.tools(), &context.run()) {
            options = options.server(server);
        }
        if !self.client.stop_on_structured_output() {
            // Newer engines end the turn with the answer; Ostler's engine can be configured not to.
            options = options.env("OSTLER_GO_ON_AFTER_ANSWER", "1");
        }
        if !self.client.suppress_stderr() {
            options = echoing(options);
        }
        Ok(context.attach(options))
    }

    /// The adapter's model, else that of the options, else the default.
    fn model_name(&self) -> Result<String, Conflict> {
        let own = self.model.model();
        match &self.options.model.name {
            Some(other) if !self.has_model => Ok(other.clone()),
            Some(other) if other != own => Err(Conflict {
                what: "model",
                options: other.clone(),
                adapter: own.to_owned(),
                method: "with_model",
            }),
            _ => Ok(own.to_owned()),
        }
    }

    /// Sets the permissions. `bypassPermissions` applies only if it was set explicitly.
    fn permit<T: Output>(&self, options: &mut Options, prompt: &Prompt<T>) -> Result<(), Conflict> {
        let permissions = &mut options.permissions;
        // The SDK has no unset mode, so its default mode counts as unset.
        let of_options = Some(&permissions.mode).filter(|mode| **mode != PermissionMode::Default);
        match (self.client.permission_mode(), of_options) {
            (Some(own), Some(other)) if own != other => {
                return Err(Conflict {
                    what: "permission mode",
                    options: other.as_str().to_owned(),
                    adapter: own.as_str().to_owned(),
                    method: "with_permission_mode",
                });
            }
            (Some(own), _) => {
                permissions.allow_dangerously_skip_permissions |=
                    *own == PermissionMode::BypassPermissions;
                permissions.mode = own.clone();
            }
            (None, Some(_)) => {}
            // The program itself offers these tools, and there is no user who could approve them.
            (None, None) if !permissions.has_callback() => {
                let own = prompt.tools().iter().filter(|tool| tool.has_handler());
                permissions.allowed.extend(own.map(|tool| tool.wire_name(TOOL_SERVER)));
            }
            (None, None) => {}
        }
        Ok(())
    }
}

/// The options and the adapter's configuration disagree.
struct Conflict {
    what: &'static str,
    options: String,
    adapter: String,
    method: &'static str,
}

impl From<Conflict> for ostler_sdk::Error {
    fn from(conflict: Conflict) -> Self {
        let Conflict { what, options, adapter, method } = conflict;
        Self::Options(format!(
            "the options of the adapter set {what} {options}, and {method} sets {adapter}: set it in one place only"
        ))
    }
}

/// Also writes the engine's stderr to the stderr of this program.
fn echoing(mut options: Options) -> Options {
    let before = options.engine.stderr.take();
    options.on_stderr(move |text| {
        // If this program's stderr is closed, the output is lost.
        let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
        if let Some(before) = &before {
            before(text);
        }
    })
}

/// A prepared run: await it, or read its messages with [`stream`](Self::stream).
#[must_use = "nothing happens until it is awaited, or its stream is read"]
pub struct Evaluate<T> {
    adapter: Adapter,
    prompt: Prompt<T>,
    session: Session,
    deadline: Option<Deadline>,
    budget: Option<BudgetTracker>,
}

impl<T: Output> Evaluate<T> {
    /// Sets the deadline.
    pub fn deadline(mut self, deadline: Deadline) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Sets the budget.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = Some(BudgetTracker::new(budget));
        self
    }

    /// Uses a budget that other runs share.
    pub fn budget_tracker(mut self, tracker: &BudgetTracker) -> Self {
        self.budget = Some(tracker.clone());
        self
    }

    /// Returns the run as a stream of messages.
    pub fn stream(self) -> Evaluation<T> {
        let Self { adapter, prompt, session, deadline, budget } = self;
        let context = HookContext::new(session, Arc::clone(&adapter.name), prompt.name())
            .deadline(deadline)
            .budget(budget)
            .stops_after_answer(adapter.client.stop_on_structured_output());
        let shows_deltas = adapter.options.output.partial_messages;
        match adapter.options(&prompt, &context) {
            Ok(options) => Evaluation::new(&prompt, context, options, shows_deltas),
            Err(conflict) => {
                let error = Error::of(prompt.name(), conflict.into());
                Evaluation::new(&prompt, context, Options::new(), shows_deltas).refused(error)
            }
        }
    }
}

impl<T: Output> IntoFuture for Evaluate<T> {
    type Output = Result<Response<T>, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.stream().response().boxed()
    }
}

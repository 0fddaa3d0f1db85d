//! A test environment for prompts: a backend, a scripted API, and an empty home folder.

use std::path::PathBuf;
use std::time::Duration;

use ostler_prompt::{Adapter, ClientConfig, Event, Listener, ModelConfig, Session};
use ostler_sdk::{IntoOptions as _, Options, PermissionMode};
use ostler_testkit::{RecordedRequest, Script, ScriptedApi, reply, when};
use tempfile::TempDir;

/// Long enough for a cold start of the slowest backend on a busy machine.
const LIMIT: Duration = Duration::from_secs(90);
/// A model that both vendor programs know.
pub(crate) const MODEL: &str = "claude-sonnet-4-5";

/// The engine that runs the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    /// The engine in this process.
    Embedded,
    /// The vendor's command line program 2.1.50.
    Vendor50,
    /// The vendor's command line program 2.1.325.
    Vendor325,
}

impl Backend {
    fn options(self) -> Options {
        match self {
            Self::Embedded => ostler::Options::new().into_options(),
            Self::Vendor50 => Options::new()
                .executable(package("OSTLER_PEERS", "claude-agent-sdk").join("cli.js")),
            Self::Vendor325 => {
                let machine = std::env::consts::ARCH.replace("x86_64", "x64");
                let name =
                    format!("claude-agent-sdk-linux-{}", machine.replace("aarch64", "arm64"));
                Options::new().executable(package("OSTLER_NATIVE_PEERS", &name).join("claude"))
            }
        }
    }
}

/// A vendor package in the folder of an environment variable: `cargo xtask test` sets it.
fn package(variable: &str, name: &str) -> PathBuf {
    let folder = std::env::var_os(variable)
        .unwrap_or_else(|| panic!("{variable} names a folder with node_modules"));
    let folder = PathBuf::from(folder).join("node_modules/@anthropic-ai").join(name);
    folder.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
}

pub(crate) struct Stage {
    pub(crate) api: ScriptedApi,
    pub(crate) home: TempDir,
    backend: Backend,
}

impl Stage {
    pub(crate) async fn new(script: Script) -> Self {
        Self::on(Backend::Embedded, script).await
    }

    pub(crate) async fn on(backend: Backend, script: Script) -> Self {
        // The older vendor program asks a small model about commands; no test is about that.
        let aside = Script::new().rule(when().model("claude-haiku*"), reply().text("none"));
        let api = ScriptedApi::start(aside).await;
        api.append(script);
        Self { api, home: tempfile::tempdir().unwrap(), backend }
    }

    /// Options for a session in this environment, away from the user's own settings.
    pub(crate) fn options(&self) -> Options {
        let mut options = self
            .backend
            .options()
            .cwd(self.home.path())
            .env("ANTHROPIC_BASE_URL", self.api.base_url())
            .env("ANTHROPIC_API_KEY", "any")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("DISABLE_TELEMETRY", "1")
            .env("DISABLE_AUTOUPDATER", "1")
            .env("IS_SANDBOX", "1")
            .env("HOME", self.home.path().display().to_string())
            .env("PATH", std::env::var("PATH").unwrap());
        options.engine.env.replaces = true;
        options
    }

    /// An adapter with the defaults, except for a model that all backends know and permission for everything.
    pub(crate) fn adapter(&self) -> Adapter {
        self.adapter_with(ClientConfig::default())
    }

    pub(crate) fn adapter_with(&self, client: ClientConfig) -> Adapter {
        let adapter = Adapter::new(self.options()).with_model(ModelConfig::new(MODEL));
        adapter.with_client(match client.permission_mode() {
            Some(_) => client,
            None => client.with_permission_mode(PermissionMode::BypassPermissions),
        })
    }

    /// The requests to the model of the conversation.
    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        let mut requests = self.api.requests();
        requests.retain(|request| !request.body["model"].to_string().contains("haiku"));
        requests
    }
}

/// All events of a session.
pub(crate) struct PublishedEvents {
    listener: Listener,
}

impl PublishedEvents {
    pub(crate) fn of(session: &Session) -> Self {
        Self { listener: session.bus().listen() }
    }

    /// The events so far.
    pub(crate) fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.listener.try_next()).collect()
    }

    /// The events so far, one line each.
    pub(crate) fn lines(&mut self) -> Vec<String> {
        self.events()
            .iter()
            .map(|event| match event {
                Event::PromptRendered(event) => format!("rendered {}", event.prompt_name),
                Event::ToolInvoked(event) => format!("invoked {}", event.name),
                Event::PromptExecuted(event) => match &event.error {
                    Some(error) => format!("failed {error}"),
                    None => format!("executed {}", event.prompt_name),
                },
                other => format!("{other:?}"),
            })
            .collect()
    }
}

/// Waits with a timeout.
pub(crate) async fn within<F: IntoFuture>(future: F) -> F::Output {
    tokio::time::timeout(LIMIT, future.into_future()).await.expect("it does not hang")
}

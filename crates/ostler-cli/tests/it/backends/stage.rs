//! The environment of a scenario: a backend, a scripted API, and its own home and folder.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ostler::engine::Embedded;
use ostler::{Client, Message, Options, Prompt, query};
use ostler_testkit::{RecordedRequest, Script, ScriptedApi, reply, when};
use tempfile::TempDir;

use super::{story, vendor_paths};

/// Long enough for a cold start of the slowest backend on a busy machine.
const LIMIT: Duration = Duration::from_secs(90);
/// A model that both of the vendor's programs know.
pub(super) const MODEL: &str = "claude-sonnet-4-5";

/// The engine of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backend {
    /// The engine in this process.
    Embedded,
    /// `ostler` as a child process.
    Child,
    /// The vendor's command line program 2.1.50, from the TypeScript SDK 0.2.50.
    Vendor50,
    /// The vendor's command line program 2.1.325, from the TypeScript SDK 0.3.325.
    Vendor325,
}

impl Backend {
    /// The file with the stories of this vendor program.
    pub(super) fn fixture(self) -> &'static str {
        if self == Self::Vendor50 { "older.txt" } else { "newer.txt" }
    }

    /// The version of this vendor program, from its package.
    pub(super) fn version(self) -> String {
        let variable = if self == Self::Vendor50 { "OSTLER_PEERS" } else { "OSTLER_NATIVE_PEERS" };
        let manifest = vendor_paths::package(variable, "claude-agent-sdk").join("package.json");
        let manifest = std::fs::read_to_string(manifest).unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
        manifest["claudeCodeVersion"].as_str().expect("the version of the program").to_owned()
    }

    fn options(self) -> Options {
        match self {
            Self::Embedded => Options::new().transport(Embedded),
            Self::Child => Options::new().executable(env!("CARGO_BIN_EXE_ostler")),
            Self::Vendor50 => Options::new().executable(vendor_paths::older()),
            Self::Vendor325 => Options::new().executable(vendor_paths::newer()),
        }
    }
}

/// One scenario on one backend.
pub(super) struct Stage {
    pub(super) backend: Backend,
    pub(super) api: ScriptedApi,
    pub(super) home: TempDir,
    pub(super) folder: TempDir,
    said: Mutex<Vec<String>>,
    /// The calls of callbacks, apart from the messages, because their order is not defined.
    pub(super) asked: Log,
}

/// Lines that callbacks write.
#[derive(Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(super) fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }
}

impl Stage {
    pub(super) async fn new(backend: Backend, script: Script) -> Self {
        // The older vendor program asks a small model about commands, which is not part of any story.
        let aside = Script::new().rule(when().model("claude-haiku*"), reply().text("none"));
        let api = ScriptedApi::start(aside).await;
        api.append(script);
        Self {
            backend,
            api,
            home: tempfile::tempdir().unwrap(),
            folder: tempfile::tempdir().unwrap(),
            said: Mutex::default(),
            asked: Log::default(),
        }
    }

    /// Options for a session in this environment, without the user's settings.
    pub(super) fn options(&self) -> Options {
        let home = self.home.path().display().to_string();
        let mut options = self
            .backend
            .options()
            .model(MODEL)
            .cwd(self.folder.path())
            .env("ANTHROPIC_BASE_URL", self.api.base_url())
            .env("ANTHROPIC_API_KEY", "any")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("DISABLE_TELEMETRY", "1")
            .env("DISABLE_AUTOUPDATER", "1")
            .env("IS_SANDBOX", "1")
            .env("HOME", home);
        options.engine.env.replaces = true;
        options.env("PATH", std::env::var("PATH").unwrap())
    }

    /// The requests to the conversation's model.
    pub(super) fn requests(&self) -> Vec<RecordedRequest> {
        let mut requests = self.api.requests();
        requests.retain(|request| !request.body["model"].to_string().contains("haiku"));
        requests
    }

    /// Adds a line to the story.
    pub(super) fn note(&self, line: impl Into<String>) {
        self.said.lock().unwrap().push(line.into());
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Notes whether a file exists.
    pub(super) fn note_file(&self, name: &str) {
        let there = if Path::new(&self.file(name)).exists() { "is there" } else { "is not there" };
        self.note(format!("{name} {there}"));
    }

    /// Sends one prompt, and notes everything to the end.
    pub(super) async fn query(&self, prompt: impl Into<Prompt>, options: Options) {
        let mut messages = query(prompt, options);
        while let Some(message) = self.within("a message", messages.next()).await {
            self.tell(&message);
        }
    }

    /// Starts a client.
    pub(super) async fn client(&self, options: Options) -> Client {
        self.within("the start", Client::connect(options)).await.unwrap()
    }

    /// Notes everything up to a line.
    pub(super) async fn tell_until(&self, client: &mut Client, last: &str) {
        while self.said.lock().unwrap().last().is_none_or(|line| line != last) {
            let message = self.within("a message", client.next()).await;
            self.tell(&message.expect("the session goes on"));
        }
    }

    /// Notes everything up to the next result.
    pub(super) async fn turn(&self, client: &mut Client) {
        loop {
            let Some(message) = self.within("a message", client.next()).await else {
                return self.note("over");
            };
            self.tell(&message);
            if matches!(message, Ok(Message::Result(_)) | Err(_)) {
                return;
            }
        }
    }

    /// Closes the client, and notes everything to the end.
    pub(super) async fn close(&self, client: Client) {
        // The vendor's older program takes long to end on a busy machine.
        match self.within("the end", client.close_within(LIMIT)).await {
            Ok(()) => {}
            Err(error) => self.note(format!("error {:?}", error.kind())),
        }
    }

    fn tell(&self, message: &Result<Message, ostler::Error>) {
        match message {
            Ok(message) => story::lines(message).into_iter().for_each(|line| self.note(line)),
            Err(error) => self.note(format!("error {:?}", error.kind())),
        }
    }

    /// Waits, with a time limit.
    pub(super) async fn within<T>(&self, what: &str, future: impl Future<Output = T>) -> T {
        let waited = tokio::time::timeout(LIMIT, future).await;
        waited.unwrap_or_else(|_| {
            let said = self.said.lock().unwrap().join("\n");
            panic!("{what} does not come; so far:\n{said}")
        })
    }

    /// The whole story.
    pub(super) fn story(self) -> String {
        let mut story = self.said.into_inner().unwrap();
        let asked = self.asked.0.lock().unwrap();
        story.extend(asked.iter().map(|line| format!("* {line}")));
        story.extend(
            self.api.take_failures().iter().map(|failure| format!("API: {}", failure.report)),
        );
        // Paths are not part of a story.
        let story = story.join("\n").replace(&self.folder.path().display().to_string(), "FOLDER");
        story.replace(&self.home.path().display().to_string(), "HOME")
    }
}

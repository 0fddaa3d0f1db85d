//! Options of `ostler serve` that decide what sessions may do: each is tested in a session of a real server.

use std::fs;
use std::io::{BufRead, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, ChildStdout};
use std::time::Duration;

use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::{Value, json};

use crate::run::{Ostler, Ran};

/// Far longer than any step takes.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Served {
    pub(crate) api: ScriptedApi,
    pub(crate) ostler: Ostler,
    process: Child,
    stdout: BufReader<ChildStdout>,
    pub(crate) base: String,
    pub(crate) token: String,
    pub(crate) http: reqwest::Client,
}

/// The model runs one command, or writes one file, and then reports the result.
fn script() -> Script {
    let touch = json!({"command": "touch made.txt", "description": "Make it"});
    Script::new()
        .rule(when().turn(0).prompt_contains("touch"), reply().tool_use("Bash", touch))
        .rule(
            when().turn(0).prompt_contains("write"),
            reply().tool_use("Write", json!({"file_path": "new.txt", "content": "x"})),
        )
        .rule(when(), reply().text("Done."))
}

impl Served {
    async fn start(arguments: &[&str]) -> Self {
        Self::scripted(script(), arguments).await
    }

    async fn with(arguments: &[&str], furnish: impl Fn(Ostler) -> Ostler) -> Self {
        Self::furnished(script(), arguments, furnish).await
    }

    /// With a model that follows this script.
    pub(crate) async fn scripted(script: Script, arguments: &[&str]) -> Self {
        Self::furnished(script, arguments, |ostler| ostler.env("ANTHROPIC_API_KEY", "key")).await
    }

    pub(crate) async fn furnished(
        script: Script,
        arguments: &[&str],
        furnish: impl Fn(Ostler) -> Ostler,
    ) -> Self {
        let api = ScriptedApi::start(script).await;
        let ostler = furnish(Ostler::new().env("ANTHROPIC_BASE_URL", &api.base_url()));
        Self::on(api, ostler, arguments)
    }

    /// Starts a server on the data of an earlier one.
    pub(crate) async fn again(script: Script, ostler: Ostler) -> Self {
        let api = ScriptedApi::start(script).await;
        let ostler = ostler.env("ANTHROPIC_BASE_URL", &api.base_url());
        Self::on(api, ostler, &[])
    }

    fn on(api: ScriptedApi, ostler: Ostler, arguments: &[&str]) -> Self {
        let serve = ["serve", "--listen", "127.0.0.1:0", "--show-token"];
        let mut process = ostler.spawn(&[&serve, arguments].concat());
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        let base = said(&mut stdout, "listening on ");
        let token = said(&mut stdout, "token: ");
        // A TLS provider must be installed once; another test may have done so already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
        Self { api, ostler, process, stdout, base, token, http }
    }

    /// The id of its process.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Ends the server as an operator does; returns its folder.
    pub(crate) fn end(mut self) -> Ostler {
        crate::signals::signal(&self.process, "TERM");
        assert!(self.process.wait().unwrap().success(), "the server exits successfully");
        std::mem::replace(&mut self.ostler, Ostler::new())
    }

    /// Kills the server; returns its standard error.
    pub(crate) fn errors(&mut self) -> String {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        let mut text = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        text
    }

    /// The rest of the next line of output that begins with this.
    pub(crate) fn said(&mut self, beginning: &str) -> String {
        said(&mut self.stdout, beginning)
    }

    pub(crate) async fn ask(&self, path: &str, body: Option<Value>) -> Value {
        let url = format!("{}/api{path}", self.base);
        let request = match body {
            Some(body) => self.http.post(url).json(&body),
            None => self.http.get(url),
        };
        let answer = request.bearer_auth(&self.token).send().await.unwrap();
        answer.json().await.unwrap()
    }

    /// Runs a prompt in a new session; returns the end of the run, or `waiting` if it needs approval.
    pub(crate) async fn run(&self, session: Value, prompt: &str) -> String {
        let session = self.ask("/sessions", Some(session)).await;
        let runs = format!("/sessions/{}/runs", session["id"].as_str().expect("a session"));
        let run = self.ask(&runs, Some(json!({"prompt": prompt}))).await;
        self.settled(&format!("/runs/{}", run["id"].as_str().expect("a run")), "state").await
    }

    /// The state of a run once it is over or waits for approval.
    pub(crate) async fn settled(&self, path: &str, field: &str) -> String {
        let looking = async {
            loop {
                let run = self.ask(path, None).await;
                match run[field].as_str().unwrap_or_default() {
                    "pending" | "queued" | "starting" | "running" => {
                        tokio::time::sleep(Duration::from_millis(20)).await
                    }
                    state => return state.to_owned(),
                }
            }
        };
        tokio::time::timeout(PATIENCE, looking).await.expect("it ends")
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        self.ostler.path(name).exists()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn said(stdout: &mut impl BufRead, beginning: &str) -> String {
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    line.trim().strip_prefix(beginning).unwrap_or_else(|| panic!("{line}")).to_owned()
}

const DENY: &str = r#"{"permissions": {"deny": ["Bash(touch:*)"]}}"#;

// Mutant: `config.settings` is not passed on, as it was.
#[tokio::test(flavor = "multi_thread")]
async fn deny_rules_of_serve_settings_apply_in_every_session_and_mode() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), DENY).unwrap();
    for settings in [DENY, file.path().to_str().unwrap()] {
        let served = Served::start(&["--allow-bypass", "--settings", settings]).await;
        for mode in [None, Some("acceptEdits"), Some("plan"), Some("bypassPermissions")] {
            let state = served.run(json!({"permissionMode": mode}), "touch it").await;
            assert_eq!(
                (state.as_str(), served.exists("made.txt")),
                ("completed", false),
                "{mode:?}"
            );
        }
        let task = json!({"name": "t", "taskType": "agent", "userPrompt": "touch it", "permissionMode": "bypass"});
        let task = served.ask("/tasks", Some(task)).await;
        let task = format!("/tasks/{}", task["id"].as_str().unwrap_or_else(|| panic!("{task}")));
        served.ask(&format!("{task}/execute"), Some(json!({}))).await;
        assert_eq!(served.settled(&task, "status").await, "completed");
        assert!(!served.exists("made.txt"), "in a task");
    }
    let served = Served::start(&["--allow-bypass"]).await;
    served.run(json!({"permissionMode": "bypassPermissions"}), "touch it").await;
    assert!(served.exists("made.txt"), "without the rule it runs");
}

// Mutant: `config.permission_mode` is not passed on, as it was.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_without_a_mode_use_the_mode_of_serve() {
    for (mode, prompt, state, file) in [
        ("acceptEdits", "write it", "completed", true),
        ("plan", "write it", "completed", false),
        ("dontAsk", "touch it", "completed", false),
        ("default", "write it", "waiting", false),
    ] {
        let served = Served::start(&["--permission-mode", mode]).await;
        assert_eq!(served.run(json!({}), prompt).await, state, "{mode}");
        assert_eq!(served.exists("new.txt") || served.exists("made.txt"), file, "{mode}");
        // A session that names another mode uses that one.
        let named = json!({"permissionMode": "default"});
        assert_eq!(served.run(named, "touch it").await, "waiting", "{mode}");
    }
    let served = Served::start(&["--permission-mode", "bypassPermissions", "--allow-bypass"]).await;
    assert_eq!(served.run(json!({}), "touch it").await, "completed");
    assert!(served.exists("made.txt"));
}

#[test]
fn serve_reports_errors_in_its_options_at_the_start() {
    for (arguments, expected) in [
        (&["--permission-mode", "bypassPermissions"][..], "add --allow-bypass"),
        (&["--settings", "{broken"], "--settings"),
        (&["--settings", r#"{"permissions": {"deny": ["Bash("]}}"#], "permissions.deny[0]"),
        (&["--settings", "no-such-file.json"], "no-such-file.json"),
        (&["--allowed-tools", "Bash"], "--allowed-tools"),
    ] {
        let listen = ["serve", "--listen", "127.0.0.1:0"];
        let Ran { code, stderr, .. } = Ostler::new().run(&[&listen, arguments].concat());
        assert_ne!(code, Some(0), "{arguments:?}");
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
    }
}

// Mutant: the key file is not looked at, so that every prompt fails.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_file_alone_is_enough_for_the_real_model() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "key-in-a-file").unwrap();
    fs::set_permissions(file.path(), fs::Permissions::from_mode(0o600)).unwrap();
    let arguments = ["--key-file", file.path().to_str().unwrap()];
    let served = Served::with(&arguments, |ostler| ostler.env("OSTLER_OFFLINE", "0")).await;
    assert_eq!(served.run(json!({}), "hello").await, "completed");
    let requests = served.api.requests();
    assert_eq!(requests.len(), 1);
    assert!(requests[0].has_api_key);
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_accepts_the_model_and_the_limits_before_and_after_the_command() {
    let served = Served::start(&["--model", "claude-test-model", "--max-turns", "1"]).await;
    assert_eq!(served.run(json!({}), "hello").await, "completed");
    assert_eq!(served.api.requests()[0].model(), "claude-test-model");
    let state = served.run(json!({"permissionMode": "acceptEdits"}), "write it").await;
    assert_eq!(state, "failed", "one call of the model is not enough for a tool");
}

/// The server's log for a task in a folder with this `.mcp.json`.
async fn log(arguments: &[&str], servers: Option<&str>) -> String {
    let mut served = Served::start(&[&["--trust-project"], arguments].concat()).await;
    if let Some(servers) = servers {
        fs::write(served.ostler.path(".mcp.json"), servers).unwrap();
    }
    let task = json!({"name": "t", "taskType": "agent", "userPrompt": "hello"});
    let task = served.ask("/tasks", Some(task)).await;
    let task = format!("/tasks/{}", task["id"].as_str().unwrap_or_else(|| panic!("{task}")));
    served.ask(&format!("{task}/execute"), Some(json!({}))).await;
    assert_eq!(served.settled(&task, "status").await, "completed");
    served.process.kill().unwrap();
    let mut text = String::new();
    served.process.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_prints_its_token_code_and_log_as_configured() {
    let text = log(&[], Some("{broken")).await;
    assert!(text.contains("WARN") && !text.starts_with('{'), "{text}");
    let text = log(&["--log", "json"], Some("{broken")).await;
    assert!(text.starts_with('{') && text.contains(r#""level":"WARN""#), "{text}");
    assert!(!log(&[], None).await.contains("DEBUG"));
    let text = log(&["--verbose-log"], None).await;
    assert!(text.contains("DEBUG"), "{text}");
    // All of these tests use `--show-token`.
    let ostler = Ostler::new();
    let mut process = ostler.spawn(&["serve", "--listen", "127.0.0.1:0", "--show-code"]);
    let mut stdout = BufReader::new(process.stdout.take().unwrap());
    let mut said = String::new();
    while !said.contains("the offline demo answers") {
        assert_ne!(stdout.read_line(&mut said).unwrap(), 0, "{said}");
    }
    assert!(said.contains("code for one browser") && !said.contains("token: "), "{said}");
    process.kill().unwrap();
    process.wait().unwrap();
}

/// A hostile workspace: sessions of a server read none of its instructions and commands.
// Mutant: `setting_sources` of all kinds in `runs/options.rs`.
#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_workspace_shows_a_session_nothing_from_outside() {
    const SECRET: &str = "CANARY-7f3a";
    let outside = tempfile::NamedTempFile::new().unwrap();
    fs::write(outside.path(), SECRET).unwrap();
    let served = Served::start(&[]).await;
    let commands = served.ostler.path(".claude/commands");
    fs::create_dir_all(&commands).unwrap();
    std::os::unix::fs::symlink(outside.path(), commands.join("e.md")).unwrap();
    std::os::unix::fs::symlink(outside.path(), served.ostler.path("CLAUDE.local.md")).unwrap();
    let import = format!("@{} @/proc/self/environ", outside.path().display());
    fs::write(served.ostler.path("CLAUDE.md"), import).unwrap();
    for prompt in ["hello", "/e"] {
        assert_eq!(served.run(json!({}), prompt).await, "completed");
    }
    let requests: String = served.api.requests().iter().map(|it| it.body.to_string()).collect();
    assert!(requests.contains("hello") && !requests.contains(SECRET));
}

// Seen to fail with `checks_changes` that is true for every engine: the changed command ran.
#[tokio::test(flavor = "multi_thread")]
async fn arguments_cannot_be_changed_where_another_program_is_the_engine() {
    let served = Served::start(&["--engine", crate::run::PROGRAM]).await;
    assert_eq!(served.run(json!({}), "touch it").await, "waiting");
    let asked = served.ask("/approvals", None).await["items"][0].clone();
    let id = asked["id"].as_str().unwrap_or_else(|| panic!("{asked}"));
    let (decision, changed) = (format!("/approvals/{id}/decision"), json!({"command": "touch b"}));
    let body = json!({"approved": true, "input": changed});
    let refused = served.ask(&decision, Some(body)).await;
    assert_eq!(refused["error"]["field"], "input", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("--engine"), "{refused}");
    let edited = json!({"approved": true, "editedArgs": changed});
    let answer = json!([{"interruptId": id, "status": "resolved", "payload": edited}]);
    let session = &asked["session"];
    let input = json!({"threadId": session, "runId": "r", "messages": [], "tools": [], "context": [], "resume": answer});
    let url = format!("{}/agui", served.base);
    let answer =
        served.http.post(url).bearer_auth(&served.token).json(&input).send().await.unwrap();
    let answer = answer.text().await.unwrap();
    assert!(!answer.contains("RUN_FINISHED") || answer.contains("interrupt"), "{answer}");
    assert_eq!(served.ask(&format!("/approvals/{id}"), None).await["state"], "pending");
    assert!(!served.exists("b") && !served.exists("made.txt"));
    served.ask(&decision, Some(json!({"approved": true}))).await;
    let run = format!("/runs/{}", asked["run"].as_str().unwrap());
    let looking = async {
        while served.ask(&run, None).await["state"] != "completed" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.expect("it ends");
    assert!(served.exists("made.txt") && !served.exists("b"), "the approved command runs");
}

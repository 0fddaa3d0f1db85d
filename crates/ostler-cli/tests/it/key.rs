//! `ostler serve` with a key: an agent's commands look for the key.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::run::PROGRAM;

const KEY: &str = "canary-real-key-0123456789";
/// A user without rights, for tests that run as root: root can read everything.
const NOBODY: u32 = 65_534;
/// Far longer than any step takes.
const PATIENCE: Duration = Duration::from_secs(90);

/// A server in a separate process, with folders that its user can use.
struct Served {
    child: Child,
    base: String,
    token: String,
    api: ScriptedApi,
    http: reqwest::Client,
    _folder: TempDir,
}

/// The user that runs the server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum As {
    Unprivileged,
    Current,
}

impl Served {
    async fn start(script: Script, engine: Option<&Path>, user: As) -> Self {
        let api = ScriptedApi::start(script).await;
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("ostler");
        // Copied by another process: a process started meanwhile by this one would hold the copy open, and it could not
        // be run.
        assert!(Command::new("cp").arg(PROGRAM).arg(&program).status().unwrap().success());
        let (home, work) = (folder.path().join("home"), folder.path().join("work"));
        let drops = user == As::Unprivileged && rustix::process::geteuid().is_root();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for place in [&home, &work] {
            fs::create_dir(place).unwrap();
            if drops {
                chown(place, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        let mut command = Command::new(&program);
        command.args(["--model", "claude-sonnet-4-5", "serve", "--listen", "127.0.0.1:0"]);
        command.args(["--show-token", "--data"]).arg(home.join("data")).current_dir(&work);
        match engine {
            Some(engine) if engine == Path::new(PROGRAM) => command.arg("--engine").arg(&program),
            Some(engine) => command.arg("--engine").arg(engine),
            None => &mut command,
        };
        if drops {
            command.uid(NOBODY).gid(NOBODY);
        }
        let path = std::env::var("PATH").unwrap();
        command.env_clear().env("PATH", path).env("HOME", &home);
        command.env("ANTHROPIC_API_KEY", KEY).env("ANTHROPIC_BASE_URL", api.base_url());
        for flag in [
            "IS_SANDBOX",
            "DISABLE_TELEMETRY",
            "DISABLE_AUTOUPDATER",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        ] {
            command.env(flag, "1");
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut said = |beginning: &str| {
            let line = lines.find_map(|line| Some(line.strip_prefix(beginning)?.to_owned()));
            line.unwrap_or_else(|| panic!("the server did not say {beginning}"))
        };
        let (base, token) = (said("listening on "), said("token: "));
        // A TLS provider must be installed once; another test may have done so already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
        Self { child, base, token, api, http, _folder: folder }
    }

    async fn ask(&self, path: &str, body: Option<Value>) -> Value {
        let url = format!("{}/api{path}", self.base);
        let request = match body {
            Some(body) => self.http.post(url).json(&body),
            None => self.http.get(url),
        };
        let answer = request.bearer_auth(&self.token).send().await.unwrap();
        let status = answer.status();
        let answer: Value = answer.json().await.unwrap();
        assert!(status.is_success(), "{path}: {status} {answer}");
        answer
    }

    async fn until(&self, path: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let looking = async {
            loop {
                let value = self.ask(path, None).await;
                if is_it(&value) {
                    return value;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        match tokio::time::timeout(PATIENCE, looking).await {
            Ok(value) => value,
            Err(_) => panic!("{path}: {}", self.ask(path, None).await),
        }
    }

    /// Has the agent run its command, and approves it; returns the command's output, and the session.
    async fn run(&self) -> (String, String) {
        let session = self.ask("/sessions", Some(json!({}))).await;
        let runs = format!("/sessions/{}/runs", session["id"].as_str().unwrap());
        let run = self.ask(&runs, Some(json!({"prompt": "look around"}))).await;
        let asked = self.until("/approvals", |list| list["items"][0].is_object()).await;
        let asked = &asked["items"][0];
        let decision = format!("/approvals/{}/decision", asked["id"].as_str().unwrap());
        self.ask(&decision, Some(json!({"approved": true, "digest": asked["digest"]}))).await;
        let path = format!("/runs/{}", run["id"].as_str().unwrap());
        let over = self.until(&path, |run| run["ended"].is_u64()).await;
        assert_eq!(over["state"], "completed", "{over}");
        let requests = self.api.requests();
        let last = requests.iter().rev().find_map(|request| request.tool_results().pop());
        (last.unwrap().text, session["id"].as_str().unwrap().to_owned())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn looks(command: &str) -> Script {
    Script::new()
        .rule(when().has_tool_result(true), reply().text("seen"))
        .rule(when(), reply().tool_use("Bash", json!({"command": command, "description": "look"})))
}

/// Prints its own environment, and the environment and arguments of every process from itself up to the server. Not
/// further: other processes of this machine do not matter.
fn up_to(server: u32) -> String {
    format!(
        "env; at=$$; while :; do \
         tr '\\0' '\\n' < /proc/$at/cmdline; tr '\\0' '\\n' < /proc/$at/environ; \
         [ $at -eq {server} ] && echo reached && break; [ $at -le 1 ] && break; \
         at=$(sed -n 's/^PPid:[^0-9]*//p' /proc/$at/status); \
         done 2>/dev/null; echo end"
    )
}

async fn check(engine: Option<&Path>, user: As) {
    let served = Served::start(Script::new(), engine, user).await;
    let command = match user {
        As::Unprivileged => up_to(served.child.id()),
        // Root can read everything, so this test would prove nothing.
        As::Current => "env; echo reached; echo end".to_owned(),
    };
    served.api.append(looks(&command));
    let (seen, session) = served.run().await;
    assert!(seen.contains("ANTHROPIC_BASE_URL=http://127.0.0.1:"), "{seen}");
    assert!(seen.contains("\nreached\nend"), "{seen}");
    assert!(!seen.contains(KEY), "the key was found: {seen}");
    assert!(!seen.contains(&served.api.base_url()), "only the server may connect to it: {seen}");
    // The program's session file stays where the program will look for it.
    let url = format!("{}/api/sessions/{session}", served.base);
    let moved = served.http.patch(url).bearer_auth(&served.token).json(&json!({"cwd": "."}));
    let expected = if engine.is_some() { 409 } else { 200 };
    assert_eq!(moved.send().await.unwrap().status(), expected);
}

// Seen to fail with a server that other processes can read (without `shut_the_blinds`).
#[tokio::test]
async fn a_command_of_an_embedded_engine_does_not_find_the_key() {
    check(None, As::Unprivileged).await;
}

// Seen to fail likewise, and with a server that passes its environment on.
#[tokio::test]
async fn a_command_of_an_engine_process_does_not_find_the_key() {
    check(Some(Path::new(PROGRAM)), As::Unprivileged).await;
}

/// A vendor program, in a folder that `cargo xtask test` names.
fn vendors() -> PathBuf {
    let folder =
        std::env::var_os("OSTLER_NATIVE_PEERS").expect("it names a folder with npm packages");
    let machine = std::env::consts::ARCH.replace("x86_64", "x64").replace("aarch64", "arm64");
    let package = format!("node_modules/@anthropic-ai/claude-agent-sdk-linux-{machine}/claude");
    PathBuf::from(folder).canonicalize().unwrap().join(package)
}

#[tokio::test]
#[ignore = "needs npm packages; run by cargo xtask test"]
async fn a_command_of_the_vendors_engine_does_not_find_the_key() {
    check(Some(&vendors()), As::Current).await;
}

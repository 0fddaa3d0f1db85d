//! MCP servers that people use, from npm and PyPI, in a session. The scripted model refuses tools and results that the
//! Messages API refuses.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::{Value, json};

use crate::run::Ostler;
use crate::talk::Talk;
use crate::tmux::eventually;

/// Only a broken server takes this long.
const PATIENCE: Duration = Duration::from_secs(60);

fn installed(variable: &str, path: &str) -> String {
    let folder = env::var_os(variable).unwrap_or_else(|| panic!("{variable} names a folder"));
    let path = fs::canonicalize(folder).unwrap().join(path);
    assert!(path.exists(), "{} is not installed", path.display());
    path.to_str().unwrap().to_owned()
}

fn npm(path: &str) -> String {
    installed("OSTLER_MCP_PEERS", &format!("node_modules/{path}"))
}

/// The settings of a server that Node runs.
fn node(path: &str, arguments: &[&str]) -> Value {
    let mut all = vec![npm(path)];
    all.extend(arguments.iter().map(|argument| (*argument).to_owned()));
    json!({"command": "node", "args": all})
}

fn everything() -> Value {
    node("@modelcontextprotocol/server-everything/dist/index.js", &["stdio"])
}

fn filesystem(folder: &Path) -> Value {
    node("@modelcontextprotocol/server-filesystem/dist/index.js", &[folder.to_str().unwrap()])
}

fn memory(file: &Path) -> Value {
    let mut server = node("@modelcontextprotocol/server-memory/dist/index.js", &[]);
    server["env"] = json!({"MEMORY_FILE_PATH": file});
    server
}

fn git() -> Value {
    json!({"command": installed("OSTLER_MCP_PYTHON", "bin/mcp-server-git")})
}

fn playwright() -> Value {
    node("@playwright/mcp/cli.js", &["--headless"])
}

/// A session with servers, and a model that calls tools one after the other.
struct Session {
    _api: ScriptedApi,
    talk: Talk,
}

impl Session {
    async fn start(ostler: Ostler, servers: Value, calls: &[(&str, Value)]) -> (Ostler, Self) {
        // What a server asks the model.
        let sampled = when().prompt_contains("Who are you?");
        let mut script = Script::new().rule(sampled, reply().text("The model."));
        for (turn, (tool, arguments)) in calls.iter().enumerate() {
            let call = reply().tool_use(format!("mcp__{tool}"), arguments.clone());
            script = script.rule(when().turn(turn), call);
        }
        let api = ScriptedApi::start(script.rule(when(), reply().text("done"))).await;
        let ostler =
            ostler.env("ANTHROPIC_API_KEY", "key").env("ANTHROPIC_BASE_URL", &api.base_url());
        let names: Vec<_> = servers.as_object().unwrap().keys().cloned().collect();
        let mut allowed: Vec<_> = names.iter().map(|name| format!("mcp__{name}")).collect();
        allowed.push("McpSampling".to_owned());
        let config = json!({"mcpServers": servers}).to_string();
        let allowed = format!("--allowedTools={}", allowed.join(","));
        let talk = Talk::with(&ostler, &["--mcp-config", &config, &allowed]);
        let mut session = Self { _api: api, talk };
        session.wait();
        (ostler, session)
    }

    /// Waits until all servers are connected.
    fn wait(&mut self) {
        let begun = Instant::now();
        loop {
            let status = self.status();
            if status.iter().all(|server| server["status"] == "connected") {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "not all are connected: {status:?}");
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn status(&mut self) -> Vec<Value> {
        let status = self.talk.asked(json!({"subtype": "mcp_status"}));
        status["mcpServers"].as_array().unwrap().clone()
    }

    fn tools(&mut self, server: &str) -> Vec<String> {
        let status = self.status();
        let status = status.iter().find(|status| status["name"] == server).unwrap();
        let tools = status["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Lets the model make its calls; returns the content of the results.
    fn results(&mut self) -> Vec<Value> {
        self.talk.say("go", None);
        assert_eq!(self.talk.result()["result"], "done", "{:?}", self.talk.heard);
        let messages = self.talk.heard.iter().filter(|frame| frame["type"] == "user");
        let blocks = messages.filter_map(|frame| frame["message"]["content"].as_array());
        blocks.flatten().filter(|block| block["type"] == "tool_result").cloned().collect()
    }
}

/// A server of the package, which listens on a free port, and the address.
fn listening(transport: &str) -> (Child, u16) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    (listening_at(transport, port), port)
}

fn listening_at(transport: &str, port: u16) -> Child {
    let mut server = Command::new("node");
    server.arg(npm("@modelcontextprotocol/server-everything/dist/index.js")).arg(transport);
    server.env("PORT", port.to_string()).stdin(Stdio::null());
    let server = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let listens = || TcpStream::connect(("127.0.0.1", port)).is_ok();
    eventually(listens, || format!("a server on port {port}"));
    server
}

/// The reference server has one tool for each feature of MCP.
async fn check_everything(server: Value) {
    let calls = [
        ("all__echo", json!({"message": "hello"})),
        ("all__get-tiny-image", json!({})),
        ("all__get-structured-content", json!({"location": "Chicago"})),
        ("all__get-roots-list", json!({})),
        ("all__get-annotated-message", json!({"messageType": "error", "includeImage": true})),
        ("all__get-resource-links", json!({"count": 2})),
        ("all__trigger-sampling-request", json!({"prompt": "Who are you?", "maxTokens": 50})),
        ("all__simulate-research-query", json!({"topic": "tea"})),
    ];
    let (ostler, mut session) = Session::start(Ostler::new(), json!({"all": server}), &calls).await;
    // One of them is offered only to clients that have roots.
    let tools = session.tools("all");
    assert!(tools.contains(&"get-roots-list".to_owned()), "{tools:?}");
    let results = session.results();
    assert_eq!(results.len(), calls.len(), "{results:?}");
    for ((tool, _), result) in calls.iter().zip(&results) {
        assert_ne!(result["is_error"], true, "{tool}: {result}");
    }
    let text = |at: usize| results[at]["content"].to_string();
    assert!(text(0).contains("hello"), "{}", text(0));
    assert!(text(1).contains("image/png"), "{}", text(1));
    assert!(text(2).contains("temperature"), "{}", text(2));
    let folder = fs::canonicalize(ostler.folder.path()).unwrap();
    assert!(text(3).contains(folder.to_str().unwrap()), "{}", text(3));
    assert!(text(5).contains("demo://resource"), "{}", text(5));
    assert!(text(6).contains("The model."), "{}", text(6));
    // It runs only as a task.
    assert!(text(7).contains("tea"), "{}", text(7));
    assert_eq!(session.talk.end().code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs servers from npm: cargo xtask test"]
async fn the_reference_server_works_over_stdio() {
    check_everything(everything()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs servers from npm: cargo xtask test"]
async fn the_reference_server_works_over_streamable_http() {
    let (mut server, port) = listening("streamableHttp");
    let url = format!("http://127.0.0.1:{port}/mcp");
    check_everything(json!({"type": "http", "url": url})).await;
    server.kill().unwrap();
    server.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs servers from npm: cargo xtask test"]
async fn the_reference_server_works_over_sse() {
    let (mut server, port) = listening("sse");
    let url = format!("http://127.0.0.1:{port}/sse");
    check_everything(json!({"type": "sse", "url": url})).await;
    server.kill().unwrap();
    server.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs servers from npm: cargo xtask test"]
async fn a_server_behind_a_url_is_used_again_after_its_restart() {
    for (transport, kind, path) in [("streamableHttp", "http", "mcp"), ("sse", "sse", "sse")] {
        let (mut server, port) = listening(transport);
        let url = format!("http://127.0.0.1:{port}/{path}");
        let servers = json!({"all": {"type": kind, "url": url}});
        let ostler = Ostler::new().env("OSTLER_MCP_RETRY_MS", "20");
        let calls = [("all__echo", json!({"message": "back again"}))];
        let (_ostler, mut session) = Session::start(ostler, servers, &calls).await;
        server.kill().unwrap();
        server.wait().unwrap();
        let mut server = listening_at(transport, port);
        let results = session.results();
        assert!(results[0]["content"].to_string().contains("back again"), "{kind}: {results:?}");
        assert_eq!(session.talk.end().code, Some(0));
        server.kill().unwrap();
        server.wait().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs servers from npm: cargo xtask test"]
async fn the_file_server_is_restricted_to_the_folder_of_the_session() {
    // The roots of the client replace the folder of the command line.
    let elsewhere = tempfile::tempdir().unwrap();
    let secret = elsewhere.path().join("secret.txt");
    fs::write(&secret, "not yours").unwrap();
    let ostler = Ostler::new();
    let readme = fs::canonicalize(ostler.path("README.md")).unwrap();
    let calls = [
        // The server learns the roots after it has said that it is ready. It looks at them while it answers this.
        ("files__list_directory", json!({"path": elsewhere.path()})),
        ("files__read_text_file", json!({"path": readme})),
        ("files__write_file", json!({"path": ostler.path("new.txt"), "content": "written"})),
        ("files__read_text_file", json!({"path": secret})),
    ];
    let servers = json!({"files": filesystem(elsewhere.path())});
    let (ostler, mut session) = Session::start(ostler, servers, &calls).await;
    let results = session.results();
    assert!(results[1]["content"].to_string().contains("# A readme"), "{}", results[1]);
    assert_eq!(fs::read_to_string(ostler.path("new.txt")).unwrap(), "written");
    assert_eq!(results[3]["is_error"], true, "{}", results[3]);
    assert!(!results[3].to_string().contains("not yours"), "{}", results[3]);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs servers from npm: cargo xtask test"]
async fn the_memory_server_keeps_what_it_was_told() {
    let ostler = Ostler::new();
    let entity = json!({"name": "Ada", "entityType": "person", "observations": ["likes tea"]});
    let calls = [
        ("memory__create_entities", json!({"entities": [entity]})),
        ("memory__read_graph", json!({})),
    ];
    let servers = json!({"memory": memory(&ostler.path("memory.json"))});
    let (ostler, mut session) = Session::start(ostler, servers, &calls).await;
    let results = session.results();
    assert!(results[1]["content"].to_string().contains("likes tea"), "{}", results[1]);
    assert!(fs::read_to_string(ostler.path("memory.json")).unwrap().contains("likes tea"));
}

/// A repository with one commit, and a file that is not committed.
fn repository(folder: &Path) -> PathBuf {
    let commands: [&[&str]; 4] = [
        &["init", "--quiet", "."],
        &["add", "README.md"],
        &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "the first one"],
        &["status", "--short"],
    ];
    for arguments in commands {
        assert!(
            Command::new("git").args(arguments).current_dir(folder).status().unwrap().success()
        );
    }
    fs::write(folder.join("new.txt"), "").unwrap();
    fs::canonicalize(folder).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a server from PyPI: cargo xtask test"]
async fn the_git_server_reads_the_repository() {
    let ostler = Ostler::new();
    let path = repository(ostler.folder.path());
    let calls = [
        ("git__git_status", json!({"repo_path": path})),
        ("git__git_log", json!({"repo_path": path})),
    ];
    let (_ostler, mut session) = Session::start(ostler, json!({"git": git()}), &calls).await;
    let results = session.results();
    assert!(results[0]["content"].to_string().contains("new.txt"), "{}", results[0]);
    assert!(results[1]["content"].to_string().contains("the first one"), "{}", results[1]);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs servers from npm and PyPI: cargo xtask test"]
async fn all_of_them_serve_one_session() {
    let ostler = Ostler::new();
    let servers = json!({
        "all": everything(),
        "browser": playwright(),
        "files": filesystem(ostler.folder.path()),
        "git": git(),
        "memory": memory(&ostler.path("memory.json")),
    });
    let calls =
        [("memory__read_graph", json!({})), ("all__echo", json!({"message": "still here"}))];
    let (_ostler, mut session) = Session::start(ostler, servers, &calls).await;
    assert!(session.tools("browser").contains(&"browser_navigate".to_owned()));
    let results = session.results();
    assert!(results[1]["content"].to_string().contains("still here"), "{}", results[1]);
    assert_eq!(session.talk.end().code, Some(0));
}

//! Questions about hosts through every way in which a user can be asked, and from every kind of program in the sandbox.
//!
//! The host is always `localhost`, and a sandbox never connects to this machine: one that may be reached shows in the result
//! as one that leads here.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use ostler::options::SandboxSettings;
use ostler::{Decision, Message, Options, query};
use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use crate::run::{Ostler, PROGRAM};
use crate::serve_options::Served;
use crate::talk::Talk;
use crate::tmux::{Window, eventually};

const MAY_REACH: &str = "it leads to";
const FETCH: &str = "curl -sS --noproxy '' http://localhost/x";

fn yes() -> Value {
    json!({"behavior": "allow", "updatedInput": {"host": "localhost"}})
}

fn no() -> Value {
    json!({"behavior": "deny", "message": "no"})
}

/// A model that runs this command once, and then ends its turns.
fn once(bash: Value) -> Script {
    Script::new()
        .rule(when().turn(0), reply().tool_use("Bash", bash))
        .rule(when(), reply().text("Done."))
}

/// A session over frames, with a sandbox.
struct Frames {
    api: ScriptedApi,
    ostler: Ostler,
    talk: Talk,
}

async fn frames(script: Script, settings: Value, arguments: &[&str]) -> Frames {
    let api = ScriptedApi::start(script).await;
    let ostler = Ostler::new()
        .env("ANTHROPIC_API_KEY", "key")
        .env("ANTHROPIC_BASE_URL", &api.base_url())
        .env("IS_SANDBOX", "1");
    let mut all = json!({"sandbox": {"enabled": true}});
    all.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
    let settings = all.to_string();
    let flags = [&["--permission-prompt-tool=stdio", "--settings", &settings], arguments].concat();
    let talk = Talk::with(&ostler, &flags);
    Frames { api, ostler, talk }
}

impl Frames {
    /// The next question, which must be about the host.
    fn question(&mut self) -> Value {
        let frame = self.talk.until(|frame| frame["request"]["subtype"] == "can_use_tool");
        let request = &frame["request"];
        assert_eq!(request["tool_name"], "SandboxNetworkAccess", "{frame}");
        assert_eq!(request["input"], json!({"host": "localhost"}), "{frame}");
        assert_eq!(request["title"], "Connect to localhost?", "{frame}");
        frame
    }

    /// The content of a file once it contains this.
    fn file(&self, name: &str, part: &str) -> String {
        let path = self.ostler.path(name);
        let text = || fs::read_to_string(&path).unwrap_or_default();
        eventually(|| text().contains(part), || format!("{part} in {name}: {}", text()));
        text()
    }
}

// Mutants: the proxy of a command ends with its call; one answer for all programs.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_in_the_background_asks_after_its_turn() {
    for (answer, expected) in [(yes(), MAY_REACH), (no(), "the user denied it")] {
        let line =
            format!("while [ ! -e go ]; do sleep 0.02; done; {FETCH} > out 2>&1; echo end >> out");
        let bash = json!({"command": line, "description": "Later", "run_in_background": true});
        let again = json!({"command": format!("{FETCH}; exit 1"), "description": "Now"});
        let script = Script::new()
            .rule(when().turn(0), reply().tool_use("Bash", bash))
            .rule(when().turn(2), reply().tool_use("Bash", again))
            .rule(when(), reply().text("Done."));
        let mut frames = frames(script, json!({}), &[]).await;
        frames.talk.say("go", None);
        frames.talk.result();
        fs::write(frames.ostler.path("go"), "").unwrap();
        let question = frames.question();
        let description = question["request"]["description"].as_str().unwrap();
        assert!(description.contains("while [ ! -e go ]"), "{description}");
        frames.talk.answer(&question, answer);
        let out = frames.file("out", "end");
        assert!(out.contains(expected), "{out}");
        // Another command has its own question.
        frames.talk.say("again", None);
        let question = frames.question();
        frames.talk.answer(&question, no());
        frames.talk.result();
        frames.talk.end();
    }
}

// Mutants: hooks and MCP servers ask no one; a no counts as a yes.
#[tokio::test(flavor = "multi_thread")]
async fn hooks_and_mcp_servers_ask_too() {
    let write = |name: &str| format!("{FETCH} > {name} 2>&1; echo end >> {name}");
    let hook = json!({"hooks": [{"type": "command", "command": write("hook.txt")}]});
    let hooks = json!({"hooks": {"UserPromptSubmit": [hook]}});
    let server = json!({"type": "stdio", "command": "sh", "args": ["-c", write("server.txt")]});
    let servers = json!({"mcpServers": {"docs": server}}).to_string();
    for (settings, arguments, name, who) in [
        (hooks, vec![], "hook.txt", "The UserPromptSubmit hook `curl"),
        (json!({}), vec!["--mcp-config", &servers], "server.txt", "The MCP server docs"),
    ] {
        for (answer, expected) in [(yes(), MAY_REACH), (no(), "the user denied it")] {
            let script = Script::new().rule(when(), reply().text("Done."));
            let mut frames = frames(script, settings.clone(), &arguments).await;
            frames.talk.say("go", None);
            let question = frames.question();
            let description = question["request"]["description"].as_str().unwrap();
            assert!(description.starts_with(who), "{description}");
            frames.talk.answer(&question, answer);
            let text = frames.file(name, "end");
            assert!(text.contains(expected), "{text}");
            frames.talk.result();
            frames.talk.end();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_no_user_can_answer_the_reason_is_stated() {
    let write = |name: &str| format!("{FETCH} > {name} 2>&1; echo end >> {name}");
    let hook = |name: &str| json!([{"hooks": [{"type": "command", "command": write(name)}]}]);
    let bash = json!({"command": format!("{FETCH}; exit 1"), "description": "Try"});
    let ending = |mode: &'static str, network: Value| async move {
        let api = ScriptedApi::start(once(bash.clone())).await;
        let ostler = Ostler::new()
            .env("ANTHROPIC_API_KEY", "key")
            .env("ANTHROPIC_BASE_URL", &api.base_url())
            .env("IS_SANDBOX", "1");
        let settings = json!({
            "sandbox": {"enabled": true, "network": network},
            "permissions": {"allow": ["Bash"]},
            "hooks": {"UserPromptSubmit": hook("prompt.txt"), "SessionEnd": hook("end.txt"), "Setup": hook("setup.txt")},
        });
        let ran = ostler.run(&[
            "-p",
            "go",
            "--init",
            "--settings",
            &settings.to_string(),
            "--permission-mode",
            mode,
        ]);
        let body = api.requests().last().unwrap().body.to_string();
        let files = ["prompt.txt", "end.txt", "setup.txt"];
        let texts = files.map(|name| fs::read_to_string(ostler.path(name)).unwrap_or_default());
        (body, texts, ran)
    };
    let (body, texts, _) = ending("default", json!({})).await;
    assert!(body.contains("there is no one to ask"), "{body}");
    assert!(body.contains("sandbox.network.allowedDomains"), "{body}");
    for text in texts {
        assert!(text.contains("there is no one to ask"), "{text}");
    }
}

// The session waits for these hooks before it receives answers, and after it has received the last one.
// Mutant: hooks wait for a session that waits for them.
#[tokio::test(flavor = "multi_thread")]
async fn a_hook_before_or_after_the_session_is_refused_with_the_reason() {
    let write = |name: &str| format!("{FETCH} > {name} 2>&1; echo end >> {name}");
    let hook = |name: &str| json!([{"hooks": [{"type": "command", "command": write(name)}]}]);
    let hooks = json!({"hooks": {"Setup": hook("setup.txt"), "SessionEnd": hook("end.txt")}});
    let script = Script::new().rule(when(), reply().text("Done."));
    let mut frames = frames(script, hooks, &["--init"]).await;
    frames.talk.say("go", None);
    frames.talk.result();
    let setup = frames.file("setup.txt", "end");
    assert!(setup.contains("the session has not begun"), "{setup}");
    let Frames { talk, ostler, api: _api } = frames;
    talk.end();
    let end = fs::read_to_string(ostler.path("end.txt")).unwrap();
    assert!(end.contains("did not answer"), "{end}");
}

// Mutant: `names_another` answers no.
#[tokio::test(flavor = "multi_thread")]
async fn a_yes_to_another_host_is_not_a_yes() {
    let bash = json!({"command": format!("{FETCH}; exit 1"), "description": "Try"});
    let mut frames = frames(once(bash), json!({}), &[]).await;
    frames.talk.say("go", None);
    let question = frames.question();
    let other = json!({"behavior": "allow", "updatedInput": {"host": "other.example"}});
    frames.talk.answer(&question, other);
    frames.talk.result();
    let body = frames.api.requests().last().unwrap().body.to_string();
    assert!(body.contains("names another host") && !body.contains(MAY_REACH), "{body}");
    frames.talk.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_terminal_one_key_answers() {
    for (key, expected) in [("y", MAY_REACH), ("n", "the user denied it")] {
        let bash = json!({"command": format!("{FETCH}; exit 1"), "description": "Try"});
        let api = ScriptedApi::start(once(bash)).await;
        let ostler = Ostler::new()
            .env("ANTHROPIC_API_KEY", "key")
            .env("ANTHROPIC_BASE_URL", &api.base_url());
        let settings = json!({"sandbox": {"enabled": true}}).to_string();
        fs::write(ostler.path("settings.json"), settings).unwrap();
        let window = Window::open(&ostler, 100, &["--settings", "settings.json"]);
        window.shows(">");
        window.type_line("go");
        window.shows("Connect to localhost?");
        window.shows("The command `curl");
        window.shows("this session: WebFetch(domain:localhost)");
        window.press(key);
        window.shows("Done.");
        let body = api.requests().last().unwrap().body.to_string();
        assert!(body.contains(expected), "{body}");
    }
}

// Also between two turns, while the terminal waits for the next prompt.
#[tokio::test(flavor = "multi_thread")]
async fn at_the_terminal_a_command_in_the_background_asks_too() {
    let line =
        format!("while [ ! -e go ]; do sleep 0.02; done; {FETCH} > out 2>&1; echo end >> out");
    let bash = json!({"command": line, "description": "Later", "run_in_background": true});
    let api = ScriptedApi::start(once(bash)).await;
    let ostler =
        Ostler::new().env("ANTHROPIC_API_KEY", "key").env("ANTHROPIC_BASE_URL", &api.base_url());
    fs::write(ostler.path("settings.json"), json!({"sandbox": {"enabled": true}}).to_string())
        .unwrap();
    let window = Window::open(&ostler, 100, &["--settings", "settings.json"]);
    window.shows(">");
    window.type_line("go");
    window.shows_times(1, "2 turns");
    fs::write(ostler.path("go"), "").unwrap();
    window.shows("Connect to localhost?");
    window.shows("this session: WebFetch(domain:localhost)");
    window.press("y");
    let text = || fs::read_to_string(ostler.path("out")).unwrap_or_default();
    eventually(|| text().contains("end"), text);
    assert!(text().contains(MAY_REACH), "{}", text());
}

/// The options of an SDK program whose engine is the one in this process.
async fn sdk(answer: bool) -> (ScriptedApi, tempfile::TempDir, Options, Arc<Mutex<Vec<String>>>) {
    ostler::engine::sandbox::use_helper(PROGRAM.into());
    let bash = json!({"command": format!("{FETCH}; exit 1"), "description": "Try"});
    let api = ScriptedApi::start(once(bash)).await;
    let folder = tempfile::tempdir().unwrap();
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&asked);
    let mut options = Options::new().model("claude-sonnet-4-5").on_permission(move |request| {
        log.lock().unwrap().push(format!("{} {}", request.tool_name, request.input["host"]));
        async move { if answer { Decision::allow() } else { Decision::deny("no") } }
    });
    let (base, home) = (api.base_url(), folder.path().to_str().unwrap().to_owned());
    for (name, value) in
        [("ANTHROPIC_API_KEY", "key".to_owned()), ("ANTHROPIC_BASE_URL", base), ("HOME", home)]
    {
        options = options.env(name, value);
    }
    options.context.cwd = Some(folder.path().to_owned());
    options.context.sandbox =
        Some(SandboxSettings { enabled: Some(true), ..SandboxSettings::default() });
    (api, folder, options, asked)
}

// Also: typed prompts and the SDK take the same settings, and see what was enforced.
#[tokio::test(flavor = "multi_thread")]
async fn a_callback_of_the_rust_sdk_answers() {
    for (answer, expected) in [(true, MAY_REACH), (false, "the user denied it")] {
        let (api, _folder, options, asked) = sdk(answer).await;
        let mut messages = query("go", options);
        let mut attested = Vec::new();
        while let Some(message) = messages.next().await {
            if let Message::Result(result) = message.unwrap() {
                attested.push(result.extra.get("sandbox").cloned().unwrap_or_default());
            }
        }
        assert_eq!(*asked.lock().unwrap(), ["SandboxNetworkAccess \"localhost\""]);
        let body = api.requests().last().unwrap().body.to_string();
        assert!(body.contains(expected), "{body}");
        assert_eq!(attested[0]["network"], "allow-list", "{attested:?}");
    }
}

// Mutant: `Response::sandbox` is always missing.
#[tokio::test(flavor = "multi_thread")]
async fn a_typed_prompt_runs_in_the_sandbox_and_sees_what_was_enforced() {
    use ostler_prompt::{Adapter, Markdown, Prompt, Session};
    let (api, folder, options, asked) = sdk(true).await;
    let prompt = Prompt::<()>::builder("try", "it")
        .section(Markdown::new("Task", "task", "Go."))
        .build()
        .unwrap();
    let response = Adapter::new(options).evaluate(&prompt, &Session::new()).await.unwrap();
    let sandbox = response.sandbox.expect("what was enforced");
    let root = folder.path().canonicalize().unwrap();
    assert!(sandbox["writable"].as_array().unwrap().contains(&json!(root)), "{sandbox}");
    assert_eq!(asked.lock().unwrap().len(), 1);
    let body = api.requests().last().unwrap().body.to_string();
    assert!(body.contains(MAY_REACH), "{body}");
}

/// A user of a server.
struct User<'a> {
    served: &'a Served,
    token: String,
}

impl<'a> User<'a> {
    async fn new(served: &'a Served, name: &str, role: &str) -> Self {
        served.ask("/users", Some(json!({"name": name, "role": role}))).await;
        let issued =
            served.ask(&format!("/users/{name}/tokens"), Some(json!({"label": "test"}))).await;
        Self { served, token: issued["token"].as_str().expect("a token").to_owned() }
    }

    async fn ask(&self, path: &str, body: Option<Value>) -> Value {
        let url = format!("{}{path}", self.served.base);
        let request = match body {
            Some(body) => self.served.http.post(url).json(&body),
            None => self.served.http.get(url),
        };
        let text = request.bearer_auth(&self.token).send().await.unwrap().text().await.unwrap();
        serde_json::from_str(&text).unwrap_or(Value::String(text))
    }

    /// Starts a run in a session, or in a new one.
    async fn start(&self, session: Option<&str>) -> (String, String) {
        let session = match session {
            Some(session) => session.to_owned(),
            None => {
                let made = self.ask("/api/sessions", Some(json!({}))).await;
                made["id"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
            }
        };
        let runs = format!("/api/sessions/{session}/runs");
        let run = self.ask(&runs, Some(json!({"prompt": "go"}))).await;
        (session, run["id"].as_str().unwrap_or_else(|| panic!("{run}")).to_owned())
    }

    /// The next question about a host; approves everything else.
    async fn question(&self) -> Value {
        for _ in 0..3_000 {
            let pending = self.ask("/api/approvals", None).await;
            for approval in pending["items"].as_array().unwrap() {
                if approval["toolName"] == "SandboxNetworkAccess" {
                    return approval.clone();
                }
                self.decide(approval, json!({"approved": true})).await;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("no question")
    }

    async fn decide(&self, approval: &Value, decision: Value) -> Value {
        let path = format!("/api/approvals/{}/decision", approval["id"].as_str().unwrap());
        self.ask(&path, Some(decision)).await
    }

    /// The end of a run. Approves commands, and fails if there is a question about a host.
    async fn ended(&self, run: &str) -> Value {
        for _ in 0..3_000 {
            let state = self.ask(&format!("/api/runs/{run}"), None).await;
            if ["completed", "failed", "cancelled"].contains(&state["state"].as_str().unwrap()) {
                return state;
            }
            let pending = self.ask("/api/approvals", None).await;
            for approval in pending["items"].as_array().unwrap() {
                assert_eq!(approval["toolName"], "Bash", "not expected: {approval}");
                self.decide(approval, json!({"approved": true})).await;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the run does not end")
    }
}

/// A model that tries the host in each turn.
fn always() -> Script {
    let bash = json!({"command": format!("{FETCH}; exit 1"), "description": "Try"});
    (0..12)
        .fold(Script::new(), |script, turn| {
            script.rule(when().turn(2 * turn), reply().tool_use("Bash", bash.clone()))
        })
        .rule(when(), reply().text("Done."))
}

fn last_result(served: &Served) -> String {
    let body = served.api.requests().last().unwrap().body.to_string();
    body[body.rfind("tool_result").expect("a result")..].to_owned()
}

// Mutants: `check_host_answer` does not look at the role; a run has no entry in the audit log; an answer has none.
#[tokio::test(flavor = "multi_thread")]
async fn members_of_a_server_are_asked_and_the_audit_says_what_was_decided() {
    let served = Served::scripted(always(), &[]).await;
    let ada = User::new(&served, "ada", "member").await;
    let (session, run) = ada.start(None).await;
    let asked = ada.question().await;
    assert_eq!(asked["summary"], "Connect to localhost", "{asked}");
    assert!(asked["description"].as_str().unwrap().contains("The command `curl"), "{asked}");
    assert_eq!(asked["rules"], json!(["WebFetch(domain:localhost)"]), "{asked}");
    // Beyond the session an administrator answers, and no answer names another host.
    let refused = ada.decide(&asked, json!({"approved": true, "scope": "always"})).await;
    assert_eq!(refused["error"]["code"], "needs_admin", "{refused}");
    let changed = json!({"approved": true, "input": {"host": "other.example"}});
    let refused = ada.decide(&asked, changed).await;
    assert_eq!(refused["error"]["field"], "input", "{refused}");
    let denied = ada.decide(&asked, json!({"approved": false})).await;
    assert_eq!(denied["state"], "denied", "{denied}");
    let ended = ada.ended(&run).await;
    assert_eq!(ended["state"], "completed", "{ended}");
    assert!(last_result(&served).contains("the user denied it"), "{}", last_result(&served));
    // An answer for the session holds in it, also in the next run, and leads not to this machine.
    let (_, run) = ada.start(Some(&session)).await;
    let asked = ada.question().await;
    ada.decide(&asked, json!({"approved": true, "scope": "session"})).await;
    ada.ended(&run).await;
    assert!(last_result(&served).contains(MAY_REACH), "{}", last_result(&served));
    let (_, run) = ada.start(Some(&session)).await;
    ada.ended(&run).await;
    assert!(last_result(&served).contains(MAY_REACH), "{}", last_result(&served));
    let audit = ada.ask("/api/audit?limit=100", None).await;
    let entries = audit["items"].as_array().unwrap();
    let of_hosts: Vec<_> = entries
        .iter()
        .filter(|it| it["subject"] == "Connect to localhost")
        .map(|it| {
            (
                it["decision"].as_str().unwrap(),
                it["by"].as_str().unwrap(),
                it["scope"].as_str().unwrap(),
            )
        })
        .collect();
    let expected =
        [("denied", "ada", "once"), ("allowed", "ada", "session"), ("allowed", "rule", "once")];
    assert_eq!(of_hosts, expected, "{audit}");
    let runs: Vec<_> = entries.iter().filter(|it| it["decision"] == "sandboxed").collect();
    assert_eq!(runs.len(), 3, "{audit}");
    for entry in runs {
        assert_eq!((&entry["owner"], &entry["session"]), (&json!("ada"), &json!(session)));
        let sandbox = &entry["sandbox"];
        assert!(sandbox["backend"].as_str().unwrap().starts_with("bubblewrap"), "{entry}");
        assert_eq!(sandbox["layers"]["seccomp"], true, "{entry}");
        assert_eq!(sandbox["network"], "allow-list", "{entry}");
        for field in ["writable", "limits", "missing"] {
            assert!(!sandbox[field].is_null(), "{field}: {entry}");
        }
    }
    // An administrator's answer holds in other sessions of the member in this folder.
    let (_, run) = ada.start(None).await;
    let asked = ada.question().await;
    let root = User::new(&served, "root", "admin").await;
    let always = root.decide(&asked, json!({"approved": true, "scope": "always"})).await;
    assert_eq!(always["state"], "allowed", "{always}");
    ada.ended(&run).await;
    let (_, run) = ada.start(None).await;
    ada.ended(&run).await;
    assert!(last_result(&served).contains(MAY_REACH), "{}", last_result(&served));
}

// Mutants: `--sandbox-domain` is not strict; the operator's settings are not taken over.
#[tokio::test(flavor = "multi_thread")]
async fn a_member_cannot_grant_what_the_operator_denies() {
    let denied = json!({"sandbox": {"network": {"deniedDomains": ["localhost"]}}});
    let strict = json!({"sandbox": {"network": {"strictAllowlist": true}}});
    let none = json!({"sandbox": {"network": {"allowedDomains": []}}});
    let (denied, strict, none) = (denied.to_string(), strict.to_string(), none.to_string());
    for (arguments, expected) in [
        (["--sandbox-domain", "other.example"], "allowedDomains"),
        (["--settings", &denied], "deniedDomains"),
        // Without a host that could be reached there is no proxy at all.
        (["--settings", &strict], "Couldn't connect"),
        (["--settings", &none], "Couldn't connect"),
    ] {
        let served = Served::scripted(always(), &arguments).await;
        let ada = User::new(&served, "ada", "member").await;
        let (_, run) = ada.start(None).await;
        let ended = ada.ended(&run).await;
        assert_eq!(ended["state"], "completed", "{arguments:?}: {ended}");
        let result = last_result(&served);
        assert!(!result.contains(MAY_REACH), "{arguments:?}: {result}");
        assert!(result.contains(expected), "{arguments:?}: {result}");
    }
}

/// The owner's agents run in a sandbox, too, and commands need no approval.
const SANDBOXED: &str = r#"{"sandbox": {"enabled": true}, "permissions": {"allow": ["Bash"]}}"#;

#[tokio::test(flavor = "multi_thread")]
async fn over_the_websocket_a_message_answers() {
    for (approved, expected) in [(true, MAY_REACH), (false, "the user denied it")] {
        let served = Served::scripted(always(), &["--settings", SANDBOXED]).await;
        let url = served.base.replace("http:", "ws:") + "/api/ws";
        let mut request = url.into_client_request().unwrap();
        let token = format!("Bearer {}", served.token);
        request.headers_mut().insert("authorization", token.parse().unwrap());
        let (mut socket, _) = tokio_tungstenite::connect_async(request).await.unwrap();
        let prompt = json!({"type": "prompt", "text": "go"});
        socket.send(tungstenite::Message::text(prompt.to_string())).await.unwrap();
        let hear = async {
            loop {
                let tungstenite::Message::Text(text) = socket.next().await.unwrap().unwrap() else {
                    continue;
                };
                let message: Value = serde_json::from_str(&text).unwrap();
                match message["type"].as_str().unwrap() {
                    "permission_request" => {
                        assert_eq!(message["toolName"], "SandboxNetworkAccess", "{message}");
                        let answer = json!({"type": "permission_response", "approved": approved,
                            "permissionId": message["permissionId"]});
                        socket.send(tungstenite::Message::text(answer.to_string())).await.unwrap();
                    }
                    "result" => break,
                    _ => {}
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(60), hear).await.expect("a result");
        assert!(last_result(&served).contains(expected), "{}", last_result(&served));
    }
}

// Mutant: a question about a host waits until the call that caused it is over.
#[tokio::test(flavor = "multi_thread")]
async fn over_ag_ui_an_interrupt_is_answered() {
    for (approved, expected) in [(true, MAY_REACH), (false, "the user denied it")] {
        let served = Served::scripted(always(), &["--settings", SANDBOXED]).await;
        let run = |number: &str, resume: Value| {
            let mut input = json!({"threadId": "t", "runId": number, "protocolVersion": "1.0",
                "messages": [{"id": "u1", "role": "user", "content": "go"}],
                "tools": [], "context": [], "forwardedProps": {}});
            if !resume.is_null() {
                input["resume"] = resume;
            }
            let request = served.http.post(format!("{}/agui", served.base));
            let request = request.bearer_auth(&served.token).json(&input);
            async move { request.send().await.unwrap().text().await.unwrap() }
        };
        let first = tokio::time::timeout(Duration::from_secs(60), run("r1", Value::Null)).await;
        let first = first.expect("the run ends with an interrupt");
        let last = first.lines().rfind(|line| line.starts_with("data: ")).unwrap();
        let end: Value = serde_json::from_str(&last[6..]).unwrap();
        let interrupt = &end["outcome"]["interrupts"][0];
        assert!(
            interrupt["message"].as_str().unwrap_or_default().contains("Connect to localhost"),
            "{end}"
        );
        let answer = json!([{"interruptId": interrupt["id"], "status": "resolved",
            "payload": {"approved": approved}}]);
        let second =
            tokio::time::timeout(Duration::from_secs(60), run("r2", answer)).await.unwrap();
        assert!(second.contains("\"success\""), "{second}");
        assert!(last_result(&served).contains(expected), "{}", last_result(&served));
    }
}

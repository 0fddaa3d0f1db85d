//! `ostler mcp serve`: the built-in tools for other MCP clients, under the rules of a session.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout};

use serde_json::{Value, json};

use crate::run::Ostler;

/// A client over standard input and output.
struct Peer {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next_id: u64,
}

impl Peer {
    fn start(ostler: &Ostler, options: &[&str], capabilities: Value) -> Self {
        let mut child = ostler.spawn(&[options, &["mcp", "serve"]].concat());
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut peer = Self { child, input, output, next_id: 0 };
        let info = json!({"name": "test", "version": "1"});
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info,
        });
        peer.request("initialize", params);
        peer.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        peer
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
    }

    fn begin(&mut self, method: &str, params: Value) {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.begin(method, params);
        self.next()
    }

    /// The text of a call's result, and whether it is an error.
    fn call(&mut self, tool: &str, arguments: Value) -> (String, bool) {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        text(&answer)
    }

    fn tools(&mut self) -> Vec<String> {
        let listed = self.request("tools/list", json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.input.take());
        self.child.wait().unwrap();
    }
}

fn text(answer: &Value) -> (String, bool) {
    let result = &answer["result"];
    let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
    (text.to_owned(), result["isError"] == true)
}

fn write(ostler: &Ostler, name: &str) -> Value {
    json!({"file_path": ostler.path(name), "content": "hello"})
}

#[test]
fn the_tools_that_need_no_model_are_offered_and_reading_needs_no_approval() {
    let ostler = Ostler::new();
    let mut peer = Peer::start(&ostler, &[], json!({}));
    let tools = peer.tools();
    for name in ["Bash", "Edit", "Glob", "Grep", "Read", "WebFetch", "Write"] {
        assert!(tools.iter().any(|tool| tool == name), "{tools:?}");
    }
    for name in ["Agent", "Task", "Skill", "AskUserQuestion", "ExitPlanMode"] {
        assert!(!tools.iter().any(|tool| tool == name), "{tools:?}");
    }
    let (text, is_error) = peer.call("Read", json!({"file_path": ostler.path("README.md")}));
    assert!(!is_error && text.contains("# A readme"), "{text}");
    let (text, is_error) = peer.call("Glob", json!({"pattern": "*.md"}));
    assert!(!is_error && text.contains("README.md"), "{text}");
}

// Mutant: `decide` allows where the client cannot ask.
#[test]
fn without_a_user_to_ask_a_call_is_refused_and_says_which_rule_would_allow_it() {
    let ostler = Ostler::new();
    let mut peer = Peer::start(&ostler, &[], json!({}));
    let (text, is_error) = peer.call("Bash", json!({"command": "touch made"}));
    assert!(is_error && text.contains("--allowed-tools='Bash(touch made)'"), "{text}");
    let (text, is_error) = peer.call("Write", write(&ostler, "made"));
    assert!(is_error && text.contains("permissions.allow"), "{text}");
    assert!(!ostler.path("made").exists());
    let options = ["--allowed-tools=Bash(touch made)"];
    let mut peer = Peer::start(&ostler, &options, json!({}));
    let (text, is_error) = peer.call("Bash", json!({"command": "touch made"}));
    assert!(!is_error, "{text}");
    assert!(ostler.path("made").exists());
}

// Mutants: `decide` takes every accepted form as a yes; also a refusal.
#[test]
fn the_client_asks_its_user_and_only_a_clear_yes_counts() {
    let ostler = Ostler::new();
    for (n, (answer, is_made)) in [
        (json!({"action": "decline"}), false),
        (json!({"action": "cancel"}), false),
        (json!({"action": "accept", "content": {}}), false),
        (json!({"action": "accept", "content": {"allow": false}}), false),
        (json!({"action": "accept", "content": {"allow": "yes"}}), false),
        (json!({"action": "accept", "content": {"allow": true}}), true),
    ]
    .into_iter()
    .enumerate()
    {
        let mut peer = Peer::start(&ostler, &[], json!({"elicitation": {}}));
        let name = format!("made-{n}");
        let arguments = write(&ostler, &name);
        peer.begin("tools/call", json!({"name": "Write", "arguments": arguments}));
        let question = peer.next();
        assert_eq!(question["method"], "elicitation/create", "{question}");
        let message = question["params"]["message"].as_str().unwrap();
        assert!(message.contains("Allow Write?") && message.contains(&name), "{message}");
        peer.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer}));
        let (text, is_error) = text(&peer.next());
        assert_eq!(is_error, !is_made, "{answer}: {text}");
        assert_eq!(ostler.path(&name).exists(), is_made, "{answer}");
    }
}

/// What every request of MCP 2026-07-28 says.
fn of_client(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    });
    params
}

fn stateless(peer: &mut Peer, params: Value) -> Value {
    peer.request("tools/call", of_client(params))
}

#[test]
fn a_client_of_the_newest_revision_needs_no_session() {
    let ostler = Ostler::new();
    let read = json!({"name": "Read", "arguments": {"file_path": ostler.path("README.md")}});
    let steps = [
        ("server/discover", json!({}), "\"2026-07-28\""),
        ("tools/list", json!({}), "\"Bash\""),
        ("tools/call", read, "# A readme"),
    ];
    // The first message of the connection is not `initialize`.
    let mut child = ostler.spawn(&["mcp", "serve"]);
    let input = child.stdin.take();
    let output = BufReader::new(child.stdout.take().unwrap());
    let mut peer = Peer { child, input, output, next_id: 0 };
    for (method, params, part) in &steps {
        let answer = peer.request(method, of_client(params.clone()));
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
        assert!(answer.to_string().contains(part), "{answer}");
    }
    let ping = peer.request("ping", of_client(json!({})));
    assert_eq!(ping["error"]["code"], -32601, "there is no session to keep: {ping}");

    let (mut child, mut lines, address, token) = over_http(&ostler);
    for (n, (method, params, part)) in steps.iter().enumerate() {
        let name = params["name"].as_str().map(|name| format!("mcp-name: {name}\r\n"));
        let headers = format!(
            "authorization: Bearer {token}\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n{}\
             content-type: application/json\r\naccept: application/json, text/event-stream\r\n",
            name.unwrap_or_default()
        );
        let params = of_client(params.clone());
        let body = json!({"jsonrpc": "2.0", "id": n, "method": method, "params": params});
        let answer = exchange(&address, &address, &headers, &body);
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(part), "{answer}");
        assert!(!answer.to_lowercase().contains("mcp-session-id"), "{answer}");
    }
    end(&mut child, &mut lines);
}

/// Runs a command in a server with these settings, in which nothing requires approval.
fn in_server(ostler: &Ostler, settings: &Value, command: &str) -> (String, bool) {
    let settings = settings.to_string();
    let options = ["--permission-mode", "bypassPermissions", "--settings", &settings];
    let mut peer = Peer::start(ostler, &options, json!({"elicitation": {}}));
    peer.call("Bash", json!({"command": command}))
}

// Mutant: `ToolCx::confinement` that is always `None`.
#[test]
fn commands_of_clients_run_in_the_sandbox_and_reach_no_new_host() {
    let (ostler, outside) = (Ostler::new(), tempfile::tempdir().unwrap());
    fs::write(ostler.path("secret.txt"), "hidden-text").unwrap();
    let file = outside.path().join("file");
    let settings = json!({
        "sandbox": {"enabled": true}, "permissions": {"deny": ["Read(./secret.txt)"]},
    });
    let command = format!("echo kept > inside.txt; echo x > {}; exit 3", file.display());
    let (text, is_error) = in_server(&ostler, &settings, &command);
    assert!(is_error && text.contains("Exit code 3"), "{text}");
    assert_eq!(fs::read_to_string(ostler.path("inside.txt")).unwrap(), "kept\n", "{text}");
    assert!(!file.exists());
    let (text, _) =
        in_server(&ostler, &settings, "python3 -c \"print(open('secret.txt').read())\"");
    assert!(!text.contains("hidden-text"), "{text}");
    // A new host is refused without a question, although this client could ask its user.
    let mut open = settings.clone();
    open["sandbox"]["network"] = json!({"allowedDomains": ["known.example"]});
    let connect =
        "python3 -c \"import urllib.request as r; print(r.urlopen('http://new.example/').read())\"";
    let (text, is_error) = in_server(&ostler, &settings, connect);
    assert!(is_error && text.contains("the sandbox has no network"), "{text}");
    let (text, is_error) = in_server(&ostler, &open, connect);
    assert!(is_error && text.contains("403") && text.contains("new.example"), "{text}");
    // Without the sandbox the same command leaves its folder.
    in_server(&ostler, &json!({}), &command);
    assert!(file.exists(), "the test itself does not work");
    // One that is asked for and cannot be made serves nothing.
    let broken = json!({"sandbox": {"enabled": true, "bwrapPath": "/no/such/bwrap"}}).to_string();
    let ran = ostler.run(&["--settings", &broken, "mcp", "serve"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("bubblewrap"), "{}", ran.stderr);
}

// Mutant: the key of the question without the arguments.
#[test]
fn an_answer_to_one_call_does_not_allow_another() {
    let ostler = Ostler::new();
    let mut peer = Peer::start(&ostler, &[], json!({}));
    let first = json!({"name": "Write", "arguments": write(&ostler, "one")});
    let asked = stateless(&mut peer, first.clone());
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let questions = asked["result"]["inputRequests"].as_object().unwrap();
    let key = questions.keys().next().unwrap();
    let answers = json!({key: {"action": "accept", "content": {"allow": true}}});
    let mut other = json!({"name": "Write", "arguments": write(&ostler, "two")});
    other["inputResponses"] = answers.clone();
    let again = stateless(&mut peer, other.clone());
    assert_eq!(again["result"]["resultType"], "input_required", "{again}");
    other["requestState"] = asked["result"]["requestState"].clone();
    assert_eq!(stateless(&mut peer, other)["error"]["code"], -32602);
    assert!(!ostler.path("one").exists() && !ostler.path("two").exists());
    let mut same = first;
    same["inputResponses"] = answers;
    same["requestState"] = asked["result"]["requestState"].clone();
    let (text, is_error) = text(&stateless(&mut peer, same));
    assert!(!is_error, "{text}");
    assert!(ostler.path("one").exists() && !ostler.path("two").exists());
}

// Mutant: `ToolCaller::tools` also has tools that a rule denies.
#[test]
fn a_denied_tool_cannot_be_called_in_any_way() {
    let ostler = Ostler::new();
    fs::write(ostler.path("secret.txt"), "hidden").unwrap();
    let settings = json!({"permissions": {
        "deny": ["Read(./secret.txt)", "Bash(touch:*)", "WebFetch"], "allow": ["Read", "Bash"],
    }});
    let settings = settings.to_string();
    let options = ["--settings", &settings, "--disallowed-tools=Write"];
    let mut peer = Peer::start(&ostler, &options, json!({"elicitation": {}}));
    let tools = peer.tools();
    assert!(!tools.iter().any(|tool| tool == "Write" || tool == "WebFetch"), "{tools:?}");
    for (tool, arguments) in [
        ("Write", write(&ostler, "made")),
        ("WebFetch", json!({"url": "http://127.0.0.1:1/", "prompt": "x"})),
        ("Agent", json!({"prompt": "x"})),
    ] {
        let answer = peer.request("tools/call", json!({"name": tool, "arguments": arguments}));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    for path in ["secret.txt", "./secret.txt", "../secret.txt/../secret.txt"] {
        let path = ostler.path(path);
        let (text, is_error) = peer.call("Read", json!({"file_path": path}));
        assert!(is_error && !text.contains("hidden"), "{text}");
    }
    for command in
        ["touch made", "true && touch made", "/usr/bin/touch made", "bash -c 'touch made'"]
    {
        peer.begin("tools/call", json!({"name": "Bash", "arguments": {"command": command}}));
        let mut answer = peer.next();
        if answer["method"] == "elicitation/create" {
            // A command that is not understood with certainty requires approval.
            let no = json!({"action": "decline"});
            peer.send(&json!({"jsonrpc": "2.0", "id": answer["id"], "result": no}));
            answer = peer.next();
        }
        assert!(text(&answer).1, "{command}: {answer}");
    }
    assert!(!ostler.path("made").exists());
}

#[test]
fn hooks_see_the_calls_and_can_refuse_them() {
    let ostler = Ostler::new();
    let hook = json!({"type": "command", "command": "echo 'not today' >&2; exit 2"});
    let hooks = json!({"PreToolUse": [{"matcher": "Read", "hooks": [hook]}]});
    let settings = json!({"hooks": hooks}).to_string();
    let mut peer = Peer::start(&ostler, &["--settings", &settings], json!({}));
    let (text, is_error) = peer.call("Read", json!({"file_path": ostler.path("README.md")}));
    assert!(is_error && text.contains("not today"), "{text}");
}

/// Sends `initialize` over HTTP, and returns the whole answer.
fn post(address: &str, token: Option<&str>, host: &str) -> String {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}});
    let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let token = token.map(|it| format!("authorization: Bearer {it}\r\n")).unwrap_or_default();
    exchange(address, host, &token, &body)
}

/// Sends a message over HTTP with these lines of headers, and returns the whole answer.
fn exchange(address: &str, host: &str, headers: &str, body: &Value) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let body = body.to_string();
    let length = body.len();
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nhost: {host}\r\n{headers}connection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

type Lines = std::io::Lines<BufReader<ChildStdout>>;

/// A server over HTTP: its process, the rest of its output, its address and its token.
fn over_http(ostler: &Ostler) -> (Child, Lines, String, String) {
    let mut child = ostler.spawn(&["mcp", "serve", "--http", "127.0.0.1:0"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap();
    let listening = next();
    let address = listening.strip_prefix("listening on http://").unwrap();
    let address = address.strip_suffix("/mcp").unwrap().to_owned();
    let token = next().strip_prefix("token: ").unwrap().to_owned();
    (child, lines, address, token)
}

fn end(child: &mut Child, lines: &mut Lines) {
    let id = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "ended");
    assert!(child.wait().unwrap().success());
}

// Mutant: `serve_http` without the token.
#[test]
fn over_http_every_request_needs_the_printed_token() {
    let ostler = Ostler::new();
    let (mut child, mut lines, address, token) = over_http(&ostler);
    let address = &*address;
    assert!(post(address, None, address).starts_with("HTTP/1.1 401"));
    assert!(post(address, Some("guess"), address).starts_with("HTTP/1.1 401"));
    assert!(post(address, Some(&token), "evil.example").starts_with("HTTP/1.1 403"));
    let answer = post(address, Some(&token), address);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"ostler\""), "{answer}");
    end(&mut child, &mut lines);
}

#[test]
fn an_address_that_others_can_reach_needs_a_token_of_the_operator() {
    let ostler = Ostler::new();
    let ran = ostler.run(&["mcp", "serve", "--http", "0.0.0.0:0"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert!(ran.stderr.contains("OSTLER_MCP_TOKEN"), "{}", ran.stderr);
}

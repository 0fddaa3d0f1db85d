//! MCP servers over real pipes: inside the host, and as programs.

use std::fs;

use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::{Value, json};

use crate::run::Ostler;
use crate::talk::Talk;

/// A server in shell code: greets with a variable, asks the user, permits, and has a resource and a prompt. It is part
/// of a configuration, so `${…}` in it would be expanded.
pub(crate) const SERVER: &str = r#"
id() { printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p'; }
say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while IFS= read -r line; do
  id=$(id)
  case "$line" in
    *'"method":"initialize"'*) say '{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{},"prompts":{}},"serverInfo":{"name":"shell","version":"0.1.0"}}';;
    *'"method":"tools/list"'*) say '{"tools":[{"name":"greet","inputSchema":{"type":"object"}},{"name":"wonder","inputSchema":{"type":"object"}},{"name":"permit","inputSchema":{"type":"object"}},{"name":"flood","inputSchema":{"type":"object"}}]}';;
    *'"name":"greet"'*) say "{\"content\":[{\"type\":\"text\",\"text\":\"hello $GREETED\"}]}";;
    *'"name":"permit"'*) say '{"content":[{"type":"text","text":"{\"behavior\":\"allow\"}"}]}';;
    *'"name":"flood"'*) say "{\"content\":[{\"type\":\"text\",\"text\":\"$(head -c 9000 /dev/zero | tr '\0' x)\"}]}";;
    *'"name":"wonder"'*)
      printf '{"jsonrpc":"2.0","id":99,"method":"elicitation/create","params":{"message":"Your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}\n'
      call=$id; IFS= read -r line
      name=$(printf '%s' "$line" | sed -n 's/.*"name":"\([a-z]*\)".*/\1/p'); id=$call
      [ -n "$name" ] || name=nobody
      say "{\"content\":[{\"type\":\"text\",\"text\":\"you are $name\"}]}";;
    *'"method":"prompts/list"'*) say '{"prompts":[{"name":"review","description":"Looks","arguments":[{"name":"what","required":true},{"name":"how"}]}]}';;
    *'"method":"prompts/get"'*)
      what=$(printf '%s' "$line" | sed -n 's/.*"what":"\([a-z]*\)".*/\1/p')
      say "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"Look at $what.\"}},{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"Be kind.\"}}]}";;
    *'"method":"resources/list"'*) say '{"resources":[{"uri":"ui://note","name":"note","description":"A note"}]}';;
    *'"method":"resources/read"'*) say '{"contents":[{"uri":"ui://note","mimeType":"text/plain","text":"remember"}]}';;
  esac
done
"#;

pub(crate) fn shell_server(greeted: &str) -> Value {
    json!({"command": "/bin/sh", "args": ["-c", SERVER], "env": {"GREETED": greeted}})
}

pub(crate) async fn place(script: Script) -> (ScriptedApi, Ostler) {
    let api = ScriptedApi::start(script).await;
    let ostler =
        Ostler::new().env("ANTHROPIC_API_KEY", "key").env("ANTHROPIC_BASE_URL", &api.base_url());
    (api, ostler)
}

/// The model calls a tool once, and repeats its result.
pub(crate) fn calling(tool: &str, input: Value) -> Script {
    Script::new()
        .rule(when().turn(0), reply().tool_use(tool, input))
        .rule(when(), reply().text("{{tool_result}}"))
}

/// Answers the handshake of a server inside the host with one tool, and passes on everything else.
fn handshake(talk: &mut Talk, frame: &Value) -> bool {
    let message = &frame["request"]["message"];
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "calc", "version": "1.2.3"},
        }),
        Some("tools/list") => json!({"tools": [{
            "name": "add", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true},
        }]}),
        Some("notifications/initialized") => json!({}),
        _ => return false,
    };
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    talk.answer(frame, json!({"mcp_response": answer}));
    true
}

fn is_message(frame: &Value) -> bool {
    frame["request"]["subtype"] == "mcp_message"
}

fn sum(talk: &mut Talk, call: &Value) {
    let message = &call["request"]["message"];
    let n = &message["params"]["arguments"]["n"];
    let result = json!({"content": [{"type": "text", "text": format!("sum {n}")}]});
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    talk.answer(call, json!({"mcp_response": answer}));
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_calls_of_a_server_in_the_host_run_at_once() {
    let mut calls = reply();
    for n in 0..50 {
        calls = calls.tool_use("mcp__calc__add", json!({"n": n}));
    }
    let script = Script::new().rule(when().turn(0), calls).rule(when(), reply().text("All fifty."));
    let (api, ostler) = place(script).await;
    let mut talk = Talk::with(&ostler, &["--allowedTools", "mcp__calc"]);
    talk.asked(json!({"subtype": "initialize", "sdkMcpServers": ["calc"]}));
    talk.say("add", None);
    let mut open = Vec::new();
    // No call is answered before all have arrived.
    while open.len() < 50 {
        let frame = talk.until(is_message);
        if !handshake(&mut talk, &frame) {
            assert_eq!(frame["request"]["message"]["method"], "tools/call");
            open.push(frame);
        }
    }
    open.reverse();
    for call in &open {
        sum(&mut talk, call);
    }
    assert_eq!(talk.result()["result"], "All fifty.");
    assert_eq!(talk.end().code, Some(0));
    let last = api.requests().pop().unwrap().body["messages"].to_string();
    for n in 0..50 {
        assert!(last.contains(&format!("sum {n}\"")), "{n}: {last}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_declared_tools_needs_no_handshake_and_may_send_notifications() {
    let (api, ostler) = place(calling("mcp__calc__add", json!({"n": 1}))).await;
    let mut talk = Talk::with(&ostler, &["--permission-prompt-tool=stdio"]);
    let said = json!({
        "initializeResult": {
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "calc", "version": "1.2.3"},
        },
        "toolsListResult": {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]},
    });
    let answer = talk.asked(json!({
        "subtype": "initialize", "sdkMcpServers": ["calc"], "sdkMcpServerManifests": {"calc": said},
    }));
    assert_eq!(answer["sdk_mcp_manifests_parked"], json!({"calc": "parked"}));
    talk.say("add", None);
    let question = talk.until(|frame| frame["request"]["subtype"] == "can_use_tool");
    let request = &question["request"];
    assert_eq!(request["mcp_server"], json!({"name": "calc", "source": "sdk"}));
    assert_eq!(request["display_name"], "Add");
    talk.answer(&question, json!({"behavior": "allow"}));
    let first = talk.until(is_message);
    assert_eq!(first["request"]["message"]["method"], "tools/call", "{first}");
    let meta = &first["request"]["message"]["params"]["_meta"];
    assert!(meta["claudecode/toolUseId"].is_string(), "{meta}");
    // Notifications of the server: progress, and changed tools.
    let news = |method: &str, params: Value| {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        json!({"subtype": "mcp_message", "server_name": "calc", "message": message})
    };
    let progress = json!({"progressToken": meta["progressToken"], "progress": 1});
    talk.asked(news("notifications/progress", progress));
    talk.asked(news("notifications/tools/list_changed", json!({})));
    let unknown = json!({"subtype": "mcp_message", "server_name": "nobody", "message": {}});
    assert_eq!(talk.refused(unknown), "Server not found: nobody");
    sum(&mut talk, &first);
    // The tools are listed again before the next request of the same turn.
    let list = talk.until(is_message);
    assert_eq!(list["request"]["message"]["method"], "tools/list");
    let tools = json!({"tools": [{"name": "multiply", "inputSchema": {"type": "object"}}]});
    let answer = json!({"jsonrpc": "2.0", "id": list["request"]["message"]["id"], "result": tools});
    talk.answer(&list, json!({"mcp_response": answer}));
    assert_eq!(talk.result()["result"], "sum 1");
    assert!(api.requests().pop().unwrap().tool_names().contains(&"mcp__calc__multiply"));
    assert_eq!(talk.end().code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_from_files_and_the_command_line_get_their_variables_expanded() {
    let (_api, ostler) = place(calling("mcp__shell__greet", json!({}))).await;
    let ostler = ostler.env("WHOM", "world");
    let file = json!({"mcpServers": {"shell": shell_server("${WHOM} ${ELSE:-and all}")}});
    fs::write(ostler.path("servers.json"), file.to_string()).unwrap();
    let more = json!({"mcpServers": {"odd": {"command": "${NOT_SET}"}}}).to_string();
    let mut talk = Talk::with(
        &ostler,
        &[
            "--mcp-config",
            "servers.json",
            &more,
            "--strict-mcp-config",
            "--allowedTools=mcp__shell",
        ],
    );
    talk.say("greet", None);
    assert_eq!(talk.result()["result"], "hello world and all");
    let status = talk.asked(json!({"subtype": "mcp_status"}));
    let [odd, shell] = &status["mcpServers"].as_array().unwrap()[..] else { panic!("{status}") };
    assert!(odd["error"].as_str().unwrap().contains("NOT_SET"), "{odd}");
    assert_eq!(shell["serverInfo"], json!({"name": "shell", "version": "0.1.0"}));
    for (field, expected) in [
        ("status", "connected"),
        ("transport", "stdio"),
        ("scope", "dynamic"),
        ("source", "dynamic"),
    ] {
        assert_eq!(shell[field], expected, "{shell}");
    }
    assert_eq!(shell["config"]["command"], "/bin/sh");
    assert!(shell["config"].get("env").is_none(), "variables may be secret: {shell}");
    assert_eq!(talk.end().code, Some(0));
}

// Seen to fail when every name counts as approved.
#[tokio::test(flavor = "multi_thread")]
async fn servers_of_a_project_wait_for_approval() {
    let script = || Script::new().rule(when(), reply().text("Fine."));
    let servers_with = async |arguments: &[&str]| {
        let (_api, ostler) = place(script()).await;
        let file = json!({"mcpServers": {"shell": shell_server("project")}});
        fs::write(ostler.path(".mcp.json"), file.to_string()).unwrap();
        // Files of the project cannot approve its servers.
        fs::create_dir(ostler.path(".claude")).unwrap();
        let own = json!({"enableAllProjectMcpServers": true}).to_string();
        fs::write(ostler.path(".claude/settings.json"), own).unwrap();
        let mut talk = Talk::with(&ostler, arguments);
        talk.say("hello", None);
        talk.result();
        let status = talk.asked(json!({"subtype": "mcp_status"}));
        let ran = talk.end();
        (status["mcpServers"].clone(), ran.stderr)
    };
    let (servers, stderr) = servers_with(&[]).await;
    assert_eq!(servers, json!([]));
    assert!(stderr.contains("not started until you approve them: shell"), "{stderr}");
    let approve = json!({"enabledMcpjsonServers": ["shell"]}).to_string();
    let (servers, _) = servers_with(&["--settings", &approve]).await;
    assert_eq!(
        (&servers[0]["status"], &servers[0]["scope"]),
        (&json!("connected"), &json!("project"))
    );
    let (servers, stderr) = servers_with(&["--settings", &approve, "--strict-mcp-config"]).await;
    assert_eq!(servers, json!([]));
    assert!(!stderr.contains(".mcp.json"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_are_switched_replaced_and_reconnected_while_the_session_runs() {
    let (_api, ostler) = place(Script::new().rule(when(), reply().text("Fine."))).await;
    let config = json!({"mcpServers": {"shell": shell_server("a")}}).to_string();
    let mut talk = Talk::with(&ostler, &["--mcp-config", &config]);
    talk.say("hello", None);
    talk.result();
    let status = |talk: &mut Talk| {
        let status = talk.asked(json!({"subtype": "mcp_status"}));
        let all = status["mcpServers"].as_array().unwrap().iter();
        let line = |it: &Value| {
            format!("{} {}", it["name"].as_str().unwrap(), it["status"].as_str().unwrap())
        };
        all.map(line).collect::<Vec<_>>().join(", ")
    };
    let toggle = |on: bool| json!({"subtype": "mcp_toggle", "serverName": "shell", "enabled": on});
    talk.asked(toggle(false));
    assert_eq!(status(&mut talk), "shell disabled");
    talk.asked(toggle(true));
    assert_eq!(status(&mut talk), "shell connected");
    talk.asked(json!({"subtype": "mcp_reconnect", "serverName": "shell"}));
    assert_eq!(status(&mut talk), "shell connected");
    let unknown = json!({"subtype": "mcp_reconnect", "serverName": "nobody"});
    assert_eq!(talk.refused(unknown), "Server not found: nobody");
    let servers = json!({
        "more": shell_server("b"), "bad": {"command": "/no/such/server"},
        "inside": {"type": "sdk", "name": "inside"},
    });
    let set = talk.asked(json!({"subtype": "mcp_set_servers", "servers": servers}));
    assert_eq!(set["added"], json!(["bad", "inside", "more"]));
    assert!(set["errors"]["bad"].as_str().unwrap().contains("/no/such/server"), "{set}");
    assert!(set["errors"].get("more").is_none() && set["errors"].get("inside").is_none(), "{set}");
    let set = talk.asked(json!({"subtype": "mcp_set_servers", "servers": {}}));
    assert_eq!(set["removed"], json!(["bad", "inside", "more"]));
    assert_eq!(status(&mut talk), "shell connected");
    assert_eq!(talk.end().code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_of_a_server_is_sent_to_the_host() {
    let config = json!({"mcpServers": {"shell": shell_server("a")}}).to_string();
    let arguments = ["--mcp-config", &config, "--allowedTools=mcp__shell"];
    for (answer, expected) in [
        (Some(json!({"action": "accept", "content": {"name": "bob"}})), "you are bob"),
        (Some(json!({"action": "decline"})), "you are nobody"),
        (Some(json!({"action": "what?"})), "you are nobody"),
        (None, "you are nobody"),
    ] {
        let (_api, ostler) = place(calling("mcp__shell__wonder", json!({}))).await;
        let ostler = ostler.env("CLAUDE_CODE_SDK_READS_SESSION_STATE", "1");
        let mut talk = Talk::with(&ostler, &arguments);
        talk.say("wonder", None);
        let question = talk.until(|frame| frame["request"]["subtype"] == "elicitation");
        let request = &question["request"];
        assert_eq!(request["mcp_server_name"], "shell");
        assert_eq!((&request["message"], &request["mode"]), (&json!("Your name?"), &json!("form")));
        assert_eq!(request["property_order"], json!(["name"]));
        match answer {
            Some(answer) => talk.answer(&question, answer),
            None => talk.send(
                &json!({"type": "control_response", "response": {
                    "subtype": "error", "request_id": question["request_id"], "error": "no handler",
                }})
                .to_string(),
            ),
        }
        assert_eq!(talk.result()["result"], expected);
        assert!(talk.story().contains("state requires_action"), "{}", talk.story());
        assert_eq!(talk.end().code, Some(0));
    }
    // Without input frames there is no host to ask.
    let (_api, ostler) = place(calling("mcp__shell__wonder", json!({}))).await;
    let ran = ostler.run(&[&arguments[..], &["-p", "wonder"]].concat());
    assert_eq!(ran.stdout.trim(), "you are nobody", "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_of_a_server_can_answer_permission_questions() {
    let call = json!({"command": "touch made.txt", "description": "Make it"});
    let config = json!({"mcpServers": {"shell": shell_server("a")}}).to_string();
    for (tool, is_made) in
        [("mcp__shell__permit", true), ("mcp__shell__greet", false), ("mcp__no__such", false)]
    {
        let (_api, ostler) = place(calling("Bash", call.clone())).await;
        let tool = format!("--permission-prompt-tool={tool}");
        let mut talk = Talk::with(&ostler, &["--mcp-config", &config, &tool]);
        talk.say("go", None);
        let result = talk.result();
        assert_eq!(ostler.path("made.txt").exists(), is_made, "{tool}: {result}");
        let n_denied = result["permission_denials"].as_array().unwrap().len();
        assert_eq!(n_denied, usize::from(!is_made), "{result}");
        assert_eq!(talk.end().code, Some(0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_are_available_as_tools_and_hosts_can_read_them() {
    let input = json!({"server": "shell", "uri": "ui://note"});
    let (api, ostler) = place(calling("ReadMcpResourceTool", input)).await;
    let config = json!({"mcpServers": {"shell": shell_server("a")}}).to_string();
    let mut talk = Talk::with(&ostler, &["--mcp-config", &config]);
    talk.say("read", None);
    assert_eq!(talk.result()["result"], "remember");
    let output = talk.heard.iter().find(|frame| !frame["tool_use_result"].is_null()).unwrap();
    let contents = json!([{"uri": "ui://note", "mimeType": "text/plain", "text": "remember"}]);
    assert_eq!(output["tool_use_result"], json!({"contents": contents}));
    let read = json!({"subtype": "mcp_read_resource", "serverName": "shell", "uri": "ui://note"});
    assert_eq!(talk.asked(read), json!({"contents": contents}));
    assert_eq!(talk.end().code, Some(0));
    let tools = api.requests()[0].tool_names().join(" ");
    assert!(tools.contains("ListMcpResourcesTool"), "{tools}");
    let (api, ostler) = place(Script::new().rule(when(), reply().text("Fine."))).await;
    ostler.run(&["-p", "hello"]);
    assert!(!api.requests()[0].tool_names().contains(&"ListMcpResourcesTool"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_is_too_long_is_cut_and_saved_in_a_file() {
    let (_api, ostler) = place(calling("mcp__shell__flood", json!({}))).await;
    let ostler = ostler.env("MAX_MCP_OUTPUT_TOKENS", "1000");
    let config = json!({"mcpServers": {"shell": shell_server("a")}}).to_string();
    let mut talk = Talk::with(&ostler, &["--mcp-config", &config, "--allowedTools=mcp__shell"]);
    talk.say("flood", None);
    let result = talk.result()["result"].as_str().unwrap().to_owned();
    assert!(result.contains("cut after 4000 of 9000 bytes"), "{result}");
    let path = result.rsplit_once("all of it is in ").unwrap().1.trim_end_matches(']');
    assert_eq!(fs::read_to_string(path).unwrap().len(), 9000);
    talk.end();
}

fn with_shell(ostler: &Ostler, arguments: &[&str]) -> Talk {
    let config = json!({"mcpServers": {"shell": shell_server("you")}}).to_string();
    Talk::with(ostler, &[&["--mcp-config", &config], arguments].concat())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_of_a_server_is_a_command() {
    let (api, ostler) = place(Script::new().rule(when(), reply().text("Fine."))).await;
    let mut talk = with_shell(&ostler, &[]);
    talk.say("/mcp__shell__review code quickly", None);
    let init = talk.until(|frame| frame["subtype"] == "init");
    assert!(init["slash_commands"].to_string().contains("mcp__shell__review"), "{init}");
    talk.result();
    let said = api.requests()[0].body["messages"][0]["content"].to_string();
    for words in ["<command-name>/mcp__shell__review<", "Look at code.", "Be kind."] {
        assert!(said.contains(words), "{words}: {said}");
    }
    talk.say("/mcp__shell__review", None);
    let result = talk.result();
    assert!(result["result"].as_str().unwrap().contains("what"), "{result}");
    assert_eq!(api.requests().len(), 1, "without its arguments the command is not sent");
    talk.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_can_call_a_tool_unless_a_rule_forbids_it() {
    let (api, ostler) = place(Script::new().rule(when(), reply().text("Fine."))).await;
    let call = |tool: &str| json!({"subtype": "mcp_call", "tool": tool, "arguments": {}});
    let mut talk = with_shell(&ostler, &["--disallowedTools=mcp__shell__flood"]);
    let answer = talk.asked(call("mcp__shell__greet"));
    assert_eq!(answer["content"], json!([{"type": "text", "text": "hello you"}]));
    for (tool, words) in [
        ("mcp__shell__flood", "flood"),
        ("mcp__shell__nothing", "no tool"),
        ("mcp__nobody__greet", "MCP server not connected: nobody"),
        ("Bash", "Not a fully-qualified MCP tool name: Bash"),
    ] {
        let error = talk.refused(call(tool));
        assert!(error.contains(words), "{tool}: {error}");
    }
    let mut late = call("mcp__shell__greet");
    late["expires_at"] = json!("2020-01-01T00:00:00Z");
    assert_eq!(talk.asked(late)["staging"]["error_code"], "expired");
    // With the permissions of the session there is no user to ask.
    let mut checked = call("mcp__shell__greet");
    checked["check_permissions"] = json!(true);
    assert!(talk.refused(checked).contains("No user is available"));
    assert_eq!(api.requests().len(), 0, "the model receives nothing of it");
    talk.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_can_require_approval_for_a_server_although_the_mode_does_not() {
    let (_api, ostler) = place(calling("mcp__shell__greet", json!({}))).await;
    let arguments = ["--permission-mode=bypassPermissions", "--permission-prompt-tool=stdio"];
    let mut talk = with_shell(&ostler, &arguments);
    let pin = |server: &str, mode: Value| json!({"subtype": "set_mcp_permission_mode_override", "serverName": server, "mode": mode});
    assert_eq!(talk.asked(pin("shell", json!("default"))), json!({}));
    assert!(talk.asked(pin("later", json!("default")))["warning"].is_string());
    for mode in ["auto", "bypassPermissions"] {
        assert!(talk.refused(pin("shell", json!(mode))).contains("mode"));
    }
    talk.say("greet", None);
    let question = talk.until(|frame| frame["request"]["subtype"] == "can_use_tool");
    talk.answer(&question, json!({"behavior": "deny", "message": "not now"}));
    assert_eq!(talk.result()["result"], "not now");
    assert_eq!(talk.asked(pin("shell", Value::Null)), json!({}));
    talk.end();
}

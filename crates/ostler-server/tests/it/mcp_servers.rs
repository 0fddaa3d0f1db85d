//! MCP servers of spaces and sessions: who configures them, which sessions use them, and what sessions that share a
//! process see of each other.

use std::collections::BTreeSet;
use std::path::Path;

use ostler_server::config::{Config, SandboxChoice};
use ostler_store::{Filter, Page, Put, Store as _};
use ostler_testkit::{Script, reply, when};
use reqwest::Method;
use serde_json::{Value, json};

use crate::desk::{Client, Desk};
use crate::doors::{Socket, agui};
use crate::spaces::session_in;

/// A server in shell code. It notes its process id in the file `started` of its folder, and what it receives in
/// `received`. `count` counts the calls that it has answered; `gossip` sends everything that a server can send by itself.
const SERVER: &str = r#"
echo $$ >> started
calls=0
while IFS= read -r line; do
  printf '%s\n' "$line" >> received
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  text() { say "{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]}"; }
  case "$line" in
    *'"method":"initialize"'*) say '{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"logging":{}},"serverInfo":{"name":"shop","version":"1"}}';;
    *'"method":"tools/list"'*) say '{"tools":[{"name":"count","inputSchema":{"type":"object"}},{"name":"crash","inputSchema":{"type":"object"}},{"name":"gossip","inputSchema":{"type":"object"}},{"name":"look","inputSchema":{"type":"object"}}]}';;
    *'"name":"count"'*) calls=$((calls + 1)); text "process $$ call $calls";;
    *'"name":"crash"'*) exit 3;;
    *'"name":"look"'*) text "token [$TOKEN] pass [$ANTHROPIC_AUTH_TOKEN$ANTHROPIC_API_KEY] other [$OTHER]";;
    *'"name":"gossip"'*)
      printf '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"canary of this call"}}\n'
      for token in 0 1 2 3 4 5 6 7 8 9; do printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1,"message":"canary"}}\n' $token; done
      printf '{"jsonrpc":"2.0","id":901,"method":"elicitation/create","params":{"message":"canary?","requestedSchema":{"type":"object","properties":{}}}}\n'
      printf '{"jsonrpc":"2.0","id":902,"method":"roots/list"}\n'
      text gossiped;;
  esac
done
"#;

fn server(shared: bool) -> Value {
    json!({"type": "stdio", "command": "/bin/sh", "args": ["-c", SERVER], "shared": shared})
}

/// The model calls the tool that the prompt names, and repeats its result.
fn script() -> Script {
    let call = |script: Script, tool: &str| {
        let name = format!("mcp__shop__{tool}");
        script.rule(
            when().has_tool_result(false).prompt_contains(tool),
            reply().tool_use(&name, json!({})),
        )
    };
    ["count", "crash", "gossip", "look"]
        .into_iter()
        .fold(
            Script::new().rule(when().has_tool_result(true), reply().text("{{tool_result}}")),
            call,
        )
        .rule(when(), reply().text("Nothing."))
}

async fn put(client: &Client, path: &str, config: &Value) -> u16 {
    client.ask(Method::PUT, path, Some(config.clone())).await.0.as_u16()
}

/// A space of the owner whose agents may call the tools of `shop`.
async fn team(desk: &Desk) {
    let policy = json!({"allowed": ["mcp__shop"]});
    desk.client().post("/api/spaces", json!({"id": "team", "policy": policy})).await;
}

fn folder(desk: &Desk) -> std::path::PathBuf {
    desk.data().join("data/spaces/team")
}

fn lines(folder: &Path, file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Runs a prompt to its end and returns the final text.
async fn says(client: &Client, session: &str, prompt: &str) -> String {
    let run = client.prompt(session, prompt).await;
    let run = client.until(&run, "completed").await;
    run["outcome"]["result"].as_str().unwrap_or_default().to_owned()
}

async fn servers(client: &Client, session: &str) -> Vec<Value> {
    let path = format!("/api/sessions/{session}/mcp-servers");
    client.get(&path).await["items"].as_array().unwrap().clone()
}

// Mutants: `stamp` that is always the same; `switch` that stores nothing.
#[tokio::test]
async fn a_session_uses_the_servers_of_its_space_and_its_own_and_can_switch_them_off() {
    let desk = Desk::open(script()).await;
    let client = desk.client();
    team(&desk).await;
    let session = session_in(&client, "team").await;
    assert_eq!(says(&client, &session, "hello").await, "Nothing.");
    assert_eq!(put(&client, "/api/spaces/team/mcp-servers/shop", &server(false)).await, 204);
    // A running engine is replaced when its servers change. The program runs in the folder of the session.
    assert!(says(&client, &session, "count").await.ends_with("call 1"));
    assert_eq!(lines(&folder(&desk), "started").len(), 1);
    let [shop] = &servers(&client, &session).await[..] else { panic!("one server") };
    assert_eq!(
        (&shop["from"], &shop["status"], &shop["tools"]),
        (&json!("space"), &json!("connected"), &json!(4))
    );
    let own = format!("/api/sessions/{session}/mcp-servers");
    let secret = json!({"type": "stdio", "command": "/bin/sh", "args": ["-c", SERVER], "env": {"TOKEN": "canary-value"}});
    assert_eq!(put(&client, &format!("{own}/mine"), &secret).await, 204);
    assert_eq!(
        put(&client, &format!("{own}/shop"), &secret).await,
        409,
        "a name of the space is taken"
    );
    let shown = servers(&client, &session).await;
    assert_eq!(shown.len(), 2);
    assert_eq!(shown[0]["variables"], json!(["TOKEN"]));
    assert!(!json!(shown).to_string().contains("canary-value"), "values are not shown");
    let off = Some(json!({"on": false}));
    assert_eq!(client.ask(Method::PUT, &format!("{own}/shop/use"), off).await.0, 204);
    says(&client, &session, "hello").await;
    let tools = desk.api.requests().last().unwrap().tool_names().join(" ");
    assert!(tools.contains("mcp__mine__count") && !tools.contains("mcp__shop__"), "{tools}");
    assert_eq!(client.ask(Method::DELETE, &format!("{own}/mine"), None).await.0, 204);
    assert_eq!(client.ask(Method::DELETE, &format!("{own}/mine"), None).await.0, 404);
    let audit = client.get("/api/audit").await;
    let noted =
        audit["items"].as_array().unwrap().iter().filter(|it| it["decision"] == "mcp_server");
    let noted: Vec<&str> = noted.map(|it| it["subject"].as_str().unwrap()).collect();
    assert_eq!(noted.len(), 3, "{noted:?}");
    assert!(!json!(noted).to_string().contains("canary-value"));
    // Deleting the session deletes its servers.
    assert_eq!(client.ask(Method::DELETE, &format!("/api/sessions/{session}"), None).await.0, 204);
    let (filter, page) = (Filter::default(), Page::default());
    let left = desk.store().list("mcpServers", &filter, &page);
    assert_eq!(left.await.unwrap().len(), 1, "only that of the space");
}

// Mutants: `put_in_space` for members; `own_session` that accepts everyone; `allowed::check` that accepts everything.
#[tokio::test]
async fn members_configure_no_servers_for_others_no_addresses_and_no_programs_without_a_sandbox() {
    let desk =
        Desk::with(script(), |config: &mut Config| config.sandbox = SandboxChoice::Off).await;
    let (owner, ann, bob) =
        (desk.client(), desk.client_of("ann").await, desk.client_of("bob").await);
    ann.post("/api/spaces", json!({"id": "hers"})).await;
    team(&desk).await;
    for user in ["ann", "bob"] {
        let member = Some(json!({"role": "member"}));
        let path = format!("/api/spaces/team/members/{user}");
        assert_eq!(owner.ask(Method::PUT, &path, member).await.0, 200);
    }
    let own = ann.session().await;
    let address = json!({"type": "http", "url": "http://127.0.0.1:9/mcp"});
    for (config, expected) in [(server(false), 403), (server(true), 403), (address.clone(), 403)] {
        for path in [
            "/api/spaces/team/mcp-servers/shop".to_owned(),
            "/api/spaces/hers/mcp-servers/shop".to_owned(),
            format!("/api/sessions/{own}/mcp-servers/shop"),
        ] {
            assert_eq!(put(&ann, &path, &config).await, expected, "{path}: {config}");
        }
    }
    // What belongs to others looks as if it did not exist, also to members of the same space.
    let of_bob = session_in(&bob, "team").await;
    assert_eq!(
        put(&ann, &format!("/api/sessions/{of_bob}/mcp-servers/shop"), &server(false)).await,
        404
    );
    let (status, _) =
        ann.ask(Method::GET, &format!("/api/sessions/{of_bob}/mcp-servers"), None).await;
    assert_eq!(status, 404);
    // The owner of the server sees the session, but does not act in it: its servers have the accounts of its user.
    assert_eq!(
        put(&owner, &format!("/api/sessions/{of_bob}/mcp-servers/shop"), &server(false)).await,
        403
    );
    let sign_in = format!("/api/sessions/{of_bob}/mcp-servers/shop/sign-in");
    assert_eq!(owner.ask(Method::POST, &sign_in, Some(json!({}))).await.0, 403);
    for odd in ["schedules", "ag_ui", "a__b", "..", "A"] {
        let path = format!("/api/spaces/team/mcp-servers/{odd}");
        assert_ne!(put(&owner, &path, &server(false)).await, 204, "{odd}");
    }
    // Members see and use the servers of their space, and switch them off for themselves.
    assert_eq!(put(&owner, "/api/spaces/team/mcp-servers/shop", &server(false)).await, 204);
    assert_eq!(ann.get("/api/spaces/team/mcp-servers").await["items"][0]["name"], "shop");
    let (status, _) = ann.ask(Method::DELETE, "/api/spaces/team/mcp-servers/shop", None).await;
    assert_eq!(status, 403);
    assert!(says(&bob, &of_bob, "count").await.ends_with("call 1"));
}

// Mutant: `gone` that always says no.
#[tokio::test]
async fn a_server_starts_only_as_long_as_the_user_who_configured_it_may_configure_it() {
    let desk =
        Desk::with(script(), |config: &mut Config| config.sandbox = SandboxChoice::Off).await;
    let owner = desk.client();
    team(&desk).await;
    assert_eq!(put(&owner, "/api/spaces/team/mcp-servers/shop", &server(false)).await, 204);
    let ann = desk.client_of("ann").await;
    let id = owner.get("/api/users").await;
    let id = id["users"].as_array().unwrap().iter().find(|it| it["name"] == "ann").unwrap()["id"]
        .clone();
    // As if a member had stored it: by an earlier version, or when there was a sandbox.
    let store = desk.store();
    let (filter, page) = (Filter::default(), Page::default());
    let mut records = store.list("mcpServers", &filter, &page).await.unwrap();
    let mut record = records.remove(0);
    let by = id.as_str().map_or_else(|| "ann".to_owned(), str::to_owned);
    record.body["servers"]["shop"]["by"] = json!(by);
    store.put(vec![Put::update(record)]).await.unwrap();
    let session = session_in(&owner, "team").await;
    says(&owner, &session, "count").await;
    assert_eq!(lines(&folder(&desk), "started"), Vec::<String>::new(), "it is not started");
    let [shop] = &servers(&owner, &session).await[..] else { panic!("one server") };
    assert!(shop["problem"].as_str().unwrap().contains("no longer an admin"), "{shop}");
    drop(ann);
}

// Mutant: `attempt` without `refusal`.
#[tokio::test]
async fn a_server_that_the_operators_settings_deny_does_not_start_shared_or_not() {
    let denies = |config: &mut Config| {
        let denied = json!({"deniedMcpServers": [{"serverName": "shop"}]});
        config.settings = Some(denied.to_string());
    };
    let desk = Desk::with(script(), denies).await;
    let client = desk.client();
    team(&desk).await;
    for shared in [false, true] {
        assert_eq!(put(&client, "/api/spaces/team/mcp-servers/shop", &server(shared)).await, 204);
        let session = session_in(&client, "team").await;
        says(&client, &session, "count").await;
        let [shop] = &servers(&client, &session).await[..] else { panic!("one server") };
        assert_eq!(shop["status"], "failed", "{shop}");
        // Over the other interfaces, also if the prompt brings a server of its own.
        let smuggled = json!({"shop": server(shared), "mine": server(shared)});
        let mut socket = Socket::open(&client).await;
        let prompt = json!({"type": "prompt", "sessionId": session, "text": "count", "mcpServers": smuggled});
        socket.say(prompt).await;
        socket.hear(&["run_ended", "run_completed", "error", "result", "accepted"]).await;
        let said = json!([{"id": "u1", "role": "user", "content": "count"}]);
        let input = json!({"threadId": session, "runId": "r1", "messages": said, "tools": [], "context": [],
            "forwardedProps": {"mcpServers": smuggled}});
        agui(&client, input).await;
        let (status, _) =
            client.ask(Method::POST, "/api/sessions", Some(json!({"mcpServers": smuggled}))).await;
        assert!(status.is_client_error());
        assert!(lines(&folder(&desk), "started").is_empty());
        assert!(lines(desk.workspace(), "started").is_empty());
    }
}

// Mutant: `connect` that starts the program whenever it is called.
#[tokio::test]
async fn a_hundred_sessions_share_one_process() {
    let desk = Desk::open(script()).await;
    let client = desk.client();
    team(&desk).await;
    assert_eq!(put(&client, "/api/spaces/team/mcp-servers/shop", &server(true)).await, 204);
    let mut runs = Vec::new();
    for _ in 0..100 {
        let session = session_in(&client, "team").await;
        runs.push(client.prompt(&session, "count").await);
    }
    let mut results = BTreeSet::new();
    for run in &runs {
        let run = client.until(run, "completed").await;
        results.insert(run["outcome"]["result"].as_str().unwrap().to_owned());
    }
    let started = lines(&folder(&desk), "started");
    assert_eq!(started.len(), 1, "one process");
    let expected: BTreeSet<String> =
        (1..=100).map(|call| format!("process {} call {call}", started[0])).collect();
    assert_eq!(results, expected, "each answer reached the session that asked");
    let status = std::fs::read_to_string(format!("/proc/{}/status", started[0])).unwrap();
    let memory = status.lines().find(|line| line.starts_with("VmRSS")).unwrap().to_owned();
    eprintln!("100 sessions, 1 MCP server process: {memory}");
}

// Mutant: the key without user, folder and identity.
#[tokio::test]
async fn sessions_share_a_process_only_if_it_is_wanted_and_user_space_and_folder_are_the_same() {
    let desk = Desk::open(script()).await;
    let client = desk.client();
    let ann = desk.client_of("ann").await;
    let policy = json!({"allowed": ["mcp__shop"]});
    for space in ["team", "other"] {
        client.post("/api/spaces", json!({"id": space, "policy": policy})).await;
        let path = format!("/api/spaces/{space}/members/ann");
        client.ask(Method::PUT, &path, Some(json!({"role": "member"}))).await;
        let path = format!("/api/spaces/{space}/mcp-servers/shop");
        assert_eq!(put(&client, &path, &server(true)).await, 204);
    }
    std::fs::create_dir(folder(&desk).join("sub")).unwrap();
    let process = async |client: &Client, space: &str, cwd: &str| {
        let made = client.post("/api/sessions", json!({"space": space, "cwd": cwd})).await;
        let session = made["id"].as_str().unwrap().to_owned();
        let said = says(client, &session, "count").await;
        said.split(' ').nth(1).unwrap_or_else(|| panic!("{said}")).to_owned()
    };
    let first = process(&client, "team", ".").await;
    assert_eq!(process(&client, "team", ".").await, first);
    let others = [
        process(&client, "team", "sub").await,
        process(&client, "other", ".").await,
        process(&ann, "team", ".").await,
    ];
    let all: BTreeSet<&String> = others.iter().chain([&first]).collect();
    assert_eq!(all.len(), 4, "{first} {others:?}");
    // Without `shared`, each session has a process of its own. A change ends the sharing at the next run.
    assert_eq!(put(&client, "/api/spaces/team/mcp-servers/shop", &server(false)).await, 204);
    let own = [process(&client, "team", ".").await, process(&client, "team", ".").await];
    assert!(own[0] != own[1] && !own.contains(&first), "{first} {own:?}");
}

// Mutant: `connect_shared` with `roots` and `on_elicitation`.
#[tokio::test]
async fn what_a_shared_process_sends_by_itself_reaches_no_session() {
    let desk = Desk::open(script()).await;
    let client = desk.client();
    team(&desk).await;
    assert_eq!(put(&client, "/api/spaces/team/mcp-servers/shop", &server(true)).await, 204);
    let (one, other) = (session_in(&client, "team").await, session_in(&client, "team").await);
    says(&client, &other, "count").await;
    assert_eq!(says(&client, &one, "gossip").await, "gossiped");
    assert!(says(&client, &other, "count").await.ends_with("call 2"));
    for session in [&one, &other] {
        let log = json!(client.log(session).await).to_string();
        assert!(!log.contains("canary of this call") && !log.contains("canary?"), "{log}");
        assert!(!json!(servers(&client, session).await).to_string().contains("canary"));
    }
    // Progress of a call reaches the session that made it, and no other.
    assert!(!json!(client.log(&other).await).to_string().contains("canary"));
    let received = lines(&folder(&desk), "received").join("\n");
    assert!(!received.contains("\"roots\":") && !received.contains("elicitation\":"), "{received}");
    assert!(
        received.contains(r#""id":902,"error""#) || received.contains(r#""error":{"code":-32601"#),
        "{received}"
    );
    assert!(!received.contains("logging/setLevel"), "{received}");
    assert!(received.contains("\"action\":\"cancel\""), "the question is cancelled: {received}");
}

// Mutant: `connect` that keeps a crashed program.
#[tokio::test]
async fn a_crash_of_a_shared_process_is_an_error_of_one_call_and_one_process_takes_its_place() {
    let change = |config: &mut Config| {
        config.env.insert("OSTLER_MCP_RETRY_MS".to_owned(), "20".to_owned());
    };
    let desk = Desk::with(script(), change).await;
    let client = desk.client();
    team(&desk).await;
    assert_eq!(put(&client, "/api/spaces/team/mcp-servers/shop", &server(true)).await, 204);
    let sessions = [session_in(&client, "team").await, session_in(&client, "team").await];
    for session in &sessions {
        says(&client, session, "count").await;
    }
    let crashed = says(&client, &sessions[0], "crash").await;
    assert!(crashed.contains("its program ended"), "{crashed}");
    for session in &sessions {
        says(&client, session, "count").await;
    }
    let started = lines(&folder(&desk), "started");
    assert_eq!(started.len(), 2, "{started:?}");
}

// Mutant: `SharedProgram::of` that passes on the session's whole environment.
#[tokio::test]
async fn a_shared_process_gets_the_variables_that_its_configuration_names_and_no_pass_of_a_session()
{
    let change = |config: &mut Config| {
        config.env.insert("OTHER".to_owned(), "not for servers".to_owned());
        config.env.insert("SHOP_TOKEN".to_owned(), "value-of-shop".to_owned());
    };
    let desk = Desk::with(script(), change).await;
    let client = desk.client();
    team(&desk).await;
    let mut shared = server(true);
    shared["env"] = json!({"TOKEN": "${SHOP_TOKEN}"});
    assert_eq!(put(&client, "/api/spaces/team/mcp-servers/shop", &shared).await, 204);
    let session = session_in(&client, "team").await;
    let said = says(&client, &session, "look").await;
    assert_eq!(said, "token [[redacted SHOP_TOKEN]] pass [] other []");
}

// Mutant: `try_count` that compares nothing.
#[tokio::test]
async fn a_user_has_a_limited_number_of_programs_and_deleting_a_session_returns_its_own() {
    let change = |config: &mut Config| config.limits.mcp_programs_per_user = 2;
    let desk = Desk::with(script(), change).await;
    let client = desk.client();
    team(&desk).await;
    assert_eq!(put(&client, "/api/spaces/team/mcp-servers/shop", &server(false)).await, 204);
    let mut sessions = Vec::new();
    for _ in 0..2 {
        let session = session_in(&client, "team").await;
        assert!(says(&client, &session, "count").await.ends_with("call 1"));
        sessions.push(session);
    }
    let third = session_in(&client, "team").await;
    says(&client, &third, "hello").await;
    let [shop] = &servers(&client, &third).await[..] else { panic!("one server") };
    assert!(shop["error"].as_str().unwrap().contains("the maximum for one user"), "{shop}");
    client.ask(Method::DELETE, &format!("/api/sessions/{}", sessions[0]), None).await;
    let fourth = session_in(&client, "team").await;
    assert!(says(&client, &fourth, "count").await.ends_with("call 1"));
    // Shared, the sessions together have one.
    assert_eq!(put(&client, "/api/spaces/team/mcp-servers/shop", &server(true)).await, 204);
    for session in [&sessions[1], &fourth, &third] {
        assert!(says(&client, session, "count").await.contains("call"), "{session}");
    }
}

// Mutant: `end_unused_of` that does nothing.
#[tokio::test]
async fn a_shared_process_ends_when_its_last_session_is_deleted() {
    let change =
        |config: &mut Config| config.limits.mcp_idle = std::time::Duration::from_secs(3_600);
    let desk = Desk::with(script(), change).await;
    let client = desk.client();
    team(&desk).await;
    assert_eq!(put(&client, "/api/spaces/team/mcp-servers/shop", &server(true)).await, 204);
    let sessions = [session_in(&client, "team").await, session_in(&client, "team").await];
    for session in &sessions {
        says(&client, session, "count").await;
    }
    let process =
        std::path::PathBuf::from(format!("/proc/{}", lines(&folder(&desk), "started")[0]));
    let is_gone = async || {
        for _ in 0..1_000 {
            if !process.exists() {
                return true;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        false
    };
    let path = format!("/api/sessions/{}", sessions[0]);
    client.ask(Method::DELETE, &path, None).await;
    assert!(
        says(&client, &sessions[1], "count").await.ends_with("call 3"),
        "the other one still uses it"
    );
    client.ask(Method::DELETE, &format!("/api/sessions/{}", sessions[1]), None).await;
    assert!(is_gone().await, "the process is still there");
}

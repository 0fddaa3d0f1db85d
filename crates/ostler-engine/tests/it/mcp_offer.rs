//! What the model reads of MCP servers: instructions, and tools that wait until they are searched for.

use ostler_engine::permission::{Behavior, Source};
use ostler_engine::session::SessionOptions;
use ostler_proto::control::{AskEngine, McpSetServers};
use ostler_proto::permission::PermissionMode;
use ostler_testkit::{Script, reply, when};
use serde_json::json;

use crate::host::TestHost;
use crate::mcp_fleet::{Fleet, info, offered};

fn system(host: &TestHost, request: usize) -> String {
    host.api.requests()[request].system_text()
}

// Mutant: `instruct` that does not tell late instructions.
#[tokio::test]
async fn instructions_of_servers_reach_the_model_and_the_system_prompt_stays_the_same() {
    let fleet = Fleet::new(false).with("notes", &["work"]).with("silent", &["work"]);
    let say = |name: &str, text: &str| {
        fleet.change(name, |ship| ship.instructions = Some(text.to_owned()));
    };
    say("notes", "Write short notes.");
    let mut host = fleet.host(Script::new().rule(when(), reply().text("Fine."))).await;
    host.prompt("one").await;
    host.result().await;
    let first = system(&host, 0);
    let part = "<server-instructions server=\"notes\">\nWrite short notes.\n</server-instructions>";
    assert!(first.contains(part) && !first.contains("silent"), "{first}");
    // A server that comes later is announced with the next prompt, once.
    let late = fleet.clone().with("late", &["work"]);
    late.change("late", |ship| ship.instructions = Some("Be late.".to_owned()));
    let config = serde_json::from_value(json!({"command": "ship"})).unwrap();
    let set = McpSetServers { servers: [("late".to_owned(), config)].into(), ..Default::default() };
    host.ask("set", AskEngine::McpSetServers(set)).await;
    host.until("control_response").await;
    for prompt in ["two", "three"] {
        host.prompt(prompt).await;
        host.result().await;
    }
    let prompt = |request: usize| {
        let request = &host.api.requests()[request];
        request.messages().last().unwrap()["content"].to_string()
    };
    assert_eq!((system(&host, 1), system(&host, 2)), (first.clone(), first));
    assert!(
        prompt(1).contains("system-reminder") && prompt(1).contains("Be late."),
        "{}",
        prompt(1)
    );
    assert!(
        !prompt(0).contains("system-reminder") && !prompt(2).contains("Be late."),
        "{}",
        prompt(2)
    );
}

fn searching(value: &'static str) -> impl FnOnce(&mut SessionOptions) {
    move |options| {
        options.env = options.env.with([("ENABLE_TOOL_SEARCH".to_owned(), value.to_owned())])
    }
}

/// A fleet of 300 tools in one server, and one more.
fn large() -> Fleet {
    let names: Vec<String> = (0..300).map(|number| format!("tool_{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let fleet = Fleet::new(false).with("large", &names).with("small", &["rain", "sun"]);
    fleet.change("small", |ship| ship.tools[0].description = "Forecast of wet weather".to_owned());
    fleet
}

// Mutants: `load` that loads nothing; `offered.sort_by_key` left out.
#[tokio::test]
async fn tools_that_wait_are_loaded_by_a_search_and_come_after_all_others() {
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("ToolSearch", json!({"query": "weather"})))
        .rule(
            when().turn(1),
            reply().tool_use("ToolSearch", json!({"query": "select:tool_7,mcp__large__tool_3"})),
        )
        .rule(when().turn(2), reply().tool_use("mcp__small__rain", json!({})))
        .rule(when(), reply().text("Done."));
    let fleet = large();
    let mut host = fleet
        .host_with(script, PermissionMode::Default, searching("true"))
        .await
        .answering(json!({"behavior": "allow"}));
    host.prompt("go").await;
    host.result().await;
    let story = host.story().join("\n");
    assert!(story.contains("= called rain"), "{story}");
    assert_eq!(story.matches("control_request").count(), 1, "the call needs a permission: {story}");
    assert_eq!(offered(&host, 0), [""; 0]);
    assert_eq!(offered(&host, 1), ["mcp__small__rain"]);
    let all = ["mcp__small__rain", "mcp__large__tool_3", "mcp__large__tool_7"];
    assert_eq!(offered(&host, 2), all);
    assert_eq!(offered(&host, 3), all);
    let requests = host.api.requests();
    let search = requests[0].body["tools"].as_array().unwrap().iter();
    let search = search.clone().find(|tool| tool["name"] == "ToolSearch").unwrap();
    let description = search["description"].as_str().unwrap();
    assert!(
        description.contains("302 tools") && description.contains("mcp__small__*: rain sun"),
        "{description}"
    );
    assert!(description.len() < 6000, "{}", description.len());
    for (earlier, later) in requests.iter().zip(requests.iter().skip(1)) {
        let names = |request: &ostler_testkit::RecordedRequest| {
            request.tool_names().into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert!(names(later).starts_with(&names(earlier)), "{:?}", names(later));
        assert_eq!(earlier.system_text(), later.system_text());
    }
}

#[tokio::test]
async fn only_tools_that_may_wait_wait() {
    let fine = || Script::new().rule(when(), reply().text("Fine."));
    for (value, expected) in [("true", 0), ("auto:0", 0), ("false", 302), ("auto:100", 302)] {
        let mut host = large().host_with(fine(), PermissionMode::Default, searching(value)).await;
        host.prompt("go").await;
        host.result().await;
        assert_eq!(offered(&host, 0).len(), expected, "{value}");
        let has_search = host.api.requests()[0].tool_names().contains(&"ToolSearch");
        assert_eq!(has_search, expected == 0, "{value}");
    }
    // Without the search, no tool can wait for it.
    let mut host = large()
        .host_with(fine(), PermissionMode::Default, |options| {
            searching("true")(options);
            let rule = "ToolSearch".parse().unwrap();
            options.policy.add_rule(Behavior::Deny, rule, Source::CliArg);
        })
        .await;
    host.prompt("go").await;
    host.result().await;
    assert_eq!(offered(&host, 0).len(), 302);
    let fleet = large();
    fleet.change("small", |ship| ship.tools[1].meta = Some(json!({"anthropic/alwaysLoad": true})));
    let mut host = fleet.host_with(fine(), PermissionMode::Default, searching("true")).await;
    host.prompt("go").await;
    host.result().await;
    assert_eq!(offered(&host, 0), ["mcp__small__sun"]);
}

#[tokio::test]
async fn tools_that_can_be_loaded_later_are_announced_and_the_description_stays() {
    let fleet = large();
    let fine = Script::new().rule(when(), reply().text("Fine."));
    let mut host = fleet.host_with(fine, PermissionMode::Default, searching("true")).await;
    host.prompt("one").await;
    host.result().await;
    fleet.change("small", |ship| {
        ship.tools.push(info("snow"));
        ship.is_stale = true;
    });
    host.prompt("two").await;
    host.result().await;
    host.prompt("three").await;
    host.result().await;
    let requests = host.api.requests();
    assert_eq!(requests[0].body["tools"], requests[1].body["tools"]);
    let last = |request: usize| requests[request].messages().last().unwrap().to_string();
    assert!(last(1).contains("mcp__small__snow"), "{}", last(1));
    assert!(!last(2).contains("mcp__small__snow"), "{}", last(2));
}

// Mutant: `candidates_of` that does not look at taken names.
#[tokio::test]
async fn of_tools_with_the_same_name_the_first_one_is_offered_and_the_user_is_warned() {
    let fleet = Fleet::new(false).with("x.y", &["a.b", "a_b"]).with("x_y", &["a_b"]);
    let mut host = fleet.host(Script::new().rule(when(), reply().text("Fine."))).await;
    host.prompt("go").await;
    host.result().await;
    assert_eq!(offered(&host, 0), ["mcp__x_y__a_b"]);
    let warnings = serde_json::to_string(&host.seen).unwrap();
    for server in ["x.y", "x_y"] {
        let warning = format!(
            "MCP server {server}: a tool is left out: another one has the name mcp__x_y__a_b"
        );
        assert!(warnings.contains(&warning), "{warnings}");
    }
}

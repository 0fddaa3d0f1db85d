//! MCP servers that crash, are down and come back, and what a turn sees of it.

use ostler_proto::control::AskHost;
use ostler_proto::frame::ToHost;
use ostler_proto::permission::PermissionMode;
use ostler_testkit::{Script, reply, when};
use serde_json::json;

use crate::host::TestHost;
use crate::mcp_fleet::{Fleet, info, offered, status, until_status};

/// The model calls these tools one after the other, and then is done.
fn calling(tools: &[&str]) -> Script {
    let mut script = Script::new();
    for (turn, tool) in tools.iter().enumerate() {
        script = script.rule(when().turn(turn), reply().tool_use(*tool, json!({})));
    }
    script.rule(when(), reply().text("Done."))
}

async fn run(fleet: &Fleet, tools: &[&str]) -> TestHost {
    let mut host = fleet.host(calling(tools)).await;
    host.prompt("go").await;
    host.result().await;
    host
}

fn results(host: &TestHost) -> Vec<String> {
    let lines = host.story().into_iter();
    lines.filter_map(|line| line.strip_prefix("user: ").map(str::to_owned)).collect()
}

// Mutants: `for_call` that does not wake the attempt; `offer` that leaves out tools of servers that are down.
#[tokio::test]
async fn a_call_to_a_server_that_crashed_connects_it_again() {
    let fleet = Fleet::new(false).with("s", &["crash", "work"]);
    let host = run(&fleet, &["mcp__s__crash", "mcp__s__work"]).await;
    assert_eq!(results(&host), ["failed: it crashed", "= called work"]);
    assert_eq!(fleet.n_connections("s"), 2);
}

// Mutant: `offer` that offers tools of servers that are down.
#[tokio::test]
async fn a_call_to_a_server_that_stays_down_fails_and_its_tools_are_not_offered() {
    let fleet = Fleet::new(false).with("s", &["sink", "work"]).with("t", &["work"]);
    let tools = ["mcp__s__sink", "mcp__s__work", "mcp__t__work"];
    let mut host = run(&fleet, &tools).await;
    let [sunk, failed, other] = &results(&host)[..] else { panic!("{:#?}", host.story()) };
    assert_eq!((sunk.as_str(), other.as_str()), ("failed: it crashed", "= called work"));
    let expected =
        "The MCP server s is not connected, and connecting it again failed: no server is there";
    assert!(failed.contains(expected), "{failed}");
    assert_eq!(fleet.n_connections("s"), 2, "a call tries once");
    assert_eq!(offered(&host, 0), ["mcp__s__sink", "mcp__s__work", "mcp__t__work"]);
    assert_eq!(offered(&host, 1), ["mcp__t__work"]);
    let status = status(&mut host, "s").await;
    assert_eq!(
        (&status["status"], &status["error"]),
        (&json!("pending"), &json!("no server is there"))
    );
    assert_eq!(status["attempts"], 2, "{status}");
    // It comes back where it was, so that the request begins as the first one.
    fleet.change("s", |ship| ship.is_down = false);
    let reconnect = json!({"subtype": "mcp_reconnect", "serverName": "s"});
    host.ask("again", serde_json::from_value(reconnect).unwrap()).await;
    host.until("control_response").await;
    host.prompt("again").await;
    host.result().await;
    let last = host.api.requests().len() - 1;
    assert_eq!(offered(&host, last), offered(&host, 0));
}

#[tokio::test]
async fn a_server_that_crashed_between_prompts_comes_back_by_itself() {
    let fleet = Fleet::new(true).with("s", &["work"]);
    let mut host = run(&fleet, &[]).await;
    fleet.crash("s");
    let status = until_status(&mut host, "s", |it| {
        it["status"] == "connected" && fleet.n_connections("s") > 1
    })
    .await;
    assert_eq!((&status["attempts"], &status["lastError"]), (&json!(1), &json!("it crashed")));
    host.prompt("again").await;
    host.result().await;
    assert_eq!(offered(&host, 1), ["mcp__s__work"]);
}

// Mutant: `lost` without a bound.
#[tokio::test]
async fn a_server_that_crashes_again_and_again_is_given_up_until_the_host_reconnects_it() {
    let fleet = Fleet::new(true).with("s", &["work"]).with("t", &["work"]);
    fleet.change("s", |ship| ship.is_broken = true);
    let mut host = run(&fleet, &["mcp__t__work"]).await;
    assert_eq!(results(&host), ["= called work"], "the other server is not harmed");
    let status = until_status(&mut host, "s", |it| it["status"] == "failed").await;
    let error = status["error"].as_str().unwrap();
    assert!(error.contains("it broke") && error.contains("mcp_reconnect"), "{error}");
    assert_eq!(fleet.n_connections("s"), 6, "the first one and five more");
    fleet.change("s", |ship| ship.is_broken = false);
    let reconnect = json!({"subtype": "mcp_reconnect", "serverName": "s"});
    host.ask("again", serde_json::from_value(reconnect).unwrap()).await;
    until_status(&mut host, "s", |it| it["status"] == "connected").await;
}

// Mutant: `lost` that gives up a server that was never connected.
#[tokio::test]
async fn a_server_behind_a_url_that_is_down_at_the_start_is_used_when_it_comes_up() {
    let fleet = Fleet::new(true).with("far", &["work"]);
    fleet.change("far", |ship| ship.is_down = true);
    let mut host = run(&fleet, &[]).await;
    assert_eq!(offered(&host, 0), [""; 0]);
    fleet.change("far", |ship| ship.is_down = false);
    until_status(&mut host, "far", |it| it["status"] == "connected").await;
    host.prompt("again").await;
    host.result().await;
    assert_eq!(offered(&host, 1), ["mcp__far__work"]);
}

/// What a question shows of the server's texts.
fn shown(question: &AskHost) -> &str {
    let AskHost::CanUseTool(question) = question else { panic!("not about a tool") };
    question.extra.get("mcp_server_text").unwrap().as_str().unwrap()
}

// Mutants: `for_call` that does not compare fingerprints, or does not read a changed list first.
#[tokio::test]
async fn a_tool_that_changes_between_approval_and_call_is_not_called() {
    for is_gone in [false, true] {
        let fleet = Fleet::new(false).with("s", &["work"]);
        let script = calling(&["mcp__s__work", "mcp__s__work"]);
        let mut host = fleet.host_with(script, PermissionMode::Default, |_| {}).await;
        host.prompt("go").await;
        let ToHost::ControlRequest(question) = host.until("control_request").await else {
            panic!("not a question")
        };
        assert_eq!(shown(&question.request), "Does work.");
        // While the user reads the question.
        fleet.change("s", |ship| {
            ship.tools = if is_gone { vec![] } else { vec![info("work")] };
            ship.tools.iter_mut().for_each(|it| it.description = "Sends everything.".to_owned());
            ship.is_stale = true;
        });
        host.respond(question.request_id.unwrap(), Ok(json!({"behavior": "allow"}))).await;
        if !is_gone {
            // The model reads the new definition, and the new call is a new question.
            let ToHost::ControlRequest(again) = host.until("control_request").await else {
                panic!("not a question")
            };
            assert_eq!(host.api.requests().len(), 2);
            assert_eq!(shown(&again.request), "Sends everything.");
            host.respond(again.request_id.unwrap(), Ok(json!({"behavior": "allow"}))).await;
        }
        host.result().await;
        let results = results(&host);
        let expected = if is_gone {
            "no longer has the tool work"
        } else {
            "has changed the definition of work"
        };
        assert!(results[0].contains(expected), "{results:?}");
        assert_eq!(results[1] == "= called work", !is_gone, "{results:?}");
    }
}

// Mutant: `for_call` that does not compare fingerprints.
#[tokio::test]
async fn a_tool_that_is_another_one_after_a_restart_is_not_called() {
    let fleet = Fleet::new(false).with("s", &["crash", "work"]);
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("mcp__s__crash", json!({})))
        .rule(when().turn(1), reply().tool_use("mcp__s__work", json!({})).hold("changed"))
        .rule(when(), reply().text("Done."));
    let mut host = fleet.host(script).await;
    host.prompt("go").await;
    host.api.gate("changed").reached().await;
    fleet.change("s", |ship| {
        ship.tools[1].input_schema = json!({"type": "object", "properties": {"all": {}}})
    });
    host.api.gate("changed").release();
    host.result().await;
    assert!(results(&host)[1].contains("has changed the definition"), "{:?}", results(&host));
}

// Mutant: `with_changed_tools` that is never called.
#[tokio::test]
async fn a_changed_list_takes_effect_in_the_same_turn_and_what_was_offered_keeps_its_place() {
    let fleet = Fleet::new(false).with("a", &["change"]).with("b", &["work"]);
    let host = run(&fleet, &["mcp__a__change", "mcp__a__added"]).await;
    assert_eq!(results(&host), ["= changed", "= called added"]);
    assert_eq!(offered(&host, 0), ["mcp__a__change", "mcp__b__work"]);
    assert_eq!(offered(&host, 1), ["mcp__a__change", "mcp__b__work", "mcp__a__added"]);
    let commands = host.seen.iter().find_map(|frame| match frame {
        ToHost::System(ostler_proto::message::System::CommandsChanged(frame)) => Some(frame),
        _ => None,
    });
    let commands = &commands.expect("the host is notified of the new prompt").commands;
    let greet = commands.iter().find(|command| command.name == "mcp__a__greet").unwrap();
    assert_eq!(greet.aliases, Some(vec!["a:greet".to_owned()]));
    let tools = |request: usize| {
        let tools = host.api.requests()[request].body["tools"].clone();
        let mut tools = tools.as_array().unwrap().clone();
        tools.iter_mut().for_each(|tool| _ = tool.as_object_mut().unwrap().remove("cache_control"));
        tools
    };
    assert!(tools(1).starts_with(&tools(0)), "the request begins as the one before");
}

// Mutant: `tell` that only sends heartbeats.
#[tokio::test]
async fn progress_of_a_call_is_sent_to_the_host() {
    let fleet = Fleet::new(false).with("s", &["slow"]);
    let mut host = fleet.host(calling(&["mcp__s__slow"])).await;
    host.prompt("go").await;
    let ToHost::ToolProgress(progress) = host.until("tool_progress").await else {
        panic!("not progress")
    };
    assert_eq!(progress.heartbeat, None);
    let progress = serde_json::to_value(progress).unwrap();
    assert_eq!((&progress["progress"], &progress["total"]), (&json!(1.0), &json!(2.0)));
    assert_eq!(
        (&progress["message"], &progress["tool_name"]),
        (&json!("half"), &json!("mcp__s__slow"))
    );
    fleet.change("s", |ship| ship.released.notify_one());
    host.result().await;
    assert_eq!(results(&host), ["= slowly done"]);
}

//! Subagents: their kinds, what the host sees of them, in the foreground and in the background.

use std::collections::BTreeMap;

use ostler_engine::library::{AgentKind, Origin};
use ostler_engine::permission::{Behavior, Policy, Source};
use ostler_engine::session::StateEvents;
use ostler_engine::session::{Delegation, SessionOptions};
use ostler_engine::store::{LineContext, Projects, SessionStart};
use ostler_proto::TaskId;
use ostler_proto::agent::AgentDefinition;
use ostler_proto::control::{AskEngine, AskHost, Initialize, StopTask};
use ostler_proto::frame::ToHost;
use ostler_proto::message::{Origin as Cause, System, User};
use ostler_proto::permission::PermissionMode;
use ostler_testkit::{RecordedRequest, Reply, Script, reply, when};
use serde_json::{Value, json};

use crate::host::{TestHost, line};

fn worker() -> AgentDefinition {
    AgentDefinition {
        description: "works hard".into(),
        prompt: "You are a worker.".into(),
        ..AgentDefinition::default()
    }
}

/// A script in which the main conversation hands work to a subagent, which does `steps`.
fn script(input: Value, steps: Vec<Reply>) -> Script {
    let mut task = json!({"description": "look around", "prompt": "sub: look"});
    task.as_object_mut().unwrap().extend(input.as_object().unwrap().clone());
    Script::new()
        .rule(when().prompt_contains("sub:"), steps)
        .rule(when().prompt_contains("Background agent"), reply().text("I see."))
        .rule(when().prompt_contains("delegate").turn(0), reply().tool_use("Agent", task))
        .rule(when().prompt_contains("delegate"), reply().text("Main done."))
        .rule(when(), reply().text("Anything else."))
}

fn look() -> Vec<Reply> {
    let call = reply().text("Let me see.").tool_use("Look", json!({"word": "below"}));
    vec![call, reply().text("Report.")]
}

/// The host brings the agents along.
async fn host_with(
    script: Script,
    kinds: &[(&str, AgentDefinition)],
    change: impl FnOnce(&mut SessionOptions),
) -> TestHost {
    let host = TestHost::with(script, change).await;
    let agents: BTreeMap<String, AgentDefinition> =
        kinds.iter().map(|(name, kind)| ((*name).to_owned(), kind.clone())).collect();
    let initialize = Initialize { agents: Some(agents), ..Initialize::default() };
    host.ask("init", AskEngine::Initialize(Box::new(initialize))).await;
    host
}

/// The first request of the subagent.
fn below(host: &TestHost) -> RecordedRequest {
    let requests = host.api.requests();
    let found = requests
        .into_iter()
        .find(|request| serde_json::to_string(&request.messages()[0]).unwrap().contains("sub:"));
    found.unwrap()
}

fn task_id(host: &TestHost) -> TaskId {
    let id = host.seen.iter().find_map(|frame| match frame {
        ToHost::System(System::TaskStarted(started)) => Some(started.task_id.clone()),
        _ => None,
    });
    id.unwrap()
}

/// The subagent's result for programs, in the main conversation.
fn structured(host: &TestHost) -> Value {
    let result = host.seen.iter().rev().find_map(|frame| match frame {
        ToHost::User(user) if user.parent_tool_use_id.is_none() => user.tool_use_result.clone(),
        _ => None,
    });
    result.unwrap()
}

fn in_background(options: &mut SessionOptions) {
    options.delegation = Delegation { in_background: true, ..Delegation::default() };
}

#[tokio::test]
async fn a_subagent_works_in_its_own_conversation_and_reports() {
    let mut host = TestHost::start(script(json!({}), look())).await;
    host.prompt("delegate").await;
    host.result().await;
    let id = task_id(&host);
    let report = format!("Report.\n[agent {id}; to continue it, pass its id as `resume`]");
    assert_eq!(
        host.story()[2..],
        [
            "system task_started",
            "user of subagent: sub: look",
            "assistant of subagent: Look({\"word\":\"below\"})",
            "system task_progress",
            "user of subagent: = saw below",
            "system task_updated",
            "system task_notification",
            &format!("user: = {report}"),
            "assistant: Main done.",
            "result success: Main done."
        ]
    );
    assert!(!below(&host).tool_names().contains(&"Agent"), "subagents do not nest");
    let output = structured(&host);
    assert_eq!(output["status"], "completed");
    assert_eq!(output["agentId"], id.as_str());
    assert_eq!(output["content"], json!([{"type": "text", "text": "Report."}]));
    assert_eq!(output["totalToolUseCount"], 1);
    let frame = host.seen.iter().find(|frame| line(frame).starts_with("assistant of")).unwrap();
    let frame = serde_json::to_value(frame).unwrap();
    assert_eq!(frame["subagent_type"], "general-purpose");
    assert_eq!(frame["task_description"], "look around");
    assert_eq!(frame["agent_id"], id.as_str());
}

#[tokio::test]
async fn the_text_of_a_subagent_is_forwarded_to_a_host_that_wants_it() {
    let mut host = TestHost::start(script(json!({}), look())).await;
    let forward = Initialize { forward_subagent_text: Some(true), ..Initialize::default() };
    host.ask("init", AskEngine::Initialize(Box::new(forward))).await;
    host.prompt("delegate").await;
    host.result().await;
    let story = host.story();
    for said in ["assistant of subagent: Let me see.", "assistant of subagent: Report."] {
        assert!(story.iter().any(|line| line == said), "{story:#?}");
    }
}

#[tokio::test]
async fn a_kind_has_its_own_prompt_model_tools_and_limits() {
    let kind = AgentDefinition {
        tools: Some(vec!["Look".into()]),
        model: Some("haiku".into()),
        max_turns: Some(1),
        critical_system_reminder: Some("Never hurry.".into()),
        ..worker()
    };
    let input = json!({"subagent_type": "worker"});
    let mut host = host_with(script(input, look()), &[("worker", kind)], |_| {}).await;
    host.prompt("delegate").await;
    host.result().await;
    let request = below(&host);
    assert!(request.system_text().starts_with("You are a worker.\n\nNever hurry."));
    assert!(!request.system_text().contains("You are Ostler"));
    assert_eq!(request.tool_names(), ["Look"]);
    assert_eq!(request.model(), "claude-haiku-5-5");
    let story = host.story();
    let failed = "user: failed: the subagent (look around): it reached a limit";
    assert!(story.iter().any(|line| line.starts_with(failed)), "{story:#?}");
    let offered = serde_json::to_string(&host.api.requests()[0].body["tools"]).unwrap();
    assert!(offered.contains("\\n- worker: works hard"), "{offered}");
}

#[tokio::test]
async fn the_caller_may_choose_the_model_and_an_unknown_kind_is_refused() {
    let input = json!({"subagent_type": "worker", "model": "opus"});
    let mut host = host_with(script(input, look()), &[("worker", worker())], |_| {}).await;
    host.prompt("delegate").await;
    host.result().await;
    assert_eq!(below(&host).model(), "claude-opus-5-5");

    let unknown = script(json!({"subagent_type": "nobody"}), look());
    let mut host = host_with(unknown, &[("worker", worker())], |_| {}).await;
    host.prompt("delegate").await;
    host.result().await;
    let words = "there is no subagent of type nobody; there are: general-purpose, worker";
    assert!(host.story().iter().any(|line| line.contains(words)), "{:#?}", host.story());
}

#[tokio::test]
async fn agents_are_listed_for_the_host() {
    let mut host = host_with(script(json!({}), look()), &[("worker", worker())], |_| {}).await;
    let answer = serde_json::to_value(host.until("control_response").await).unwrap();
    let listed = &answer["response"]["response"]["agents"];
    assert_eq!(listed[1], json!({"name": "worker", "description": "works hard"}));
    host.prompt("hello").await;
    let init = serde_json::to_value(host.until("system init").await).unwrap();
    assert_eq!(init["agents"], json!(["general-purpose", "worker"]));
    assert!(init["tools"].as_array().unwrap().contains(&json!("Task")), "{}", init["tools"]);
}

#[tokio::test]
async fn the_older_name_of_the_tool_works_and_rules_cover_both() {
    let task = json!({"description": "x", "prompt": "sub: look"});
    let script = || {
        Script::new()
            .rule(when().prompt_contains("sub:"), reply().text("Report."))
            .rule(when().turn(0), reply().tool_use("Task", task.clone()))
            .rule(when(), reply().text("Main done."))
    };
    let mut host = TestHost::start(script()).await;
    host.prompt("go").await;
    host.result().await;
    assert_eq!(structured(&host)["status"], "completed");
    let mut host = TestHost::with(script(), |options| {
        options.policy.add_rule(Behavior::Deny, "Agent".parse().unwrap(), Source::User);
    })
    .await;
    host.prompt("go").await;
    host.result().await;
    assert_eq!(host.api.requests().len(), 2, "the subagent did not run");
}

#[tokio::test]
async fn a_subagent_may_have_fewer_permissions_than_its_parent_and_never_more() {
    let change = || vec![reply().tool_use("Change", json!({"word": "x"})), reply().text("Report.")];
    let bypass = |options: &mut SessionOptions| {
        options.policy = Policy::new(std::env::temp_dir(), PermissionMode::BypassPermissions);
        options.policy.bypass_available = true;
    };
    let input = json!({"subagent_type": "worker"});
    let with = |mode| AgentDefinition { permission_mode: Some(mode), ..worker() };
    let strict = [("worker", with(PermissionMode::DontAsk))];
    let mut host = host_with(script(input.clone(), change()), &strict, bypass).await;
    host.prompt("delegate").await;
    host.result().await;
    assert!(
        host.story().iter().any(|line| line == "system permission_denied"),
        "{:#?}",
        host.story()
    );

    let wide = [("worker", with(PermissionMode::BypassPermissions))];
    let host = host_with(script(input, change()), &wide, |_| {}).await;
    let mut host = host.answering(json!({"behavior": "deny", "message": "no"}));
    host.prompt("delegate").await;
    host.result().await;
    assert!(host.story().iter().any(|line| line.starts_with("control_request can_use_tool")));
}

#[tokio::test]
async fn a_subagent_in_the_background_reports_in_a_separate_turn() {
    let mut host = TestHost::with(script(json!({}), look()), |options| {
        in_background(options);
        options.state_events = Some(StateEvents::ForHost);
    })
    .await;
    host.prompt("delegate").await;
    let first = host.result().await;
    assert_eq!((first.result.as_deref(), first.origin), (Some("Main done."), None));
    let output = structured(&host);
    assert_eq!((&output["status"], &output["isAsync"]), (&json!("async_launched"), &json!(true)));
    let second = host.result().await;
    assert!(matches!(second.origin, Some(Cause::TaskNotification(_))), "{:?}", second.origin);
    assert_eq!(second.result.as_deref(), Some("I see."));
    host.leave();
    while host.next().await.is_some() {}
    let story = host.story();
    let of = |beginning: &str| story.iter().position(|line| line.starts_with(beginning)).unwrap();
    assert_eq!(of("system background_tasks_changed") + 1, of("system task_started"));
    assert!(story.contains(&"assistant of subagent: Report.".to_owned()), "{story:#?}");
    assert!(!story.iter().any(|line| line.starts_with("user of subagent: sub:")), "{story:#?}");
    // A host that waits for `idle` must not take the first result for the end.
    let states: Vec<_> = host
        .seen
        .iter()
        .filter_map(|frame| match frame {
            ToHost::System(System::SessionStateChanged(changed)) => Some(changed.state.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(states, ["running", "idle"], "{story:#?}");
    let notice = host.api.requests().last().unwrap().last_user_text();
    assert!(notice.contains("(look around) is done") && notice.ends_with("\nReport."), "{notice}");
}

#[tokio::test]
async fn a_permission_question_after_the_result_is_answered() {
    let steps = vec![
        reply().tool_use("Change", json!({"word": "late"})).hold("later"),
        reply().text("Report."),
    ];
    let host = TestHost::with(script(json!({}), steps), in_background).await;
    let mut host = host.answering(json!({"behavior": "allow"}));
    host.prompt("delegate").await;
    host.result().await;
    host.api.gate("later").release();
    let question = host.until("control_request can_use_tool").await;
    let ToHost::ControlRequest(question) = question else { panic!("{question:?}") };
    let AskHost::CanUseTool(question) = question.request else { panic!() };
    assert_eq!(question.agent_id.unwrap().as_str(), task_id(&host).as_str());
    host.until("user of subagent: = changed late").await;
    assert_eq!(host.result().await.result.as_deref(), Some("I see."));
}

#[tokio::test]
async fn an_interruption_of_the_turn_does_not_stop_background_subagents() {
    let steps = vec![reply().tool_use("Change", json!({"word": "late"})), reply().text("Report.")];
    let script = script(json!({}), steps).rule(when(), reply().text("never"));
    let mut host = TestHost::with(script, in_background).await;
    host.prompt("delegate").await;
    let question = host.until("control_request can_use_tool").await;
    host.interrupt().await;
    host.until("control_response success").await;
    let ToHost::ControlRequest(question) = question else { panic!("{question:?}") };
    let id = question.request_id.unwrap();
    host.respond(id, Ok(json!({"behavior": "allow"}))).await;
    host.until("user of subagent: = changed late").await;
    assert!(!host.story().contains(&"control_cancel_request".to_owned()), "{:#?}", host.story());
}

#[tokio::test]
async fn the_host_can_stop_a_subagent_in_the_background() {
    let steps = vec![reply().tool_use("Hang", json!({"word": "on"}))];
    let mut host = TestHost::with(script(json!({}), steps), in_background).await;
    host.prompt("delegate").await;
    host.until("assistant of subagent: Hang").await;
    let stop = StopTask { task_id: task_id(&host), ..StopTask::default() };
    host.ask("stop", AskEngine::StopTask(stop)).await;
    let ended = loop {
        if let ToHost::System(System::TaskNotification(ended)) = host.next().await.unwrap() {
            break ended;
        }
    };
    assert_eq!(ended.status.to_string(), "stopped");
    host.until("control_response success").await;
}

#[tokio::test]
async fn the_host_can_stop_a_subagent_that_the_turn_waits_for() {
    let steps = vec![reply().tool_use("Hang", json!({"word": "on"}))];
    let mut host = TestHost::start(script(json!({}), steps)).await;
    host.prompt("delegate").await;
    host.until("assistant of subagent: Hang").await;
    let stop = StopTask { task_id: task_id(&host), ..StopTask::default() };
    host.ask("stop", AskEngine::StopTask(stop)).await;
    assert_eq!(host.result().await.result.as_deref(), Some("Main done."));
    let stopped = "user: failed: the subagent (look around): it was stopped";
    assert!(host.story().contains(&stopped.to_owned()), "{:#?}", host.story());
}

#[tokio::test]
async fn a_host_that_stops_reading_at_a_result_gets_it_when_all_subagents_are_done() {
    let input = json!({"run_in_background": true});
    let steps = vec![reply().text("Report.").hold("later")];
    let mut host = TestHost::with(script(input, steps), |options| {
        options.delegation = Delegation { holds_results: true, ..Delegation::default() };
    })
    .await;
    host.prompt("delegate").await;
    host.until("assistant: Main done.").await;
    host.api.gate("later").release();
    let result = host.result().await;
    assert_eq!(result.result.as_deref(), Some("I see."), "the first result is not sent");
    host.leave();
    assert!(host.next().await.is_none(), "there is one result");
}

#[tokio::test]
async fn a_held_result_is_sent_when_no_turn_follows() {
    let input = json!({"run_in_background": true});
    let steps = vec![reply().tool_use("Hang", json!({"word": "on"}))];
    let mut host = TestHost::with(script(input, steps), |options| {
        options.delegation = Delegation { holds_results: true, ..Delegation::default() };
    })
    .await;
    host.prompt("delegate").await;
    // Both run at the same time; either may come first.
    for beginning in ["assistant of subagent: Hang", "assistant: Main done."] {
        while !host.story().iter().any(|line| line.starts_with(beginning)) {
            host.next().await.unwrap();
        }
    }
    // The host stopped it and needs no notice, so there is no other turn.
    let stop = StopTask { task_id: task_id(&host), ..StopTask::default() };
    host.ask("stop", AskEngine::StopTask(stop)).await;
    assert_eq!(host.result().await.result.as_deref(), Some("Main done."));
}

#[tokio::test]
async fn a_finished_subagent_is_resumed_where_it_stopped() {
    let script = Script::new()
        .rule(when().prompt_contains("sub: more"), reply().text("More."))
        .rule(when().prompt_contains("sub:"), reply().text("Report."))
        .rule(when().prompt_contains("again").turn(1), reply().text("unused"))
        .rule(when().prompt_contains("first").turn(0), {
            reply().tool_use("Agent", json!({"description": "x", "prompt": "sub: look"}))
        })
        .rule(when().prompt_contains("first"), reply().text("Done."));
    let mut host = TestHost::start(script).await;
    host.prompt("first").await;
    host.result().await;
    let id = task_id(&host);
    let again = json!({"description": "x", "prompt": "sub: more", "resume": id.as_str()});
    host.api.append(
        Script::new()
            .rule(when().prompt_contains("second").tool_result_contains("More."), {
                reply().text("Good.")
            })
            .rule(when().prompt_contains("second"), reply().tool_use("Agent", again)),
    );
    host.prompt("second").await;
    assert_eq!(host.result().await.result.as_deref(), Some("Good."));
    let requests = host.api.requests();
    let last = requests.iter().rfind(|request| request.last_user_text().contains("sub: more"));
    let said: Vec<_> = last.unwrap().messages().iter().map(|it| it["role"].clone()).collect();
    assert_eq!(said, ["user", "assistant", "user"], "it remembers its conversation");
    assert_eq!(structured(&host)["agentId"], id.as_str());
}

#[tokio::test]
async fn a_subagent_has_its_own_file_with_its_kind() {
    let folder = tempfile::tempdir().unwrap();
    let projects = Projects::new(folder.path());
    let scene = LineContext {
        cwd: folder.path().to_owned(),
        version: "0.1.0".to_owned(),
        entrypoint: None,
    };
    let opened = projects.open(scene, &SessionStart::default()).unwrap();
    let path = opened.writer.path().with_extension("").join("subagents");
    let input = json!({"subagent_type": "worker"});
    let mut host = host_with(script(input, look()), &[("worker", worker())], |options| {
        options.opened = Some(opened);
    })
    .await;
    host.prompt("delegate").await;
    host.result().await;
    let id = task_id(&host);
    let meta = std::fs::read_to_string(path.join(format!("agent-{id}.meta.json"))).unwrap();
    let meta: Value = serde_json::from_str(&meta).unwrap();
    assert_eq!(
        (&meta["agentType"], &meta["description"]),
        (&json!("worker"), &json!("look around"))
    );
    let lines = std::fs::read_to_string(path.join(format!("agent-{id}.jsonl"))).unwrap();
    assert_eq!(lines.lines().count(), 5, "{lines}");
    assert!(lines.contains("Let me see.") && lines.contains("\"isSidechain\":true"), "{lines}");
}

#[tokio::test]
async fn an_agent_can_be_the_main_agent() {
    let kind = AgentDefinition {
        tools: Some(vec!["Look".into()]),
        model: Some("haiku".into()),
        ..worker()
    };
    let mut host = TestHost::with(script(json!({}), look()), |options| {
        let kind = AgentKind::new("worker", kind, Origin::User);
        options.library.agents.insert("worker".to_owned(), kind);
        options.launch.agent = Some("worker".to_owned());
    })
    .await;
    host.user(User::prompt("hello")).await;
    host.result().await;
    let request = &host.api.requests()[0];
    assert!(request.system_text().starts_with("You are a worker."), "{}", request.system_text());
    assert_eq!((request.tool_names(), request.model()), (vec!["Look"], "claude-haiku-5-5"));
}

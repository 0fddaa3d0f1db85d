//! The table of hook effects in the wire protocol: one test per row, named after it.

use ostler_engine::permission::Policy;
use ostler_engine::store::{LineContext, Projects, SessionStart};
use ostler_proto::control::{AskHost, DecisionReasonType};
use ostler_proto::frame::ToHost;
use ostler_proto::hook::HookMatcher;
use ostler_proto::message::{System, TerminalReason};
use ostler_proto::permission::PermissionMode;
use ostler_testkit::{Script, reply, when};
use serde_json::{Value, json};

use super::{callback, calls, command, matcher, says, specific};
use crate::host::TestHost;

fn informational(host: &TestHost) -> Vec<(String, Option<String>)> {
    let remarks = host.seen.iter().filter_map(|frame| match frame {
        ToHost::System(System::Informational(remark)) => {
            Some((remark.content.clone(), remark.tag.clone()))
        }
        _ => None,
    });
    remarks.collect()
}

#[tokio::test]
async fn pre_tool_use_deny_is_a_tool_error_and_a_denial_without_asking() {
    let deny = specific(
        "PreToolUse",
        json!({"permissionDecision": "deny", "permissionDecisionReason": "not today"}),
    );
    let mut host = callback(calls("Change"), "PreToolUse", matcher(json!({})), Ok(deny)).await;
    host.prompt("go").await;
    let result = host.result().await;
    assert_eq!(result.result.unwrap(), "Done: PreToolUse:Change hook error: not today");
    assert_eq!(result.permission_denials.len(), 1);
    let story = host.story();
    assert!(story.contains(&"user: failed: PreToolUse:Change hook error: not today".to_owned()));
    assert!(!story.iter().any(|line| line.contains("can_use_tool")), "{story:?}");
}

#[tokio::test]
async fn pre_tool_use_allow_runs_without_asking_and_with_the_updated_input() {
    let allow = specific(
        "PreToolUse",
        json!({"permissionDecision": "allow", "updatedInput": {"word": "other"}}),
    );
    let mut host = callback(calls("Change"), "PreToolUse", matcher(json!({})), Ok(allow)).await;
    host.prompt("go").await;
    assert_eq!(host.result().await.result.unwrap(), "Done: changed other");
    assert!(!host.story().iter().any(|line| line.contains("can_use_tool")));
}

#[tokio::test]
async fn pre_tool_use_ask_asks_the_host_even_when_questions_are_bypassed() {
    let ask = says(&specific(
        "PreToolUse",
        json!({"permissionDecision": "ask", "permissionDecisionReason": "odd"}),
    ));
    let hooks = json!({"PreToolUse": [{"hooks": [{"type": "command", "command": ask}]}]});
    let mut host = TestHost::with(calls("Look"), |options| {
        options.hooks = vec![hooks];
        options.policy = Policy::new(std::env::temp_dir(), PermissionMode::BypassPermissions);
    })
    .await
    .answering(json!({"behavior": "allow", "updatedInput": {"word": "it"}}));
    host.prompt("go").await;
    let asked = host.until("control_request can_use_tool Look").await;
    let ToHost::ControlRequest(request) = asked else { panic!("{asked:?}") };
    let AskHost::CanUseTool(question) = request.request else { panic!("not a question") };
    assert_eq!(question.decision_reason.as_deref(), Some("odd"));
    assert_eq!(question.decision_reason_type, Some(DecisionReasonType::Hook));
    let steps = question.extra.get("decision_steps").and_then(Value::as_array).unwrap();
    let decided = json!({"looked_at": "PreToolUse hooks", "result": "say to ask: odd"});
    assert_eq!(steps.last(), Some(&decided), "the earlier steps come before: {steps:?}");
    assert!(steps.len() > 1, "{steps:?}");
    assert_eq!(host.result().await.result.unwrap(), "Done: saw it");
}

async fn check_stops_after_the_tool(event: &str) {
    let stop = says(&json!({"continue": false, "stopReason": "enough"}));
    let mut host = command(calls("Look"), event, &stop).await;
    host.prompt("go").await;
    let result = host.result().await;
    assert_eq!((result.result.as_deref(), result.is_error), (Some(""), false));
    assert_eq!(result.terminal_reason, Some(TerminalReason::HookStopped));
    assert!(host.story().contains(&"user: = saw it".to_owned()), "the tool has run");
    assert_eq!(host.api.requests().len(), 1, "and the model is not asked again");
    // Mutant: `stopped_by_hook` that keeps nothing.
    assert_eq!(result.hook_stop_reason.as_deref(), Some("enough"));
}

#[tokio::test]
async fn pre_tool_use_continue_false_lets_the_tool_run_and_ends_the_turn() {
    check_stops_after_the_tool("PreToolUse").await;
}

#[tokio::test]
async fn post_tool_use_continue_false_ends_the_turn_after_the_result() {
    check_stops_after_the_tool("PostToolUse").await;
}

#[tokio::test]
async fn stop_block_feeds_the_reason_back_and_fires_again_with_stop_hook_active() {
    let script = Script::new()
        .rule(when().prompt_contains("tests first"), reply().text("Tested."))
        .rule(when(), reply().text("Done."));
    let mut host = callback(script, "Stop", matcher(json!({})), Ok(json!({}))).await;
    host.answer = None;
    host.prompt("go").await;
    let first = super::next_callback(&mut host).await;
    assert_eq!(
        (&first.1["stop_hook_active"], &first.1["last_assistant_message"]),
        (&json!(false), &json!("Done."))
    );
    host.respond(first.0, Ok(json!({"decision": "block", "reason": "tests first"}))).await;
    let second = super::next_callback(&mut host).await;
    assert_eq!(
        (&second.1["stop_hook_active"], &second.1["last_assistant_message"]),
        (&json!(true), &json!("Tested."))
    );
    host.respond(second.0, Ok(json!({}))).await;
    assert_eq!(host.result().await.result.unwrap(), "Tested.");
    let synthetic = host.seen.iter().find_map(|frame| match frame {
        ToHost::User(user) if user.is_synthetic == Some(true) => user.message.content.clone(),
        _ => None,
    });
    assert_eq!(synthetic.unwrap().text(), "Stop hook feedback:\ntests first");
}

#[tokio::test]
async fn stop_continue_false_ends_the_run_at_once_with_success() {
    let stop = json!({"continue": false, "decision": "block", "reason": "go on"});
    let script = Script::new().rule(when(), reply().text("Done."));
    let mut host = command(script, "Stop", &says(&stop)).await;
    host.prompt("go").await;
    let result = host.result().await;
    assert_eq!((result.result.as_deref(), result.is_error), (Some("Done."), false));
    assert_eq!(host.api.requests().len(), 1);
}

#[tokio::test]
async fn user_prompt_submit_block_asks_no_model_and_stores_no_prompt() {
    let root = tempfile::tempdir().unwrap();
    let scene =
        LineContext { cwd: root.path().to_owned(), version: "1".to_owned(), entrypoint: None };
    let opened = Projects::new(root.path()).open(scene, &SessionStart::default()).unwrap();
    let file = opened.writer.path().to_owned();
    let block = says(&json!({"decision": "block", "reason": "no secrets"}));
    let hooks = json!({"UserPromptSubmit": [{"hooks": [{"type": "command", "command": block}]}]});
    let mut host = TestHost::with(Script::new(), |options| {
        options.hooks = vec![hooks];
        options.opened = Some(opened);
    })
    .await;
    host.prompt("my password is swordfish").await;
    let result = host.result().await;
    assert_eq!((result.result.as_deref(), result.num_turns), (Some("no secrets"), 0));
    assert!(!result.is_error && host.api.requests().is_empty());
    let outcome = host.seen.iter().find_map(|frame| match frame {
        ToHost::System(System::Informational(remark)) => {
            Some((remark.prevent_continuation, remark.prompt_submit_outcome.clone().unwrap()))
        }
        _ => None,
    });
    let expected = json!({"kind": "blocked_by_hook", "prompt_kept": false, "reason": "no secrets"});
    assert_eq!(outcome, Some((Some(true), expected)));
    let kept = std::fs::read_to_string(file).unwrap_or_default();
    assert!(!kept.contains("swordfish"), "{kept}");
}

#[tokio::test]
async fn additional_context_reaches_the_model_and_no_frame() {
    let script = || {
        Script::new()
            .rule(when().turn(0), reply().tool_use("Look", json!({"word": "it"})))
            .rule(when(), reply().text("Done."))
    };
    let failing = || {
        Script::new()
            .rule(when().turn(0), reply().tool_use("Break", json!({"word": "it"})))
            .rule(when(), reply().text("Done."))
    };
    let agent = || {
        let work = json!({"description": "d", "prompt": "subwork"});
        Script::new()
            .rule(when().prompt_contains("subwork"), reply().text("Sub."))
            .rule(when().turn(0), reply().tool_use("Agent", work))
            .rule(when(), reply().text("Done."))
    };
    for (event, script, request) in [
        ("SessionStart", script(), 0),
        ("UserPromptSubmit", script(), 0),
        ("PreToolUse", script(), 1),
        ("PostToolUse", script(), 1),
        ("PostToolUseFailure", failing(), 1),
        ("PostToolBatch", script(), 1),
        ("SubagentStart", agent(), 1),
    ] {
        let context = says(&specific(event, json!({"additionalContext": "it rains"})));
        let mut host = command(script, event, &context).await;
        host.prompt("go").await;
        host.result().await;
        let transcript = host.api.requests()[request].transcript();
        assert!(transcript.contains("it rains"), "{event}: {transcript}");
        let assistant = host.story().into_iter().filter(|line| line.starts_with("assistant"));
        assert!(!assistant.collect::<String>().contains("it rains"), "{event}");
    }
}

#[tokio::test]
async fn additional_context_of_a_stop_hook_continues_the_turn() {
    let script = Script::new()
        .rule(when().prompt_contains("it rains"), reply().text("With an umbrella."))
        .rule(when(), reply().text("Done."));
    let once = format!(
        "read -r line; case \"$line\" in *'\"stop_hook_active\":true'*) exit 0;; esac; {}",
        says(&specific("Stop", json!({"additionalContext": "it rains"})))
    );
    let mut host = command(script, "Stop", &once).await;
    host.prompt("go").await;
    assert_eq!(host.result().await.result.unwrap(), "With an umbrella.");
}

#[tokio::test]
async fn system_message_is_an_informational_warning() {
    let mut host =
        command(calls("Look"), "PostToolUse", &says(&json!({"systemMessage": "careful"}))).await;
    host.prompt("go").await;
    assert_eq!(host.result().await.result.unwrap(), "Done: saw it");
    assert_eq!(informational(&host), [("careful".to_owned(), None)]);
}

#[tokio::test]
async fn an_async_hook_decides_nothing_and_is_not_waited_for() {
    let detached = json!({"async": true, "asyncTimeout": 5, "decision": "block", "reason": "no"});
    let mut host = callback(calls("Look"), "PreToolUse", matcher(json!({})), Ok(detached)).await;
    host.prompt("go").await;
    assert_eq!(host.result().await.result.unwrap(), "Done: saw it");
}

#[tokio::test]
async fn an_empty_answer_decides_nothing() {
    let mut host = callback(calls("Look"), "PreToolUse", matcher(json!({})), Ok(json!({}))).await;
    host.prompt("go").await;
    assert_eq!(host.result().await.result.unwrap(), "Done: saw it");
}

async fn check_error(settings: Value, expected: &str) -> TestHost {
    let failing = Err("boom".to_owned());
    let mut host = callback(calls("Look"), "PreToolUse", matcher(settings), failing).await;
    host.prompt("go").await;
    let text = host.result().await.result.unwrap();
    assert!(text.contains(expected), "{text}");
    host
}

#[tokio::test]
async fn an_error_response_denies() {
    check_error(json!({}), "boom").await;
    check_error(json!({"onFailure": "block"}), "boom").await;
}

#[tokio::test]
async fn an_error_response_of_a_hook_that_may_fail_is_reported_and_changes_nothing() {
    let host = check_error(json!({"onFailure": "continue"}), "Done: saw it").await;
    let remarks = informational(&host);
    assert_eq!(remarks[0].1.as_deref(), Some("hook_callback_failed"), "{remarks:?}");
    assert!(remarks[0].0.contains("boom"));
}

#[tokio::test]
async fn a_callback_beyond_its_timeout_is_cancelled_and_denies() {
    let slow = matcher(json!({"timeout": 0.1}));
    let mut host = callback(calls("Look"), "PreToolUse", slow, Ok(json!({}))).await;
    host.answer = None;
    host.prompt("go").await;
    host.until("control_request hook_callback").await;
    host.until("control_cancel_request").await;
    let text = host.result().await.result.unwrap();
    assert!(text.contains("did not respond before its timeout"), "{text}");
}

#[tokio::test]
async fn a_host_that_leaves_while_it_is_asked_allows_nothing() {
    let mut host =
        callback(calls("Look"), "PreToolUse", HookMatcher::default(), Ok(json!({}))).await;
    host.answer = None;
    host.prompt("go").await;
    host.until("control_request hook_callback").await;
    host.close();
    let text = host.result().await.result.unwrap();
    assert!(text.contains("PreToolUse:Look hook error"), "{text}");
}

/// Waits until both the host and the hook are asked, then answers one of them.
async fn first_answer(of_hook: bool, answer: Value) -> (String, Vec<String>) {
    let hook = matcher(json!({}));
    let mut host = callback(calls("Change"), "PermissionRequest", hook, Ok(json!({}))).await;
    host.answer = None;
    host.prompt("go").await;
    let (mut question, mut asked_hook) = (None, None);
    while question.is_none() || asked_hook.is_none() {
        if let ToHost::ControlRequest(request) = host.next().await.unwrap() {
            match request.request {
                AskHost::CanUseTool(_) => question = request.request_id,
                AskHost::HookCallback(_) => asked_hook = request.request_id,
                _ => {}
            }
        }
    }
    let id = if of_hook { asked_hook } else { question };
    host.respond(id.unwrap(), Ok(answer)).await;
    let text = host.result().await.result.unwrap();
    (text, host.story())
}

#[tokio::test]
async fn permission_request_hooks_and_the_host_are_asked_together_and_the_first_answer_wins() {
    let decide = |decision: Value| specific("PermissionRequest", json!({"decision": decision}));
    let (text, story) =
        first_answer(true, decide(json!({"behavior": "deny", "message": "policy"}))).await;
    assert_eq!(text, "Done: policy");
    assert!(
        story.contains(&"control_cancel_request".to_owned()),
        "the question to the host is cancelled"
    );
    let allow = json!({"behavior": "allow", "updatedInput": {"word": "other"}});
    assert_eq!(first_answer(true, decide(allow)).await.0, "Done: changed other");
    let (text, story) =
        first_answer(false, json!({"behavior": "allow", "updatedInput": {"word": "it"}})).await;
    assert_eq!(text, "Done: changed it");
    assert!(
        story.contains(&"control_cancel_request".to_owned()),
        "the hook's request is cancelled"
    );
}

#[tokio::test]
async fn post_tool_use_block_is_read_by_the_model_with_the_result() {
    let mut host = command(calls("Look"), "PostToolUse", "echo 'not formatted' >&2; exit 2").await;
    host.prompt("go").await;
    host.result().await;
    let transcript = host.api.requests()[1].transcript();
    assert!(transcript.contains("saw it") && transcript.contains("not formatted"), "{transcript}");
}

#[tokio::test]
async fn post_tool_batch_block_ends_the_turn_before_the_model_is_asked_again() {
    let mut host = command(calls("Look"), "PostToolBatch", "echo enough >&2; exit 2").await;
    host.prompt("go").await;
    assert_eq!(host.result().await.terminal_reason, Some(TerminalReason::HookStopped));
    assert_eq!(host.api.requests().len(), 1);
}

#[tokio::test]
async fn updated_tool_output_replaces_the_result() {
    let other = specific("PostToolUse", json!({"updatedToolOutput": "saw nothing"}));
    let mut host = command(calls("Look"), "PostToolUse", &says(&other)).await;
    host.prompt("go").await;
    assert_eq!(host.result().await.result.unwrap(), "Done: saw nothing");
    let structured = host.seen.iter().find_map(|frame| match frame {
        ToHost::User(user) => user.tool_use_result.clone(),
        _ => None,
    });
    assert_eq!(structured, Some(json!("saw nothing")));
}

#[tokio::test]
async fn updated_mcp_tool_output_is_for_tools_of_servers_only() {
    let other = specific("PostToolUse", json!({"updatedMCPToolOutput": "42"}));
    let mut host = command(calls("Look"), "PostToolUse", &says(&other)).await;
    host.prompt("go").await;
    assert_eq!(host.result().await.result.unwrap(), "Done: saw it");
    let hooks = json!({"PostToolUse": [{"hooks": [{"type": "command", "command": says(&other)}]}]});
    let mut host = TestHost::with(calls("mcp__calc__add"), |options| {
        options.hooks = vec![hooks];
        options.tools.push(crate::tools::of_server());
    })
    .await
    .answering(json!({"behavior": "allow"}));
    host.prompt("go").await;
    assert_eq!(host.result().await.result.unwrap(), "Done: 42");
}

#[tokio::test]
async fn permission_denied_retry_lets_the_model_try_again() {
    let retry = says(&specific("PermissionDenied", json!({"retry": true})));
    let hooks = json!({"PermissionDenied": [{"hooks": [{"type": "command", "command": retry}]}]});
    let mut host = TestHost::with(calls("Change"), |options| {
        options.hooks = vec![hooks];
        options.policy = Policy::new(std::env::temp_dir(), PermissionMode::DontAsk);
    })
    .await;
    host.prompt("go").await;
    let text = host.result().await.result.unwrap();
    assert!(text.contains("try this call again"), "{text}");
}

#[tokio::test]
async fn session_start_adds_a_first_user_message_and_a_title() {
    let start = specific(
        "SessionStart",
        json!({"initialUserMessage": "read the notes", "sessionTitle": "Notes"}),
    );
    let root = tempfile::tempdir().unwrap();
    let scene =
        LineContext { cwd: root.path().to_owned(), version: "1".to_owned(), entrypoint: None };
    let opened = Projects::new(root.path()).open(scene, &SessionStart::default()).unwrap();
    let file = opened.writer.path().to_owned();
    let hooks =
        json!({"SessionStart": [{"hooks": [{"type": "command", "command": says(&start)}]}]});
    let script = Script::new().rule(when(), reply().text("Done."));
    let mut host = TestHost::with(script, |options| {
        options.hooks = vec![hooks];
        options.opened = Some(opened);
    })
    .await;
    host.prompt("go").await;
    host.result().await;
    let transcript = host.api.requests()[0].transcript();
    let place = |words| transcript.find(words).unwrap_or_else(|| panic!("{words}: {transcript}"));
    assert!(place("read the notes") < place("go"));
    assert!(std::fs::read_to_string(file).unwrap().contains(r#""customTitle":"Notes""#));
}

#[tokio::test]
async fn suppress_original_prompt_gives_the_model_the_context_instead() {
    let hide = |more: Value| {
        let mut fields = json!({"suppressOriginalPrompt": true});
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        says(&specific("UserPromptSubmit", fields))
    };
    let script = || Script::new().rule(when(), reply().text("Done."));
    let context = hide(json!({"additionalContext": "a gist"}));
    let mut host = command(script(), "UserPromptSubmit", &context).await;
    host.prompt("swordfish").await;
    host.result().await;
    let transcript = host.api.requests()[0].transcript();
    assert!(transcript.contains("a gist") && !transcript.contains("swordfish"), "{transcript}");
    let mut host = command(script(), "UserPromptSubmit", &hide(json!({}))).await;
    host.prompt("swordfish").await;
    host.result().await;
    assert!(host.api.requests().is_empty(), "nothing is left to ask");
}

//! One test per quirk.

use serde_json::json;

use super::*;
use crate::frame::Frame;
use crate::permission::Deny;

fn request() -> CanUseTool {
    CanUseTool {
        tool_name: "Bash".into(),
        input: json!({"command": "ls"}),
        tool_use_id: Some("toolu_1".into()),
        ..CanUseTool::default()
    }
}

fn frame(value: Value) -> ToHost {
    ToHost::from_line(&value.to_string()).unwrap()
}

fn progress(id: &str) -> ToHost {
    frame(json!({"type": "tool_progress", "tool_use_id": "bash-progress-0", "tool_name": "Bash",
        "parent_tool_use_id": id, "elapsed_time_seconds": 3, "session_id": "s", "uuid": "u"}))
}

fn stream(event: Value) -> ToHost {
    frame(
        json!({"type": "stream_event", "event": event, "parent_tool_use_id": null, "session_id": "s", "uuid": "u"}),
    )
}

fn block_start(id: &str) -> ToHost {
    stream(json!({"type": "content_block_start", "index": 0,
        "content_block": {"type": "tool_use", "id": id, "name": "Bash", "input": {}}}))
}

#[test]
fn an_allow_without_input_is_sent_with_the_original_one() {
    let answer = complete_answer(&request(), PermissionResult::Allow(Allow::default()));
    let expected =
        json!({"behavior": "allow", "updatedInput": {"command": "ls"}, "toolUseID": "toolu_1"});
    assert_eq!(serde_json::to_value(answer).unwrap(), expected);
}

#[test]
fn a_changed_input_is_sent_unchanged() {
    let allow = Allow { updated_input: Some(json!({"command": "pwd"})), ..Allow::default() };
    let answer = complete_answer(&request(), PermissionResult::Allow(allow.clone()));
    assert_eq!(serde_json::to_value(answer).unwrap()["updatedInput"], json!({"command": "pwd"}));
    assert_eq!(input_to_run(&request(), allow), json!({"command": "pwd"}));
}

#[test]
fn an_engine_runs_the_original_input_when_the_allow_has_none() {
    assert_eq!(input_to_run(&request(), Allow::default()), json!({"command": "ls"}));
}

#[test]
fn the_call_in_an_answer_is_always_the_one_asked_about() {
    let wrong = Some("made up".into());
    let allow = Allow { tool_use_id: wrong.clone(), ..Allow::default() };
    let deny = Deny { message: "no".into(), tool_use_id: wrong, ..Deny::default() };
    for answer in [PermissionResult::Allow(allow), PermissionResult::Deny(deny)] {
        let sent = serde_json::to_value(complete_answer(&request(), answer)).unwrap();
        assert_eq!(sent["toolUseID"], "toolu_1");
    }
}

#[test]
fn a_system_prompt_may_be_a_string_or_a_list() {
    for (prompt, text) in
        [(json!("be brief"), "be brief"), (json!(["a", "b"]), "a\n\nb"), (json!([""]), "")]
    {
        let prompt: SystemPrompt = serde_json::from_value(prompt).unwrap();
        assert_eq!(system_prompt_text(&prompt), text);
    }
    assert!(serde_json::from_value::<SystemPrompt>(json!({"type": "preset"})).is_err());
}

#[test]
fn keys_may_come_in_any_order() {
    let first = r#"{"type":"tool_use_summary","summary":"s","session_id":"a","uuid":"b"}"#;
    let last = r#"{"uuid":"b","session_id":"a","summary":"s","type":"tool_use_summary"}"#;
    assert_eq!(ToHost::from_line(first).unwrap(), ToHost::from_line(last).unwrap());
    let nested =
        r#"{"subtype":"ui_invalidate","uuid":"b","event":1,"session_id":"a","type":"system"}"#;
    assert!(matches!(ToHost::from_line(nested).unwrap(), ToHost::System(_)));
}

#[test]
fn progress_is_about_the_call_that_runs_not_about_its_own_id() {
    let ToHost::ToolProgress(progress) = progress("toolu_1") else { panic!("not progress") };
    assert_eq!(progress_call(&progress).as_str(), "toolu_1");
}

#[test]
fn progress_may_come_before_or_after_the_end_of_the_block() {
    let stop = stream(json!({"type": "content_block_stop", "index": 0}));
    let id = ToolUseId::from("toolu_1");
    for order in [[progress("toolu_1"), stop.clone()], [stop, progress("toolu_1")]] {
        let mut calls = Calls::default();
        calls.handle(&block_start("toolu_1"));
        assert_eq!(calls.state(&id), Some(CallState::Announced));
        order.iter().for_each(|frame| calls.handle(frame));
        assert_eq!(calls.state(&id), Some(CallState::Running));
        // The finished block may arrive after the tool has started: the state does not go back.
        calls.handle(&frame(
            json!({"type": "assistant", "message": {"role": "assistant", "model": "m", "content":
            [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}]},
            "parent_tool_use_id": null, "session_id": "s", "uuid": "u"}),
        ));
        assert_eq!(calls.state(&id), Some(CallState::Running));
    }
}

#[test]
fn a_summary_without_ids_is_about_the_most_recent_pending_call() {
    let summary = |ids: Value| {
        let mut summary =
            json!({"type": "tool_use_summary", "summary": "done", "session_id": "s", "uuid": "u"});
        if !ids.is_null() {
            summary["preceding_tool_use_ids"] = ids;
        }
        frame(summary)
    };
    let mut calls = Calls::default();
    ["a", "b", "c"].iter().for_each(|id| calls.handle(&block_start(id)));
    calls.handle(&frame(json!({"type": "user", "message": {"role": "user", "content":
        [{"type": "tool_result", "tool_use_id": "c", "content": "ok"}]}, "parent_tool_use_id": null})));
    calls.handle(&summary(Value::Null));
    assert_eq!(calls.pending().map(ToolUseId::as_str).collect::<Vec<_>>(), ["a"]);
    calls.handle(&summary(json!(["a"])));
    assert_eq!(calls.pending().count(), 0);
    calls.handle(&summary(Value::Null));
}

#[test]
fn a_lone_surrogate_is_replaced_and_the_rest_of_the_frame_survives() {
    let line = r#"{"type":"x","text":"cut \ud83d","ok":"\ud83d\ude00 \\ud83d \u00e9","low":"\uDE00!","nl":"\n"}"#;
    let ToHost::Unknown(object) = ToHost::from_line(line).unwrap() else { panic!("not kept") };
    assert_eq!(object.get("text").unwrap(), "cut \u{fffd}");
    assert_eq!(object.get("ok").unwrap(), "😀 \\ud83d é");
    assert_eq!(object.get("low").unwrap(), "\u{fffd}!");
    assert!(ToHost::from_line(r#"{"type":"\ud83d"#).is_err());
    assert_eq!(replace_lone_surrogates(r#"{"a":"\u00e9\\"#), None);
}

//! One test per row of the table that maps Claude's messages to AG-UI events.

use ostler_agui::event::Interrupt;
use ostler_agui::translate::{Counts, Settings};
use serde_json::{Value, json};

use crate::run::*;

/// Translates frames and compares the events after RUN_STARTED.
#[track_caller]
fn check(frames: impl IntoIterator<Item = Value>, expected: &[&str]) {
    let mut run = Run::plain();
    run.frames(frames);
    assert_eq!(run.short(), expected);
}

#[test]
fn a_run_starts_with_run_started() {
    let run = Run::plain();
    assert_eq!(
        run.story(),
        "{\"type\":\"RUN_STARTED\",\"threadId\":\"thread\",\"runId\":\"run\",\"protocolVersion\":\"1.0\"}\n"
    );
}

#[test]
fn the_init_message_gives_no_event() {
    let init = json!({"type": "system", "subtype": "init", "cwd": "/secret", "tools": [], "mcp_servers": [],
        "model": "m", "permissionMode": "default", "apiKeySource": "none", "slash_commands": [], "output_style": "default",
        "agents": [], "skills": [], "plugins": []});
    check([init], &[]);
}

#[test]
fn the_start_of_a_message_gives_no_event() {
    check([message_start("msg_1")], &[]);
}

#[test]
fn a_text_message_starts_with_its_first_character() {
    check([message_start("msg_1"), block_start(0, text(""))], &[]);
    check(
        [message_start("msg_1"), block_start(0, text("")), text_delta(0, ""), text_delta(0, "Hä")],
        &["TEXT_MESSAGE_START msg_1", "TEXT_MESSAGE_CONTENT msg_1 Hä"],
    );
}

#[test]
fn adjacent_text_blocks_are_one_message_until_it_stops() {
    check(
        [
            message_start("msg_1"),
            block_start(0, text("")),
            text_delta(0, "one "),
            block_stop(0),
            block_start(1, text("")),
            text_delta(1, "two"),
            block_stop(1),
            message_stop(),
        ],
        &[
            "TEXT_MESSAGE_START msg_1",
            "TEXT_MESSAGE_CONTENT msg_1 one ",
            "TEXT_MESSAGE_CONTENT msg_1 two",
            "TEXT_MESSAGE_END msg_1",
        ],
    );
}

#[test]
fn thinking_becomes_a_reasoning_message_with_its_signature() {
    check(
        [
            message_start("msg_1"),
            block_start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
            delta(0, json!({"type": "thinking_delta", "thinking": "Hm"})),
            delta(0, json!({"type": "signature_delta", "signature": "si"})),
            delta(0, json!({"type": "signature_delta", "signature": "gned"})),
            assistant(
                "msg_1",
                json!({"type": "thinking", "thinking": "Hm", "signature": "signed"}),
            ),
            block_stop(0),
            block_start(1, text("")),
            text_delta(1, "Yes"),
        ],
        &[
            "REASONING_START msg_1-thought-1",
            "REASONING_MESSAGE_START msg_1-thought-1",
            "REASONING_MESSAGE_CONTENT msg_1-thought-1 Hm",
            "REASONING_MESSAGE_END msg_1-thought-1",
            "REASONING_ENCRYPTED_VALUE message msg_1-thought-1 signed",
            "REASONING_END msg_1-thought-1",
            "TEXT_MESSAGE_START msg_1",
            "TEXT_MESSAGE_CONTENT msg_1 Yes",
        ],
    );
}

#[test]
fn two_thinking_blocks_keep_their_own_signatures() {
    let thought = |text: &str, signature: &str| json!({"type": "thinking", "thinking": text, "signature": signature});
    let mut run = Run::plain();
    run.frames([
        assistant("msg_1", thought("a", "sa")),
        assistant("msg_1", tool_use("c1", "Read", json!({}))),
        assistant("msg_1", thought("b", "sb")),
    ]);
    let values: Vec<_> = run.short().into_iter().filter(|it| it.contains("ENCRYPTED")).collect();
    assert_eq!(
        values,
        [
            "REASONING_ENCRYPTED_VALUE message msg_1-thought-1 sa",
            "REASONING_ENCRYPTED_VALUE message msg_1-thought-2 sb",
        ]
    );
}

#[test]
fn thinking_that_was_cut_off_has_no_signature() {
    check(
        [
            message_start("msg_1"),
            block_start(0, json!({"type": "thinking", "thinking": "Hm", "signature": "half"})),
            message_start("msg_2"),
        ],
        &[
            "REASONING_START msg_1-thought-1",
            "REASONING_MESSAGE_START msg_1-thought-1",
            "REASONING_MESSAGE_CONTENT msg_1-thought-1 Hm",
            "REASONING_MESSAGE_END msg_1-thought-1",
            "REASONING_END msg_1-thought-1",
        ],
    );
}

#[test]
fn redacted_thinking_becomes_an_empty_reasoning_message_marked_as_redacted() {
    let block = json!({"type": "redacted_thinking", "data": "secret"});
    let expected = [
        "REASONING_START msg_1-thought-1",
        "REASONING_MESSAGE_START msg_1-thought-1 metadata={\"kind\":\"redacted_thinking\"}",
        "REASONING_MESSAGE_END msg_1-thought-1",
        "REASONING_ENCRYPTED_VALUE message msg_1-thought-1 secret",
        "REASONING_END msg_1-thought-1",
    ];
    check([assistant("msg_1", block.clone())], &expected);
    let in_deltas = [
        message_start("msg_1"),
        block_start(0, block.clone()),
        assistant("msg_1", block),
        block_stop(0),
    ];
    check(in_deltas, &expected);
}

#[test]
fn a_call_becomes_start_arguments_and_end() {
    check(
        [
            message_start("msg_1"),
            block_start(0, text("")),
            text_delta(0, "Look:"),
            block_stop(0),
            block_start(1, tool_use("c1", "Read", json!({}))),
            delta(1, json!({"type": "input_json_delta", "partial_json": ""})),
            delta(1, json!({"type": "input_json_delta", "partial_json": "{\"a\""})),
            delta(1, json!({"type": "input_json_delta", "partial_json": ":1}"})),
            assistant("msg_1", tool_use("c1", "Read", json!({"a": 1}))),
            block_stop(1),
            message_delta("tool_use"),
            message_stop(),
        ],
        &[
            "TEXT_MESSAGE_START msg_1",
            "TEXT_MESSAGE_CONTENT msg_1 Look:",
            "TEXT_MESSAGE_END msg_1",
            "TOOL_CALL_START c1 Read msg_1",
            "TOOL_CALL_ARGS c1 {\"a\"",
            "TOOL_CALL_ARGS c1 :1}",
            "TOOL_CALL_END c1",
        ],
    );
}

#[test]
fn the_arguments_of_a_call_without_arguments_are_an_empty_object() {
    let expected = ["TOOL_CALL_START c1 Now msg_1", "TOOL_CALL_ARGS c1 {}", "TOOL_CALL_END c1"];
    let block = tool_use("c1", "Now", json!({}));
    let in_deltas =
        [message_start("msg_1"), block_start(0, block.clone()), block_stop(0), message_stop()];
    check(in_deltas, &expected);
    check([assistant("msg_1", block)], &expected);
}

#[test]
fn a_call_has_the_name_that_the_client_gave_the_tool() {
    let mut settings = Settings::new("thread", "run");
    settings.tool_names.insert("mcp__ag_ui__paint".into(), "paint".into());
    settings.hidden_tools.insert("mcp__ag_ui__state".into());
    let mut run = Run::new(settings);
    run.frames([
        assistant("msg_1", tool_use("c1", "mcp__ag_ui__paint", json!({}))),
        assistant("msg_1", tool_use("c2", "mcp__ag_ui__state", json!({}))),
        tool_result("c2", json!("done")),
    ]);
    let expected = ["TOOL_CALL_START c1 paint msg_1", "TOOL_CALL_ARGS c1 {}", "TOOL_CALL_END c1"];
    assert_eq!(run.short(), expected, "a hidden call gives no event");
    assert_eq!(run.translator.unanswered(), ["c1"]);
}

#[test]
fn text_after_a_call_is_a_separate_message() {
    check(
        [
            assistant("msg_1", tool_use("c1", "Read", json!({"a": 1}))),
            assistant("msg_1", text("first")),
            assistant("msg_1", tool_use("c2", "Read", json!({"a": 2}))),
            assistant("msg_1", text("second")),
        ],
        &[
            "TOOL_CALL_START c1 Read msg_1",
            "TOOL_CALL_ARGS c1 {\"a\":1}",
            "TOOL_CALL_END c1",
            "TEXT_MESSAGE_START msg_1",
            "TEXT_MESSAGE_CONTENT msg_1 first",
            "TEXT_MESSAGE_END msg_1",
            "TOOL_CALL_START c2 Read msg_1",
            "TOOL_CALL_ARGS c2 {\"a\":2}",
            "TOOL_CALL_END c2",
            "TEXT_MESSAGE_START msg_1-2",
            "TEXT_MESSAGE_CONTENT msg_1-2 second",
            "TEXT_MESSAGE_END msg_1-2",
        ],
    );
}

#[test]
fn tools_of_the_provider_are_called_and_answered_in_one_message() {
    let call = json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}});
    let found =
        json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"url": "u"}]});
    let failed = json!({"type": "code_execution_tool_result", "tool_use_id": "s2", "content": {"error_code": "e"}});
    check(
        [assistant("msg_1", call), assistant("msg_1", found), assistant("msg_1", failed)],
        &[
            "TOOL_CALL_START s1 web_search msg_1",
            "TOOL_CALL_ARGS s1 {\"query\":\"x\"}",
            "TOOL_CALL_END s1",
            "TOOL_CALL_RESULT s1-result s1 [{\"url\":\"u\"}]",
            "TOOL_CALL_RESULT s2-result s2 {\"error_code\":\"e\"} metadata={\"isError\":true}",
        ],
    );
}

#[test]
fn an_unusual_stop_reason_is_in_the_text_and_in_the_end() {
    check(
        [
            message_start("msg_1"),
            block_start(0, text("")),
            text_delta(0, "cut"),
            block_stop(0),
            message_delta("max_tokens"),
            message_stop(),
            result(json!({"stop_reason": "max_tokens"})),
        ],
        &[
            "TEXT_MESSAGE_START msg_1",
            "TEXT_MESSAGE_CONTENT msg_1 cut",
            "TEXT_MESSAGE_END msg_1 metadata={\"stopReason\":\"max_tokens\"}",
            "RUN_FINISHED {\"type\":\"success\"} metadata={\"stopReason\":\"max_tokens\"}",
        ],
    );
}

#[test]
fn complete_messages_give_one_delta_per_block() {
    check(
        [
            assistant("msg_1", json!({"type": "thinking", "thinking": "Hm", "signature": "s"})),
            assistant("msg_1", text("Yes")),
            assistant("msg_1", tool_use("c1", "Read", json!({"a": 1}))),
        ],
        &[
            "REASONING_START msg_1-thought-1",
            "REASONING_MESSAGE_START msg_1-thought-1",
            "REASONING_MESSAGE_CONTENT msg_1-thought-1 Hm",
            "REASONING_MESSAGE_END msg_1-thought-1",
            "REASONING_ENCRYPTED_VALUE message msg_1-thought-1 s",
            "REASONING_END msg_1-thought-1",
            "TEXT_MESSAGE_START msg_1",
            "TEXT_MESSAGE_CONTENT msg_1 Yes",
            "TEXT_MESSAGE_END msg_1",
            "TOOL_CALL_START c1 Read msg_1",
            "TOOL_CALL_ARGS c1 {\"a\":1}",
            "TOOL_CALL_END c1",
        ],
    );
}

#[test]
fn a_complete_message_adds_only_what_its_deltas_lacked() {
    check(
        [
            message_start("msg_1"),
            block_start(0, text("")),
            text_delta(0, "Hel"),
            assistant("msg_1", text("Hello")),
            text_delta(0, "lo"),
            block_stop(0),
            message_stop(),
            message_start("msg_2"),
            assistant("msg_1", text("Hello")),
        ],
        &[
            "TEXT_MESSAGE_START msg_1",
            "TEXT_MESSAGE_CONTENT msg_1 Hel",
            "TEXT_MESSAGE_CONTENT msg_1 lo",
            "TEXT_MESSAGE_END msg_1",
        ],
    );
}

#[test]
fn a_tool_result_is_a_separate_message() {
    check(
        [
            assistant("msg_1", tool_use("c1", "Read", json!({"a": 1}))),
            tool_result("c1", json!("found")),
            tool_result("c1", json!("again")),
        ],
        &[
            "TOOL_CALL_START c1 Read msg_1",
            "TOOL_CALL_ARGS c1 {\"a\":1}",
            "TOOL_CALL_END c1",
            "TOOL_CALL_RESULT c1-result c1 found",
        ],
    );
    // The result of a call of an earlier run.
    check(
        [tool_result("old", json!([text("a"), text("b")]))],
        &["TOOL_CALL_RESULT old-result old a\nb"],
    );
}

#[test]
fn a_result_with_an_image_has_parts() {
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}});
    check(
        [tool_result("c1", json!([text("see"), image]))],
        &["TOOL_CALL_RESULT c1-result c1 [{\"type\":\"text\",\"text\":\"see\"},\
           {\"type\":\"image\",\"source\":{\"type\":\"data\",\"value\":\"aGk=\",\"mimeType\":\"image/png\"}}]"],
    );
}

#[test]
fn a_failed_call_is_a_result_marked_as_error() {
    check(
        [tool_error("c1", "no such file")],
        &["TOOL_CALL_RESULT c1-result c1 no such file metadata={\"isError\":true}"],
    );
}

#[test]
fn a_subagent_starts_after_its_call_and_ends_before_the_result() {
    let input = json!({"description": "dig", "prompt": "p", "subagent_type": "miner"});
    check(
        [
            assistant("msg_1", tool_use("a1", "Agent", input)),
            of_subagent(assistant("msg_2", text("digging")), "a1"),
            of_subagent(assistant("msg_2", tool_use("c1", "Bash", json!({"x": 1}))), "a1"),
            of_subagent(tool_result("c1", json!("dug")), "a1"),
            tool_result("a1", json!([text("gold")])),
        ],
        &[
            "TOOL_CALL_START a1 Agent msg_1",
            "TOOL_CALL_ARGS a1 {\"description\":\"dig\",\"prompt\":\"p\",\"subagent_type\":\"miner\"}",
            "TOOL_CALL_END a1",
            "SUBAGENT_STARTED subagentRunId=agent-a1 miner dig a1 msg_1",
            "TEXT_MESSAGE_START msg_2 subagentRunId=agent-a1",
            "TEXT_MESSAGE_CONTENT msg_2 digging subagentRunId=agent-a1",
            "TEXT_MESSAGE_END msg_2 subagentRunId=agent-a1",
            "TOOL_CALL_START c1 Bash msg_2 subagentRunId=agent-a1",
            "TOOL_CALL_ARGS c1 {\"x\":1} subagentRunId=agent-a1",
            "TOOL_CALL_END c1 subagentRunId=agent-a1",
            "TOOL_CALL_RESULT c1-result c1 dug subagentRunId=agent-a1",
            "SUBAGENT_FINISHED subagentRunId=agent-a1 {\"type\":\"success\"}",
            "TOOL_CALL_RESULT a1-result a1 gold",
        ],
    );
}

#[test]
fn parallel_and_nested_subagents_are_kept_apart() {
    let agent = |id: &str| tool_use(id, "Agent", json!({"subagent_type": id}));
    let mut run = Run::plain();
    run.frames([
        assistant("msg_1", agent("a1")),
        assistant("msg_1", agent("a2")),
        of_subagent(message_start("msg_2"), "a1"),
        of_subagent(block_start(0, text("")), "a1"),
        of_subagent(message_start("msg_3"), "a2"),
        of_subagent(block_start(0, text("")), "a2"),
        of_subagent(text_delta(0, "one"), "a1"),
        of_subagent(text_delta(0, "two"), "a2"),
        of_subagent(message_stop(), "a1"),
        of_subagent(assistant("msg_4", agent("a3")), "a1"),
        of_subagent(assistant("msg_5", text("three")), "a3"),
    ]);
    let short = run.short();
    let has = |event: &str| assert!(short.iter().any(|it| it == event), "{event}: {short:#?}");
    has("TEXT_MESSAGE_CONTENT msg_2 one subagentRunId=agent-a1");
    has("TEXT_MESSAGE_CONTENT msg_3 two subagentRunId=agent-a2");
    has("SUBAGENT_STARTED subagentRunId=agent-a3 a3 parentSubagentRunId=agent-a1 a3 msg_4");
    has("TEXT_MESSAGE_CONTENT msg_5 three subagentRunId=agent-a3");
    run.frames([result(json!({}))]);
}

#[test]
fn a_subagent_that_fails_is_an_error_and_then_an_error_result() {
    check(
        [of_subagent(assistant("msg_2", text("digging")), "a1"), tool_error("a1", "cave-in")],
        &[
            "SUBAGENT_STARTED subagentRunId=agent-a1 subagent a1",
            "TEXT_MESSAGE_START msg_2 subagentRunId=agent-a1",
            "TEXT_MESSAGE_CONTENT msg_2 digging subagentRunId=agent-a1",
            "TEXT_MESSAGE_END msg_2 subagentRunId=agent-a1",
            "SUBAGENT_ERROR subagentRunId=agent-a1 cave-in",
            "TOOL_CALL_RESULT a1-result a1 cave-in metadata={\"isError\":true}",
        ],
    );
}

#[test]
fn a_subagent_in_the_background_ends_when_its_task_does() {
    let mut launched = tool_result("a1", json!("launched"));
    launched["tool_use_result"] = json!({"isAsync": true, "status": "async_launched"});
    let started = json!({"type": "system", "subtype": "task_started", "task_id": "t", "tool_use_id": "a1",
        "description": "dig", "task_type": "local_agent", "subagent_type": "miner"});
    let ended = json!({"type": "system", "subtype": "task_notification", "task_id": "t", "tool_use_id": "a1",
        "status": "completed", "output_file": "/secret", "summary": "gold"});
    check(
        [started, launched, of_subagent(assistant("msg_2", text("dug")), "a1"), ended],
        &[
            "SUBAGENT_STARTED subagentRunId=agent-a1 miner dig a1",
            "TOOL_CALL_RESULT a1-result a1 launched",
            "TEXT_MESSAGE_START msg_2 subagentRunId=agent-a1",
            "TEXT_MESSAGE_CONTENT msg_2 dug subagentRunId=agent-a1",
            "TEXT_MESSAGE_END msg_2 subagentRunId=agent-a1",
            "SUBAGENT_FINISHED subagentRunId=agent-a1 {\"type\":\"success\"}",
            "CUSTOM ostler:task_notification {\"status\":\"completed\",\"summary\":\"gold\"}",
        ],
    );
}

#[test]
fn a_question_ends_the_run_with_everything_closed() {
    let mut run = Run::plain();
    run.frames([
        message_start("msg_1"),
        block_start(0, tool_use("c1", "Bash", json!({}))),
        delta(0, json!({"type": "input_json_delta", "partial_json": "{}"})),
        message_delta("tool_use"),
        message_stop(),
    ]);
    let waits = |id: &str| id == "c1";
    assert!(run.translator.only_waits(&waits, &|_| true));
    let asks = Interrupt {
        id: "q1".into(),
        reason: "tool_call".into(),
        tool_call_id: Some("c1".into()),
        ..Interrupt::default()
    };
    let events = run.translator.interrupt(vec![asks]);
    run.take(events);
    assert_eq!(
        run.short().last().unwrap(),
        "RUN_FINISHED {\"type\":\"interrupt\",\"interrupts\":[{\"id\":\"q1\",\"reason\":\"tool_call\",\"toolCallId\":\"c1\"}]} \
         usage=[{\"provider\":\"anthropic\",\"model\":\"m\",\"inputTokens\":17,\"outputTokens\":7,\"totalTokens\":24,\
         \"cachedInputTokens\":5,\"cacheWriteInputTokens\":2}]"
    );
    assert!(run.translator.is_over());
}

#[test]
fn a_run_waits_only_when_nothing_else_is_active() {
    let mut run = Run::plain();
    let waits = |id: &str| id == "f1" || id == "f2";
    let begun = |id: &str| id != "late";
    run.frames([
        message_start("msg_1"),
        block_start(0, tool_use("f1", "paint", json!({}))),
        block_stop(0),
    ]);
    assert!(!run.translator.only_waits(&waits, &begun), "the model is still streaming");
    run.frames([block_start(1, tool_use("b1", "Bash", json!({}))), block_stop(1), message_stop()]);
    assert!(!run.translator.only_waits(&waits, &begun), "a tool runs");
    run.frames([tool_result("b1", json!("done"))]);
    assert!(run.translator.only_waits(&waits, &begun));
    run.frames([assistant("msg_1", tool_use("late", "Bash", json!({})))]);
    assert!(run.translator.only_waits(&waits, &begun), "a call that has not begun does not count");
    run.frames([
        assistant("msg_1", tool_use("a1", "Agent", json!({}))),
        of_subagent(assistant("msg_2", tool_use("f2", "paint", json!({}))), "a1"),
    ]);
    assert!(run.translator.only_waits(&waits, &begun), "a subagent waits as well");
    let events =
        run.translator.wait_for_calls(vec!["f1".into(), "late".into(), "a1".into(), "f2".into()]);
    run.take(events);
    let short = run.short();
    let [.., suspended, finished] = short.as_slice() else { panic!("{short:?}") };
    assert_eq!(suspended, "SUBAGENT_FINISHED subagentRunId=agent-a1 {\"type\":\"suspended\"}");
    assert!(
        finished.contains("\"pendingToolCallIds\":[\"f1\",\"late\",\"a1\",\"f2\"]"),
        "{finished}"
    );
}

#[test]
fn notices_of_the_engine_become_custom_events() {
    let boundary = json!({"type": "system", "subtype": "compact_boundary", "compact_metadata": {"trigger": "auto", "pre_tokens": 9}});
    let retry = json!({"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 10, "retry_delay_ms": 5,
        "error_status": 529, "error": "overloaded"});
    let hook = json!({"type": "system", "subtype": "hook_response", "hook_id": "h", "hook_name": "n", "hook_event": "Stop",
        "output": "secret", "stdout": "secret", "stderr": "", "outcome": "success"});
    let expected = [
        "CUSTOM ostler:compact_boundary {\"trigger\":\"auto\",\"preTokens\":9}",
        "CUSTOM ostler:api_retry {\"attempt\":1,\"maxRetries\":10,\"delayMs\":5,\"error\":\"overloaded\"}",
        "CUSTOM ostler:hook_response {\"name\":\"n\",\"event\":\"Stop\",\"outcome\":\"success\"}",
    ];
    check([boundary.clone(), retry, hook], &expected);
    let mut settings = Settings::new("thread", "run");
    settings.quiet = true;
    let mut run = Run::new(settings);
    run.frames([boundary]);
    assert_eq!(run.short(), Vec::<String>::new());
}

#[test]
fn the_to_do_list_becomes_an_activity() {
    let todos = |status: &str| json!({"todos": [{"content": "dig", "status": status, "activeForm": "digging"}]});
    let mut run = Run::plain();
    run.frames([
        assistant("msg_1", tool_use("t1", "TodoWrite", todos("pending"))),
        tool_result("t1", json!("ok")),
        assistant("msg_2", tool_use("t2", "TodoWrite", todos("completed"))),
        tool_result("t2", json!("ok")),
        assistant("msg_2", tool_use("t3", "TodoWrite", todos("pending"))),
        tool_error("t3", "no"),
    ]);
    let activity: Vec<_> =
        run.short().into_iter().filter(|it| it.starts_with("ACTIVITY")).collect();
    assert_eq!(
        activity,
        [
            "ACTIVITY_SNAPSHOT todos-run todos {\"todos\":[{\"content\":\"dig\",\"status\":\"pending\",\"activeForm\":\"digging\"}]}",
            "ACTIVITY_DELTA todos-run todos [{\"op\":\"replace\",\"path\":\"/todos/0/status\",\"value\":\"completed\"}]",
        ]
    );
}

#[test]
fn task_list_entries_become_the_same_activity() {
    let mut created = tool_result("t1", json!("ok"));
    created["tool_use_result"] = json!({"task": {"id": "1", "subject": "dig"}});
    let mut run = Run::plain();
    run.frames([
        assistant(
            "msg_1",
            tool_use("t1", "TaskCreate", json!({"subject": "dig", "description": "deep"})),
        ),
        created,
        assistant(
            "msg_1",
            tool_use("t2", "TaskUpdate", json!({"taskId": "1", "status": "in_progress"})),
        ),
        tool_result("t2", json!("ok")),
        assistant(
            "msg_1",
            tool_use("t3", "TaskUpdate", json!({"taskId": "1", "status": "deleted"})),
        ),
        tool_result("t3", json!("ok")),
    ]);
    let activity: Vec<_> =
        run.short().into_iter().filter(|it| it.starts_with("ACTIVITY")).collect();
    assert_eq!(
        activity,
        [
            "ACTIVITY_SNAPSHOT todos-run todos {\"todos\":[{\"id\":\"1\",\"content\":\"dig\",\"status\":\"pending\"}]}",
            "ACTIVITY_DELTA todos-run todos [{\"op\":\"replace\",\"path\":\"/todos/0/status\",\"value\":\"in_progress\"}]",
            "ACTIVITY_DELTA todos-run todos [{\"op\":\"remove\",\"path\":\"/todos/0\"}]",
        ]
    );
}

fn used(input: u64, output: u64) -> Value {
    json!({"m": {"inputTokens": input, "outputTokens": output, "cacheReadInputTokens": 2, "cacheCreationInputTokens": 1,
        "webSearchRequests": 0, "costUSD": 0, "contextWindow": 1}})
}

#[test]
fn a_result_ends_the_run_without_repeating_its_text() {
    check(
        [
            assistant("msg_1", text("Yes")),
            result(json!({"modelUsage": used(10, 4)})),
            assistant("msg_2", text("sent after the end")),
        ],
        &[
            "TEXT_MESSAGE_START msg_1",
            "TEXT_MESSAGE_CONTENT msg_1 Yes",
            "TEXT_MESSAGE_END msg_1",
            "RUN_FINISHED {\"type\":\"success\"} usage=[{\"provider\":\"anthropic\",\"model\":\"m\",\"inputTokens\":13,\
             \"outputTokens\":4,\"totalTokens\":17,\"cachedInputTokens\":2,\"cacheWriteInputTokens\":1}]",
        ],
    );
    check(
        [result(json!({"structured_output": {"answer": 42}}))],
        &["RUN_FINISHED result={\"answer\":42} {\"type\":\"success\"}"],
    );
}

#[test]
fn a_run_reports_only_what_it_used_itself() {
    let mut settings = Settings::new("thread", "run");
    let before = Counts { input: 4, cache_read: 2, cache_write: 1, output: 1, thinking: 0 };
    settings.reported.insert("m".into(), before);
    let mut run = Run::new(settings);
    run.frames([result(json!({"modelUsage": used(10, 4)}))]);
    let expected = "\"inputTokens\":6,\"outputTokens\":3,\"totalTokens\":9";
    assert!(run.story().contains(expected), "{}", run.story());
    assert_eq!(run.translator.reported()["m"].input, 10);

    // A restarted engine counts from zero.
    let mut settings = Settings::new("thread", "run");
    settings.reported.insert("m".into(), Counts { input: 99, output: 99, ..Counts::default() });
    let mut run = Run::new(settings);
    run.frames([result(json!({"modelUsage": used(10, 4)}))]);
    assert!(run.story().contains("\"outputTokens\":4"), "{}", run.story());
}

#[test]
fn usage_that_a_waiting_run_reported_is_not_reported_again() {
    let mut run = Run::plain();
    run.frames([message_start("msg_1"), message_delta("tool_use"), message_stop()]);
    let events = run.translator.wait_for_calls(vec!["c1".into()]);
    run.take(events);
    assert!(run.story().contains("\"inputTokens\":17,\"outputTokens\":7"), "{}", run.story());
    let mut settings = Settings::new("thread", "run-2");
    settings.reported = run.translator.reported().clone();
    let mut next = Run::new(settings);
    let sums = json!({"m": {"inputTokens": 30, "outputTokens": 9, "cacheReadInputTokens": 5, "cacheCreationInputTokens": 2,
        "webSearchRequests": 0, "costUSD": 0, "contextWindow": 1}});
    next.frames([result(json!({"modelUsage": sums}))]);
    assert!(next.story().contains("\"inputTokens\":20,\"outputTokens\":2"), "{}", next.story());
}

#[test]
fn an_api_error_ends_the_run_and_is_not_sent_as_text() {
    let mut error = assistant("x", text("API Error: 529 overloaded"));
    error["message"]["model"] = json!("<synthetic>");
    error["error"] = json!("overloaded");
    check(
        [
            assistant("msg_1", text("so far")),
            error,
            result(json!({"is_error": true, "result": "API Error: 529 overloaded"})),
        ],
        &[
            "TEXT_MESSAGE_START msg_1",
            "TEXT_MESSAGE_CONTENT msg_1 so far",
            "TEXT_MESSAGE_END msg_1",
            "RUN_ERROR API Error: 529 overloaded code=overloaded",
        ],
    );
    check(
        [result(
            json!({"subtype": "error_during_execution", "is_error": true, "result": null, "errors": ["broken"]}),
        )],
        &["RUN_ERROR broken code=error_during_execution"],
    );
}

#[test]
fn a_reached_limit_cancels_the_run_and_does_not_fail_it() {
    check(
        [result(json!({"subtype": "error_max_turns", "is_error": true, "result": null}))],
        &["RUN_FINISHED {\"type\":\"cancelled\"} metadata={\"reason\":\"max_turns\"}"],
    );
    check(
        [result(json!({"subtype": "error_max_budget_usd", "is_error": true, "result": null}))],
        &["RUN_FINISHED {\"type\":\"cancelled\"} metadata={\"reason\":\"max_budget_usd\"}"],
    );
}

#[test]
fn stopping_a_run_closes_open_items_and_is_not_a_failure() {
    let stopped = |more: Value| {
        let mut frame =
            result(json!({"subtype": "error_during_execution", "is_error": true, "result": null}));
        frame.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        frame
    };
    let begun = || [message_start("msg_1"), block_start(0, text("")), text_delta(0, "half")];
    let expected = [
        "TEXT_MESSAGE_START msg_1",
        "TEXT_MESSAGE_CONTENT msg_1 half",
        "TEXT_MESSAGE_END msg_1",
        "RUN_FINISHED {\"type\":\"cancelled\"} metadata={\"reason\":\"interrupted\"}",
    ];
    let frames =
        begun().into_iter().chain([stopped(json!({"terminal_reason": "aborted_streaming"}))]);
    check(frames, &expected);
    // An older engine does not give a reason.
    let mut run = Run::plain();
    run.translator.stopping();
    run.frames(begun().into_iter().chain([stopped(json!({}))]));
    assert_eq!(run.short(), expected);
}

#[test]
fn message_ids_of_the_thread_are_never_reused() {
    let mut settings = Settings::new("thread", "run-2");
    settings.taken.insert("msg_1".into());
    let mut run = Run::new(settings);
    run.frames([
        message_start("msg_1"),
        block_start(0, text("a")),
        assistant("msg_1", text("a")),
        message_stop(),
        message_start("msg_1"),
        block_start(0, text("b")),
    ]);
    let short = run.short();
    assert_eq!(short[0], "TEXT_MESSAGE_START msg_1-run-2-2");
    assert_eq!(short[3], "TEXT_MESSAGE_START msg_1-run-2-3");
    assert_eq!(run.translator.message_ids(), ["msg_1-run-2-2", "msg_1-run-2-3"]);
}

#[test]
fn a_run_with_nothing_to_do_starts_and_ends() {
    let mut run = Run::plain();
    let events = run.translator.nothing_to_do();
    run.take(events);
    assert_eq!(run.short(), ["RUN_FINISHED {\"type\":\"success\"}"]);
    let mut run = Run::plain();
    let events = run.translator.cancelled("shutdown");
    run.take(events);
    assert_eq!(
        run.short(),
        ["RUN_FINISHED {\"type\":\"cancelled\"} metadata={\"reason\":\"shutdown\"}"]
    );
}

#[test]
fn results_that_the_client_sent_are_not_sent_back() {
    let mut settings = Settings::new("thread", "run");
    settings.answered_by_client.insert("old".into());
    settings.client_tools.insert("mcp__ag_ui__paint".into());
    let mut run = Run::new(settings);
    run.frames([
        tool_result("old", json!("blue")),
        assistant("msg_1", tool_use("c1", "mcp__ag_ui__paint", json!({}))),
        tool_result("c1", json!("red")),
        tool_result("other", json!("green")),
    ]);
    let results: Vec<_> = run.short().into_iter().filter(|it| it.contains("RESULT")).collect();
    assert_eq!(results, ["TOOL_CALL_RESULT other-result other green"]);
    assert_eq!(run.translator.unanswered(), Vec::<String>::new());
}

#[test]
fn the_server_can_call_a_tool_of_the_client_itself() {
    let mut run = Run::plain();
    let events = run.translator.call_client("ask-1", "confirm", &json!({"a": 1}));
    run.take(events);
    assert_eq!(
        run.short(),
        ["TOOL_CALL_START ask-1 confirm", "TOOL_CALL_ARGS ask-1 {\"a\":1}", "TOOL_CALL_END ask-1"]
    );
    assert_eq!(run.translator.unanswered(), ["ask-1"]);
}

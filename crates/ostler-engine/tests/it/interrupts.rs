//! The interrupt matrix: for every point at which the user can stop a turn, what the host sees, what the model reads
//! with the next prompt, what still runs, and whether the file can be resumed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ostler_engine::session::SessionOptions;
use ostler_engine::store::{LineContext, Projects, SessionStart, StartFrom};
use ostler_engine::tool::{Effect, Tool, ToolCx, ToolError, ToolOutput, erase};
use ostler_engine::turn::{INTERRUPTED, INTERRUPTED_CALL, INTERRUPTED_TOOLS};
use ostler_proto::control::{AskEngine, Initialize, Interrupt};
use ostler_proto::frame::{ToEngine, ToHost};
use ostler_proto::hook::HookMatcher;
use ostler_proto::message::{TurnResult, User};
use ostler_testkit::{Reply, Script, Status, ToolUse, reply, when};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::host::{TestHost, line};

const RESULT: &str = "result error_during_execution: The turn was interrupted.";

/// A session with a file, and the folder the file is in.
struct Sitting {
    host: TestHost,
    folder: tempfile::TempDir,
}

/// Answers the first prompt with `first`, and every later one with the same text.
fn script(first: Reply) -> Script {
    Script::new()
        .rule(when().prompt_contains("again"), reply().text("Here again."))
        .rule(when().prompt_contains("first"), first)
}

impl Sitting {
    async fn new(script: Script, change: impl FnOnce(&mut SessionOptions)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let opened = Self::projects(&folder).open(scene(), &SessionStart::default()).unwrap();
        let host = TestHost::with(script, |options| {
            options.opened = Some(opened);
            options.launch.output.partial_messages = true;
            change(options);
        })
        .await;
        Self { host, folder }
    }

    fn projects(folder: &tempfile::TempDir) -> Projects {
        Projects::new(&folder.path().join("config"))
    }

    /// A session whose host registers a hook for this event and does not answer it.
    async fn with_hook(script: Script, event: &str) -> Self {
        let sitting = Self::new(script, |_| {}).await;
        let matcher =
            HookMatcher { hook_callback_ids: vec!["hook_0".into()], ..HookMatcher::default() };
        let hooks = BTreeMap::from([(event.to_owned(), vec![matcher])]);
        let initialize = Initialize { hooks: Some(hooks), ..Initialize::default() };
        sitting.host.ask("init", AskEngine::Initialize(Box::new(initialize))).await;
        sitting
    }

    async fn first(&mut self, until: &str) {
        self.host.prompt("first").await;
        self.host.until(until).await;
    }

    /// Interrupts, and checks what the host sees from then on.
    async fn interrupt(&mut self, expected: &[&str]) -> TurnResult {
        let n_seen = self.host.seen.len();
        self.host.interrupt().await;
        let result = self.host.result().await;
        let mut story: Vec<_> = self.host.seen[n_seen..].iter().map(line).collect();
        // Events of the response, and the status of the request, may still arrive.
        story.retain(|line| !line.starts_with("stream_event") && line != "system status");
        assert_eq!(story, expected);
        assert_eq!((result.subtype.as_str(), result.is_error), ("error_during_execution", true));
        let in_tools = expected.contains(&format!("user: {INTERRUPTED_TOOLS}").as_str());
        let reason = if in_tools { "aborted_tools" } else { "aborted_streaming" };
        assert_eq!(result.terminal_reason.as_ref().unwrap().as_str(), reason);
        result
    }

    /// Continues the conversation here, and in another session that resumes the file; the scripted API refuses what the
    /// real one would refuse. Returns the request for the next prompt.
    async fn continue_session(self) -> String {
        let Self { mut host, folder } = self;
        host.answer = Some(Ok(json!({})));
        host.prompt("again").await;
        assert_eq!(host.result().await.result.as_deref(), Some("Here again."));
        let next_request = host.api.requests().pop().unwrap();

        let begin = StartFrom::Latest;
        let start = SessionStart { begin, ..SessionStart::default() };
        let opened = Self::projects(&folder).open(scene(), &start).unwrap();
        // The file has the same bytes as the conversation, so that the vendor's cache still hits.
        let mut resumed = serde_json::to_value(
            opened
                .conversation
                .iter()
                .map(|said| json!({"role": said.role, "content": said.content}))
                .collect::<Vec<_>>(),
        )
        .unwrap();
        let answer = resumed.as_array_mut().unwrap().pop().unwrap();
        assert_eq!(answer["content"][0]["text"], "Here again.");
        assert_eq!(without_marks(resumed), without_marks(next_request.body["messages"].clone()));
        let mut options = TestHost::options(&host.api);
        options.opened = Some(opened);
        host.connection = ostler_engine::session::start(options).unwrap();
        host.prompt("again, from the file").await;
        assert_eq!(host.result().await.result.as_deref(), Some("Here again."));
        next_request.transcript()
    }
}

fn scene() -> LineContext {
    let cwd = std::env::temp_dir().canonicalize().unwrap();
    LineContext { cwd, version: "0.1.0".to_owned(), entrypoint: None }
}

/// Messages without cache markers, which move with the conversation.
fn without_marks(mut messages: Value) -> Value {
    for message in messages.as_array_mut().unwrap() {
        for block in message["content"].as_array_mut().into_iter().flatten() {
            block.as_object_mut().unwrap().remove("cache_control");
        }
    }
    messages
}

fn stopped() -> String {
    format!("user: failed: {INTERRUPTED_CALL}")
}

fn marker() -> String {
    format!("user: {INTERRUPTED}")
}

fn tools_marker() -> String {
    format!("user: {INTERRUPTED_TOOLS}")
}

const OK: &str = "control_response success";

#[tokio::test]
async fn before_the_first_byte() {
    let mut sitting = Sitting::new(script(reply().text("late").hold("never")), |_| {}).await;
    sitting.first("system init").await;
    sitting.host.api.gate("never").reached().await;
    let result = sitting.interrupt(&[OK, &marker(), RESULT]).await;
    assert_eq!(result.num_turns, 2, "the prompt and the marker");
    sitting
        .host
        .api
        .wait_for("the engine to close the connection", |requests| requests[0].client_left())
        .await;
    let next_request = sitting.continue_session().await;
    assert!(next_request.contains("first") && next_request.contains(INTERRUPTED), "{next_request}");
}

#[tokio::test]
async fn in_the_middle_of_text() {
    let half = reply().text_pieces(["One ", "two"]).gate(3, "half");
    let mut sitting = Sitting::new(script(half), |_| {}).await;
    sitting.first("stream_event content_block_delta").await;
    sitting.interrupt(&[OK, "assistant: One ", &marker(), RESULT]).await;
    let aborted = sitting.host.seen.iter().find_map(|frame| match frame {
        ToHost::Assistant(frame) => Some(frame.aborted),
        _ => None,
    });
    assert_eq!(aborted, Some(Some(true)));
    // A host that follows the events sees their end.
    let story = sitting.host.story();
    let from = story.iter().position(|line| line == "assistant: One ").unwrap();
    let events = ["stream_event content_block_stop", "stream_event message_stop"];
    assert_eq!(story[from + 1..from + 3], events);
    let end = serde_json::to_value(&sitting.host.seen[from + 2]).unwrap();
    assert_eq!(end["abandoned_blocks"]["from_block_index"], 1, "the text counts");
    assert!(sitting.continue_session().await.contains("One "));
}

#[tokio::test]
async fn in_the_middle_of_a_thinking_block_and_after_one() {
    let thinking = reply().thinking("a long thought", "sig").text_pieces(["So"]);
    // `message_start`, `content_block_start`, the thinking, the signature, `content_block_stop`, the text.
    for (gate, until) in [
        (3, "stream_event content_block_delta thinking_delta"),
        (7, "stream_event content_block_stop"),
    ] {
        let thinking = thinking.clone().gate(gate, "half");
        let mut sitting = Sitting::new(script(thinking), |_| {}).await;
        sitting.first(until).await;
        sitting.interrupt(&[OK, &marker(), RESULT]).await;
        let next_request = sitting.continue_session().await;
        assert!(!next_request.contains("thought"), "{next_request}");
    }
}

#[tokio::test]
async fn in_the_middle_of_the_input_of_a_call() {
    let call = ToolUse::new("Change", json!({"word": "a long word"})).split(3);
    let half = reply().text_pieces(["Let me."]).block(call.into()).gate(7, "half");
    let mut sitting = Sitting::new(script(half), |_| {}).await;
    sitting.first("stream_event content_block_delta input_json_delta").await;
    sitting.interrupt(&[OK, &marker(), RESULT]).await;
    let next_request = sitting.continue_session().await;
    assert!(next_request.contains("Let me.") && !next_request.contains("Change"), "{next_request}");
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// Runs for ever and notes when it is stopped.
struct Held(Arc<AtomicBool>);

struct Note(Arc<AtomicBool>);

impl Drop for Note {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Tool for Held {
    const NAME: &'static str = "Held";
    const DESCRIPTION: &'static str = "For tests.";
    type Args = Nothing;

    fn effect(&self, _: &ToolCx, _: &Nothing) -> Effect {
        Effect::Nothing
    }

    async fn run(&self, _: &ToolCx, _: Nothing) -> Result<ToolOutput, ToolError> {
        let _note = Note(Arc::clone(&self.0));
        std::future::pending().await
    }
}

#[tokio::test]
async fn while_reads_run_in_parallel() {
    let calls = reply()
        .tool_use("Look", json!({"word": "it"}))
        .tool_use("Held", json!({}))
        .tool_use("Hang", json!({"word": "on"}))
        .tool_use("Change", json!({"word": "later"}));
    let is_stopped = Arc::new(AtomicBool::new(false));
    let held = erase(Held(Arc::clone(&is_stopped)));
    let mut sitting = Sitting::new(script(calls), |options| options.tools.push(held)).await;
    sitting.first("stream_event message_stop").await;
    if !sitting.host.story().contains(&"user: = saw it".to_owned()) {
        sitting.host.until("user: = saw it").await;
    }
    let result =
        sitting.interrupt(&[OK, &stopped(), &stopped(), &stopped(), &tools_marker(), RESULT]).await;
    assert!(is_stopped.load(Ordering::SeqCst), "a tool outlived its result");
    assert_eq!(result.num_turns, 6, "the prompt, four results and the marker");
    let next_request = sitting.continue_session().await;
    assert!(
        next_request.contains("saw it") && next_request.contains(INTERRUPTED_TOOLS),
        "{next_request}"
    );
}

#[tokio::test]
async fn while_the_host_is_asked() {
    let call = reply().tool_use("Change", json!({"word": "it"}));
    let mut sitting = Sitting::new(script(call), |_| {}).await;
    sitting.first("control_request can_use_tool").await;
    if !sitting.host.story().contains(&"stream_event message_stop".to_owned()) {
        sitting.host.until("stream_event message_stop").await;
    }
    let result = sitting
        .interrupt(&["control_cancel_request", OK, &stopped(), &tools_marker(), RESULT])
        .await;
    assert_eq!(result.permission_denials.len(), 0, "the call was not denied");
    sitting.continue_session().await;
}

#[tokio::test]
async fn a_late_answer_to_a_withdrawn_question_changes_nothing() {
    let call = reply().tool_use("Change", json!({"word": "it"}));
    let mut sitting = Sitting::new(script(call), |_| {}).await;
    sitting.host.prompt("first").await;
    let ToHost::ControlRequest(question) = sitting.host.until("control_request").await else {
        panic!("not a question")
    };
    sitting.host.interrupt().await;
    sitting.host.respond(question.request_id.unwrap(), Ok(json!({"behavior": "allow"}))).await;
    sitting.host.result().await;
    assert!(!sitting.host.story().iter().any(|line| line.contains("changed it")));
    sitting.continue_session().await;
}

#[tokio::test]
async fn while_a_callback_hook_runs() {
    let call = || script(reply().tool_use("Look", json!({"word": "it"})));
    for event in ["PreToolUse", "PostToolUse"] {
        let mut sitting = Sitting::with_hook(call(), event).await;
        sitting.first("control_request hook_callback").await;
        if !sitting.host.story().contains(&"stream_event message_stop".to_owned()) {
            sitting.host.until("stream_event message_stop").await;
        }
        let withdrawn = "control_cancel_request";
        sitting.interrupt(&[withdrawn, OK, &stopped(), &tools_marker(), RESULT]).await;
        sitting.continue_session().await;
    }
    // Before the model is asked, or after its answer: no tool is involved.
    let mut sitting = Sitting::with_hook(script(reply().text("x")), "UserPromptSubmit").await;
    sitting.first("control_request hook_callback").await;
    let frames = ["control_cancel_request", OK, "system init", &marker(), RESULT];
    sitting.interrupt(&frames).await;
    assert_eq!(sitting.host.api.requests().len(), 0, "the model was not asked");
    sitting.continue_session().await;

    let mut sitting = Sitting::with_hook(script(reply().text("All said.")), "Stop").await;
    sitting.first("control_request hook_callback").await;
    sitting.interrupt(&["control_cancel_request", OK, &marker(), RESULT]).await;
    assert!(sitting.continue_session().await.contains("All said."));
}

#[tokio::test]
async fn while_a_command_hook_runs_which_ends_with_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let command = format!("sleep 600 & echo $$ $! > {0}.new; mv {0}.new {0}; wait", pids.display());
    let hooks = json!({"PreToolUse": [{"hooks": [{"type": "command", "command": command}]}]});
    let call = script(reply().tool_use("Look", json!({"word": "it"})));
    let mut sitting = Sitting::new(call, |options| options.hooks = vec![hooks]).await;
    sitting.first("stream_event message_stop").await;
    until("the hook runs", || pids.exists()).await;
    sitting.interrupt(&[OK, &stopped(), &tools_marker(), RESULT]).await;
    let pids = std::fs::read_to_string(pids).unwrap();
    for pid in pids.split_whitespace() {
        until("the hook is gone", || is_gone(pid)).await;
    }
    std::fs::remove_dir_all(folder.path()).unwrap();
    sitting.host.connection.from_engine.try_recv().unwrap_err();
}

/// Whether a process has ended; a zombie counts as ended.
fn is_gone(pid: &str) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat.rsplit(')').next().unwrap().trim_start().starts_with('Z'),
        Err(_) => true,
    }
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let look = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), look)
        .await
        .unwrap_or_else(|_| panic!("never: {what}"));
}

#[tokio::test]
async fn while_the_engine_waits_to_retry() {
    let busy = reply().status(Status::new(529).retry_after(50));
    let mut sitting = Sitting::new(script(busy), |_| {}).await;
    sitting.first("system api_retry").await;
    sitting.interrupt(&[OK, &marker(), RESULT]).await;
    assert_eq!(sitting.host.api.requests().len(), 1, "the retry was not waited for");
    sitting.continue_session().await;
}

fn delegating(sub: Reply) -> Script {
    let task = json!({"description": "look", "prompt": "sub: look"});
    Script::new()
        .rule(when().prompt_contains("again"), reply().text("Here again."))
        .rule(when().prompt_contains("sub:"), sub)
        .rule(when().prompt_contains("first"), reply().tool_use("Agent", task))
}

#[tokio::test]
async fn in_a_subagent_that_answers_runs_a_tool_or_asks() {
    let change = reply().tool_use("Change", json!({"word": "below"}));
    for (sub, until, n_questions) in [
        (reply().text("x").hold("never"), "user of subagent: sub: look", 0),
        (reply().tool_use("Hang", json!({"word": "on"})), "assistant of subagent: Hang", 0),
        (change, "control_request can_use_tool Change", 1),
    ] {
        let mut sitting = Sitting::new(delegating(sub), |_| {}).await;
        sitting.first(until).await;
        let n_seen = sitting.host.seen.len();
        sitting.host.interrupt().await;
        sitting.host.result().await;
        let story: Vec<_> = sitting.host.seen[n_seen..].iter().map(line).collect();
        // Only the frames of the main conversation matter here.
        let main: Vec<_> = story
            .iter()
            .filter(|line| !line.contains("of subagent") && !line.starts_with("stream_event"))
            .filter(|line| !line.starts_with("system task_"))
            .collect();
        let questions = vec!["control_cancel_request".to_owned(); n_questions];
        let rest = [OK.to_owned(), stopped(), tools_marker(), RESULT.to_owned()];
        assert_eq!(main, questions.iter().chain(&rest).collect::<Vec<_>>(), "{until}");
        let at_result = story.iter().position(|line| *line == stopped()).unwrap();
        assert!(
            !story[at_result..].iter().any(|line| line.contains("of subagent")),
            "a frame of a subagent came after the result of its call: {story:?}"
        );
        sitting.continue_session().await;
    }
}

async fn queued(cancel_queued: Option<bool>) -> (Sitting, Value) {
    let held = script(reply().text("late").hold("never"));
    let mut sitting = Sitting::new(held, |_| {}).await;
    sitting.host.prompt("first").await;
    sitting.host.api.gate("never").reached().await;
    let waiting = User { uuid: Some("u-2".into()), ..User::prompt("again, at once") };
    let frame = ToEngine::User(Box::new(waiting));
    sitting.host.connection.to_engine.send(frame).await.unwrap();
    let interrupt = Interrupt { cancel_queued, ..Interrupt::default() };
    sitting.host.ask("int", AskEngine::Interrupt(interrupt)).await;
    let answer = sitting.host.until(OK).await;
    let answer = serde_json::to_value(&answer).unwrap()["response"]["response"].clone();
    assert!(sitting.host.result().await.is_error);
    (sitting, answer)
}

#[tokio::test]
async fn while_a_prompt_is_queued_which_then_runs() {
    let (mut sitting, answer) = queued(None).await;
    assert_eq!(answer, json!({"still_queued": ["u-2"]}));
    assert_eq!(sitting.host.result().await.result.as_deref(), Some("Here again."));
    sitting.continue_session().await;
}

#[tokio::test]
async fn while_a_prompt_is_queued_which_is_dropped_too() {
    let (sitting, answer) = queued(Some(true)).await;
    assert_eq!(answer, json!({"still_queued": [], "cancelled": ["u-2"]}));
    assert!(!sitting.continue_session().await.contains("at once"));
}

#[tokio::test]
async fn with_nothing_running() {
    let mut sitting = Sitting::new(script(reply().text("Yes.")), |_| {}).await;
    sitting.host.interrupt().await;
    sitting.host.until(OK).await;
    sitting.host.prompt("first").await;
    assert_eq!(sitting.host.result().await.result.as_deref(), Some("Yes."));
    sitting.host.interrupt().await;
    sitting.host.until(OK).await;
    assert!(
        !sitting.continue_session().await.contains(INTERRUPTED),
        "there was nothing to interrupt"
    );
}

#[tokio::test]
async fn content_that_the_api_refuses_is_removed_from_the_conversation() {
    let refused = || reply().status(Status::new(400).message("image exceeds 5 MB"));
    // A prompt that the API refuses is removed, here and in the file.
    let mut sitting = Sitting::new(script(refused()), |_| {}).await;
    sitting.host.prompt("first").await;
    assert!(sitting.host.result().await.is_error);
    assert!(!sitting.continue_session().await.contains("first"));
    // So is the content of a result; its call still has a result.
    let script = Script::new()
        .rule(when().prompt_contains("again"), reply().text("Here again."))
        .rule(when().tool_result_contains("saw it"), refused())
        .rule(when().prompt_contains("first"), reply().tool_use("Look", json!({"word": "it"})));
    let mut sitting = Sitting::new(script, |_| {}).await;
    sitting.host.prompt("first").await;
    assert!(sitting.host.result().await.is_error);
    let next_request = sitting.continue_session().await;
    assert!(
        next_request.contains("The result is left out") && !next_request.contains("saw it"),
        "{next_request}"
    );
}

#[tokio::test]
async fn a_refused_answer_is_reported_and_not_part_of_a_resumed_session() {
    let details = json!({"type": "refusal", "category": "bio", "explanation": "Not that."});
    let no = reply().text("I will not.").stop_reason("refusal").stop_details(details);
    let mut sitting = Sitting::new(script(no), |_| {}).await;
    sitting.host.prompt("first").await;
    let result = sitting.host.result().await;
    assert_eq!(result.safety_stops, Some(json!(2)));
    let frames: Vec<Value> =
        sitting.host.seen.iter().map(|frame| serde_json::to_value(frame).unwrap()).collect();
    let said =
        frames.iter().filter(|frame| frame["type"] == "assistant" && frame["error"].is_null());
    let ids: Vec<&Value> = said.map(|frame| &frame["message"]["id"]).collect();
    let at = |subtype: &str| frames.iter().position(|frame| frame["subtype"] == subtype).unwrap();
    let notice = at("informational");
    assert_eq!(frames[notice]["level"], "notice");
    let nudge = &frames[notice + 1];
    assert_eq!((&nudge["isSynthetic"], &nudge["refused_message_id"]), (&json!(true), ids[0]));
    let refusal = at("model_refusal_no_fallback");
    let frame = &frames[refusal];
    assert_eq!(frame["api_refusal_category"], "bio");
    assert_eq!(frame["api_refusal_explanation"], "Not that.");
    assert!(frame["refused_user_message_uuid"].is_string(), "{frame}");
    assert_eq!(frame.get("request_id"), Some(&Value::Null), "{frame}");
    assert_eq!(frames[refusal + 1]["refused_message_id"], *ids[1]);
    // Neither the conversation nor the file contains the refused answer.
    let said = sitting.continue_session().await;
    assert!(!said.contains("I will not") && said.contains("first"), "{said}");
}

#[tokio::test]
async fn twice() {
    let mut sitting = Sitting::new(script(reply().text("late").hold("never")), |_| {}).await;
    sitting.first("system init").await;
    sitting.host.api.gate("never").reached().await;
    sitting.host.interrupt().await;
    sitting.host.interrupt().await;
    sitting.host.result().await;
    let next_request = sitting.continue_session().await;
    assert_eq!(next_request.matches(INTERRUPTED).count(), 1, "{next_request}");
}

#[tokio::test]
async fn by_a_host_that_denies_and_stops() {
    let calls =
        reply().tool_use("Change", json!({"word": "a"})).tool_use("Change", json!({"word": "b"}));
    let mut sitting =
        Sitting::new(script(calls), |options| options.launch.output.partial_messages = false).await;
    sitting.host.answer =
        Some(Ok(json!({"behavior": "deny", "message": "Stop it.", "interrupt": true})));
    sitting.host.prompt("first").await;
    let result = sitting.host.result().await;
    let story = sitting.host.story();
    let from = story.iter().position(|line| line == "user: failed: Stop it.").unwrap();
    let rest: Vec<_> =
        story[from + 1..].iter().filter(|line| !line.starts_with("assistant")).collect();
    assert_eq!(*rest.last().unwrap(), RESULT);
    assert_eq!(*rest[rest.len() - 2], tools_marker());
    assert_eq!(result.permission_denials.len(), 1);
    sitting.continue_session().await;
}

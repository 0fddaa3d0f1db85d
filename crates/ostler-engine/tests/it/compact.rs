//! Compaction: when a conversation becomes a summary, what the host sees of it, what the model reads afterwards, what
//! the file contains, and that nothing is lost when it fails.

use std::collections::BTreeMap;

use ostler_engine::session::{Compaction, SessionOptions};
use ostler_engine::store::{LineContext, Projects, SessionStart, StartFrom};
use ostler_proto::api::Content;
use ostler_proto::control::{AskEngine, Initialize};
use ostler_proto::frame::ToHost;
use ostler_proto::hook::HookMatcher;
use ostler_proto::message::system::CompactBoundary;
use ostler_proto::message::{System, TurnResult};
use ostler_testkit::{RecordedRequest, Reply, Script, Status, Usage, When, reply, when};
use serde_json::{Value, json};

use crate::host::{TestHost, line};

/// The window of these tests, in tokens; it counts as full from 750 on.
const WINDOW: u64 = 1000;

/// Identifies a request for a summary.
const QUESTION: &str = "Write that summary now";
/// How a summary begins.
const SUMMARY: &str = "[The conversation up to here";

fn asks_for_summary() -> When {
    when().prompt_contains(QUESTION)
}

/// A reply after which the context has this many tokens.
fn filling(text: &str, tokens: u64) -> Reply {
    reply().text(text).usage(Usage::tokens(tokens - 10, 10))
}

/// Answers "first" with `Noted.` and a full context, and answers the later prompts.
fn script(summary: Reply) -> Script {
    Script::new()
        .rule(asks_for_summary(), summary)
        .rule(when().prompt_contains("third"), filling("Third answer.", 100))
        .rule(when().prompt_contains("second"), filling("Second answer.", 100))
        .rule(when().prompt_contains("first"), filling("Noted.", 800))
}

/// A session with a file, and the folder the file is in.
struct Sitting {
    host: TestHost,
    folder: tempfile::TempDir,
}

fn scene() -> LineContext {
    let cwd = std::env::temp_dir().canonicalize().unwrap();
    LineContext { cwd, version: "0.1.0".to_owned(), entrypoint: None }
}

impl Sitting {
    async fn new(script: Script) -> Self {
        Self::with(script, |_| {}).await
    }

    async fn with(script: Script, change: impl FnOnce(&mut SessionOptions)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let projects = Projects::new(&folder.path().join("config"));
        let opened = projects.open(scene(), &SessionStart::default()).unwrap();
        let host = TestHost::with(script, |options| {
            options.opened = Some(opened);
            options.compaction.window = Some(WINDOW);
            change(options);
        })
        .await;
        Self { host, folder }
    }

    /// With a callback of the host for an event.
    async fn with_callback(script: Script, event: &str) -> Self {
        let mut sitting = Self::new(script).await;
        let matcher =
            HookMatcher { hook_callback_ids: vec!["hook_0".into()], ..HookMatcher::default() };
        let hooks = BTreeMap::from([(event.to_owned(), vec![matcher])]);
        let initialize = Initialize { hooks: Some(hooks), ..Initialize::default() };
        sitting.host.ask("init", AskEngine::Initialize(Box::new(initialize))).await;
        sitting.host.until("control_response").await;
        sitting
    }

    /// Sends a prompt. Returns its result, and the frames until then.
    async fn prompt(&mut self, text: &str) -> (TurnResult, Vec<String>) {
        let n_seen = self.host.seen.len();
        self.host.prompt(text).await;
        let result = self.host.result().await;
        (result, self.host.seen[n_seen..].iter().map(frame_line).collect())
    }

    fn requests(&self) -> Vec<RecordedRequest> {
        self.host.api.requests()
    }

    fn last_request(&self) -> RecordedRequest {
        self.requests().pop().unwrap()
    }

    fn boundaries(&self) -> Vec<CompactBoundary> {
        let boundary = |frame: &ToHost| match frame {
            ToHost::System(System::CompactBoundary(boundary)) => Some(boundary.clone()),
            _ => None,
        };
        self.host.seen.iter().filter_map(boundary).collect()
    }

    fn open(&self) -> ostler_engine::store::OpenedSession {
        let projects = Projects::new(&self.folder.path().join("config"));
        let start = SessionStart { begin: StartFrom::Latest, ..SessionStart::default() };
        projects.open(scene(), &start).unwrap()
    }

    /// Resumes the file in another session, which sends the model the same messages as this one and continues.
    async fn check_resumed_session(mut self) {
        self.prompt("third").await;
        let said = without_marks(self.last_request().body["messages"].clone());
        let opened = self.open();
        let resumed = opened
            .conversation
            .iter()
            .map(|said| json!({"role": said.role, "content": said.content}));
        let mut resumed: Vec<Value> = resumed.collect();
        assert_eq!(resumed.pop().unwrap()["content"][0]["text"], "Third answer.");
        assert_eq!(without_marks(json!(resumed)), said);
        let mut options = TestHost::options(&self.host.api);
        options.opened = Some(opened);
        self.host.connection = ostler_engine::session::start(options).unwrap();
        self.host.prompt("third, once more").await;
        assert_eq!(self.host.result().await.result.as_deref(), Some("Third answer."));
    }
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

/// The parts of a frame that matter here, in one line.
fn frame_line(frame: &ToHost) -> String {
    match frame {
        ToHost::System(System::Status(status)) => {
            let words = [status.status.as_deref(), status.compact_result.as_deref()];
            format!("status {}", words.map(|word| word.unwrap_or("null")).join(" "))
        }
        ToHost::System(System::CompactBoundary(boundary)) => {
            format!("boundary {}", boundary.compact_metadata.trigger)
        }
        ToHost::User(user) => match &user.message.content {
            Some(Content::Text(text)) => {
                let flags = (user.is_replay, user.is_synthetic);
                format!("user {flags:?}: {}", text.split(' ').next().unwrap_or_default())
            }
            _ => line(frame),
        },
        _ => line(frame),
    }
}

const STARTS: &str = "status compacting null";
const ENDS_WELL: &str = "status null success";
const ENDS_BADLY: &str = "status null failed";
const SUMMARY_FRAME: &str = "user (Some(false), Some(true)): [The";

#[tokio::test]
async fn a_full_context_is_compacted_before_the_model_is_asked() {
    let mut sitting = Sitting::new(script(reply().text("They said first."))).await;
    sitting.prompt("first").await;
    let (result, story) = sitting.prompt("second").await;
    let expected = [
        "system init",
        STARTS,
        ENDS_WELL,
        "boundary auto",
        SUMMARY_FRAME,
        "assistant: Second answer.",
        "result success: Second answer.",
    ];
    assert_eq!(story, expected);
    let requests = sitting.requests();
    assert_eq!(requests.len(), 3);
    // The request for a summary follows the unchanged conversation; the prompt to answer is not in it.
    let question = requests[1].body["messages"].to_string();
    assert!(question.contains("Noted.") && !question.contains("second"), "{question}");
    // Then there is one message: the summary, the last messages, the prompt.
    let asked = &requests[2];
    assert_eq!(asked.messages().len(), 1);
    let blocks = asked.messages()[0]["content"].as_array().unwrap();
    let text = blocks[0]["text"].as_str().unwrap();
    assert!(text.starts_with(SUMMARY) && text.contains("They said first."), "{text}");
    assert!(text.contains("User: first\nAssistant: Noted."), "{text}");
    assert_eq!((blocks.len(), &blocks[1]["text"]), (2, &json!("second")));
    // The request for the summary costs something too.
    let used = &result.model_usage["test-model"];
    let sum = |field: fn(&TurnResult) -> u64| field(&result);
    assert!(used.input_tokens > 790 + sum(|result| result.usage.input_tokens.unwrap()), "{used:?}");
    assert_eq!(result.num_turns, 1);

    let boundary = &sitting.boundaries()[0];
    let metadata = &boundary.compact_metadata;
    assert!((800..820).contains(&metadata.pre_tokens), "{metadata:?}");
    assert!(metadata.post_tokens.is_some() && metadata.duration_ms.is_some());
    assert!(boundary.logical_parent_uuid.is_some());
    sitting.check_resumed_session().await;
}

#[tokio::test]
async fn the_beginning_of_requests_stays_the_same_before_and_after() {
    let mut sitting = Sitting::new(script(reply().text("Short."))).await;
    for prompt in ["first", "second", "third"] {
        sitting.prompt(prompt).await;
    }
    let requests = sitting.requests();
    assert_eq!(requests.len(), 4);
    for request in &requests {
        for field in ["tools", "system", "model", "max_tokens", "tool_choice"] {
            assert_eq!(request.body[field], requests[0].body[field], "{field}");
        }
    }
    let messages =
        |n: usize| without_marks(requests[n].body["messages"].clone()).as_array().unwrap().clone();
    // The request for a summary follows the first turn, and the third prompt follows the compacted conversation.
    assert!(messages(1).starts_with(&messages(0)));
    assert!(messages(3).starts_with(&messages(2)));
}

#[tokio::test]
async fn during_a_turn_results_are_summarised_and_the_work_continues() {
    let script = Script::new()
        .rule(asks_for_summary(), reply().text("It looked."))
        .rule(when().prompt_contains("third"), filling("Third answer.", 100))
        .rule(when().prompt_contains(SUMMARY), filling("Done.", 100))
        .rule(
            when().turn(0),
            reply().tool_use("Look", json!({"word": "x"})).usage(Usage::tokens(790, 10)),
        );
    let mut sitting = Sitting::new(script).await;
    let (result, story) = sitting.prompt("look at x").await;
    assert_eq!(result.result.as_deref(), Some("Done."));
    let expected = [
        "system init",
        "assistant: Look({\"word\":\"x\"})",
        "user: = saw x",
        STARTS,
        ENDS_WELL,
        "boundary auto",
        SUMMARY_FRAME,
        "assistant: Done.",
        "result success: Done.",
    ];
    assert_eq!(story, expected);
    assert_eq!(sitting.requests()[1].tool_results().len(), 1, "the summary covers the result");
    let sent = sitting.last_request().body["messages"].to_string();
    assert!(sent.contains("word for word.]") && sent.contains("look at x"), "{sent}");
    assert!(sent.contains("Look answers: saw x"), "{sent}");
    assert_eq!(result.num_turns, 2);
    sitting.check_resumed_session().await;
}

#[tokio::test]
async fn a_prompt_that_is_too_long_is_asked_again_after_a_compaction() {
    let too_long = Status::new(400).message("prompt is too long: 9 tokens > 8 maximum");
    let script = Script::new()
        .rule(asks_for_summary(), reply().text("Short."))
        .rule(when().prompt_contains("third"), filling("Third answer.", 100))
        .rule(when().prompt_contains("second").turn(1), reply().status(too_long))
        .rule(when().prompt_contains("second"), filling("Second answer.", 100))
        .rule(when().prompt_contains("first"), filling("Noted.", 20));
    let mut sitting = Sitting::new(script).await;
    sitting.prompt("first").await;
    let (result, story) = sitting.prompt("second").await;
    assert_eq!((result.result.as_deref(), result.is_error), (Some("Second answer."), false));
    assert!(story.contains(&"boundary auto".to_owned()), "{story:?}");
    assert_eq!(sitting.requests().len(), 4);
    sitting.check_resumed_session().await;
}

#[tokio::test]
async fn a_result_that_is_too_long_is_shortened() {
    let too_long = || reply().status(Status::new(400).message("prompt is too long"));
    let script = Script::new()
        .rule(asks_for_summary().has_tool_result(true), too_long())
        .rule(asks_for_summary(), reply().text("Short."))
        .rule(when().prompt_contains("third"), filling("Third answer.", 100))
        .rule(when().prompt_contains(SUMMARY), filling("Done.", 100))
        .rule(when().has_tool_result(true), too_long())
        .rule(when(), reply().tool_use("Look", json!({"word": "it"})));
    let mut sitting =
        Sitting::with(script, |options| options.compaction = Compaction::default()).await;
    let (result, _) = sitting.prompt("look at it").await;
    assert_eq!(result.result.as_deref(), Some("Done."));
    // The call, the refusal, the request for a summary without the last round, the answer.
    assert_eq!(sitting.requests().len(), 4);
    let sent = sitting.last_request().body["messages"].to_string();
    assert!(sent.contains("Look answers: saw it"), "{sent}");
    sitting.check_resumed_session().await;
}

#[tokio::test]
async fn a_prompt_that_is_too_long_even_after_a_compaction_ends_the_turn() {
    let too_long = reply().status(Status::new(400).message("prompt is too long"));
    let script = Script::new()
        .rule(asks_for_summary(), reply().text("Short."))
        .rule(when().prompt_contains("third"), filling("Third answer.", 100))
        .rule(when().prompt_contains("second"), too_long)
        .rule(when().prompt_contains("first"), filling("Noted.", 20));
    let mut sitting = Sitting::new(script).await;
    sitting.prompt("first").await;
    let (result, _) = sitting.prompt("second").await;
    assert_eq!((result.result.as_deref(), result.is_error), (Some("Prompt is too long"), true));
    assert_eq!(sitting.boundaries().len(), 1, "once per turn");
    assert_eq!(sitting.requests().len(), 4);
    sitting.check_resumed_session().await;
}

#[tokio::test]
async fn the_summary_stays_when_the_api_refuses_the_request_after_it() {
    let look = reply().tool_use("Look", json!({"word": "x"})).usage(Usage::tokens(790, 10));
    let script = Script::new()
        .rule(asks_for_summary(), reply().text("It looked."))
        .rule(when().prompt_contains("third"), filling("Third answer.", 100))
        .rule(when().prompt_contains(SUMMARY), reply().status(Status::new(400).message("no")))
        .rule(when().turn(0), look);
    let mut sitting = Sitting::new(script).await;
    let (result, _) = sitting.prompt("look at x").await;
    assert!(result.is_error && sitting.boundaries().len() == 1);
    sitting.check_resumed_session().await;
}

#[tokio::test]
async fn a_first_prompt_that_is_too_long_has_nothing_to_compact() {
    let too_long = reply().status(Status::new(400).message("prompt is too long"));
    let mut sitting = Sitting::new(Script::new().rule(when(), too_long)).await;
    let (result, story) = sitting.prompt("first").await;
    assert_eq!(result.result.as_deref(), Some("Prompt is too long"));
    assert!(!story.contains(&STARTS.to_owned()), "{story:?}");
}

#[tokio::test]
async fn the_compact_command_sends_its_frames_in_the_order_that_hosts_know() {
    let mut sitting = Sitting::with_callback(script(reply().text("Short.")), "PreCompact").await;
    sitting.host.answer = Some(Ok(json!({})));
    sitting.prompt("first").await;
    let (result, story) = sitting.prompt("/compact keep it short").await;
    let expected = [
        STARTS,
        "control_request hook_callback",
        ENDS_WELL,
        "system init",
        "boundary manual",
        SUMMARY_FRAME,
        "user (Some(true), None): <local-command-stdout>Compacted",
        "result success: ",
    ];
    assert_eq!(story, expected);
    assert_eq!((result.num_turns, result.is_error), (0, false));
    assert_eq!(result.local_command.as_deref(), Some("compact"));
    assert_eq!((result.usage.input_tokens, result.terminal_reason), (Some(0), None));
    let question = sitting.last_request().last_user_text();
    assert!(question.contains("keep it short"), "{question}");
    assert_eq!(sitting.boundaries()[0].compact_metadata.pre_tokens, 800);
    sitting.check_resumed_session().await;
}

#[tokio::test]
async fn hooks_run_before_and_after_a_compaction() {
    let ledger = tempfile::tempdir().unwrap();
    let note = json!([{"hooks": [{"type": "command",
        "command": format!("cat >> {}", ledger.path().join("all").display())}]}]);
    let hooks = json!({"PreCompact": note, "PostCompact": note, "SessionStart": note});
    let mut sitting =
        Sitting::with(script(reply().text("Short.")), |options| options.hooks = vec![hooks]).await;
    sitting.prompt("first").await;
    sitting.prompt("second").await;
    sitting.prompt("/compact").await;
    let text = std::fs::read_to_string(ledger.path().join("all")).unwrap();
    let entries: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let described: Vec<String> = entries
        .iter()
        .map(|entry| {
            let fields = ["trigger", "custom_instructions", "compact_summary", "source"];
            let fields = fields.map(|field| entry.get(field).map(Value::to_string));
            format!(
                "{} {}",
                entry["hook_event_name"],
                fields.map(|f| f.unwrap_or_default()).join(" ")
            )
        })
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ").replace('"', ""))
        .collect();
    let expected = [
        "SessionStart startup",
        "PreCompact auto null",
        "PostCompact auto Short.",
        "SessionStart compact",
        "PreCompact manual null",
        "PostCompact manual Short.",
        "SessionStart compact",
    ];
    assert_eq!(described, expected);
    assert!(entries[1].get("permission_mode").is_none());
}

#[tokio::test]
async fn a_hook_may_forbid_a_compaction() {
    let hooks = json!({"PreCompact": [{"hooks": [{"type": "command", "command": "echo 'not now' >&2; exit 2"}]}]});
    let mut sitting =
        Sitting::with(script(reply().text("Short.")), |options| options.hooks = vec![hooks]).await;
    sitting.prompt("first").await;
    let (result, story) = sitting.prompt("second").await;
    assert_eq!(result.result.as_deref(), Some("Second answer."));
    let expected = ["system init", STARTS, ENDS_BADLY, "system informational"];
    assert_eq!(story[..4], expected);
    assert_eq!(sitting.requests().len(), 2);
    let (result, story) = sitting.prompt("/compact").await;
    let words = "The conversation was not compacted: a hook does not want it: not now";
    assert_eq!((result.result.as_deref(), result.is_error), (Some(words), true));
    assert_eq!(story[..3], [STARTS, ENDS_BADLY, "system init"]);
    assert_eq!(sitting.requests().len(), 2);
    sitting.check_resumed_session().await;
}

#[tokio::test]
async fn hooks_add_instructions_for_the_summary_and_text_after_it() {
    let says = |words: &str| json!([{"hooks": [{"type": "command", "command": format!("printf '%s' '{words}'")}]}]);
    let context = json!({"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "it rains"}});
    let hooks = json!({"PreCompact": says("keep all names")});
    let mut after = says(&context.to_string());
    after[0]["matcher"] = json!("compact");
    let more = json!({"SessionStart": after,
        "PreCompact": says(r#"{"hookSpecificOutput":{"hookEventName":"PreCompact","additionalContext":"and numbers"}}"#)});
    let mut sitting = Sitting::with(script(reply().text("Short.")), |options| {
        options.hooks = vec![hooks, more];
    })
    .await;
    sitting.prompt("first").await;
    sitting.prompt("second").await;
    let question = sitting.requests()[1].last_user_text();
    assert!(question.contains("keep all names") && question.contains("and numbers"), "{question}");
    let blocks = sitting.last_request().messages()[0]["content"].clone();
    assert_eq!((&blocks[1]["text"], &blocks[2]["text"]), (&json!("it rains"), &json!("second")));
    sitting.check_resumed_session().await;
}

/// Checks that a failed summary leaves everything as it was.
async fn fails(summary: Reply, why: &str) {
    let mut sitting = Sitting::new(script(summary)).await;
    sitting.prompt("first").await;
    let (result, story) = sitting.prompt("second").await;
    assert_eq!(result.result.as_deref(), Some("Second answer."));
    let story: Vec<_> = story.iter().filter(|line| *line != "system api_retry").collect();
    assert_eq!(story[..4], ["system init", STARTS, ENDS_BADLY, "system informational"]);
    assert!(sitting.boundaries().is_empty());
    let sent = sitting.last_request().body["messages"].to_string();
    assert!(sent.contains("Noted.") && !sent.contains(QUESTION), "{sent}");
    let (result, _) = sitting.prompt("/compact").await;
    assert!(result.is_error && result.result.as_deref().unwrap().contains(why), "{result:?}");
    sitting.check_resumed_session().await;
}

#[tokio::test]
async fn a_summary_that_fails_loses_nothing() {
    fails(reply().status(Status::new(403).message("not you")), "not you").await;
    fails(reply().text("No.").stop_reason("refusal"), "declined").await;
    fails(reply().tool_use("Look", json!({"word": "x"})), "wrote no summary").await;
    fails(reply().text(" "), "wrote no summary").await;
}

#[tokio::test]
async fn a_failure_is_not_repeated_within_the_turn() {
    let look = |n: u64| {
        reply().tool_use("Look", json!({"word": n.to_string()})).usage(Usage::tokens(900, 10))
    };
    let script = Script::new()
        .rule(asks_for_summary(), reply().status(Status::new(403).message("no")))
        .rule(when().turn(0), look(0))
        .rule(when().turn(1), look(1))
        .rule(when().turn(2), look(2))
        .rule(when(), filling("Done.", 900));
    let mut sitting = Sitting::new(script).await;
    let n_questions = |sitting: &Sitting| {
        let asked = |request: &RecordedRequest| request.last_user_text().contains(QUESTION);
        sitting.requests().iter().filter(|request| asked(request)).count()
    };
    sitting.prompt("go").await;
    assert_eq!(n_questions(&sitting), 1);
    sitting.prompt("go on").await;
    assert_eq!(n_questions(&sitting), 2, "a new turn tries again");
}

#[tokio::test]
async fn a_context_that_is_full_again_at_once_is_not_compacted_at_every_call() {
    let look = reply().tool_use("Look", json!({"word": "x"})).usage(Usage::tokens(900, 10));
    let script = Script::new()
        .rule(asks_for_summary(), reply().text("Short."))
        .rule(when().turn(5), filling("Done.", 100))
        .rule(when(), look);
    let mut sitting = Sitting::new(script).await;
    sitting.prompt("go").await;
    assert_eq!(sitting.boundaries().len(), 1);
}

#[tokio::test]
async fn a_context_that_fills_up_again_is_compacted_again() {
    let mut sitting = Sitting::new(
        Script::new()
            .rule(asks_for_summary().any_text_contains("Summary 1"), reply().text("Summary 2"))
            .rule(asks_for_summary(), reply().text("Summary 1"))
            .rule(when().prompt_contains("third"), filling("Third answer.", 100))
            .rule(when(), filling("Long answer.", 800)),
    )
    .await;
    for prompt in ["one", "two", "three"] {
        let (result, _) = sitting.prompt(prompt).await;
        assert_eq!(result.result.as_deref(), Some("Long answer."));
    }
    assert_eq!(sitting.boundaries().len(), 2);
    let asked = sitting.last_request();
    assert_eq!(asked.messages().len(), 1);
    let text = asked.body["messages"].to_string();
    assert!(text.contains("Summary 2") && text.contains("three"), "{text}");
    assert_eq!(text.matches(SUMMARY).count(), 1, "the old summary is in the new one: {text}");
    sitting.check_resumed_session().await;
}

#[tokio::test]
async fn an_interruption_leaves_the_conversation_as_it_was() {
    let mut sitting = Sitting::new(script(reply().text("late").hold("never"))).await;
    sitting.prompt("first").await;
    // Automatic, before a model call.
    sitting.host.prompt("second").await;
    sitting.host.api.gate("never").reached().await;
    sitting.host.interrupt().await;
    let result = sitting.host.result().await;
    assert_eq!(result.subtype.as_str(), "error_during_execution");
    let statuses: Vec<_> = sitting
        .host
        .seen
        .iter()
        .map(frame_line)
        .filter(|line| line.starts_with("status"))
        .collect();
    assert_eq!(statuses, [STARTS, ENDS_BADLY]);
    // With the command.
    sitting.host.prompt("/compact").await;
    sitting.host.api.gate("never").reached_by(2).await;
    sitting.host.interrupt().await;
    let result = sitting.host.result().await;
    assert_eq!((result.subtype.as_str(), result.num_turns), ("error_during_execution", 0));
    assert!(sitting.boundaries().is_empty());
    sitting
        .host
        .api
        .wait_for("the engine to close the connection", |requests| requests[2].client_left())
        .await;
    let opened = sitting.open();
    assert_eq!(opened.conversation.len(), 3, "{:#?}", opened.conversation);
}

#[tokio::test]
async fn an_interruption_while_a_hook_runs_withdraws_its_request() {
    let mut sitting = Sitting::with_callback(script(reply().text("Short.")), "PreCompact").await;
    sitting.prompt("first").await;
    sitting.host.prompt("/compact").await;
    sitting.host.until("control_request hook_callback").await;
    sitting.host.interrupt().await;
    sitting.host.until("control_cancel_request").await;
    assert_eq!(sitting.host.result().await.subtype.as_str(), "error_during_execution");
    assert_eq!(sitting.requests().len(), 1);
}

#[tokio::test]
async fn an_empty_conversation_is_not_compacted() {
    let mut sitting = Sitting::new(Script::new()).await;
    let (result, story) = sitting.prompt("/compact").await;
    assert_eq!(result.result.as_deref(), Some("There is nothing to compact yet."));
    assert_eq!((story.len(), result.is_error), (2, false));
}

#[tokio::test]
async fn a_command_waits_for_the_running_turn_and_gets_its_own_turn() {
    let script = script(reply().text("Short.")).rule(when(), reply().text("x"));
    let mut sitting = Sitting::new(script).await;
    for prompt in ["first", "/compact", "second", "third"] {
        sitting.host.prompt(prompt).await;
    }
    let mut results = Vec::new();
    while results.len() < 3 {
        results.push(sitting.host.result().await.result.unwrap_or_default());
    }
    assert_eq!(results[..2], ["Noted.", ""]);
    let sent = sitting.last_request().body["messages"].to_string();
    assert!(
        sent.contains("second") && sent.contains("third") && !sent.contains("/compact"),
        "{sent}"
    );
}

#[tokio::test]
async fn with_automatic_compaction_disabled_only_the_command_compacts() {
    let mut sitting = Sitting::with(script(reply().text("Short.")), |options| {
        options.compaction.automatic = false;
    })
    .await;
    sitting.prompt("first").await;
    sitting.prompt("second").await;
    assert!(sitting.boundaries().is_empty());
    sitting.prompt("/compact").await;
    assert_eq!(sitting.boundaries().len(), 1);
}

#[tokio::test]
async fn the_context_of_a_resumed_session_is_estimated_before_the_first_response() {
    let long = "long ".repeat(2000);
    let script = Script::new()
        .rule(asks_for_summary(), reply().text("Short."))
        .rule(when().prompt_contains("second"), filling("Second answer.", 100))
        .rule(when().prompt_contains("first"), filling("Noted.", 20));
    let mut sitting = Sitting::new(script).await;
    sitting.prompt(&format!("first {long}")).await;
    let mut options = TestHost::options(&sitting.host.api);
    options.opened = Some(sitting.open());
    options.compaction.window = Some(WINDOW);
    sitting.host.connection = ostler_engine::session::start(options).unwrap();
    sitting.prompt("second").await;
    assert_eq!(sitting.boundaries().len(), 1);
}

#[tokio::test]
async fn a_subagent_compacts_its_own_conversation() {
    let look = reply().tool_use("Look", json!({"word": "x"})).usage(Usage::tokens(900, 10));
    let script = Script::new()
        .rule(asks_for_summary(), reply().text("It looked."))
        .rule(when().prompt_contains(SUMMARY), filling("Report.", 100))
        .rule(when().prompt_contains("be thorough"), look)
        .rule(when().tool_result_of("Agent"), filling("Thanks.", 100))
        .rule(
            when().prompt_contains("delegate"),
            reply()
                .tool_use("Agent", json!({"description": "look", "prompt": "be thorough"}))
                .usage(Usage::tokens(90, 10)),
        )
        .rule(when().prompt_contains("third"), filling("Third answer.", 100));
    let mut sitting = Sitting::new(script).await;
    let (result, story) = sitting.prompt("delegate").await;
    assert_eq!(result.result.as_deref(), Some("Thanks."));
    assert!(story.iter().any(|line| line.starts_with("user: = Report.\n[agent")), "{story:#?}");
    // The host would take the frame for one of the main conversation.
    assert!(
        !story.iter().any(|line| line.starts_with("status") || line.starts_with("boundary")),
        "{story:#?}"
    );
    let config = sitting.folder.path().join("config");
    let files = std::process::Command::new("grep")
        .args(["-rl", "compact_boundary"])
        .arg(&config)
        .output()
        .unwrap();
    let files = String::from_utf8(files.stdout).unwrap();
    assert!(files.lines().count() == 1 && files.contains("/subagents/"), "{files}");
    sitting.check_resumed_session().await;
}

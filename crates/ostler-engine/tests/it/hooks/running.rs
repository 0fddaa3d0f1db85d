//! How hooks of settings files run: directory, input, timeout, parallel runs, and the frames for the host.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use ostler_proto::frame::ToHost;
use ostler_proto::message::System;
use ostler_testkit::{Script, reply, when};
use serde_json::{Value, json};

use super::{HookLog, calls, says, specific};
use crate::host::TestHost;

fn one(event: &str, hook: Value) -> Value {
    json!({event: [{"hooks": [hook]}]})
}

fn done() -> Script {
    Script::new().rule(when(), reply().text("Done."))
}

async fn session(script: Script, hooks: Value) -> TestHost {
    TestHost::with(script, |options| options.hooks = vec![hooks]).await
}

async fn result(host: &mut TestHost) -> String {
    host.prompt("go").await;
    host.result().await.result.unwrap_or_default()
}

/// The hook frames as `subtype name outcome exit-code output`.
fn shown(host: &TestHost) -> Vec<String> {
    // On a busy machine any hook may take long enough to show progress.
    all_shown(host).into_iter().filter(|line| !line.starts_with("progress")).collect()
}

fn all_shown(host: &TestHost) -> Vec<String> {
    let lines = host.seen.iter().filter_map(|frame| match frame {
        ToHost::System(System::HookStarted(hook)) => {
            assert!(!hook.hook_id.is_empty());
            Some(format!("started {} {}", hook.hook_name, hook.hook_event))
        }
        ToHost::System(System::HookProgress(hook)) => {
            Some(format!("progress {} {}", hook.hook_name, hook.output.trim()))
        }
        ToHost::System(System::HookResponse(hook)) => Some(format!(
            "response {} {} {:?} {:?} {:?}",
            hook.hook_name, hook.outcome, hook.exit_code, hook.stdout, hook.stderr
        )),
        _ => None,
    });
    lines.collect()
}

/// Observes all processes that a hook started, through a pipe that they hold open.
struct Tether(BufReader<File>);

impl Tether {
    /// A command that starts a child and waits for it for ever.
    fn command(pipe: &Path) -> String {
        format!("exec 9> {}; sleep 1000 & echo begun >&9; wait", pipe.display())
    }

    /// Waits until that command runs.
    async fn begun(pipe: PathBuf) -> Self {
        let open = move || {
            let mut pipe = BufReader::new(File::open(pipe).unwrap());
            let mut line = String::new();
            pipe.read_line(&mut line).unwrap();
            assert_eq!(line, "begun\n");
            Self(pipe)
        };
        tokio::task::spawn_blocking(open).await.unwrap()
    }

    /// Waits until the last process is gone.
    async fn gone(mut self) {
        let read = move || self.0.read_to_end(&mut Vec::new()).unwrap();
        tokio::task::spawn_blocking(read).await.unwrap();
    }
}

/// Lets a hook continue that reads from a pipe.
async fn release(pipe: PathBuf) {
    tokio::task::spawn_blocking(move || std::fs::write(pipe, "go\n")).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_command_runs_in_the_working_directory_and_knows_the_project() {
    let ledger = HookLog::new();
    let project = tempfile::tempdir().unwrap();
    let cwd = ledger.path("");
    let command = "pwd > where; echo \"$CLAUDE_PROJECT_DIR\" > project";
    let mut host = TestHost::with(done(), |options| {
        options.cwd = cwd.clone();
        options.folders.project = project.path().to_owned();
        options.hooks = vec![one("Stop", json!({"type": "command", "command": command}))];
    })
    .await;
    result(&mut host).await;
    let read = |name| std::fs::read_to_string(ledger.path(name)).unwrap().trim().to_owned();
    assert_eq!(Path::new(&read("where")).canonicalize().unwrap(), cwd.canonicalize().unwrap());
    assert_eq!(read("project"), project.path().display().to_string());
}

#[tokio::test]
async fn a_command_with_arguments_needs_no_shell() {
    let answer = json!({"decision": "block", "reason": "$HOME stays"}).to_string();
    let hook = json!({"type": "command", "command": "/bin/echo", "args": [answer]});
    let mut host = session(done(), one("UserPromptSubmit", hook)).await;
    assert_eq!(result(&mut host).await, "$HOME stays");
}

#[tokio::test]
async fn a_command_that_cannot_be_started_denies() {
    let hook = json!({"type": "command", "command": "/no/such/program", "args": []});
    let text = result(&mut session(calls("Look"), one("PreToolUse", hook)).await).await;
    assert!(text.contains("cannot start"), "{text}");
}

#[tokio::test]
async fn an_answer_that_is_too_long_denies() {
    let hook = json!({"type": "command",
        "command": "printf '{\"reason\":\"'; head -c 3000000 /dev/zero | tr '\\0' x; printf '\"}'"});
    let text = result(&mut session(calls("Look"), one("PreToolUse", hook)).await).await;
    assert!(text.contains("malformed"), "{}", &text[..200]);
}

#[tokio::test]
async fn on_failure_decides_what_an_unusual_exit_code_means() {
    for (on_failure, expected) in [
        (json!(null), "Done: saw it"),
        (json!("continue"), "Done: saw it"),
        (json!("block"), "exit status: 3"),
    ] {
        let hook = json!({"type": "command", "command": "exit 3", "onFailure": on_failure});
        let text = result(&mut session(calls("Look"), one("PreToolUse", hook)).await).await;
        assert!(text.contains(expected), "{on_failure}: {text}");
    }
}

#[tokio::test]
async fn on_failure_continue_lets_a_guard_time_out() {
    let hook = json!({"type": "command", "command": "sleep 1000", "timeout": 0.1, "onFailure": "continue"});
    let mut host = session(calls("Look"), one("PreToolUse", hook)).await;
    assert_eq!(result(&mut host).await, "Done: saw it");
    assert!(host.story().contains(&"system informational".to_owned()));
}

#[tokio::test]
async fn exit_code_2_changes_nothing_for_events_without_objections() {
    for event in ["SessionStart", "InstructionsLoaded", "SessionEnd"] {
        let hook = json!({"type": "command", "command": "echo no >&2; exit 2"});
        let mut host = session(done(), one(event, hook)).await;
        assert_eq!(result(&mut host).await, "Done.", "{event}");
    }
}

#[tokio::test]
async fn hooks_of_one_event_run_in_parallel() {
    let ledger = HookLog::new();
    let pipe = ledger.pipe("pipe");
    // Each waits for the other: one after the other they would never end.
    let command = |line: &str| json!({"type": "command", "command": line, "timeout": 60});
    let hooks = json!({"PreToolUse": [{"hooks": [
        command(&format!("echo now > {}", pipe.display())),
        command(&format!("read -r x < {}; test $x = now || exit 2", pipe.display())),
    ]}]});
    assert_eq!(result(&mut session(calls("Look"), hooks).await).await, "Done: saw it");
}

#[tokio::test]
async fn the_same_command_runs_once_however_many_files_name_it() {
    let ledger = HookLog::new();
    let hooks = one("Stop", json!({"type": "command", "command": ledger.note("stop")}));
    let mut host =
        TestHost::with(done(), |options| options.hooks = vec![hooks.clone(), hooks]).await;
    result(&mut host).await;
    assert_eq!(ledger.count("stop"), 1);
}

#[tokio::test]
async fn a_hook_with_once_runs_once_in_a_session() {
    let ledger = HookLog::new();
    let hook = json!({"type": "command", "command": ledger.note("stop"), "once": true});
    let mut host = session(done(), one("Stop", hook)).await;
    result(&mut host).await;
    result(&mut host).await;
    assert_eq!(ledger.count("stop"), 1);
}

#[tokio::test]
async fn a_hook_with_a_condition_runs_only_for_calls_that_fit_it() {
    for (rule, runs) in [("Look", true), ("Change", false)] {
        let ledger = HookLog::new();
        let hook = json!({"type": "command", "command": ledger.note("ran"), "if": rule});
        result(&mut session(calls("Look"), one("PreToolUse", hook.clone())).await).await;
        assert_eq!(ledger.has("ran"), runs, "{rule}");
        result(&mut session(done(), one("Stop", hook)).await).await;
        assert_eq!(
            ledger.count("ran"),
            usize::from(runs),
            "a condition on calls fits no other event"
        );
    }
}

#[tokio::test]
async fn a_condition_looks_into_shell_commands() {
    for (command, runs) in [
        ("git status", true),
        ("cd x && git push", true),
        ("ls", false),
        // A command that cannot be parsed may be anything.
        ("ls $(", true),
    ] {
        let ledger = HookLog::new();
        let hook = json!({"type": "command", "command": ledger.note("ran"), "if": "Bash(git *)"});
        let script = Script::new()
            .rule(when().turn(0), reply().tool_use("Bash", json!({"command": command})))
            .rule(when(), reply().text("Done."));
        let mut host = TestHost::with(script, |options| {
            options.tools.push(crate::tools::shell());
            options.hooks = vec![one("PreToolUse", hook)];
        })
        .await
        .answering(json!({"behavior": "deny", "message": "no"}));
        result(&mut host).await;
        assert_eq!(ledger.has("ran"), runs, "{command}");
    }
}

#[tokio::test]
async fn an_async_hook_is_not_waited_for_and_its_text_comes_with_the_next_prompt() {
    let ledger = HookLog::new();
    let gate = ledger.pipe("gate");
    let context = says(&specific("PostToolUse", json!({"additionalContext": "the tests fail"})));
    let command = format!("read -r x < {}; {context}", gate.display());
    let hook = json!({"type": "command", "command": command, "async": true});
    let mut host = session(calls("Look"), one("PostToolUse", hook)).await;
    assert_eq!(result(&mut host).await, "Done: saw it", "while the hook still waits");
    release(gate).await;
    check_next_prompt(&mut host, "the tests fail").await;
}

/// Sends prompts until the model has read a text that arrives in the background.
async fn check_next_prompt(host: &mut TestHost, words: &str) {
    for _ in 0..1000 {
        host.prompt("again").await;
        host.result().await;
        if host.api.requests().last().unwrap().transcript().contains(words) {
            return;
        }
    }
    panic!("the model never reads {words:?}");
}

#[tokio::test]
async fn a_command_that_prints_async_continues_in_the_background() {
    let ledger = HookLog::new();
    let gate = ledger.pipe("gate");
    let context = says(&specific("PreToolUse", json!({"additionalContext": "late news"})));
    let command = format!(
        "echo '{{\"async\":true,\"asyncTimeout\":600000}}'; read -r x < {0}; {context}",
        gate.display()
    );
    let hook = json!({"type": "command", "command": command});
    let mut host = session(calls("Look"), one("PreToolUse", hook)).await;
    assert_eq!(result(&mut host).await, "Done: saw it", "while the hook still waits");
    release(gate).await;
    check_next_prompt(&mut host, "late news").await;
}

#[tokio::test]
async fn a_hook_in_the_background_ends_with_the_session() {
    let ledger = HookLog::new();
    let pipe = ledger.pipe("child");
    let hook = json!({"type": "command", "command": Tether::command(&pipe), "async": true});
    let mut host = session(done(), one("Stop", hook)).await;
    result(&mut host).await;
    let tether = Tether::begun(pipe).await;
    host.close();
    while host.next().await.is_some() {}
    tether.gone().await;
}

#[tokio::test]
async fn a_timeout_ends_the_command_and_everything_it_started() {
    let ledger = HookLog::new();
    let pipe = ledger.pipe("child");
    let hook = json!({"type": "command", "command": Tether::command(&pipe), "timeout": 3});
    let mut host = session(calls("Look"), one("PreToolUse", hook)).await;
    host.prompt("go").await;
    let tether = Tether::begun(pipe).await;
    assert!(host.result().await.result.unwrap().contains("timeout"));
    tether.gone().await;
}

#[tokio::test]
async fn an_interruption_ends_the_command_and_everything_it_started() {
    for event in ["UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolBatch", "Stop"] {
        let ledger = HookLog::new();
        let pipe = ledger.pipe("child");
        let hook = json!({"type": "command", "command": Tether::command(&pipe)});
        let mut host = session(calls("Look"), one(event, hook)).await;
        host.prompt("go").await;
        let tether = Tether::begun(pipe).await;
        host.interrupt().await;
        let result = host.result().await;
        assert!(result.is_error, "{event}: {result:?}");
        tether.gone().await;
    }
}

#[tokio::test]
async fn a_prompt_whose_guard_was_interrupted_never_reaches_the_model() {
    let ledger = HookLog::new();
    let pipe = ledger.pipe("child");
    let hook = json!({"type": "command", "command": Tether::command(&pipe), "once": true});
    let mut host = session(done(), one("UserPromptSubmit", hook)).await;
    host.prompt("swordfish").await;
    Tether::begun(pipe).await;
    host.interrupt().await;
    host.result().await;
    result(&mut host).await;
    let requests = host.api.requests();
    assert_eq!(requests.len(), 1);
    assert!(!requests[0].transcript().contains("swordfish"));
}

async fn watched(hooks: Value, script: Script) -> TestHost {
    TestHost::with(script, |options| {
        options.hooks = vec![hooks];
        options.launch.output.hook_events = true;
    })
    .await
}

#[tokio::test]
async fn hook_frames_are_sent_for_commands_when_the_host_asked_for_them() {
    let command = |line: &str| json!([{"hooks": [{"type": "command", "command": line}]}]);
    let hooks = json!({
        "PreToolUse": command("true"),
        "PostToolUse": command("echo post >&2; exit 2"),
        "Stop": command("echo '{}'"),
    });
    let mut host = watched(hooks.clone(), calls("Look")).await;
    result(&mut host).await;
    assert_eq!(
        shown(&host),
        [
            "started PreToolUse:Look PreToolUse",
            r#"response PreToolUse:Look success Some(0) "" """#,
            "started PostToolUse:Look PostToolUse",
            r#"response PostToolUse:Look error Some(2) "" "post\n""#,
            "started Stop Stop",
            r#"response Stop success Some(0) "{}\n" """#,
        ]
    );
    let mut host = session(calls("Look"), hooks).await;
    result(&mut host).await;
    assert_eq!(shown(&host), Vec::<String>::new(), "without that they are not sent");
}

#[tokio::test]
async fn hook_frames_of_session_start_are_always_sent() {
    let hook = json!({"type": "command", "command": "echo start-context"});
    let mut host = session(done(), one("SessionStart", hook)).await;
    result(&mut host).await;
    assert_eq!(
        shown(&host),
        [
            "started SessionStart:startup SessionStart",
            r#"response SessionStart:startup success Some(0) "start-context\n" """#,
        ]
    );
    assert!(host.api.requests()[0].transcript().contains("start-context"));
}

#[tokio::test]
async fn hook_progress_shows_output_before_the_end() {
    let ledger = HookLog::new();
    let gate = ledger.pipe("gate");
    let command = format!("echo half; read -r x < {0}; echo whole", gate.display());
    let mut host =
        watched(one("Stop", json!({"type": "command", "command": command})), done()).await;
    host.prompt("go").await;
    host.until("system hook_progress").await;
    release(gate).await;
    host.result().await;
    assert_eq!(
        all_shown(&host)[1..],
        ["progress Stop half", r#"response Stop success Some(0) "half\nwhole\n" """#]
    );
}

#[tokio::test]
async fn hook_response_of_a_hook_that_was_stopped_says_cancelled() {
    let hook = json!({"type": "command", "command": "sleep 1000", "timeout": 0.1});
    let mut host = watched(one("PostToolUse", hook), calls("Look")).await;
    result(&mut host).await;
    assert_eq!(shown(&host)[1], r#"response PostToolUse:Look cancelled None "" """#);
}

// Mutant: `end_hooks` leaves the reports in the channel.
#[tokio::test]
async fn the_host_sees_how_hooks_in_the_background_ended_before_the_frames_end() {
    let ledger = HookLog::new();
    let (first, second) = (ledger.pipe("first"), ledger.pipe("second"));
    let hook = |pipe: &Path, is_async: bool| {
        let announce = if is_async { "" } else { "echo '{\"async\":true}'; " };
        let command = format!("{announce}{}", Tether::command(pipe));
        json!({"type": "command", "command": command, "async": is_async})
    };
    // One is in the background from the beginning, the other continues there.
    let hooks = json!({"Stop": [{"hooks": [hook(&first, true), hook(&second, false)]}]});
    let mut host = watched(hooks, done()).await;
    result(&mut host).await;
    let tethers = [Tether::begun(first).await, Tether::begun(second).await];
    host.close();
    while host.next().await.is_some() {}
    let mut shown = shown(&host);
    let ends = shown.split_off(2);
    assert_eq!(shown, ["started Stop Stop"; 2]);
    assert_eq!(ends.len(), 2, "{ends:?}");
    assert!(ends.iter().all(|end| end.starts_with("response Stop cancelled None")), "{ends:?}");
    for tether in tethers {
        tether.gone().await;
    }
}

// Mutant: the session's task ignores messages of hooks.
#[tokio::test]
async fn a_hook_in_the_background_that_fails_is_reported_to_the_user() {
    let hook = json!({"type": "command", "command": "echo broken >&2; exit 3", "async": true});
    let mut host = watched(one("Stop", hook), done()).await;
    result(&mut host).await;
    let ToHost::System(System::Informational(warning)) = host.until("system informational").await
    else {
        panic!("{:?}", host.story());
    };
    assert!(warning.content.contains("Stop hook failed"), "{warning:?}");
    let ended = shown(&host).into_iter().filter(|line| line.starts_with("response"));
    assert_eq!(ended.collect::<Vec<_>>(), [r#"response Stop error Some(3) "" "broken\n""#]);
}

#[tokio::test]
async fn suppress_output_keeps_the_output_out_of_hook_response() {
    let hook = json!({"type": "command", "command": says(&json!({"suppressOutput": true}))});
    let mut host = watched(one("Stop", hook), done()).await;
    result(&mut host).await;
    assert_eq!(shown(&host)[1], r#"response Stop success Some(0) "" """#);
}

#[tokio::test]
async fn callbacks_have_no_hook_frames() {
    let mut host = watched(json!({}), calls("Look")).await;
    super::register(&mut host, "PreToolUse", super::matcher(json!({}))).await;
    host.answer = Some(Ok(json!({})));
    result(&mut host).await;
    assert!(host.story().iter().any(|line| line.contains("hook_callback")));
    assert_eq!(shown(&host), Vec::<String>::new());
}

#[tokio::test]
async fn an_unsupported_kind_of_hook_is_reported_where_it_only_watches() {
    let mut host = session(done(), one("Stop", json!({"type": "agent", "prompt": "check"}))).await;
    assert_eq!(result(&mut host).await, "Done.");
    assert!(host.story().contains(&"system informational".to_owned()), "{:?}", host.story());
}

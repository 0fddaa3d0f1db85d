//! Commands that use too much: each ends with a result that names the limit and its setting.

use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::{Value, json};

use crate::run::Ostler;

/// The result of a command with these limits, as the model gets it. Every command here ends by itself within two minutes.
async fn result(command: &str, limits: Value) -> String {
    let bash = json!({"command": command, "description": "Try", "timeout": 60_000});
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Bash", bash))
        .rule(when(), reply().text("Done."));
    let api = ScriptedApi::start(script).await;
    let ostler = Ostler::new()
        .env("ANTHROPIC_BASE_URL", &api.base_url())
        .env("ANTHROPIC_API_KEY", "key")
        .env("IS_SANDBOX", "1");
    let settings = json!({"sandbox": {"enabled": true, "limits": limits}}).to_string();
    let mode = ["--permission-mode", "bypassPermissions", "--settings", &settings];
    let ran = ostler.run(&[&["-p", "Go"], &mode[..]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let body = api.requests().last().unwrap().body.to_string();
    body[body.rfind("tool_result").unwrap()..].to_owned()
}

/// Checks that a command ends with a reason of these parts, and that it ends otherwise with other limits.
async fn check(command: &str, limits: Value, enough: Value, parts: [&str; 2]) {
    let stopped = result(command, limits).await;
    assert!(stopped.contains("This ran in a sandbox"), "{stopped}");
    assert!(parts.iter().all(|part| stopped.contains(part)), "{stopped}");
    let whole = result(command, enough).await;
    assert!(whole.contains("all of it is there"), "{whole}");
}

// Mutant: a command that has all its processes is never ended.
#[tokio::test(flavor = "multi_thread")]
async fn a_fork_bomb_ends_with_a_result_that_names_the_limit() {
    let stopped = result("bomb() { bomb | bomb & bomb; }; bomb", json!({"processes": 60})).await;
    let expected = "60 processes and threads (sandbox.limits.processes), and this one was stopped";
    assert!(stopped.contains(expected), "{stopped}");
}

// Mutant: `Guard::started` does nothing.
#[tokio::test(flavor = "multi_thread")]
async fn many_processes_that_need_little_memory_each_end_with_a_result_that_names_the_limit() {
    let command = "for n in $(seq 12); do python3 -c \"import time; x = b'x' * (20 << 20); \
        time.sleep(2)\" & done; wait; echo all of it is there";
    let parts = ["together to 150 MiB of memory", "(sandbox.limits.memory)"];
    check(command, json!({"memory": 157_286_400}), json!({}), parts).await;
    let limits = json!({"session": {"memory": 157_286_400}});
    let stopped = result(command, limits).await;
    assert!(stopped.contains("(sandbox.limits.session.memory)"), "{stopped}");
}

// Mutant: `Guard::started` does nothing.
#[tokio::test(flavor = "multi_thread")]
async fn many_small_files_end_with_a_result_that_names_the_limit() {
    let command = "mkdir -p many; python3 -c \"
import time
for n in range(3000): open(f'many/{n}', 'w').write('x')
time.sleep(2)
\" && echo all of it is there";
    let parts = ["1000 more files on disk", "(sandbox.limits.session.files)"];
    check(command, json!({"session": {"files": 1000}}), json!({}), parts).await;
}

// Mutant: the reason is not told.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_in_the_background_that_uses_too_much_says_so_in_its_notification() {
    let bash = json!({"command": "python3 -c \"import time; x = [b'x' * (20 << 20) for _ in range(9)]; \
        y = [bytearray(x[0]) for _ in range(9)]; time.sleep(60)\"", "description": "Hold", "run_in_background": true});
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Bash", bash))
        .rule(when(), reply().text("Done."));
    let api = ScriptedApi::start(script).await;
    let ostler = Ostler::new()
        .env("ANTHROPIC_BASE_URL", &api.base_url())
        .env("ANTHROPIC_API_KEY", "key")
        .env("IS_SANDBOX", "1");
    let settings =
        json!({"sandbox": {"enabled": true, "limits": {"session": {"memory": 104_857_600}}}});
    let settings = settings.to_string();
    let flags = ["--permission-mode", "bypassPermissions", "--settings", &settings];
    let mut talk = crate::talk::Talk::with(&ostler, &flags);
    talk.say("Go", None);
    let notified = talk.until(|frame| frame["subtype"] == "task_notification");
    let text = notified.to_string();
    assert!(text.contains("(sandbox.limits.session.memory)"), "{text}");
    talk.end();
}

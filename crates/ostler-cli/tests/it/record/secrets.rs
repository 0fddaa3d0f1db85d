//! A recording contains no secrets, and other users cannot read it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::json;

use super::{online, replay, text};

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_contains_no_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("a.jsonl");
    let script = Script::new()
        .rule(
            when().turn(0),
            reply().text_pieces(["It is hun", "ter", "22222, I think."]).tool_use(
                "Bash",
                json!({"command": "echo $DEPLOY_PASSWORD; echo ghp_0123456789abcdefghij0123"}),
            ),
        )
        .rule(when().turn(1), reply().text("{{tool_result}}"));
    let api = ScriptedApi::start(script).await;
    let ran = online(&api)
        .env("DEPLOY_PASSWORD", "hunter22222")
        .env("ANTHROPIC_CUSTOM_HEADERS", "X-Auth-Token: hush-hush-hush")
        .args(&["--record", text(&tape), "--allowed-tools=Bash"])
        .run(&[
            "-p",
            "the key is sk-key-of-this-test, header hush-hush-hush, password hunter22222",
        ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("hunter22222"), "the run itself is not changed: {}", ran.stdout);
    let written = fs::read_to_string(&tape).unwrap();
    for secret in ["hunter", "hush-hush", "sk-key-of-this-test", "ghp_0123"] {
        assert!(!written.contains(secret), "{secret} is in {written}");
    }
    for name in ["<ostler:secret DEPLOY_PASSWORD>", "<ostler:secret ANTHROPIC_API_KEY>"] {
        assert!(written.contains(name), "{name} is not in {written}");
    }
    let mode = fs::metadata(&tape).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_names_no_folder_and_works_in_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("a.jsonl");
    let api = ScriptedApi::start(Script::new()).await;
    let ostler = online(&api);
    let file = ostler.folder.path().canonicalize().unwrap().join("README.md");
    api.append(
        Script::new()
            .rule(
                when().turn(0),
                reply().text("Looking.").tool_use("Read", json!({"file_path": text(&file)})),
            )
            .rule(when().turn(1), reply().text("In {{tool_result}}")),
    );
    let ran = ostler.args(&["--record", text(&tape)]).run(&["-p", "go"]);
    assert!(ran.stdout.contains("A readme"), "{}", ran.stderr);
    drop(api);
    let written = fs::read_to_string(&tape).unwrap();
    assert!(!written.contains(text(file.parent().unwrap())), "{written}");
    let replayed = replay(&tape, &["-p", "go"]);
    assert_eq!((replayed.code, &replayed.stdout), (Some(0), &ran.stdout), "{}", replayed.stderr);
}

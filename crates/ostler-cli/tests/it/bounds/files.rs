//! Files and folders that are not what they seem, and patterns that take forever.

use std::fs;
use std::process::Command;

use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::{Value, json};

use super::peak::measure;
use super::{at, prompt};
use crate::run::Ostler;

/// Has the model use a tool in a prepared folder, and returns the tool's result.
async fn attack(name: &str, tool: &str, input: Value, prepare: impl Fn(&Ostler)) -> String {
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use(tool, input))
        .rule(when(), reply().text("Result: {{tool_result}}"));
    let api = ScriptedApi::start(script).await;
    let ostler = at(&api.base_url());
    prepare(&ostler);
    let ran = tokio::task::block_in_place(|| measure(name, prompt(&ostler, &["-p", "go"])));
    assert_eq!(ran.code, Some(0), "{name}: {:.500} {:.500}", ran.stdout, ran.stderr);
    // The folder is nested too deep for the test's own clean-up.
    let _ = Command::new("rm").arg("-rf").arg(ostler.path("d")).status();
    ran.stdout
}

fn fifo(ostler: &Ostler) {
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let path = ostler.path("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_named_pipe_in_place_of_a_file() {
    let read = json!({"file_path": "pipe"});
    let result = attack("Read of a named pipe", "Read", read, fifo).await;
    assert!(result.contains("Result:"), "{result:.500}");
    let grep = json!({"pattern": "x", "output_mode": "content"});
    attack("Grep next to a named pipe", "Grep", grep, fifo).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sparse_file_of_50_gigabytes() {
    let sparse = |ostler: &Ostler| {
        fs::File::create(ostler.path("large.txt")).unwrap().set_len(50_000_000_000).unwrap();
    };
    let read = json!({"file_path": "large.txt"});
    let result = attack("Read of a sparse file of 50 GB", "Read", read, sparse).await;
    assert!(result.len() < 200_000, "{result:.500}");
    let grep = json!({"pattern": "needle", "output_mode": "content"});
    attack("Grep in a sparse file of 50 GB", "Grep", grep, sparse).await;
}

// Seen to fail without the limits of `matcher` in `Grep`: the third pattern takes minutes.
#[tokio::test(flavor = "multi_thread")]
async fn invalid_patterns_and_patterns_that_take_forever() {
    let text = |ostler: &Ostler| fs::write(ostler.path("a.txt"), "a".repeat(100_000)).unwrap();
    for pattern in [
        "(a+)+$",
        "(a|aa)+b",
        "((a{0,100}){0,100}){0,100}",
        "(",
        "[z-a]",
        "a{99999999}",
        "\\",
        "(?P<",
    ] {
        let input = json!({"pattern": pattern, "output_mode": "content", "multiline": true});
        let result = attack(&format!("Grep for {pattern}"), "Grep", input, text).await;
        assert!(result.len() < 200_000, "{pattern}: {result:.500}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_nested_folders() {
    let nested = |ostler: &Ostler| {
        use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
        // One step at a time: the whole path is longer than the kernel accepts.
        let mode = Mode::from_raw_mode(0o700);
        let mut folder = openat(CWD, ostler.folder.path(), OFlags::DIRECTORY, mode).unwrap();
        for _ in 0..3_000 {
            mkdirat(&folder, "d", mode).unwrap();
            folder = openat(&folder, "d", OFlags::DIRECTORY, mode).unwrap();
        }
    };
    let glob = json!({"pattern": "**/*.txt"});
    attack("Glob in 3,000 nested folders", "Glob", glob, nested).await;
    let grep = json!({"pattern": "x"});
    attack("Grep in 3,000 nested folders", "Grep", grep, nested).await;
}

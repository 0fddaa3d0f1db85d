//! Kills the program at random moments while it runs commands in the sandbox: nothing of them may stay.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::json;

use crate::run::Ostler;

/// How many times; `cargo xtask test --nightly` sets more.
const KILLS: &str = "OSTLER_SANDBOX_KILLS";
/// Part of every command, so that its processes can be found.
const MARK: &str = "mark-of-the-sandbox-kills";

/// The processes whose arguments contain the mark.
fn processes() -> Vec<String> {
    let all = fs::read_dir("/proc").unwrap().filter_map(Result::ok).map(|entry| entry.path());
    let has_mark = |path: &Path| {
        fs::read(path.join("cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).contains(MARK))
    };
    all.filter(|path| has_mark(path)).map(|path| path.display().to_string()).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn n_mounts() -> usize {
    fs::read_to_string("/proc/self/mountinfo").unwrap().lines().count()
}

// Mutants: the watchdog does not remove placeholders; bubblewrap without `--die-with-parent` and without the watchdog.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_program_leaves_no_process_no_mount_and_no_placeholder() {
    let kills: u64 = std::env::var(KILLS).map_or(10, |count| count.parse().unwrap());
    let command = json!({"command": format!("sleep 0.02 # {MARK}"), "description": "Wait"});
    let script = Script::new().rule(when(), reply().tool_use("Bash", command));
    let api = ScriptedApi::start(script).await;
    let ostler = Ostler::new()
        .env("ANTHROPIC_BASE_URL", &api.base_url())
        .env("ANTHROPIC_API_KEY", "key")
        .env("IS_SANDBOX", "1");
    fs::create_dir(ostler.path("no-home")).unwrap();
    let (before, mounts) = (names(ostler.folder.path()), n_mounts());
    let settings = r#"{"sandbox": {"enabled": true}}"#;
    let arguments = ["-p", "go", "--permission-mode", "bypassPermissions", "--settings", settings];
    let mut random: u64 = 0x2545_f491_4f6c_dd1d;
    let mut inside = 0;
    for kill in 0..kills {
        let mut child = ostler.spawn(&arguments);
        // It waits for the end of its input.
        drop(child.stdin.take());
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        tokio::time::sleep(Duration::from_millis(20 + random % 1_000)).await;
        inside += u64::from(!processes().is_empty());
        child.kill().unwrap();
        child.wait().unwrap();
        let limit = Instant::now() + Duration::from_secs(60);
        let is_clean = || {
            processes().is_empty() && names(ostler.folder.path()) == before && n_mounts() == mounts
        };
        while !is_clean() && Instant::now() < limit {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(names(ostler.folder.path()), before, "kill {kill}");
        assert_eq!(processes(), [""; 0], "kill {kill}");
        assert_eq!(n_mounts(), mounts, "kill {kill}");
    }
    println!("{kills} kills, {inside} of them while a command ran");
    assert!(inside > 0, "the test itself does not work");
}

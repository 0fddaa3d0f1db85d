//! However a program that uses the SDK ends, nothing that its agent started keeps running: neither the engine, nor its
//! commands, nor a process that a command moved out of its session with `setsid`.
//!
//! Each case runs a separate program: this test binary again, with a role.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use ostler::engine::Embedded;
use ostler::{Client, Options, PermissionMode};
use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::json;

use crate::abandoned::started;
use crate::backends::vendor_paths;
use crate::run::PROGRAM;

/// The role of the program that uses the SDK: `ENDING ENGINE`.
const ROLE: &str = "OSTLER_TEST_ENDING";
/// In the environment of every process that the engine starts.
const MARK: &str = crate::abandoned::MARK;
/// Far longer than any step takes.
const LIMIT: Duration = Duration::from_secs(60);

/// Ways to end, while a command of the agent runs.
const ENDINGS: &[&str] = &["drop", "exit", "panic", "runtime", "task", "kill"];

/// A command that does not end, and has moved a process out of its session.
const COMMAND: &str =
    "setsid tail -f /dev/null > /dev/null 2>&1 & echo there > there; tail -f /dev/null";

fn options(engine: &str) -> Options {
    let options = match engine {
        "embedded" => Options::new().transport(Embedded),
        path => Options::new().executable(path),
    };
    let folder = std::env::current_dir().unwrap();
    let mut options = options
        .model("claude-sonnet-4-5")
        .cwd(&folder)
        .permission_mode(PermissionMode::BypassPermissions)
        .env("HOME", folder.display().to_string())
        .env("IS_SANDBOX", "1")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .env("DISABLE_AUTOUPDATER", "1");
    options.permissions.allow_dangerously_skip_permissions = true;
    options
}

/// Has the agent run the command, and returns while it runs.
async fn busy_client(engine: &str) -> Client {
    let client = Client::connect(options(engine)).await.unwrap();
    client.send("go").await.unwrap();
    while !Path::new("there").exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    client
}

/// The program that uses the SDK.
#[test]
fn host() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let (ending, engine) = role.split_once(' ').unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let client = runtime.block_on(busy_client(engine));
    match ending {
        "drop" => {
            drop(client);
            std::process::exit(0);
        }
        "exit" => std::process::exit(0),
        "panic" => panic!("this program panics on purpose"),
        "runtime" => {
            drop(runtime);
            drop(client);
        }
        // The client lives in a task that is not awaited.
        "task" => {
            runtime.spawn(async move {
                let mut client = client;
                while client.next().await.is_some() {}
            });
        }
        "kill" => {
            std::fs::write("busy", "").unwrap();
            std::thread::sleep(LIMIT);
        }
        other => panic!("{other}"),
    }
}

struct Case {
    ending: &'static str,
    folder: tempfile::TempDir,
    mark: String,
    host: Child,
}

fn begin(ending: &'static str, engine: &str, api: &ScriptedApi) -> Case {
    let folder = tempfile::tempdir().unwrap();
    let mark = format!("{ending}-{}", folder.path().display());
    let mut host = Command::new(std::env::current_exe().unwrap());
    host.args(["--exact", "endings::host", "--nocapture"])
        .current_dir(folder.path())
        .env(ROLE, format!("{ending} {engine}"))
        .env(MARK, &mark)
        .env("ANTHROPIC_BASE_URL", api.base_url())
        .env("ANTHROPIC_API_KEY", "any")
        .stdout(std::fs::File::create(folder.path().join("output")).unwrap())
        .stderr(std::fs::File::create(folder.path().join("errors")).unwrap());
    Case { ending, mark, host: host.spawn().unwrap(), folder }
}

/// Waits until nothing is wrong; returns what is wrong if that takes too long.
fn until(mut wrong: impl FnMut() -> Option<String>) -> Result<(), String> {
    let begun = std::time::Instant::now();
    while let Some(text) = wrong() {
        if begun.elapsed() > LIMIT {
            return Err(text);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

impl Case {
    /// Checks that nothing is wrong after the program has ended.
    fn judge(mut self) -> Result<(), String> {
        let path = |name: &str| self.folder.path().join(name);
        if self.ending == "kill" {
            until(|| (!path("busy").exists()).then(|| "the client is never busy".to_owned()))?;
            self.host.kill().map_err(|error| error.to_string())?;
        }
        until(|| match self.host.try_wait() {
            Ok(Some(_)) => None,
            other => Some(format!("the program does not end: {other:?}")),
        })?;
        let errors = std::fs::read_to_string(path("errors")).unwrap_or_default();
        if !path("there").exists() {
            return Err(format!("the command never ran: {errors}"));
        }
        until(|| {
            let left = started(self.folder.path(), &self.mark);
            (!left.is_empty()).then(|| format!("left running: {left:?} {errors}"))
        })
    }
}

async fn nothing_is_left(engine: &str, at_once: usize) {
    let bash = json!({"command": COMMAND, "description": "Wait"});
    let script = Script::new()
        .rule(when().model("claude-haiku*"), reply().text("none"))
        .rule(when().turn(0), reply().tool_use("Bash", bash))
        // An engine whose command was ended first may ask the model once more before it ends.
        .rule(when().has_tool_result(true), reply().text("done"));
    let api = ScriptedApi::start(script).await;
    let mut problems = Vec::new();
    for endings in ENDINGS.chunks(at_once) {
        let cases: Vec<_> = endings.iter().map(|ending| begin(ending, engine, &api)).collect();
        let judged = tokio::task::spawn_blocking(|| {
            cases.into_iter().map(|case| (case.ending, case.judge())).collect::<Vec<_>>()
        });
        let judged = judged.await.unwrap().into_iter();
        problems.extend(judged.filter_map(|(ending, judged)| Some((ending, judged.err()?))));
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

// Mutants: `Group::drop` and the watchdog end the group alone; the watchdog is not started.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_an_embedded_engine() {
    nothing_is_left("embedded", 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_ostler_as_a_child_process() {
    nothing_is_left(PROGRAM, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm packages; run by cargo xtask test"]
async fn nothing_is_left_of_the_older_vendor_program() {
    nothing_is_left(&text(vendor_paths::older()), 2).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm packages; run by cargo xtask test"]
async fn nothing_is_left_of_the_newer_vendor_program() {
    nothing_is_left(&text(vendor_paths::newer()), 2).await;
}

fn text(path: PathBuf) -> String {
    path.into_os_string().into_string().unwrap()
}

//! Clients that are dropped or cancelled at any moment leave nothing behind: no process, no task, no memory.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use ostler::engine::Embedded;
use ostler::{CancellationToken, Client, ErrorKind, Options};
use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::json;

/// Far longer than any step takes.
const LIMIT: Duration = Duration::from_secs(300);
/// The variable with the number of clients; a thousand at night.
const ABANDONED: &str = "OSTLER_ABANDONED";
/// In the environment of every process that a test starts.
pub(crate) const MARK: &str = "OSTLER_TEST_ABANDONED";

fn script() -> Script {
    let sleeps = json!({"command": "sleep 600; true", "description": "Wait"});
    Script::new()
        .rule(when().prompt_contains("stall"), reply().text("never").stall(2))
        .rule(when().prompt_contains("tool").turn(0), reply().tool_use("Bash", sleeps))
        .rule(when().prompt_contains("hello"), reply().text("Hello."))
}

fn options(base: Options, api: &ScriptedApi, folder: &std::path::Path, mark: &str) -> Options {
    let folder = folder.display().to_string();
    base.model("claude-sonnet-4-5")
        .cwd(&folder)
        .allow(["Bash"])
        .env("ANTHROPIC_BASE_URL", api.base_url())
        .env("ANTHROPIC_API_KEY", "any")
        .env("HOME", folder)
        .env(MARK, mark)
}

/// Starts a client and drops it: at once, while it starts, during a response, during a tool, after a turn; or cancels
/// it during a response or a tool, and reads to the end.
async fn abandon(number: usize, options: Options) {
    if number.is_multiple_of(7) {
        // Polled once, then dropped.
        let mut connecting = std::pin::pin!(Client::connect(options));
        let _ = futures::poll!(connecting.as_mut());
        return;
    }
    let token = CancellationToken::new();
    let mut client = Client::connect(options.cancel_with(token.clone())).await.unwrap();
    match number % 7 {
        1 => {}
        2 => client.send("stall").await.unwrap(),
        3 => call_tool(&mut client).await,
        4 => {
            client.send("stall").await.unwrap();
            cancel(&token, &mut client).await;
        }
        5 => {
            call_tool(&mut client).await;
            cancel(&token, &mut client).await;
        }
        _ => drop(client.prompt("hello").await.unwrap()),
    }
}

/// Has the agent run a command that does not end.
async fn call_tool(client: &mut Client) {
    client.send("tool").await.unwrap();
    // Up to the call.
    for _ in 0..2 {
        client.next().await.unwrap().unwrap();
    }
}

/// Cancels the session. The last message reports it.
async fn cancel(token: &CancellationToken, client: &mut Client) {
    token.cancel();
    let mut last = None;
    while let Some(message) = client.next().await {
        last = message.err().map(|error| error.kind());
    }
    assert_eq!(last, Some(ErrorKind::Cancelled));
}

/// Abandons clients, several at a time.
async fn abandon_all(count: usize, base: &Options) {
    let abandoned = AtomicUsize::new(0);
    let clients = futures::stream::iter(0..count).for_each_concurrent(8, |number| {
        let (options, abandoned) = (base.clone(), &abandoned);
        async move {
            abandon(number, options).await;
            abandoned.fetch_add(1, Ordering::Relaxed);
        }
    });
    let ended = tokio::time::timeout(LIMIT, clients).await;
    assert!(ended.is_ok(), "stuck after {}", abandoned.load(Ordering::Relaxed));
}

/// Processes that were started here: children of this process, including ended ones that were not waited for, and those
/// that [`started`] lists.
fn started_or_children(folder: &std::path::Path, mark: &str) -> Vec<String> {
    let parent = format!("PPid:\t{}\n", std::process::id());
    let is_child = |pid: &String| {
        let process = std::path::Path::new("/proc").join(pid);
        let status = std::fs::read_to_string(process.join("status")).unwrap_or_default();
        let line = std::fs::read(process.join("cmdline")).unwrap_or_default();
        // The watchdog process runs as long as this process.
        let is_watchdog = String::from_utf8_lossy(&line).contains("ostler-watchdog");
        status.contains(&parent) && !is_watchdog
    };
    let children = processes().filter(is_child);
    children.chain(started(folder, mark)).collect()
}

/// Processes that work in a folder of the test or carry its mark, whatever their parent is by now.
pub(crate) fn started(folder: &std::path::Path, mark: &str) -> Vec<String> {
    let wanted = format!("{MARK}={mark}");
    let is_ours = |pid: &String| {
        let process = std::path::Path::new("/proc").join(pid);
        let environment = std::fs::read(process.join("environ")).unwrap_or_default();
        let cwd = std::fs::read_link(process.join("cwd")).unwrap_or_default();
        cwd.starts_with(folder)
            || environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    };
    processes().filter(is_ours).collect()
}

fn processes() -> impl Iterator<Item = String> {
    let names = std::fs::read_dir("/proc").unwrap();
    names.filter_map(|entry| entry.ok()?.file_name().into_string().ok())
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Waits until a condition holds.
async fn until(what: &str, mut holds: impl FnMut() -> Result<(), String>) {
    let mut last = String::new();
    let waited = tokio::time::timeout(LIMIT, async {
        while let Err(state) = holds() {
            last = state;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let waited = waited.await;
    assert!(waited.is_ok(), "{what}: {last}");
}

/// The API runs on its own thread, so that the tasks of a test's runtime are those of its clients.
struct Api {
    server: Option<ScriptedApi>,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Api {
    async fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let server = runtime.spawn(ScriptedApi::start(script())).await.unwrap();
        Self { server: Some(server), runtime: Some(runtime) }
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        drop(self.server.take());
        // A runtime must not be dropped where it would block another one.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn leaves_nothing(base: Options, mark: &str, count: usize) {
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let mut after_first = None;
    for _ in 0..5 {
        // A new API each time, because it records every request.
        let api = Api::start().await;
        let folder = tempfile::tempdir().unwrap();
        let base = options(base.clone(), api.server.as_ref().unwrap(), folder.path(), mark);
        abandon_all(count / 5, &base).await;
        until("everything ends", || match (tasks(), started_or_children(folder.path(), mark)) {
            (now, left) if now <= before && left.is_empty() => Ok(()),
            (now, left) => {
                // A child that ends while it is dropped is waited for when the next child ends.
                let _ = std::process::Command::new("true").status();
                Err(format!("{now} tasks, {before} before; processes {left:?}"))
            }
        })
        .await;
        drop(api);
        after_first.get_or_insert_with(resident_kib);
    }
    let growth = resident_kib().saturating_sub(after_first.unwrap());
    // A client that leaks has at least its buffers, some hundred KiB; the allocator's own growth does not depend on them.
    let most = (40 * count).max(16 * 1024) as u64;
    assert!(growth < most, "{growth} KiB more, limit {most}");
}

/// How many clients are abandoned. Each of the seven moments occurs often enough that a rare leak shows.
fn count() -> usize {
    let number = std::env::var(ABANDONED).ok().map(|number| number.parse().expect("a number"));
    number.unwrap_or(210)
}

/// Memory can only be measured in a process without other tests: runs the test in its own process. True inside of it.
fn is_alone(test: &str) -> bool {
    const ALONE: &str = "OSTLER_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut program = std::process::Command::new(std::env::current_exe().unwrap());
    let output = program.args(["--exact", test, "--nocapture"]).env(ALONE, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "{text}");
    false
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn abandoned_embedded_engines_leave_nothing() {
    if !is_alone("abandoned::abandoned_embedded_engines_leave_nothing") {
        return;
    }
    leaves_nothing(Options::new().transport(Embedded), "embedded", count()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn abandoned_child_processes_leave_nothing() {
    if !is_alone("abandoned::abandoned_child_processes_leave_nothing") {
        return;
    }
    leaves_nothing(Options::new().executable(env!("CARGO_BIN_EXE_ostler")), "child", count()).await;
}

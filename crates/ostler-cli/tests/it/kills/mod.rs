//! The whole server is killed again and again while users work with it: they send prompts, follow, answer and resume.
//! Everything that it acknowledged or sent must be true afterwards.

mod load;
mod print;
mod verdict;

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ostler_testkit::{Script, ScriptedApi, reply, when};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use self::load::World;
use crate::bounds::peak;

/// Far longer than any step takes.
const PATIENCE: Duration = Duration::from_secs(60);
/// A life without events ends after this.
const LONGEST_LIFE: Duration = Duration::from_secs(3);
/// In the environment of the server and of every process it starts.
const MARK: &str = "OSTLER_TEST_KILLS";
/// How often the server is killed; 25 times by default, 500 times in the nightly run.
const KILLS: &str = "OSTLER_KILLS";
/// How many users work at the same time, each in their own sessions.
const SLOTS: usize = 6;
/// The skill of the tasks. Its folder is copied for every run.
const SKILL: &str = "---\nname: greet\ndescription: Greets.\n---\nGreet politely.\n";

fn random(what: impl std::hash::Hash, below: u64) -> u64 {
    RandomState::new().hash_one(what) % below
}

/// Acts according to the prompt. After an interruption it repeats the interrupted call with the same arguments.
fn script() -> Script {
    let mut script = Script::new().rule(when().has_tool_result(true), reply().text("Done."));
    for slot in 0..SLOTS {
        let works =
            || reply().tool_use("Bash", json!({"command": format!("echo slot-{slot} >> ran")}));
        let of_slot = || when().any_text_contains(format!("slot-{slot} "));
        script = script
            .rule(of_slot().prompt_contains("work"), works())
            .rule(of_slot().prompt_contains("interrupted"), works());
    }
    let words = (0..20).map(|number| format!("word {number} "));
    // The shell does not wait for the second process, which becomes an orphan when its parent ends. The third one
    // leaves the group.
    let lingers = "sleep 600 & (sleep 601 &) ; (setsid sleep 602 &) ; wait";
    let lingers = json!({"command": lingers, "description": "Wait"});
    script
        .rule(when().prompt_contains("linger"), reply().tool_use("Bash", lingers))
        .rule(when(), reply().text_pieces(words))
}

/// The folders of the server, and what it is started with.
struct House {
    folder: TempDir,
    api: ScriptedApi,
    mark: String,
}

impl House {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["work", "temporary", "skills", "skills/greet"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        std::fs::write(folder.path().join("skills/greet/SKILL.md"), SKILL).unwrap();
        let mark = format!("{}-{}", std::process::id(), random("mark", u64::MAX));
        Self { folder, api: ScriptedApi::start(script()).await, mark }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts the server; every fifth time with engines as separate processes.
    fn start(&self, life: usize) -> Child {
        let program = env!("CARGO_BIN_EXE_ostler");
        let mut command = Command::new(program);
        command.args(["--model", "claude-sonnet-4-5", "serve", "--listen", "127.0.0.1:0"]);
        command.arg("--data").arg(self.path("data"));
        command.arg("--skills").arg(self.path("skills")).env("TMPDIR", self.path("temporary"));
        if life % 5 == 4 {
            command.args(["--engine", program]);
        }
        command.env("ANTHROPIC_BASE_URL", self.api.base_url()).env("ANTHROPIC_API_KEY", "key");
        command.env("HOME", self.folder.path()).env(MARK, &self.mark).env("IS_SANDBOX", "1");
        let log = File::options().create(true).append(true).open(self.path("log")).unwrap();
        command.current_dir(self.path("work")).stdin(Stdio::null()).stderr(log);
        command.stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap()
    }

    /// The address, once the server listens.
    async fn address(&self, server: &mut Child) -> String {
        let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
        let address = async {
            while let Some(line) = lines.next_line().await.unwrap() {
                if let Some(address) = line.strip_prefix("listening on ") {
                    return Some(address.to_owned());
                }
            }
            None
        };
        let address = tokio::time::timeout(PATIENCE, address).await.expect("it starts");
        address.unwrap_or_else(|| panic!("it did not start:\n{}", self.log()))
    }

    fn log(&self) -> String {
        let log = std::fs::read_to_string(self.path("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    /// Folders without a lock, which a kill left while they were created or removed, count as abandoned after a minute.
    fn age_folders(&self) {
        let long_ago = std::time::SystemTime::now() - Duration::from_secs(120);
        for path in entries(&self.path("temporary")) {
            File::open(path).unwrap().set_modified(long_ago).unwrap();
        }
    }

    /// The last server has removed its temporary folders, those of its runs, and those of all servers before it.
    async fn no_folder_is_left(&self) {
        let left =
            || [self.path("temporary"), self.path("data/runs")].map(|it| entries(&it)).concat();
        let gone = tokio::time::timeout(PATIENCE, async {
            while !left().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        let gone = gone.await.is_ok();
        assert!(gone, "these folders are left: {:#?}", left());
    }

    /// Waits until no process is left that the server started.
    async fn nothing_is_left(&self) {
        let mut left = Vec::new();
        let gone = tokio::time::timeout(PATIENCE, async {
            loop {
                left = marked(&self.mark);
                if left.is_empty() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        let gone = gone.await.is_ok();
        assert!(gone, "these have outlived the server: {left:#?}");
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Processes that carry the mark, with their command lines.
fn marked(mark: &str) -> Vec<String> {
    let wanted = format!("{MARK}={mark}");
    let entries = std::fs::read_dir("/proc").unwrap();
    let described = entries.filter_map(|entry| {
        let process = entry.ok()?.path();
        let environment = std::fs::read(process.join("environ")).ok()?;
        let is_ours =
            environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes());
        is_ours.then(|| {
            let command = std::fs::read(process.join("cmdline")).unwrap_or_default();
            format!("{}: {}", process.display(), String::from_utf8_lossy(&command))
        })
    });
    described.collect()
}

/// One life of the server, which ends with a kill: sometimes before it listens, sometimes in the middle of its work.
/// Returns the most memory that it used, in kilobytes.
async fn live(house: &House, world: &Arc<World>, life: usize) -> u64 {
    let mut server = house.start(life);
    let patience = random(("patience", life), 300);
    if patience >= 5 {
        let before = world.events();
        world.opened(house.address(&mut server).await, life);
        world.until_events(before + patience, LONGEST_LIFE).await;
    } else if patience >= 2 {
        world.opened(house.address(&mut server).await, life);
    }
    let peak = server.id().map_or(0, peak::current);
    server.start_kill().unwrap();
    server.wait().await.unwrap();
    world.closed();
    house.nothing_is_left().await;
    assert_eq!(world.troubles(), [""; 0], "in life {life}:\n{}", house.log());
    peak
}

/// A user answers all pending approvals, each once, and resumes all interrupted runs. Returns how many there were.
async fn settle_what_is_left(house: &House, world: &Arc<World>, life: usize) -> usize {
    house.age_folders();
    let mut server = house.start(life);
    world.opened(house.address(&mut server).await, life);
    let pending = world.pending().await.unwrap();
    for approval in &pending {
        let id = approval["id"].as_str().unwrap();
        assert_eq!(world.decide(id, false).await, Some(200), "{approval}");
        assert_eq!(world.decide(id, true).await, Some(409), "{approval}");
    }
    let resumed = load::resume_all(world).await;
    let pid = Pid::from_raw(i32::try_from(server.id().unwrap()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    let ended = tokio::time::timeout(PATIENCE, server.wait()).await.expect("it ends").unwrap();
    assert!(ended.success(), "{ended}:\n{}", house.log());
    house.nothing_is_left().await;
    house.no_folder_is_left().await;
    assert_eq!(world.troubles(), [""; 0]);
    resumed
}

fn kills() -> usize {
    std::env::var(KILLS).map_or(25, |text| text.parse().expect("OSTLER_KILLS is a number"))
}

// Seen to fail when events are sent before they are stored, when a recovered run is not marked, when a decision is
// stored without its audit, and without the watchdog of process groups.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_lose_nothing_that_the_server_acknowledged() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let house = House::new().await;
    let world = World::new(house.path("data/token"));
    let mut people = load::begin(&world);
    let (kills, begun) = (kills(), Instant::now());
    let mut peak = 0;
    for life in 0..kills {
        peak = peak.max(live(&house, &world, life).await);
    }
    people.shutdown().await;
    let resumed = settle_what_is_left(&house, &world, kills).await;
    let ran = std::fs::read_to_string(house.path("work/ran")).unwrap_or_default();
    let log = house.path("data/log");
    let summary = verdict::judge(&log, &world.known(), &ran).await;
    println!("{kills} kills: {summary}, {resumed} resumed at the end");
    let result = format!("{kills} kills, nothing lost; seconds of one");
    let each = begun.elapsed() / u32::try_from(kills).unwrap();
    peak::add_row("server: killed at work", &result, each, peak, peak::SERVER_LIMIT);
}

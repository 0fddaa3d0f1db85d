//! `ostler task` and `ostler schedule`: a real client, a real server, the offline model.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, ChildStdout};

use serde_json::Value;

use crate::run::{Ostler, Ran};
use crate::tmux::{Window, eventually};

const SKILL: &str = "---\nname: scribe\ndescription: Writes things down.\ninputs:\n  - name: count\n    type: number\n---\nDo as you are told.\n";

/// The server's token file, in the folder of the client.
const TOKEN: &str = "no-home/.local/share/ostler/token";

/// A server in the folder of a client, which finds it as a user would: by its address and the token file.
struct Served {
    client: Ostler,
    address: String,
    process: Child,
    /// Held open, so that the server can write to it.
    _said: BufReader<ChildStdout>,
}

impl Served {
    fn start() -> Self {
        let client = Ostler::new();
        fs::create_dir_all(client.path("skills/scribe")).unwrap();
        fs::write(client.path("skills/scribe/SKILL.md"), SKILL).unwrap();
        Self::with(client)
    }

    /// Kills the server, as a crash of the machine would, and starts another one.
    fn kill_and_start(mut self) -> Self {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        let folder = std::mem::replace(&mut self.client.folder, tempfile::tempdir().unwrap());
        Self::with(Ostler { folder, ..Ostler::new() })
    }

    fn with(mut client: Ostler) -> Self {
        let mut process = client.spawn(&["serve", "--listen", "127.0.0.1:0", "--skills", "skills"]);
        let mut said = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").expect(&line).to_owned();
        client.variables.push(("OSTLER_SERVER".to_owned(), address.clone()));
        Self { client, address, process, _said: said }
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        self.client.run(arguments)
    }

    /// Runs it and expects success.
    fn ok(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!(ran.code, Some(0), "{arguments:?}: {}{}", ran.stdout, ran.stderr);
        ran.stdout
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let text = self.ok(&[arguments, &["--json"]].concat());
        serde_json::from_str(&text).unwrap()
    }

    /// A list from the server's API.
    fn get(&self, path: &str) -> Vec<Value> {
        let token = fs::read_to_string(self.client.path(TOKEN)).unwrap();
        let url = format!("{}{path}", self.address);
        // A TLS provider must be installed, even if it is not used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let asking = async {
            let client = reqwest::Client::builder().no_proxy().build().unwrap();
            let answer = client.get(url).bearer_auth(token.trim()).send().await.unwrap();
            answer.json::<Value>().await.unwrap()
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(asking)["items"].as_array().unwrap().clone()
    }

    /// The id of the first pending approval, once there is one.
    fn pending(&self) -> String {
        let pending = || self.json(&["task", "pending"])["items"].as_array().unwrap().clone();
        eventually(|| !pending().is_empty(), || "a request".to_owned());
        pending()[0]["id"].as_str().unwrap().to_owned()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_skill_is_run_and_its_events_are_shown() {
    let served = Served::start();
    let ran = served.run(&["task", "run", "scribe", "read README.md", "--follow"]);
    ran.shows(&["task_", "• Read README.md", "# A readme", "completed"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let id = ran.stdout.lines().next().unwrap().to_owned();
    let listed = served.ok(&["task", "list"]);
    assert!(listed.contains(&id) && listed.contains("completed"), "{listed}");
    // The beginning of an id is enough.
    let shown = served.ok(&["task", "show", &id[..12]]);
    assert!(shown.contains("read README.md") && shown.contains("# A readme"), "{shown}");
    let log = served.ok(&["task", "log", &id]);
    assert!(log.contains("• Read README.md") && log.contains("completed"), "{log}");
    let again = served.run(&["task", "log", "--follow", "--json", &id]);
    let events: Vec<Value> =
        again.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.last().unwrap()["status"], "completed");
}

#[test]
fn an_approval_is_answered_from_another_terminal() {
    let served = Served::start();
    let start = |prompt: &str| served.client.spawn(&["task", "run", "scribe", prompt, "--follow"]);
    let follower = start("write \"hello\" to notes.txt");
    let id = served.pending();
    let listed = served.ok(&["task", "pending"]);
    assert!(listed.contains("Write") && listed.contains(&format!("task approve {id}")), "{listed}");
    let decided = served.json(&["task", "approve", &id]);
    assert_eq!((&decided["state"], &decided["answer"]["via"]), (&"allowed".into(), &"cli".into()));
    let ran = Ran::of(follower);
    assert!(ran.stdout.contains("• Write notes.txt"), "{}", ran.stdout);
    ran.shows(&["allow Write", &format!("task approve {id}"), "→ allowed", "completed"]);
    assert_eq!(ran.code, Some(0));
    assert_eq!(fs::read_to_string(served.client.path("notes.txt")).unwrap().trim_end(), "hello");
    // The first answer wins.
    let late = served.run(&["task", "deny", &id]);
    assert_eq!(late.code, Some(2));
    assert!(late.stderr.contains("answered already, by owner"), "{}", late.stderr);
}

#[test]
fn a_failed_run_sets_the_exit_code() {
    let served = Served::start();
    let follower =
        served.client.spawn(&["task", "run", "scribe", "write \"x\" to no.txt", "--follow"]);
    let id = served.pending();
    let said = served.ok(&["task", "deny", &id, "--note", "not here", "--stop"]);
    assert!(said.contains("denied, by owner (cli)"), "{said}");
    assert_eq!(Ran::of(follower).code, Some(1));
    assert!(!served.client.path("no.txt").exists());
}

#[test]
fn questions_are_answered_by_number_or_text() {
    let served = Served::start();
    let prompt = "ask me which colour I like: red, green or blue";
    let follower = served.client.spawn(&["task", "run", "scribe", prompt, "--follow"]);
    let id = served.pending();
    let refused = served.run(&["task", "approve", &id]);
    assert!(refused.stderr.contains("task answer"), "{}", refused.stderr);
    let refused = served.run(&["task", "answer", &id, "1", "2"]);
    assert!(refused.stderr.contains("1 answers are needed"), "{}", refused.stderr);
    let said = served.ok(&["task", "answer", &id, "2"]);
    assert!(said.contains("answered, by owner (cli)"), "{said}");
    let ran = Ran::of(follower);
    ran.shows(&["1. red", "2. green", "green"]);
    assert_eq!(ran.code, Some(0));
}

#[test]
fn at_a_terminal_the_follower_is_asked_for_approval() {
    let served = Served::start();
    let arguments = ["task", "run", "scribe", "write \"hello\" to notes.txt", "--follow"];
    let window = Window::open(&served.client, 100, &arguments);
    window.shows("n no, or n and a reason:");
    assert!(!served.client.path("notes.txt").exists(), "not before it is allowed");
    window.type_line("y");
    window.shows("[exit 0]");
    assert!(served.client.path("notes.txt").exists());
    let arguments = ["task", "run", "scribe", "write \"hello\" to other.txt", "--follow"];
    let window = Window::open(&served.client, 100, &arguments);
    window.shows("n no, or n and a reason:");
    // Another client may answer first.
    served.ok(&["task", "deny", &served.pending()]);
    window.shows("→ denied, by owner (cli)");
    window.shows("[exit 0]");
    assert!(!served.client.path("other.txt").exists());
}

#[test]
fn parameters_are_checked_by_the_server_and_its_errors_are_shown() {
    let served = Served::start();
    let ran = served.run(&["task", "run", "scribe", "hello", "--param", "count=seven"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("inputValues.count"), "{}", ran.stderr);
    served.ok(&["task", "run", "scribe", "hello", "--param", "count:=7"]);
    let ran = served.run(&["task", "run", "nobody", "hello"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("nobody"), "{}", ran.stderr);
    let ran = served.run(&["task", "show", "../users"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("is not a valid"), "{}", ran.stderr);
}

#[test]
fn schedules_are_added_run_and_deleted() {
    let served = Served::start();
    let made = served.ok(&[
        "schedule",
        "add",
        "mornings",
        "list the files",
        "--cron",
        "0 9 * * 1-5",
        "--zone",
        "Europe/Berlin",
    ]);
    assert!(made.contains("0 9 * * 1-5 Europe/Berlin") && made.contains("09:00:00 CE"), "{made}");
    let listed = served.json(&["schedule", "list"]);
    let id = listed["items"][0]["id"].as_str().unwrap();
    assert!(served.ok(&["schedule", "list"]).contains("mornings"));
    assert!(served.ok(&["schedule", "pause", id]).contains("paused"));
    assert!(served.ok(&["schedule", "resume", &id[..14]]).contains("active"));
    served.ok(&["schedule", "run", id]);
    let log = || served.ok(&["schedule", "log", id]);
    eventually(|| log().contains("completed"), log);
    assert!(log().contains("run_"), "{}", log());
    let skill = [
        "schedule", "add", "skilled", "hello", "--skill", "scribe", "--param", "count:=1",
        "--every", "1h",
    ];
    let made = served.ok(&skill);
    assert!(made.contains("task_") && made.contains("every 1h"), "{made}");
    served.ok(&["schedule", "remove", id]);
    assert_eq!(served.json(&["schedule", "list"])["items"].as_array().unwrap().len(), 1);
    for (arguments, expected) in [
        (&["schedule", "add", "x", "y", "--cron", "0 9 * *"][..], "such as `0 9 * * 1-5`"),
        (&["schedule", "add", "x", "y", "--every", "1s"], "shorter than"),
        (&["schedule", "add", "x", "y"], "--cron"),
        (&["schedule", "add", "x", "--every", "1h"], "PROMPT"),
        (&["schedule", "log", id], "no schedule"),
    ] {
        let ran = served.run(arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}", ran.stdout);
        assert!(ran.stderr.contains(expected), "{arguments:?}: {}", ran.stderr);
    }
}

/// The log of the first schedule, and the ids of the runs that it has started.
fn fired(served: &Served) -> (Vec<Value>, Vec<Value>) {
    let id = &served.json(&["schedule", "list"])["items"][0]["id"];
    let log = served.json(&["schedule", "log", id.as_str().unwrap()]);
    let entries = log["items"].as_array().unwrap().clone();
    let runs = entries.iter().map(|entry| entry["run"].clone()).collect();
    (entries, runs)
}

#[test]
fn a_planned_time_has_one_run_whenever_the_server_is_killed() {
    // Killed before the planned time; once it is stored; once it has a run; and several times as fast as it can be
    // started.
    for stage in ["", "id", "run", "again"] {
        let mut served = Served::start();
        let soon = std::time::SystemTime::now() + std::time::Duration::from_millis(1_500);
        let at = jiff::Timestamp::try_from(soon).unwrap().to_string();
        let prompt = "write \"x\" to made.txt";
        served.ok(&["schedule", "add", "soon", prompt, "--at", &at]);
        if ["id", "run"].contains(&stage) {
            let is_there = || fired(&served).0.first().is_some_and(|it| it[stage].is_string());
            eventually(is_there, || stage.to_owned());
        }
        served = served.kill_and_start();
        for _ in 0..if stage == "again" { 3 } else { 0 } {
            served = served.kill_and_start();
        }
        let has_run = || fired(&served).0.first().is_some_and(|it| it["run"].is_string());
        eventually(has_run, || format!("a run after {stage:?}"));
        let (entries, runs) = fired(&served);
        assert_eq!(entries.len(), 1, "{stage}: {entries:?}");
        // Every run asks once; an interrupted run does not begin a second time.
        let is_over = || fired(&served).0[0]["state"] != "due";
        eventually(is_over, || "a state".to_owned());
        served = served.kill_and_start();
        assert_eq!(fired(&served).1, runs, "{stage}");
        let sessions = served.get("/api/sessions");
        assert_eq!(sessions.len(), 1, "{stage}: {sessions:?}");
        let path = format!("/api/sessions/{}/runs", sessions[0]["id"].as_str().unwrap());
        assert_eq!(served.get(&path).len(), 1, "{stage}");
    }
}

// Seen to fail without the check of the file's mode, and with the token sent to any server.
#[test]
fn connection_errors_are_reported_with_a_fix() {
    let served = Served::start();
    let check = |client: &Ostler, arguments: &[&str], expected: &str| {
        let ran = client.run(arguments);
        assert_eq!(ran.code, Some(2), "{expected}: {}", ran.stdout);
        assert!(ran.stderr.contains(expected), "{expected}: {}", ran.stderr);
    };
    let list = ["task", "list"];
    // Nothing listens there.
    let nowhere = [&list[..], &["--server", "http://127.0.0.1:9"]].concat();
    check(&served.client, &nowhere, "start one with `ostler serve`");
    check(&served.client, &[&list[..], &["--server", "here"]].concat(), "is not a server address");
    check(&served.client, &["task"], "ostler task --help");
    // The token of this machine's server is not sent to another one.
    let elsewhere = [&list[..], &["--server", "http://ostler.invalid"]].concat();
    check(&served.client, &elsewhere, "needs a token: set OSTLER_TOKEN");
    let wrong = Ostler::new().env("OSTLER_TOKEN", "wrong").env("OSTLER_SERVER", &served.address);
    check(&wrong, &list, "not known");
    let tokenless = Ostler::new().env("OSTLER_SERVER", &served.address);
    check(&tokenless, &list, "there is no token in");
    let token = served.client.path(TOKEN);
    fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).unwrap();
    check(&served.client, &list, "others may read or change it");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(served.run(&list).code, Some(0));
}

#[test]
fn tasks_and_schedules_may_belong_to_a_space() {
    let served = Served::start();
    let ran = served.run(&["task", "run", "scribe", "hello", "--space", "nowhere"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("nowhere"), "{}", ran.stderr);
    let plan = ["schedule", "add", "x", "y", "--every", "1h", "--space", "nowhere"];
    let ran = served.run(&plan);
    assert!(ran.code == Some(2) && ran.stderr.contains("nowhere"), "{}", ran.stderr);
}

// Mutant: any of the fields left out of `tasks::body`, `schedules::add` or the answer of `task approve`.
#[test]
fn options_of_tasks_and_schedules_reach_the_server() {
    let served = Served::start();
    fs::create_dir(served.client.path("sub")).unwrap();
    let how = ["--mode", "plan", "--isolation", "partial", "--project", "sub"];
    served.ok(&[&["task", "run", "scribe", "list the files"], &how[..]].concat());
    let task = served.json(&["task", "list"])["items"][0].clone();
    assert_eq!((&task["permissionMode"], &task["isolation"]), (&"plan".into(), &"partial".into()));
    assert!(task["project"].as_str().unwrap().ends_with("/sub"), "{task}");
    let id = task["id"].as_str().unwrap();

    let add = |name: &str, more: &[&str]| {
        served.json(&[&["schedule", "add", name, "--every", "1d"], more].concat())
    };
    let checked = [
        "hello",
        "--catch-up",
        "latest",
        "--check",
        "/bin/true",
        "--tell",
        "--mode",
        "plan",
        "--project",
        "sub",
    ];
    let made = add("checked", &checked);
    assert_eq!(
        (&made["catchUp"], &made["check"]["tell"]),
        (&"latest".into(), &true.into()),
        "{made}"
    );
    assert_eq!(made["check"]["command"], serde_json::json!(["/bin/true"]));
    assert_eq!(made["start"]["setup"]["mode"], "plan", "{made}");
    assert!(made["start"]["setup"]["cwd"].as_str().unwrap().ends_with("/sub"), "{made}");
    assert_eq!(add("of a task", &["--task", id])["start"]["task"], id);
    add("of a skill", &["--skill", "scribe", "--isolation", "none"]);
    let tasks = served.json(&["task", "list"]);
    let is_none = |task: &Value| task["isolation"] == "none";
    assert!(tasks["items"].as_array().unwrap().iter().any(is_none), "{tasks}");
    let session = served.get("/api/sessions")[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(
        add("in a session", &["hello", "--session", &session])["start"]["session"],
        session.as_str()
    );
    // A task is already set up.
    let odd =
        served.run(&["schedule", "add", "x", "--every", "1d", "--task", id, "--mode", "plan"]);
    assert!(odd.code != Some(0) && odd.stderr.contains("--mode"), "{}", odd.stderr);

    let follower =
        served.client.spawn(&["task", "run", "scribe", "write \"hello\" to notes.txt", "--follow"]);
    let id = served.pending();
    let odd = served.run(&["task", "approve", &id, "--scope", "session", "--rule", "Nonsense"]);
    assert_ne!(odd.code, Some(0), "a rule that is not offered is refused");
    served.ok(&["task", "deny", &id]);
    Ran::of(follower);
    let elsewhere = served.client.path("no-token");
    fs::create_dir(&elsewhere).unwrap();
    for command in ["task", "schedule"] {
        let ran = served.run(&[command, "list", "--data", elsewhere.to_str().unwrap()]);
        assert!(ran.code != Some(0) && ran.stderr.contains("no-token"), "{}", ran.stderr);
    }
}

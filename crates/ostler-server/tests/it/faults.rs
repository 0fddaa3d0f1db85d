//! Writes fail for a while, in every state of a run. Afterwards nothing is lost or stuck, without a restart of the
//! server.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use futures::future::join_all;
use ostler_server::config::Config;
use ostler_store::{Error, Put, Store as _, StreamId};
use ostler_testkit::{Rule, Script, reply, when};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::desk::{Client, Desk, within};

/// Long enough for a busy machine to renew it in time, short enough to be lost in a test.
const LEASE: Duration = Duration::from_secs(3);
/// How long a fault lasts, in seconds. Longer than the lease unless set.
const FAULT_SECONDS: &str = "OSTLER_FAULT_SECONDS";
/// The folder of the real small disk, in a process that has one.
const SMALL_DISK: &str = "OSTLER_SMALL_DISK";
/// The stage to check, in a process of its own.
const STAGE: &str = "OSTLER_FAULT_STAGE";

fn fault_time() -> Duration {
    let seconds = std::env::var(FAULT_SECONDS).ok().map(|text| text.parse().unwrap());
    seconds.map_or(LEASE * 2, Duration::from_secs)
}

/// What a run does when the fault begins.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    Queued,
    Starting,
    Streaming,
    Tool,
    Waiting,
    Finishing,
    Cancelling,
}

const STAGES: [Stage; 7] = [
    Stage::Queued,
    Stage::Starting,
    Stage::Streaming,
    Stage::Tool,
    Stage::Waiting,
    Stage::Finishing,
    Stage::Cancelling,
];

/// The fault. The numbers are SQLite's error codes.
#[derive(Clone, Debug, PartialEq)]
enum Fault {
    Commits(i32),
    /// Every statement fails, also those that only read.
    Statements(i32),
    /// No file can grow: the process has a file size limit of 0 bytes.
    Files,
    LostLease,
    /// A file takes all the room on the disk.
    FullDisk(PathBuf),
}

const FULL: Fault = Fault::Commits(13);
const BUSY: Fault = Fault::Commits(5);
const SYNC_FAILS: Fault = Fault::Commits(1034);
const READ_FAILS: Fault = Fault::Statements(266);

impl Fault {
    async fn begin(&self, desk: &Desk, session: &str) {
        match self {
            Self::Commits(code) => desk.store().fail_commits(*code),
            Self::Statements(code) => desk.store().fail_statements(*code),
            Self::Files => limit_files(Some(0)),
            Self::LostLease => take_lease(desk, session).await,
            Self::FullDisk(file) => fill(file),
        }
    }

    fn end(&self, desk: &Desk) {
        match self {
            Self::Commits(_) => desk.store().fail_commits(0),
            Self::Statements(_) => desk.store().fail_statements(0),
            Self::Files => limit_files(None),
            Self::LostLease => {}
            Self::FullDisk(file) => std::fs::remove_file(file).unwrap(),
        }
    }
}

/// Takes the session's lease from its worker, as another server does when the lease has expired.
async fn take_lease(desk: &Desk, session: &str) {
    let stream = StreamId::new(session).unwrap();
    match desk.store().claim(&stream, "another server", LEASE).await {
        Err(Error::Held { by, .. }) => drop(desk.store().claim(&stream, &by, LEASE).await.unwrap()),
        free => desk.store().release(&free.unwrap()).await.unwrap(),
    }
}

/// Sets the file size limit of this process, in bytes.
fn limit_files(current: Option<u64>) {
    use rustix::process::{Resource, Rlimit, setrlimit};
    setrlimit(Resource::Fsize, Rlimit { current, maximum: None }).unwrap();
}

fn fill(file: &PathBuf) {
    let mut file = std::fs::File::create(file).unwrap();
    for size in [1 << 16, 1 << 10, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
}

fn script() -> Script {
    let touch = || reply().tool_use("Bash", json!({"command": "touch yes"}));
    let wait = json!({"command": "until [ -e go ]; do sleep 0.02; done"});
    // A resumed run repeats the interrupted step.
    let again = when().any_text_contains("case Waiting").prompt_contains("interrupted");
    let words = || (0..40).map(|number| format!("word {number} "));
    Script::new()
        .with(Rule::new(again, touch()).times(1))
        .rule(when().has_tool_result(true), reply().text("done"))
        .rule(when().prompt_contains("other"), reply().hold("other").text("done"))
        .rule(when().prompt_contains("case Queued"), reply().text("done"))
        .rule(when().prompt_contains("case Starting"), reply().hold("at").text("done"))
        .rule(when().prompt_contains("case Streaming"), reply().text_pieces(words()).gate(6, "at"))
        .rule(when().prompt_contains("case Tool"), reply().tool_use("Bash", wait))
        .rule(when().prompt_contains("case Waiting"), touch())
        .rule(when().prompt_contains("case Finishing"), reply().text_pieces(words()).gate(42, "at"))
        .rule(when().prompt_contains("case Cancelling"), reply().hold("at").text("done"))
        .rule(when(), reply().text("done"))
}

fn setup(config: &mut Config) {
    config.limits.lease = LEASE;
    config.limits.concurrent_runs = 1;
    config.limits.cancel_grace = Duration::from_millis(200);
    config.allow_bypass = true;
}

/// One case: a run that is brought to its stage, and its state after the fault.
struct Case {
    stage: Stage,
    fault: Fault,
    desk: Desk,
    client: Client,
    session: String,
    run: String,
    /// The id of the run's approval, in the stage with an approval.
    approval: Option<String>,
}

impl Case {
    async fn open(stage: Stage, fault: Fault) -> Self {
        let desk = Desk::with(script(), setup).await;
        let client = desk.client();
        if stage == Stage::Queued {
            let other = client.session().await;
            client.prompt(&other, "other").await;
            desk.api.gate("other").reached().await;
        }
        let mode = if stage == Stage::Tool { "bypassPermissions" } else { "default" };
        let made = client.post("/api/sessions", json!({"permissionMode": mode})).await;
        let session = made["id"].as_str().unwrap().to_owned();
        let run = client.prompt(&session, &format!("case {stage:?}")).await;
        let mut case = Self { stage, fault, desk, client, session, run, approval: None };
        case.reach().await;
        if stage == Stage::Waiting {
            let asked = case.client.pending().await;
            case.approval = asked["id"].as_str().map(str::to_owned);
        }
        case
    }

    async fn reach(&self) {
        match self.stage {
            Stage::Queued => drop(self.client.until(&self.run, "queued").await),
            Stage::Tool => self.log_has("tool_use").await,
            Stage::Waiting => {
                self.client.pending().await;
                self.client.until(&self.run, "waiting").await;
            }
            Stage::Cancelling => {
                within(self.desk.api.gate("at").reached()).await;
                // A write that fails before the cancel ends the run as interrupted, so the last one has to be stored.
                self.log_has("\"init\"").await;
            }
            _ => within(self.desk.api.gate("at").reached()).await,
        }
    }

    async fn log_has(&self, word: &str) {
        let path = format!("/api/sessions/{}/log?limit=500", self.session);
        self.client.watch(&path, word, |log| log.to_string().contains(word)).await;
    }

    /// What a user does during the fault. Returns whether it was refused and must be repeated.
    async fn act(&self) -> bool {
        self.desk.api.gate("other").release();
        match self.stage {
            Stage::Tool => std::fs::write(self.desk.workspace().join("go"), "").unwrap(),
            Stage::Waiting if self.fault != Fault::LostLease => {
                let (status, answer) = self.decide(self.approval.as_ref().unwrap()).await;
                assert!(
                    status.is_server_error(),
                    "an approval that is not stored must be refused: {status} {answer}"
                );
            }
            Stage::Waiting => {}
            Stage::Cancelling => return self.cancel().await.0.is_server_error(),
            _ => self.desk.api.gate("at").release(),
        }
        false
    }

    /// Sets the clock back, so that the run is too young for `sweep`, which repairs most things in the end.
    fn hide_from_sweep(&self) {
        let hour = Duration::from_secs(60 * 60).as_millis();
        let now = i64::try_from(self.desk.clock.now()).unwrap();
        self.desk.clock.set(now - i64::try_from(hour).unwrap());
    }

    /// The states of the run in the log.
    async fn states(&self) -> Vec<String> {
        let log = self.client.log(&self.session).await;
        let runs = log.iter().map(|event| &event["body"]["run"]);
        let states = runs.filter(|run| run["id"] == *self.run).map(|run| run["state"].as_str());
        states.flatten().map(str::to_owned).collect()
    }

    async fn decide(&self, id: &str) -> (StatusCode, Value) {
        let path = format!("/api/approvals/{id}/decision");
        self.client.ask(Method::POST, &path, Some(json!({"approved": true}))).await
    }

    async fn cancel(&self) -> (StatusCode, Value) {
        let path = format!("/api/runs/{}/cancel", self.run);
        self.client.ask(Method::POST, &path, None).await
    }

    async fn check(self) {
        let what = format!("{:?} × {:?}", self.stage, self.fault);
        self.fault.begin(&self.desk, &self.session).await;
        let is_refused = self.act().await;
        let time = fault_time();
        tokio::time::sleep(time).await;
        self.fault.end(&self.desk);
        self.until_writable().await;
        self.desk.api.gate("at").release();
        if self.stage == Stage::Waiting {
            let id = self.client.pending().await["id"].as_str().unwrap().to_owned();
            let (status, answer) = self.decide(&id).await;
            assert!(status.is_success(), "{what}: {status} {answer}");
        }
        if is_refused {
            let (status, answer) = self.cancel().await;
            assert!(status.is_success(), "{what}: {status} {answer}");
        }
        let over = self.until_over(&self.run).await;
        let state = over["state"].as_str().unwrap();
        match self.stage {
            Stage::Cancelling => assert_eq!(state, "cancelled", "{what}"),
            Stage::Queued => assert_eq!(state, "completed", "{what}"),
            _ if state == "interrupted" => self.resume(&what).await,
            _ => assert_eq!(state, "completed", "{what}: {over}"),
        }
        if self.stage == Stage::Waiting {
            assert!(
                self.desk.workspace().join("yes").exists(),
                "{what}: the approval was not applied"
            );
        }
        self.check_rest(&what).await;
        println!("{what}, {} s: {state}", time.as_secs());
    }

    /// Waits until the server has noticed that it can write again.
    async fn until_writable(&self) {
        let writes = async {
            while !self
                .client
                .ask(Method::POST, "/api/sessions", Some(json!({})))
                .await
                .0
                .is_success()
            {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        within(writes).await;
    }

    async fn until_over(&self, run: &str) -> Value {
        let is_over = |run: &Value| {
            ["completed", "failed", "cancelled", "interrupted"]
                .contains(&run["state"].as_str().unwrap())
        };
        self.client.watch(&format!("/api/runs/{run}"), "the end of a run", is_over).await
    }

    /// Resumes the run unless an answer has resumed it, and waits until all of it is done.
    async fn resume(&self, what: &str) {
        let path = format!("/api/runs/{}/resume", self.run);
        let (status, answer) = self.client.ask(Method::POST, &path, None).await;
        let is_resumed = status.is_success() || answer["error"]["code"] == "already_resumed";
        assert!(is_resumed, "{what}: {status} {answer}");
        let runs = self.client.get(&format!("/api/sessions/{}/runs", self.session)).await;
        let last = runs["items"].as_array().unwrap().last().unwrap()["id"].as_str().unwrap();
        let over = self.until_over(last).await;
        assert_eq!(over["state"], "completed", "{what}: {over}");
    }

    /// The session works as before, nothing is pending, and its log is complete.
    async fn check_rest(&self, what: &str) {
        let next = self.client.prompt(&self.session, "quick").await;
        self.client.until(&next, "completed").await;
        let pending = self.client.get("/api/approvals").await;
        assert_eq!(pending["items"], json!([]), "{what}");
        self.desk.store().verify(&StreamId::new(&*self.session).unwrap()).await.unwrap();
        let log = self.client.log(&self.session).await;
        let numbers: Vec<u64> = log.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
        // Deltas of complete messages are deleted together with their numbers; `verify` has checked the rest.
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{what}: {numbers:?}");
    }
}

async fn check_all(fault: Fault) {
    // On the heap: seven servers do not fit into a test's stack.
    let checking = STAGES.map(|stage| {
        let fault = fault.clone();
        Box::pin(async move { within(Case::open(stage, fault)).await.check().await })
    });
    join_all(checking).await;
}

// Mutants: `is_of_store` does not count a full disk; such a run fails instead of being interrupted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_loses_no_run_and_no_answer() {
    check_all(FULL).await;
}

// Mutant: `is_of_store` does not count a failed store.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_busy_for_a_while_loses_no_run_and_no_answer() {
    check_all(BUSY).await;
}

// Mutant: `Store::reopen` that does nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_whose_writes_fail_for_a_while_needs_no_restart() {
    check_all(SYNC_FAILS).await;
}

// Mutant: `is_of_store` does not count a failed store.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_cannot_be_read_for_a_while_loses_no_run_and_no_answer() {
    check_all(READ_FAILS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_lease_loses_no_run_and_no_answer() {
    check_all(Fault::LostLease).await;
}

// Mutants: `lease::take` that refuses a session because the store cannot write; `begin_later` that drops the run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_could_not_begin_begins_as_soon_as_the_store_can_write() {
    let case = within(Case::open(Stage::Queued, FULL)).await;
    case.hide_from_sweep();
    case.check().await;
}

// Mutants: `Ending::Abandoned` that notes nothing; `try_to_keep` that writes the state alone, as it did: that drops the text.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_lease_is_lost_is_interrupted_and_its_streamed_text_is_kept_and_marked() {
    let case = within(Case::open(Stage::Streaming, Fault::LostLease)).await;
    case.log_has("word 1 ").await;
    case.hide_from_sweep();
    take_lease(&case.desk, &case.session).await;
    case.log_has("interrupted").await;
    let over = case.client.until(&case.run, "interrupted").await;
    let why = over["outcome"]["error"]["message"].as_str().unwrap();
    assert!(why.contains("lost its lease"), "{why}");
    let log = case.client.log(&case.session).await;
    let cut_off = log.iter().find(|event| event["kind"] == "cut_off");
    let text = cut_off.map(|event| event["body"]["text"].as_str().unwrap());
    assert!(text.is_some_and(|text| text.starts_with("word 0 word 1 ")), "{text:?}: {log:#?}");
    case.desk.api.gate("at").release();
    case.resume("after a lost lease").await;
    case.check_rest("after a lost lease").await;
}

// Mutant: `sweep` that looks for no runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_no_server_works_on_is_interrupted() {
    // The session has a worker, or has none.
    for idle in [Duration::from_secs(60), Duration::from_millis(1)] {
        let setup = move |config: &mut Config| {
            setup(config);
            config.limits.idle = idle;
        };
        let desk = Desk::with(script(), setup).await;
        let client = desk.client();
        let session = client.session().await;
        let run = client.prompt(&session, "quick").await;
        client.until(&run, "completed").await;
        // As a server that has died leaves it.
        let mut record = desk.store().get("run", &run).await.unwrap().unwrap();
        record.body["state"] = json!("running");
        for field in ["ended", "outcome"] {
            record.body.as_object_mut().unwrap().remove(field);
        }
        desk.store().put(vec![Put::update(record)]).await.unwrap();
        desk.clock.advance(Duration::from_secs(60 * 60));
        client.until(&run, "interrupted").await;
        client.post(&format!("/api/runs/{run}/resume"), json!({})).await;
    }
}

/// Runs a test of this binary once for every stage, each in a process of its own that `start` makes. All at once: they
/// mostly wait.
fn in_processes(test: &str, start: impl Fn() -> Command) {
    let program = std::env::current_exe().unwrap();
    let started = STAGES.map(|stage| {
        let mut command = start();
        command.arg(&program).args(["--exact", test, "--nocapture", "--test-threads", "1"]);
        command.env(STAGE, format!("{stage:?}")).stdout(Stdio::piped()).stderr(Stdio::piped());
        (stage, command.spawn().unwrap())
    });
    for (stage, process) in started {
        let ended = process.wait_with_output().unwrap();
        let (said, errors) =
            (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
        println!("{said}");
        assert!(ended.status.success(), "{said}\n{errors}");
        let is_checked = said.contains("1 passed") && said.contains(&format!("{stage:?} × "));
        assert!(is_checked, "{stage:?}: {said}\n{errors}");
    }
}

/// The stage that this process is about, if it is one of [`in_processes`].
fn own_stage() -> Option<Stage> {
    let name = std::env::var(STAGE).ok()?;
    STAGES.into_iter().find(|stage| format!("{stage:?}") == name)
}

#[test]
fn a_real_full_disk_loses_no_run_and_no_answer() {
    let disk = tempfile::tempdir().unwrap();
    // For users other than root, a user namespace gives the right to mount.
    let flags = if rustix::process::geteuid().is_root() { "-m" } else { "-rm" };
    println!("on a tmpfs of 24 MB each, by unshare {flags}:");
    in_processes("faults::on_the_small_disk", || {
        let mount = r#"mount -t tmpfs -o size=24m small "$OSTLER_SMALL_DISK" && exec "$@""#;
        let mut unshare = Command::new("unshare");
        unshare.args([flags, "sh", "-c", mount, "sh"]);
        unshare.env(SMALL_DISK, disk.path()).env("TMPDIR", disk.path());
        unshare
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_the_small_disk() {
    // Run by `a_real_full_disk_loses_no_run_and_no_answer`, in a mount namespace of its own.
    let Some(disk) = std::env::var_os(SMALL_DISK).map(PathBuf::from) else { return };
    let stage = own_stage().expect("a process with a small disk has a stage");
    within(Case::open(stage, Fault::FullDisk(disk.join("filler")))).await.check().await;
}

// The limit applies to a whole process, so the test runs in its own. It starts with the signal of a refused write
// ignored, which a program inherits.
#[test]
fn a_file_size_limit_loses_no_run_and_no_answer() {
    in_processes("faults::with_limited_files", || {
        let mut shell = Command::new("sh");
        shell.args(["-c", r#"trap "" XFSZ; exec "$@""#, "sh"]);
        shell
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_limited_files() {
    // Run by `a_file_size_limit_loses_no_run_and_no_answer`.
    let Some(stage) = own_stage() else { return };
    within(Case::open(stage, Fault::Files)).await.check().await;
}

// Mutant: `cancel` that returns a run that was interrupted as it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelling_an_interrupted_run_withdraws_its_approvals() {
    let case = within(Case::open(Stage::Waiting, Fault::LostLease)).await;
    take_lease(&case.desk, &case.session).await;
    case.client.until(&case.run, "interrupted").await;
    let (status, cancelled) = case.cancel().await;
    assert_eq!((status.as_u16(), &cancelled["state"]), (202, &json!("cancelled")));
    assert_eq!(case.client.get("/api/approvals").await["items"], json!([]));
    case.check_rest("after a cancelled interruption").await;
}

/// Accepts a cancel that never reaches the worker of the session.
async fn accept(case: &Case) {
    let Case { session, run, .. } = case;
    let body = json!({"id": run, "owner": "owner", "session": session});
    let request = Put::new("cancelRequest", run.clone(), body).owner("owner");
    case.desk.store().put(vec![request]).await.unwrap();
}

// Mutant: `unless_cancelled` that does not look for requests: the run is interrupted first, and a client could resume it.
// `settle_end` looks again, for a request that is stored between that look and the write. No test stops the server in between,
// and `sweep` finds such a request too, so no test fails if `settle_end` does not look.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_accepted_cancel_counts_although_the_lease_is_lost_before_the_worker_receives_it() {
    let case = within(Case::open(Stage::Starting, Fault::LostLease)).await;
    accept(&case).await;
    take_lease(&case.desk, &case.session).await;
    case.client.until(&case.run, "cancelled").await;
    case.log_has("\"cancelled\"").await;
    assert_eq!(case.states().await, ["queued", "running", "cancelled"], "it cannot be resumed");
    case.desk.api.gate("at").release();
    case.check_rest("after a cancel that the worker did not receive").await;
}

// As when the server that accepted it has died before it told the server of the session. Mutant: `sweep` without
// `settle_requests`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_that_was_accepted_when_the_run_was_interrupted_counts() {
    let case = within(Case::open(Stage::Starting, Fault::LostLease)).await;
    take_lease(&case.desk, &case.session).await;
    case.log_has("interrupted").await;
    accept(&case).await;
    case.client.until(&case.run, "cancelled").await;
    case.desk.api.gate("at").release();
    case.check_rest("after a cancel of an interrupted run").await;
}

/// Accepts a cancel and ends the server before it has an effect, as if it were killed at that moment.
async fn accept_and_end(case: &mut Case) {
    accept(case).await;
    case.desk.stop().await;
    case.desk.start().await;
    case.client = case.desk.client();
}

// Mutants: `mark_interrupted` that does not look for requests; `recover` without `settle_requests`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_cancel_was_accepted_is_cancelled_after_a_restart() {
    for stage in [Stage::Queued, Stage::Starting, Stage::Waiting] {
        let mut case = within(Case::open(stage, Fault::LostLease)).await;
        accept_and_end(&mut case).await;
        let over = case.until_over(&case.run).await;
        assert_eq!(over["state"], "cancelled", "{stage:?}: {over}");
        let left = case.desk.store().get("cancelRequest", &case.run).await.unwrap();
        assert_eq!(left, None, "{stage:?}");
        case.desk.api.gate("at").release();
        case.desk.api.gate("other").release();
        if stage != Stage::Queued {
            case.check_rest("after an accepted cancel").await;
        }
    }
}

// Mutants: `cancel` that drops the error of `request_cancel`; `as_it_is` that does not look for requests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_that_cannot_be_written_is_refused_but_stops_the_run() {
    let case = within(Case::open(Stage::Cancelling, FULL)).await;
    case.fault.begin(&case.desk, &case.session).await;
    let (status, answer) = case.cancel().await;
    // The error is another one if the run ends at the same moment.
    assert!(status.is_server_error(), "{status} {answer}");
    tokio::time::sleep(LEASE).await;
    case.fault.end(&case.desk);
    let over = case.until_over(&case.run).await;
    assert_eq!(over["state"], "cancelled", "{over}");
    case.desk.api.gate("at").release();
    case.check_rest("after a refused cancel").await;
}

//! Users at work: some send prompts and resume, some follow, some answer. All remember what the server acknowledged or
//! sent.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::StreamExt as _;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{PATIENCE, SLOTS, random};

/// How often to look whether all runs have ended: more than a minute in all.
const ROUNDS: usize = 5_000;
/// The pause between two polls.
const MOMENT: Duration = Duration::from_millis(15);
/// Prompts per session; later ones go to another session, so that conversations stay short.
const IN_ONE_SESSION: usize = 6;
/// How many users answer at the same time.
const APPROVERS: usize = 2;

/// What the server has sent to users.
#[derive(Clone, Default)]
pub(super) struct Known {
    /// By session and number: the event as received.
    pub(super) events: HashMap<String, BTreeMap<u64, String>>,
    /// Acknowledged runs, with their sessions.
    pub(super) runs: HashMap<String, String>,
    /// Acknowledged decisions.
    pub(super) decisions: HashMap<String, String>,
}

/// The server as users see it, and what they know.
pub(super) struct World {
    http: reqwest::Client,
    token: PathBuf,
    server: watch::Sender<Option<String>>,
    life: AtomicUsize,
    n_events: watch::Sender<u64>,
    known: Mutex<Known>,
    troubles: Mutex<Vec<String>>,
}

impl World {
    pub(super) fn new(token: PathBuf) -> Arc<Self> {
        Arc::new(Self {
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
            token,
            server: watch::channel(None).0,
            life: AtomicUsize::new(0),
            n_events: watch::channel(0).0,
            known: Mutex::default(),
            troubles: Mutex::default(),
        })
    }

    pub(super) fn opened(&self, address: String, life: usize) {
        self.life.store(life, Ordering::Relaxed);
        self.server.send_replace(Some(address));
    }

    pub(super) fn closed(&self) {
        self.server.send_replace(None);
    }

    pub(super) fn events(&self) -> u64 {
        *self.n_events.borrow()
    }

    pub(super) async fn until_events(&self, count: u64, longest: Duration) {
        let mut seen = self.n_events.subscribe();
        // A life in which all users wait for each other ends, too.
        let _ = tokio::time::timeout(longest, seen.wait_for(|seen| *seen >= count)).await;
    }

    pub(super) fn known(&self) -> Known {
        self.remember().clone()
    }

    pub(super) fn troubles(&self) -> Vec<String> {
        self.troubles.lock().unwrap().clone()
    }

    fn remember(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap()
    }

    fn trouble(&self, what: String) {
        self.troubles.lock().unwrap().push(what);
    }

    /// A request to the current server, or to the next one.
    async fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let mut server = self.server.subscribe();
        let base = server.wait_for(Option::is_some).await.unwrap().clone().unwrap_or_default();
        let token = std::fs::read_to_string(&self.token).unwrap();
        self.http.request(method, format!("{base}{path}")).bearer_auth(token.trim())
    }

    /// The answer to a request; `None` if the server was killed meanwhile.
    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Option<(u16, Value)> {
        let mut request = self.request(method.clone(), path).await;
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answered = async {
            let answer = request.send().await.ok()?;
            Some((answer.status().as_u16(), answer.text().await.ok()?))
        };
        let answered = tokio::time::timeout(PATIENCE, answered).await;
        let Ok(Some((status, text))) = answered else {
            tokio::time::sleep(MOMENT).await;
            return None;
        };
        if status >= 500 {
            self.trouble(format!("{method} {path}: {status} {text}"));
        }
        Some((status, serde_json::from_str(&text).unwrap_or_default()))
    }

    pub(super) async fn pending(&self) -> Option<Vec<Value>> {
        let (_, listed) = self.ask(Method::GET, "/api/approvals", None).await?;
        listed["items"].as_array().cloned()
    }

    /// Decides, and remembers the decision if it was acknowledged; returns the status.
    pub(super) async fn decide(&self, id: &str, approved: bool) -> Option<u16> {
        let path = format!("/api/approvals/{id}/decision");
        let said = json!({"approved": approved});
        let (status, answer) = self.ask(Method::POST, &path, Some(said)).await?;
        match status {
            200 => {
                let state = answer["state"].as_str().unwrap_or_default().to_owned();
                let wanted = if approved { "allowed" } else { "denied" };
                let other = self.remember().decisions.insert(id.to_owned(), state.clone());
                if state != wanted || other.is_some() {
                    self.trouble(format!("{id} was decided {other:?}, then {state}"));
                }
            }
            409 if answer["error"]["code"] == "already_answered" => {}
            _ => self.trouble(format!("{path}: {status} {answer}")),
        }
        Some(status)
    }

    /// Starts or resumes a run, and remembers it if it was acknowledged.
    async fn begin(&self, path: &str, body: Option<Value>) -> Option<String> {
        let (status, run) = self.ask(Method::POST, path, body).await?;
        // An approver has resumed it, or the answer to the first request was lost with the server.
        if status == 409 && run["error"]["code"] == "already_resumed" {
            return run["error"]["message"].as_str()?.rsplit(' ').next().map(str::to_owned);
        }
        if status != 202 {
            self.trouble(format!("{path}: {status} {run}"));
            return None;
        }
        let [id, session] = ["id", "session"].map(|name| run[name].as_str().unwrap().to_owned());
        self.remember().runs.insert(id.clone(), session);
        Some(id)
    }

    /// Remembers the run of a task.
    fn executed(&self, execution: &Value) -> String {
        let [run, session] =
            ["run", "session"].map(|name| execution[name].as_str().unwrap().to_owned());
        self.remember().runs.insert(run.clone(), session);
        run
    }

    /// The items of a list, page by page.
    async fn pages(&self, path: &str, next: impl Fn(&Value) -> Option<String>) -> Vec<Value> {
        let (mut items, mut after) = (Vec::new(), String::new());
        loop {
            let page = format!("{path}?limit=500{after}");
            let (status, list) = self.ask(Method::GET, &page, None).await.unwrap();
            assert_eq!(status, 200, "{page}: {list}");
            items.extend(list["items"].as_array().unwrap().iter().cloned());
            match next(&list) {
                Some(next) => after = format!("&after={next}"),
                None => return items,
            }
        }
    }

    /// All runs of all sessions.
    async fn runs(&self) -> Vec<Value> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let sessions = self.pages("/api/sessions", |list| text(&list["next"])).await;
        let mut runs = Vec::new();
        for session in &sessions {
            let path = format!("/api/sessions/{}/runs", session["id"].as_str().unwrap());
            // No session has more than one page of runs.
            runs.extend(self.pages(&path, |_| None).await);
        }
        runs
    }

    fn saw(&self, session: &str, seq: u64, text: &str) {
        let mut known = self.remember();
        let events = known.events.entry(session.to_owned()).or_default();
        match events.get(&seq) {
            None => {
                events.insert(seq, text.to_owned());
                self.n_events.send_modify(|count| *count += 1);
            }
            Some(before) if before == text => {}
            Some(before) => {
                let changed = format!("event {seq} of {session} was {before}, now {text}");
                drop(known);
                self.trouble(changed);
            }
        }
    }
}

/// Starts all users.
pub(super) fn begin(world: &Arc<World>) -> JoinSet<()> {
    let mut people = JoinSet::new();
    for slot in 0..SLOTS {
        people.spawn(work(Arc::clone(world), slot));
    }
    people.spawn(execute(Arc::clone(world)));
    for approver in 0..APPROVERS {
        people.spawn(approve(Arc::clone(world), approver));
    }
    people
}

/// Sends one prompt after the other, each after the end of the one before.
async fn work(world: Arc<World>, slot: usize) {
    // Followers end when the set is dropped.
    let mut followers = JoinSet::new();
    let mut followed = String::new();
    for number in 0.. {
        let key = format!("slot-{slot}-{}", number / IN_ONE_SESSION);
        let new = json!({"key": key});
        let Some((201, session)) = world.ask(Method::POST, "/api/sessions", Some(new)).await else {
            continue;
        };
        let session = session["id"].as_str().unwrap().to_owned();
        if session != followed {
            followers.shutdown().await;
            for resumes in [true, false] {
                followers.spawn(follow(Arc::clone(&world), session.clone(), resumes));
            }
            followed.clone_from(&session);
        }
        let verb = ["work", "work", "talk", "work", "linger"][random(number, 5) as usize];
        let prompt = json!({"prompt": format!("slot-{slot} {verb}")});
        let path = format!("/api/sessions/{session}/runs");
        let Some(run) = world.begin(&path, Some(prompt)).await else { continue };
        see_through(&world, run).await;
    }
}

/// Executes a skill as a task, again and again. A request whose answer was lost is repeated with the same key.
async fn execute(world: Arc<World>) {
    let task =
        json!({"name": "greet", "agentId": "greet", "taskType": "skill", "userPrompt": "linger"});
    let path = loop {
        if let Some((201, made)) = world.ask(Method::POST, "/api/tasks", Some(task.clone())).await {
            break format!("/api/tasks/{}/execute", made["id"].as_str().unwrap());
        }
    };
    for number in 0.. {
        let run = loop {
            let key = json!({"key": number.to_string()});
            match world.ask(Method::POST, &path, Some(key)).await {
                None => {}
                Some((202, task)) => break world.executed(&task["execution"]),
                Some((status, answer)) => {
                    return world.trouble(format!("{path}: {status} {answer}"));
                }
            }
        };
        see_through(&world, run).await;
    }
}

/// Resumes every interrupted run and waits for its end. Denies all approvals. Returns the number of runs.
pub(super) async fn resume_all(world: &World) -> usize {
    let mut seen = HashSet::new();
    // Each look finds fewer runs to wait for.
    for _ in 0..ROUNDS {
        let runs = world.runs().await;
        let mut is_over = true;
        for run in &runs {
            let id = run["id"].as_str().unwrap();
            match run["state"].as_str().unwrap() {
                "queued" | "running" | "waiting" => is_over = false,
                "interrupted" if seen.insert(id.to_owned()) => {
                    is_over = false;
                    let resumed = world.begin(&format!("/api/runs/{id}/resume"), None).await;
                    end(world, &resumed.expect("it can be resumed")).await;
                }
                _ => {}
            }
        }
        if is_over {
            return seen.len();
        }
        deny_all(world).await;
    }
    panic!("some runs do not end: {:?}", world.runs().await);
}

/// Waits for the end of a run. However many there are, each must end soon.
async fn end(world: &World, run: &str) {
    let ended = tokio::time::timeout(PATIENCE, end_of(world, run)).await;
    if ended.is_err() {
        let found = world.ask(Method::GET, &format!("/api/runs/{run}"), None).await;
        panic!("a resumed run does not end: {found:?}");
    }
}

async fn end_of(world: &World, run: &str) {
    loop {
        let (_, found) = world.ask(Method::GET, &format!("/api/runs/{run}"), None).await.unwrap();
        match found["state"].as_str().unwrap_or_default() {
            "queued" | "running" | "waiting" => deny_all(world).await,
            // A run of an earlier life that was itself interrupted is resumed separately.
            "completed" | "interrupted" => return,
            _ => return world.trouble(format!("the resumed run {found}")),
        }
    }
}

async fn deny_all(world: &World) {
    for approval in world.pending().await.unwrap_or_default() {
        world.decide(approval["id"].as_str().unwrap(), false).await;
    }
    tokio::time::sleep(MOMENT).await;
}

/// Waits for the end of a run. Resumes most of the runs that were interrupted.
async fn see_through(world: &World, mut run: String) {
    loop {
        match world.ask(Method::GET, &format!("/api/runs/{run}"), None).await {
            None => {}
            Some((200, found)) => match found["state"].as_str().unwrap_or_default() {
                "queued" | "running" | "waiting" => tokio::time::sleep(MOMENT).await,
                "interrupted" if random(&run, 3) > 0 => {
                    let resumed = world.begin(&format!("/api/runs/{run}/resume"), None).await;
                    run = resumed.unwrap_or(run);
                }
                _ => return,
            },
            Some((status, answer)) => {
                return world.trouble(format!("the run {run}: {status} {answer}"));
            }
        }
    }
}

/// Reads a session's events forever: each time from the beginning, or after the last one received.
async fn follow(world: Arc<World>, session: String, resumes: bool) {
    let mut last = 0;
    loop {
        if !resumes {
            last = 0;
        }
        let request = world.request(Method::GET, &format!("/api/sessions/{session}/events")).await;
        let request = request.header("last-event-id", last.to_string());
        match request.send().await {
            Ok(answer) if answer.status() == 200 => read(&world, &session, &mut last, answer).await,
            Ok(answer) => world.trouble(format!("following {session}: {}", answer.status())),
            Err(_) => tokio::time::sleep(MOMENT).await,
        }
    }
}

async fn read(world: &World, session: &str, last: &mut u64, answer: reqwest::Response) {
    let (mut pieces, mut bytes) = (answer.bytes_stream(), Vec::new());
    // An event that is cut off in the middle was not received.
    while let Some(Ok(piece)) = pieces.next().await {
        bytes.extend_from_slice(&piece);
        while let Some(end) = bytes.windows(2).position(|pair| pair == b"\n\n") {
            let event: Vec<u8> = bytes.drain(..end + 2).collect();
            let event = String::from_utf8(event).unwrap();
            let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
            let (Some(id), Some(data)) = (field("id: "), field("data: ")) else { continue };
            let seq: u64 = id.parse().unwrap();
            // Deltas of messages that are complete meanwhile are left out; `verdict` checks all the others.
            if seq <= *last {
                world.trouble(format!("{session}: event {seq} came after {last}"));
            }
            *last = seq;
            world.saw(session, seq, data);
        }
    }
}

/// Answers pending approvals, with yes or no; leaves some for a later life.
async fn approve(world: Arc<World>, approver: usize) {
    loop {
        for approval in world.pending().await.unwrap_or_default() {
            let id = approval["id"].as_str().unwrap();
            let life = world.life.load(Ordering::Relaxed);
            if !is_left(id, life) {
                world.decide(id, random((id, approver), 4) > 0).await;
            }
        }
        tokio::time::sleep(MOMENT).await;
    }
}

/// Whether an approval is not answered in this life; all users agree on that.
fn is_left(id: &str, life: usize) -> bool {
    let sum: usize = id.bytes().map(usize::from).sum();
    (sum + life).is_multiple_of(4)
}

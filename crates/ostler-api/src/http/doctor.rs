//! Checks what a server needs, and says what to do where something is wrong. For administrators.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Json;
use axum::extract::State;
use axum::routing::get;
use ostler_base::error::Fallible;
use ostler_core::app::App;
use ostler_core::checkup::{self, Finding};
use ostler_core::config::{EngineChoice, SandboxChoice};
use ostler_core::model::run::Session;
use ostler_core::records::{Kept as _, quarantine};
use ostler_core::runs::about::About;
use ostler_door::users::{Caller, Role};
use ostler_store::{Filter, Page, StreamId};
use rustix::fs::{Access, access};
use schemars::JsonSchema;
use serde::Serialize;

use super::openapi::{Api, Op};

/// With less free space than this, the event log may not fit.
const LITTLE: u64 = 1 << 30;
const TOO_LITTLE: u64 = 50 << 20;
/// How much the clocks of the store and of the machine may differ, in milliseconds.
const APART: u64 = 5_000;
/// How long the model's address may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many sessions are checked for the state of their MCP servers.
const SESSIONS: usize = 50;

pub(super) fn routes(api: Api) -> Api {
    let looks = "Checks what the server needs, and says what to do; for administrators";
    api.on(
        Op::get("/api/doctor", "doctor", looks).returns::<Checkup>(200, "The results"),
        get(look),
    )
}

/// The results of all checks.
#[derive(Serialize, JsonSchema)]
struct Checkup {
    checks: Vec<Check>,
}

/// The result of one check.
#[derive(Debug, Serialize, JsonSchema)]
struct Check {
    id: &'static str,
    title: &'static str,
    state: Health,
    /// What the check found.
    says: String,
    /// What the operator can do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "CheckState")]
enum Health {
    Ok,
    /// Works, but perhaps not as intended.
    Warn,
    Fail,
}

impl Check {
    fn ok(id: &'static str, title: &'static str, says: impl Into<String>) -> Self {
        Self { id, title, state: Health::Ok, says: says.into(), next: None }
    }

    fn found(id: &'static str, title: &'static str, finding: Finding) -> Self {
        let state = match finding.health {
            checkup::Health::Good => Health::Ok,
            checkup::Health::Odd => Health::Warn,
            checkup::Health::Bad => Health::Fail,
        };
        Self { id, title, state, says: finding.text, next: finding.fix }
    }

    fn warn(self, next: impl Into<String>) -> Self {
        Self { state: Health::Warn, next: Some(next.into()), ..self }
    }

    fn fail(self, next: impl Into<String>) -> Self {
        Self { state: Health::Fail, next: Some(next.into()), ..self }
    }
}

async fn look(State(app): State<App>, caller: Caller) -> Fallible<Json<Checkup>> {
    caller.require(Role::Admin)?;
    let mut checks = vec![data(&app.config.data), space(&app.config.data)];
    checks.extend(store(&app).await);
    checks.extend([unreadable(&app).await, checked(&app), backed_up(&app)]);
    checks.push(engine(&app));
    checks.extend(model(&app).await);
    let path = std::env::var("PATH").ok();
    checks.push(Check::found("shell", "Shell", checkup::shell()));
    checks.push(Check::found("git", "Git", checkup::git(path.as_deref())));
    checks.extend([skills(&app).await, servers(&app).await, exposure(&app)]);
    checks.extend([members(&app), leave(&app)]);
    Ok(Json(Checkup { checks }))
}

fn data(folder: &Path) -> Check {
    let shown = folder.display();
    match access(folder, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => Check::ok("data", "Data folder", format!("{shown} can be written")),
        Err(error) => {
            Check::ok("data", "Data folder", format!("{shown} cannot be written: {error}")).fail(
                "give the server's user write permission there, or use another folder with --data",
            )
        }
    }
}

fn space(folder: &Path) -> Check {
    let next =
        "free disk space; new data that does not fit is refused, and stored data is not lost";
    Check::found("space", "Disk space", checkup::room(folder, LITTLE, TOO_LITTLE, next))
}

/// Quarantined records.
async fn unreadable(app: &App) -> Check {
    let (id, title) = ("records", "Records");
    let next = "they are in the store as kind `quarantine`; report them, or restore a backup";
    match quarantine::found(app.store.as_ref()).await {
        Ok((0, _)) => Check::ok(id, title, "all can be read"),
        Ok((count, names)) => {
            let says =
                format!("{count} could not be read and were quarantined: {}", names.join(", "));
            Check::ok(id, title, says).warn(next)
        }
        Err(error) => Check::ok(id, title, error.to_string()).fail(next),
    }
}

/// The event log, and its clock compared with the machine's.
async fn store(app: &App) -> Vec<Check> {
    let intact = intact(app).await;
    // After the slow part, directly before the other clock is read.
    let now = app.store.now().await;
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let next =
        "stop the server, run `ostler check`, and restore a backup with `ostler restore FILE`";
    let store = match intact.and_then(|says| now.clone().map(|_| says)) {
        Ok(says) => Check::ok("store", "Event log", says),
        Err(error) => Check::ok("store", "Event log", error.to_string()).fail(next),
    };
    let apart = now.map(|now| u64::try_from(now.as_millis()).unwrap_or(0).abs_diff(wall as u64));
    let clock = match apart {
        Ok(apart @ ..APART) => format!("{apart} ms from the time of the event log"),
        Ok(apart) => format!("{} s from the time of the event log", apart / 1_000),
        Err(_) => "the event log has no time".to_owned(),
    };
    let check = Check::ok("clock", "Clock", clock);
    let is_off = apart.is_ok_and(|apart| apart >= APART);
    let next = "the clock was set back: schedules wait until it has caught up; use a time server";
    vec![store, if is_off { check.warn(next) } else { check }]
}

/// The result of the nightly check.
fn checked(app: &App) -> Check {
    let (id, title) = ("check", "Nightly check");
    let Some(found) = app.upkeep.last_check() else {
        return Check::ok(id, title, "not run since the server was started");
    };
    let day = ostler_core::clock::day(found.at);
    match found.damages.first() {
        None => Check::ok(id, title, format!("nothing was damaged on {day}")),
        Some(damage) => {
            let rest = found.damages.len() - 1;
            let says = format!("on {day}: {damage}, and {rest} more");
            Check::ok(id, title, says)
                .fail("stop the server and restore a backup: `ostler restore FILE`")
        }
    }
}

fn backed_up(app: &App) -> Check {
    let (id, title) = ("backup", "Backup");
    match (app.upkeep.last_backup(), &app.config.backups) {
        (Some(Ok(file)), _) => Check::ok(id, title, format!("the last is {}", file.display())),
        (Some(Err(why)), _) => Check::ok(id, title, why).fail(
            "make sure that the folder of --backups has free space and the server can write there",
        ),
        (None, Some(folder)) => {
            Check::ok(id, title, format!("every night in {}", folder.display()))
        }
        (None, None) => Check::ok(id, title, "no automatic backups")
            .warn("start with --backups DIR, or run `ostler backup FILE`"),
    }
}

/// Whether records can be read, and the log of the most recently active session is undamaged.
async fn intact(app: &App) -> Result<&'static str, ostler_store::Error> {
    let by = Some("place".to_owned());
    let newest = Page { limit: 1, descending: true, by, after: None };
    let found = app.store.list(Session::KIND, &Filter::default(), &newest).await?;
    let Some(newest) = found.first() else { return Ok("it can be read; there was no session yet") };
    let stream = StreamId::new(&newest.id)?;
    match tokio::time::timeout(PATIENCE, app.store.verify(&stream)).await {
        Ok(verified) => {
            verified.map(|()| "it can be read, and the last session is as it was written")
        }
        Err(_) => Ok("it can be read; the last session is too long to be checked here"),
    }
}

fn engine(app: &App) -> Check {
    let title = "Engine";
    let EngineChoice::Program(path) = &app.config.engine else {
        return Check::ok("engine", title, "built into this program");
    };
    let says = format!("the program {}", path.display());
    match access(path, Access::EXEC_OK) {
        Ok(()) => Check::ok("engine", title, says),
        // A plain name is searched when the engine starts.
        Err(_) if path.components().count() == 1 => Check::ok("engine", title, says),
        Err(error) => Check::ok("engine", title, format!("{says} cannot be run: {error}"))
            .fail("name an existing program with --engine"),
    }
}

/// The key, which is never shown, and whether the model answers.
async fn model(app: &App) -> Vec<Check> {
    let health = app.proxy.health().await;
    let named = app.config.model.as_deref();
    let is_offline = named == Some(ostler::engine::pick::OFFLINE);
    let next = "set ANTHROPIC_API_KEY, or name a file with --key-file, and start again";
    let key = match health.as_str() {
        "ok" => Check::ok("key", "Key for the model", "configured"),
        "no key" if is_offline => {
            Check::ok("key", "Key for the model", "not configured; the offline demo needs none")
        }
        "no key" => {
            Check::ok("key", "Key for the model", "not logged in: every prompt fails").fail(next)
        }
        why => Check::ok("key", "Key for the model", why).fail(next),
    };
    let title = "Model";
    let model = match (is_offline, named) {
        (true, _) => Check::ok("model", title, "the offline demo answers").warn(next),
        (false, name) => {
            let name = name.unwrap_or("the engine's own choice");
            match app.proxy.reaches(PATIENCE).await {
                Ok(base) => Check::ok("model", title, format!("{name}, at {base}, which answers")),
                Err(why) => Check::ok("model", title, format!("{name}; {why}")).fail(
                    "check that this machine can reach that address, or set ANTHROPIC_BASE_URL",
                ),
            }
        }
    };
    vec![key, model]
}

async fn skills(app: &App) -> Check {
    let listed = app.tasks.workshop.skills.list().await;
    let count = listed.skills.len();
    if listed.problems.is_empty() {
        return Check::ok("skills", "Skills", format!("{count} can be used"));
    }
    let says = format!("{count} can be used; {}", listed.problems.join("; "));
    Check::ok("skills", "Skills", says).warn("correct the files; they are read again for each run")
}

/// The MCP servers of the most recently active sessions, according to their engines.
async fn servers(app: &App) -> Check {
    let title = "MCP servers";
    let page =
        Page { limit: SESSIONS, descending: true, by: Some("place".to_owned()), after: None };
    let recent = app.store.list("session", &Filter::default(), &page).await.unwrap_or_default();
    let (mut good, mut bad) = (0_usize, Vec::new());
    for session in recent {
        let Ok(Some((about, _))) = app.sessions.records.find::<About>(&session.id).await else {
            continue;
        };
        for server in about.mcp_servers {
            match server.status.as_str() {
                "failed" | "needs-auth" => bad.push(format!("{} ({})", server.name, server.status)),
                _ => good += 1,
            }
        }
    }
    bad.sort();
    bad.dedup();
    match (good, bad.is_empty()) {
        (0, true) => Check::ok("mcp", title, "the last sessions had none"),
        (_, true) => Check::ok("mcp", title, "those of the last sessions work"),
        _ => Check::ok("mcp", title, format!("not working: {}", bad.join(", "))).warn(
            "see the setup of the session for the reason, and check the server's configuration",
        ),
    }
}

/// Who can reach the server.
fn exposure(app: &App) -> Check {
    let (title, listen) = ("Reach", app.config.listen);
    if listen.ip().is_loopback() {
        if let Some(url) = &app.public_url {
            let says = format!("this machine at {listen}, and {url} through a proxy");
            let check = Check::ok("exposure", title, says);
            return match url.scheme() {
                "https" => check,
                _ => check
                    .warn("use TLS in the proxy, and name its address with --public-url https://…"),
            };
        }
        let names = &app.config.hosts;
        let says = match names.is_empty() {
            true => format!("only this machine, at {listen}"),
            false => format!(
                "this machine at {listen}, and proxies that pass {} on to it",
                names.join(", ")
            ),
        };
        return Check::ok("exposure", title, says);
    }
    let says = format!("every machine that can reach {listen}, without TLS");
    Check::ok("exposure", title, says)
        .warn("listen on 127.0.0.1 behind a proxy with TLS, and name its address with --public-url https://…")
}

/// Who could read the owner's data.
fn members(app: &App) -> Check {
    let (title, count) = ("Users", app.guard.users.list().len());
    if count == 0 {
        return Check::ok("members", title, "only the owner");
    }
    if app.config.sandbox != SandboxChoice::Off {
        let says = format!("{count} in addition to the owner, whose agents run in a sandbox");
        return Check::ok("members", title, says);
    }
    let says = format!(
        "{count} in addition to the owner, each of whom can run programs as the server's own user (--trust-members)"
    );
    Check::ok("members", title, says)
        .warn("keep only users whom you trust with all data of the owner, or install bubblewrap for a sandbox")
}

/// What agents may do without approval.
fn leave(app: &App) -> Check {
    let config = &app.config;
    let mut wide = Vec::new();
    if config.allow_bypass {
        wide.push("sessions may use bypassPermissions (--allow-bypass)");
    }
    if config.trust_project_servers {
        wide.push("MCP servers that a project names are started");
    }
    if config.private_callbacks {
        wide.push("hooks may send results to addresses in this network");
    }
    match wide.is_empty() {
        true => Check::ok("permissions", "Permissions", "no additional permissions are enabled"),
        false => Check::ok("permissions", "Permissions", wide.join("; "))
            .warn("disable these options unless you trust all users with them"),
    }
}

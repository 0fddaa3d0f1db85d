//! Hostile commands and a hostile project over every interface of the server: each call needs approval or is denied, no
//! canary file appears, and no request to the model contains the secret.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ostler::PermissionMode;
use ostler_server::config::Config;
use ostler_testkit::{Rule, Script, hostile, reply, when};
use serde_json::json;
use tempfile::TempDir;

use crate::desk::{Client, Desk, within};
use crate::doors::{Socket, agui};
use crate::hooks::Call;

/// The interface over which a run begins.
#[derive(Clone, Copy, Debug)]
enum Door {
    Rest,
    Socket,
    AgUi,
    /// A schedule that starts a task.
    Schedule,
    Hook,
}

impl Door {
    /// Begins a run with a prompt in a new session. `number` differs for each run.
    async fn start(self, desk: &Desk, client: &Client, number: usize, prompt: &str) {
        let name = format!("n{number}");
        match self {
            Self::Rest => {
                client.prompt(&client.session().await, prompt).await;
            }
            Self::Socket => {
                let mut socket = Socket::open(client).await;
                socket.say(json!({"type": "prompt", "text": prompt})).await;
                socket.hear(&["accepted", "run_started", "permission_request"]).await;
            }
            Self::AgUi => {
                let said = json!([{"id": "u1", "role": "user", "content": prompt}]);
                let input = json!({"threadId": name, "runId": "r1", "messages": said, "tools": [], "context": []});
                agui(client, input).await;
            }
            Self::Schedule => {
                let task = json!({"name": name, "taskType": "agent", "userPrompt": prompt});
                let task = client.post("/api/tasks", task).await["id"].clone();
                let plan = json!({"name": name, "start": {"task": task}, "when": {"every": "1h"}});
                let made = client.post("/api/schedules", plan).await;
                let path = format!("/api/schedules/{}/run", made["id"].as_str().unwrap());
                client.post(&path, json!({})).await;
            }
            Self::Hook => {
                let hook = json!({"name": name, "start": {"prompt": prompt}});
                let made = client.post("/api/hooks", hook).await;
                let (status, answer) = Call::of(desk, &made).send(client).await;
                assert!(status < 300, "{answer}");
            }
        }
    }
}

/// How a call was decided.
#[derive(Debug, PartialEq)]
enum Outcome {
    /// A user was asked, and denied it.
    Asked,
    Denied,
    Ran,
}

/// Waits until the call with this number is decided. A pending approval is denied.
async fn outcome(desk: &Desk, client: &Client, command: &str, number: usize) -> Outcome {
    let mut asked = false;
    let looking = async {
        loop {
            match results(desk).get(number) {
                Some(false) => return Outcome::Ran,
                Some(true) if asked => return Outcome::Asked,
                Some(true) => return Outcome::Denied,
                None => {}
            }
            let pending = client.get("/api/approvals").await;
            if let Some(request) = pending["items"].as_array().unwrap().first() {
                assert_eq!(request["input"]["command"], command);
                let path = format!("/api/approvals/{}/decision", request["id"].as_str().unwrap());
                client.post(&path, json!({"approved": false})).await;
                asked = true;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    within(looking).await
}

/// For every request with a call's result, whether the result was an error.
fn results(desk: &Desk) -> Vec<bool> {
    let results = |request: &ostler_testkit::RecordedRequest| {
        request.tool_results().last().map(|result| result.is_error)
    };
    desk.api.requests().iter().filter_map(results).collect()
}

/// Has the agent try the commands one after the other in one run.
async fn attempt(door: Door, commands: Vec<String>, canary: &Path, change: fn(&mut Config)) {
    let script = commands.iter().fold(Script::new(), |script, command| {
        let call = reply().tool_use("Bash", json!({"command": command}));
        script.with(Rule::new(when(), call).times(1))
    });
    let desk = Desk::with(script.rule(when(), reply().text("done")), move |config| {
        config.limits.requests_per_second = 10_000;
        change(config);
    })
    .await;
    hostile::repositories(desk.workspace(), canary).unwrap();
    let client = desk.client();
    door.start(&desk, &client, 0, "go").await;
    for (number, command) in commands.iter().enumerate() {
        let outcome = outcome(&desk, &client, command, number).await;
        assert_ne!(outcome, Outcome::Ran, "{door:?}: {command}");
        assert!(!canary.exists(), "{door:?}: {command} left the canary, and is {outcome:?}");
    }
    ended(&client, 1).await;
}

fn canary() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let canary = folder.path().join("pwned");
    (folder, canary)
}

async fn free(door: Door) {
    let (_folder, canary) = canary();
    attempt(door, hostile::commands(&canary), &canary, |_| {}).await;
}

async fn denied(door: Door) {
    let (_folder, canary) = canary();
    let commands = hostile::denied(&canary).into_iter().map(|(_, command)| command).collect();
    attempt(door, commands, &canary, |config| {
        config.settings = Some(hostile::deny_settings());
        config.permission_mode = Some(PermissionMode::BypassPermissions);
        config.allow_bypass = true;
    })
    .await;
}

macro_rules! doors {
    ($($name:ident: $door:ident),*) => {$(
        mod $name {
            use super::{Door, denied, free, project};

            // Seen to fail with an engine that allows commands that require approval.
            #[tokio::test]
            async fn no_hostile_command_runs_without_approval() {
                free(Door::$door).await;
            }

            // Seen to fail with `options::of` that does not pass the operator's settings on.
            #[tokio::test]
            async fn no_spelling_of_a_denied_command_runs_in_bypass_mode() {
                denied(Door::$door).await;
            }

            // Seen to fail with `options::of` that has `setting_sources` of project and local; for tasks `SkillRun::apply` has
            // to keep them.
            #[tokio::test]
            async fn a_hostile_project_shows_and_starts_nothing() {
                project(Door::$door).await;
            }
        }
    )*};
}

doors!(rest: Rest, socket: Socket, agui: AgUi, schedule: Schedule, hook: Hook);

/// Waits until there are this many sessions, each with a finished run.
async fn ended(client: &Client, count: usize) {
    let sessions = client.watch("/api/sessions", "the session", |sessions| {
        sessions["items"].as_array().unwrap().len() == count
    });
    for session in sessions.await["items"].as_array().unwrap() {
        let path = format!("/api/sessions/{}/runs", session["id"].as_str().unwrap());
        client
            .watch(&path, "the run to end", |runs| runs["items"][0]["state"] == "completed")
            .await;
    }
}

/// Sends prompts in a hostile project, one of them with a call before which its hooks would run.
async fn project(door: Door) {
    let (outside, canary) = canary();
    let script = Script::new()
        .rule(when().has_tool_result(true), reply().text("done"))
        .rule(when().prompt_contains("look"), reply().tool_use("Bash", json!({"command": "ls"})))
        .rule(when(), reply().text("done"));
    let desk = Desk::open(script).await;
    hostile::project(desk.workspace(), outside.path(), &canary).unwrap();
    let client = desk.client();
    let prompts = ["look", "/e", "/leak", "hello @link.md"];
    for (number, prompt) in prompts.iter().enumerate() {
        door.start(&desk, &client, number, prompt).await;
        ended(&client, number + 1).await;
    }
    let requests = desk.api.requests();
    assert!(results(&desk) == [false], "the call ran, and the model received its result");
    for request in &requests {
        let body = request.body.to_string();
        assert!(!body.contains(hostile::SECRET), "{door:?}: {body}");
        assert!(!body.contains("CARGO_MANIFEST_DIR="), "{door:?}: the environment: {body}");
    }
    assert!(!canary.exists(), "{door:?}: the project started something");
}

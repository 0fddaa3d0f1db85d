//! Options of `ostler serve` that limit users and agents or decide whom to trust, and options of `ostler task approve`
//! that widen a rule: each is tested at a real server, with and without the option.

use std::time::Duration;

use ostler_testkit::{RawApi, RawPart, RawReply, Script, Usage, WAIT_LIMIT, reply, when};
use serde_json::{Value, json};

use crate::run::Ran;
use crate::serve_options::Served;
use crate::tmux::eventually;

/// The model runs one command or searches once, never answers, or sends a text that costs 2000 tokens.
fn script() -> Script {
    let touch = json!({"command": "touch made.txt", "description": "Make it"});
    Script::new()
        .rule(when().turn(0).prompt_contains("touch"), reply().tool_use("Bash", touch))
        .rule(
            when().turn(0).prompt_contains("search"),
            reply().tool_use("WebSearch", json!({"query": "horses"})),
        )
        .rule(when().prompt_contains("silence"), reply().hold("never").text("never"))
        .rule(when(), reply().text("Done.").usage(Usage::tokens(1_000, 1_000)))
}

async fn serve(arguments: &[&str]) -> Served {
    Served::scripted(script(), arguments).await
}

/// The status and the body of an answer.
async fn post(served: &Served, path: &str, body: Value) -> (u16, Value) {
    let request = served.http.post(format!("{}/api{path}", served.base)).json(&body);
    let answer = request.bearer_auth(&served.token).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

/// The status of an answer.
async fn get(served: &Served, path: &str) -> u16 {
    let request = served.http.get(format!("{}/api{path}", served.base));
    request.bearer_auth(&served.token).send().await.unwrap().status().as_u16()
}

async fn session(served: &Served, setup: Value) -> String {
    let (status, made) = post(served, "/sessions", setup).await;
    assert_eq!(status, 201, "{made}");
    made["id"].as_str().unwrap().to_owned()
}

/// A run in this session, once it is over or waits for approval.
async fn prompt(served: &Served, session: &str, prompt: &str) -> Value {
    let (_, run) =
        post(served, &format!("/sessions/{session}/runs"), json!({"prompt": prompt})).await;
    let path = format!("/runs/{}", run["id"].as_str().unwrap_or_else(|| panic!("{run}")));
    served.settled(&path, "state").await;
    served.ask(&path, None).await
}

/// Fails unless a run failed with this text.
fn failed_with(run: &Value, said: &str) {
    let message = run["outcome"]["error"]["message"].as_str().unwrap_or_default();
    assert!(run["state"] == "failed" && message.contains(said), "{run}");
}

// Mutant: `config.models` is not set.
#[tokio::test(flavor = "multi_thread")]
async fn agents_use_only_models_that_serve_allows() {
    let (one, other) =
        (json!({"model": "claude-sonnet-4-5"}), json!({"model": "claude-haiku-4-5"}));
    let served = serve(&["--allow-model", "claude-sonnet-4-5"]).await;
    let allowed = session(&served, one).await;
    assert_eq!(prompt(&served, &allowed, "hello").await["state"], "completed");
    let refused = session(&served, other.clone()).await;
    failed_with(&prompt(&served, &refused, "hello").await, "--allow-model");
    assert!(served.api.requests().iter().all(|it| it.model() == "claude-sonnet-4-5"));
    let served = serve(&[]).await;
    let free = session(&served, other).await;
    assert_eq!(prompt(&served, &free, "hello").await["state"], "completed");
}

// Mutants: `limits.engine_tokens` or `limits.engine_usd` is not set.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_uses_no_more_than_the_limits_of_serve() {
    for limit in [&["--engine-tokens", "1500"][..], &["--engine-usd", "0.001"], &[]] {
        let served = serve(&[&["--model", "claude-sonnet-4-5"], limit].concat()).await;
        let session = session(&served, json!({})).await;
        assert_eq!(prompt(&served, &session, "hello").await["state"], "completed");
        let second = prompt(&served, &session, "more").await;
        match limit {
            [option, _] => failed_with(&second, option),
            _ => assert_eq!(second["state"], "completed", "without a limit"),
        }
    }
}

// Mutant: `limits.stale` stays as it is by default.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_model_never_answers_ends_as_stale() {
    let served = serve(&["--stale-timeout", "1s"]).await;
    let session = session(&served, json!({})).await;
    let run = prompt(&served, &session, "silence").await;
    assert_eq!(run["outcome"]["error"]["code"], "stale", "{run}");
}

// Mutants: `limits.sessions_per_user` or `limits.engines_per_user` is not set.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_and_agents_of_a_user_are_limited_by_serve() {
    let served = serve(&["--max-sessions-per-user", "1"]).await;
    session(&served, json!({})).await;
    let (status, refused) = post(&served, "/sessions", json!({})).await;
    assert_eq!(status, 429, "{refused}");

    let served = serve(&["--max-engines-per-user", "1"]).await;
    let (first, second) = (session(&served, json!({})).await, session(&served, json!({})).await);
    assert_eq!(prompt(&served, &first, "hello").await["state"], "completed");
    // The idle agent of the first session ends to make room for a prompt, but not for listing files.
    let files = |session: &str| format!("/sessions/{session}/files");
    assert_eq!(get(&served, &files(&second)).await, 429);
    assert_eq!(prompt(&served, &second, "hello").await["state"], "completed");
    assert_eq!(get(&served, &files(&first)).await, 429);
    assert_eq!(prompt(&served, &second, "hello").await["state"], "completed");
}

// Mutant: `config.trust_members` is not set, or always true.
#[tokio::test(flavor = "multi_thread")]
async fn users_are_added_only_where_serve_confines_or_trusts_members() {
    let ada = json!({"name": "ada", "role": "member"});
    let (status, refused) = post(&serve(&["--sandbox", "off"]).await, "/users", ada.clone()).await;
    assert!(status == 403 && refused.to_string().contains("--trust-members"), "{status} {refused}");
    for arguments in [&["--trust-members", "--sandbox", "off"][..], &["--sandbox", "required"]] {
        let (status, added) = post(&serve(arguments).await, "/users", ada.clone()).await;
        assert_eq!(status, 201, "{added}");
    }
}

/// Signs in with a code, as the page at this address does.
async fn enter(served: &Served, host: &str, code: &str) -> reqwest::Response {
    let request = served.http.post(format!("{}/api/auth/session", served.base));
    let request = request.header("host", host).header("origin", format!("https://{host}"));
    request.json(&json!({"code": code})).send().await.unwrap()
}

// Mutant: `config.public_url` is not set.
#[tokio::test(flavor = "multi_thread")]
async fn browsers_sign_in_at_the_public_url() {
    const HOST: &str = "agents.example.org";
    let url = format!("https://{HOST}");
    let mut served = serve(&["--show-code", "--public-url", &url]).await;
    let code = served.said("code for one browser, for five minutes: ");
    assert_eq!(served.said("or open "), format!("{url}/#code={code}"));
    assert_eq!(served.said("browsers reach it at "), url);
    assert!(!enter(&served, "other.example.org", &code).await.status().is_success());
    let entered = enter(&served, HOST, &code).await;
    assert_eq!(entered.status(), 200);
    let cookie = entered.headers()["set-cookie"].to_str().unwrap();
    assert!(cookie.ends_with("; Secure"), "{cookie}");

    let mut served = serve(&["--show-code"]).await;
    let code = served.said("code for one browser, for five minutes: ");
    assert_eq!(served.said("or open "), format!("{}/#code={code}", served.base));
    assert!(!enter(&served, HOST, &code).await.status().is_success(), "without the option");
}

/// The status for a caller with a wrong token whom a proxy saw at this address.
async fn with_wrong_token(served: &Served, address: &str) -> u16 {
    let request = served.http.get(format!("{}/api/sessions", served.base)).bearer_auth("wrong");
    request.header("x-forwarded-for", address).send().await.unwrap().status().as_u16()
}

// Mutant: `config.trust_forwarded_for` is not set, or always true.
#[tokio::test(flavor = "multi_thread")]
async fn the_forwarded_address_counts_only_if_serve_trusts_the_proxy() {
    for (arguments, elsewhere) in [(&["--trust-forwarded-for"][..], 401), (&[], 429)] {
        let served = serve(arguments).await;
        let mut statuses = Vec::new();
        for _ in 0..20 {
            statuses.push(with_wrong_token(&served, "192.0.2.1").await);
        }
        assert_eq!((statuses[0], statuses[19]), (401, 429), "{arguments:?}: {statuses:?}");
        assert_eq!(with_wrong_token(&served, "192.0.2.2").await, elsewhere, "{arguments:?}");
    }
}

// Mutant: `config.trust_cms` is not set, or always true.
#[tokio::test(flavor = "multi_thread")]
async fn the_allowed_tools_of_a_cms_skill_count_only_if_serve_trusts_the_cms() {
    let record = json!({"data": {"documentId": "keeper", "name": "keeper", "content": "Keep.",
        "allowedTools": "Bash(touch:*)"}});
    let answer = RawReply::json(vec![RawPart::once(record.to_string())]);
    let cms = RawApi::start(move |_, _| answer.clone()).await;
    let url = format!("{}/api/skills", cms.base_url());
    for (trust, state) in [(&["--trust-cms"][..], "completed"), (&[], "waiting")] {
        let served = serve(&[&["--cms", &url], trust].concat()).await;
        let task = json!({"name": "t", "taskType": "skill", "agentId": "keeper", "userPrompt": "touch it"});
        let (_, task) = post(&served, "/tasks", task).await;
        let id = task["id"].as_str().unwrap_or_else(|| panic!("{task}"));
        let (_, started) = post(&served, &format!("/tasks/{id}/execute"), json!({})).await;
        let run = started["execution"]["run"].as_str().unwrap_or_else(|| panic!("{started}"));
        assert_eq!(served.settled(&format!("/runs/{run}"), "state").await, state, "{trust:?}");
        assert_eq!(served.exists("made.txt"), state == "completed", "{trust:?}");
    }
}

/// Runs a client command that finds the server's token in its folder.
fn client(served: &Served, arguments: &[&str]) -> Ran {
    served.ostler.run(&[arguments, &["--server", &served.base]].concat())
}

/// The end of a run, or the id of its pending approval. The state `waiting` alone comes a little too early: before the
/// approval is stored, and also while a rule answers it.
async fn ended_or_asks(served: &Served, run: &Value) -> Result<String, String> {
    let path = format!("/runs/{}", run.as_str().unwrap());
    let looking = async {
        loop {
            let state = served.settled(&path, "state").await;
            if state != "waiting" {
                return Ok(state);
            }
            let all = served.ask("/approvals", None).await;
            let mut all = all["items"].as_array().unwrap().iter();
            if let Some(asked) = all.find(|asked| asked["run"] == *run) {
                return Err(asked["id"].as_str().unwrap().to_owned());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(WAIT_LIMIT, looking).await.expect("it ends or asks")
}

/// Runs a prompt that needs approval; returns the run, and the id of the approval.
async fn asks(served: &Served, text: &str) -> (Value, String) {
    let session = session(served, json!({})).await;
    let run = prompt(served, &session, text).await["id"].clone();
    let asked = ended_or_asks(served, &run).await.expect_err("it asks");
    (run, asked)
}

// Mutant: `wholeTool` left out of the answer of `task approve`, or always true.
#[tokio::test(flavor = "multi_thread")]
async fn a_rule_for_a_whole_tool_is_granted_only_with_its_option() {
    let served = serve(&[]).await;
    let (run, id) = asks(&served, "search").await;
    let approve = ["task", "approve", &id, "--scope", "session"];
    let refused = client(&served, &approve);
    assert_eq!(refused.code, Some(2), "{}", refused.stdout);
    assert!(refused.stderr.contains("every use of the tool"), "{}", refused.stderr);
    assert_eq!(
        ended_or_asks(&served, &run).await,
        Err(id.clone()),
        "the approval is still pending"
    );
    let granted = client(&served, &[&approve[..], &["--whole-tool"]].concat());
    assert_eq!(granted.code, Some(0), "{}", granted.stderr);
    let rules = served.ask("/rules", None).await;
    assert_eq!(rules["items"][0]["rules"], json!([{"toolName": "WebSearch"}]), "{rules}");
}

// Mutant: `unattended` left out of the answer of `task approve`, or always true.
#[tokio::test(flavor = "multi_thread")]
async fn a_rule_answers_scheduled_runs_only_if_it_was_granted_for_them() {
    for (more, is_for_them) in [(&["--unattended"][..], true), (&[], false)] {
        let served = serve(&[]).await;
        let (_, id) = asks(&served, "touch it").await;
        let approve = ["task", "approve", &id, "--scope", "always"];
        let granted = client(&served, &[&approve[..], more].concat());
        assert_eq!(granted.code, Some(0), "{}", granted.stderr);
        let rules = served.ask("/rules", None).await;
        assert_eq!(rules["items"][0]["unattended"], is_for_them, "{rules}");
        // A schedule starts a run without a user.
        let plan = ["schedule", "add", "n", "touch it", "--every", "1d", "--json"];
        let made = client(&served, &plan);
        let made: Value = serde_json::from_str(&made.stdout).expect(&made.stderr);
        let id = made["id"].as_str().unwrap();
        assert_eq!(client(&served, &["schedule", "run", id]).code, Some(0));
        let outcome = ended_or_asks(&served, &planned(&served, id)).await;
        assert_eq!(outcome == Ok("completed".to_owned()), is_for_them, "{more:?}: {outcome:?}");
        assert_eq!(outcome.is_err(), !is_for_them, "{more:?}: {outcome:?}");
    }
}

/// The first run of a schedule.
fn planned(served: &Served, schedule: &str) -> Value {
    let log = || client(served, &["schedule", "log", schedule, "--json"]).stdout;
    let run = || {
        let log: Value = serde_json::from_str(&log()).unwrap_or_default();
        log["items"][0]["run"].clone()
    };
    eventually(|| run().is_string(), log);
    run()
}

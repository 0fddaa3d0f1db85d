//! "For this session" and "always" grant only an offered rule, and only where it was granted.

use ostler_testkit::{Reply, Rule, Script, reply, when};
use reqwest::Method;
use serde_json::{Value, json};

use crate::desk::{Client, Desk};
use crate::doors::{DOORS, Door};
use crate::hooks::Call;

/// Makes these calls, one in each run.
fn calls(all: Vec<(&str, Value)>) -> Script {
    let done = Script::new().rule(when().has_tool_result(true), reply().text("done"));
    let calls = all.into_iter().fold(done, |script, (tool, input)| {
        let call: Reply = reply().tool_use(tool, input);
        script.with(Rule::new(when(), call).times(1))
    });
    calls.rule(when(), reply().text("nothing more"))
}

fn commands(all: &[&str]) -> Script {
    calls(all.iter().map(|command| ("Bash", json!({"command": command}))).collect())
}

async fn decide(client: &Client, asked: &Value, body: Value) -> (u16, Value) {
    let path = format!("/api/approvals/{}/decision", asked["id"].as_str().unwrap());
    let (status, answer) = client.ask(Method::POST, &path, Some(body)).await;
    (status.as_u16(), answer)
}

/// Starts a run that must wait for approval.
async fn asks(client: &Client, session: &str) -> Value {
    let run = client.prompt(session, "go").await;
    client.until(&run, "waiting").await;
    client.pending().await
}

// Mutant: `offers` that offers the whole tool where the engine suggests nothing (as it did).
#[tokio::test]
async fn a_call_without_an_offered_rule_can_only_be_allowed_once_over_every_interface() {
    for (tool, input) in [
        ("Bash", json!({"command": "echo hi > .git/hooks/pre-commit"})),
        ("Write", json!({"file_path": ".claude/settings.json", "content": "{}"})),
    ] {
        for door in DOORS {
            let desk = Desk::open(calls(vec![(tool, input.clone())])).await;
            let client = desk.client();
            let asked = door.ask(&client).await;
            assert_eq!(asked["rules"], json!([]), "{input}");
            for decision in [
                json!({"approved": true, "scope": "session"}),
                json!({"approved": true, "scope": "always"}),
                json!({"approved": true, "scope": "always", "rule": tool}),
                json!({"approved": true, "scope": "always", "rule": tool, "wholeTool": true}),
            ] {
                let now = door.answer(&client, &asked, decision.clone()).await;
                assert_eq!(now["state"], "pending", "{door:?}: {decision}");
            }
            assert_eq!(client.get("/api/rules").await["items"], json!([]));
            let now = door.answer(&client, &asked, json!({"approved": true})).await;
            assert_eq!(now["state"], "allowed", "{door:?}: once is enough");
        }
    }
}

// Mutant: `offers` that keeps the whole tool for calls that write.
#[tokio::test]
async fn a_rule_for_a_write_never_covers_the_whole_tool() {
    let desk =
        Desk::open(calls(vec![("Write", json!({"file_path": "plain.txt", "content": "x"}))])).await;
    let client = desk.client();
    let asked = asks(&client, &client.session().await).await;
    let offered = asked["rules"].as_array().unwrap();
    assert!(!offered.contains(&json!("Write")) && !offered.contains(&json!("Edit")), "{offered:?}");
}

// Mutant: `picked` that takes a rule that covers the call although it was not offered (as it did for `Bash`).
#[tokio::test]
async fn a_rule_that_was_not_offered_is_refused_over_every_interface() {
    for door in DOORS {
        let desk = Desk::open(commands(&["touch made"])).await;
        let client = desk.client();
        let asked = door.ask(&client).await;
        assert!(!asked["rules"].as_array().unwrap().is_empty());
        for rule in
            ["Bash", "Bash(*)", "Bash(:*)", "Bash(tou:*)", "Read", "", "Bash(touch:*) + Bash"]
        {
            for scope in ["session", "always"] {
                let decision =
                    json!({"approved": true, "scope": scope, "rule": rule, "wholeTool": true});
                let now = door.answer(&client, &asked, decision).await;
                assert_eq!(now["state"], "pending", "{door:?}: {rule}");
            }
        }
        assert!(!desk.workspace().join("made").exists());
        let (status, answer) =
            decide(&client, &asked, json!({"approved": true, "scope": "always", "rule": "Bash"}))
                .await;
        assert_eq!((status, &answer["error"]["field"]), (422, &json!("rule")));
    }
}

// Mutant: rules that are granted together kept as one text, and split where " + " stands in it (as it was).
#[tokio::test]
async fn a_command_that_looks_like_several_rules_grants_only_itself() {
    let command = "python3 -c 'print(1)' + Bash + x";
    let desk = Desk::open(commands(&[command, "touch made"])).await;
    let client = desk.client();
    let session = client.session().await;
    let asked = asks(&client, &session).await;
    let rule = &asked["rules"][0];
    let (status, _) =
        decide(&client, &asked, json!({"approved": true, "scope": "session", "rule": rule})).await;
    assert_eq!(status, 200);
    let granted = client.get("/api/rules").await["items"][0].clone();
    assert_eq!(granted["rules"], json!([{"toolName": "Bash", "ruleContent": command}]));
    client.watch("/api/approvals", "the run to end", |list| list["items"] == json!([])).await;
    let next = asks(&client, &session).await;
    assert_eq!(next["input"]["command"], "touch made");
    assert!(!desk.workspace().join("made").exists());
}

// Mutant: `decide` that does not look at `wholeTool`.
#[tokio::test]
async fn a_rule_for_a_whole_tool_needs_a_separate_confirmation_over_every_interface() {
    for door in DOORS {
        let desk = Desk::open(calls(vec![("WebSearch", json!({"query": "horses"}))])).await;
        let client = desk.client();
        let asked = door.ask(&client).await;
        assert_eq!(asked["offers"][0]["wholeTool"], true, "{asked}");
        let plain = json!({"approved": true, "scope": "session", "rule": "WebSearch"});
        let now = door.answer(&client, &asked, plain.clone()).await;
        assert_eq!(now["state"], "pending", "{door:?}");
        let (status, answer) = decide(&client, &asked, plain.clone()).await;
        assert_eq!((status, &answer["error"]["field"]), (422, &json!("wholeTool")));
        let mut confirmed = plain;
        confirmed["wholeTool"] = true.into();
        let now = door.answer(&client, &asked, confirmed).await;
        assert_eq!(now["state"], "allowed", "{door:?}");
        let rules = client.get("/api/rules").await;
        assert_eq!(rules["items"][0]["rules"], json!([{"toolName": "WebSearch"}]));
    }
}

// Mutant: `Granted::holds_for` that does not compare the folder.
#[tokio::test]
async fn an_always_rule_applies_in_its_folder_only_and_names_it() {
    let desk = Desk::open(commands(&["touch made", "touch made", "touch made"])).await;
    let client = desk.client();
    std::fs::create_dir(desk.workspace().join("other")).unwrap();
    let asked = asks(&client, &client.session().await).await;
    let (status, _) = decide(&client, &asked, json!({"approved": true, "scope": "always"})).await;
    assert_eq!(status, 200);
    let granted = client.get("/api/rules").await["items"][0].clone();
    let here = desk.workspace().canonicalize().unwrap();
    assert_eq!(granted["folder"], here.display().to_string());
    assert_eq!(asked["origin"]["folder"], here.display().to_string());
    let second = client.prompt(&client.session().await, "go").await;
    client.until(&second, "completed").await;
    let made = client.post("/api/sessions", json!({"cwd": "other"})).await;
    asks(&client, made["id"].as_str().unwrap()).await;
}

// Seen to fail with `Granted::holds_for` that does not look at who started the run.
#[tokio::test]
async fn a_rule_answers_runs_of_hooks_only_if_it_was_granted_for_them() {
    for unattended in [false, true] {
        let desk = Desk::open(commands(&["touch made", "touch made"])).await;
        let client = desk.client();
        let asked = asks(&client, &client.session().await).await;
        let decision = json!({"approved": true, "scope": "always", "unattended": unattended});
        assert_eq!(decide(&client, &asked, decision).await.0, 200);
        assert_eq!(client.get("/api/rules").await["items"][0]["unattended"], unattended);
        client.until(asked["run"].as_str().unwrap(), "completed").await;
        let made = client.post("/api/hooks", json!({"name": "n", "start": {"prompt": "go"}})).await;
        let (status, started) = Call::of(&desk, &made).send(&client).await;
        assert!(status < 300, "{started}");
        let run = started["run"].as_str().unwrap();
        client.until(run, if unattended { "completed" } else { "waiting" }).await;
    }
}

// Seen to fail with `Mode::apply` without its hook and `Workshop::shape` that does not say that only users answer.
// Either alone prevents rules from answering.
#[tokio::test]
async fn a_task_that_asks_before_every_tool_is_never_answered_by_a_rule() {
    let desk = Desk::open(commands(&["touch made", "touch made"])).await;
    let client = desk.client();
    let asked = asks(&client, &client.session().await).await;
    assert_eq!(decide(&client, &asked, json!({"approved": true, "scope": "always"})).await.0, 200);
    client.watch("/api/approvals", "the run to end", |list| list["items"] == json!([])).await;
    let task =
        json!({"name": "x", "taskType": "agent", "userPrompt": "go", "permissionMode": "ask"});
    let made = client.post("/api/tasks", task).await;
    client.post(&format!("/api/tasks/{}/execute", made["id"].as_str().unwrap()), json!({})).await;
    let next = client.pending().await;
    assert_eq!(next["rules"], json!([]), "only this call can be allowed");
}

// Mutant: `permit` that does not decide again about changed arguments.
#[tokio::test]
async fn changed_arguments_are_decided_again_over_every_interface() {
    for door in DOORS {
        let desk = Desk::open(commands(&["touch made"])).await;
        let client = desk.client();
        let asked = door.ask(&client).await;
        let token = desk.data().join("data/token");
        let input = json!({"command": format!("cat {}", token.display())});
        door.answer(&client, &asked, json!({"approved": true, "input": input})).await;
        let run = asked["run"].as_str().unwrap();
        client.until(run, "completed").await;
        let results = desk.api.requests().last().unwrap().tool_results();
        let secret = std::fs::read_to_string(&token).unwrap();
        assert!(results[0].is_error, "{door:?}: {results:?}");
        assert!(!results[0].text.contains(secret.trim()), "{door:?}: {results:?}");
    }
}

// Mutant: `Granted::holds_for` that does not compare the session; and one that never says yes.
#[tokio::test]
async fn a_session_rule_answers_in_its_session_only() {
    let desk = Desk::open(commands(&["touch made", "touch made", "touch made"])).await;
    let client = desk.client();
    let session = client.session().await;
    let asked = asks(&client, &session).await;
    let yes = json!({"approved": true, "scope": "session"});
    assert_eq!(Door::Rest.answer(&client, &asked, yes).await["state"], "allowed");
    let again = client.prompt(&session, "go").await;
    client.until(&again, "completed").await;
    asks(&client, &client.session().await).await;
}

// Mutant: `revoke` that removes the rule and then writes the audit.
#[tokio::test]
async fn a_rule_is_revoked_and_audited_in_one_step() {
    const DISK_FULL: i32 = 13;
    let desk = Desk::open(commands(&["touch made", "touch made"])).await;
    let client = desk.client();
    let session = client.session().await;
    let asked = asks(&client, &session).await;
    let yes = json!({"approved": true, "scope": "always"});
    assert_eq!(Door::Rest.answer(&client, &asked, yes).await["state"], "allowed");
    let rules = client.get("/api/rules").await;
    let path = format!("/api/rules/{}", rules["items"][0]["id"].as_str().unwrap());
    let revoke = || client.ask(Method::DELETE, &path, None);
    let revoked = async || {
        let audit = client.get("/api/audit").await;
        let all = audit["items"].as_array().unwrap();
        all.iter().filter(|entry| entry["decision"] == "revoked").count()
    };
    desk.store().fail_commits(DISK_FULL);
    let (status, answer) = revoke().await;
    desk.store().fail_commits(0);
    assert_eq!((status.as_u16(), revoked().await), (507, 0), "{answer}");
    assert_eq!(client.get("/api/rules").await, rules, "the rule still applies");
    // Of several users who revoke it at the same moment, one succeeds.
    let all = futures::future::join_all((0..8).map(|_| revoke())).await;
    let done = all.iter().filter(|(status, _)| *status == 204).count();
    assert_eq!((done, revoked().await), (1, 1), "{all:?}");
    assert_eq!(client.get("/api/rules").await["items"], json!([]));
}

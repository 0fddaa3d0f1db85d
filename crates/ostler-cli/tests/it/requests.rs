//! Requests of a host during a session.

use std::fs;

use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::{Value, json};

use crate::run::Ostler;
use crate::talk::Talk;

async fn place(script: Script) -> (ScriptedApi, Ostler) {
    let api = ScriptedApi::start(script).await;
    let ostler =
        Ostler::new().env("ANTHROPIC_API_KEY", "key").env("ANTHROPIC_BASE_URL", &api.base_url());
    (api, ostler)
}

async fn fine() -> (ScriptedApi, Ostler) {
    place(Script::new().rule(when(), reply().text("Fine."))).await
}

fn ask(subtype: &str) -> Value {
    json!({"subtype": subtype})
}

#[tokio::test(flavor = "multi_thread")]
async fn initialize_is_answered_with_models_account_and_mode() {
    let (_api, ostler) = fine().await;
    let mut talk = Talk::with(&ostler, &["--permission-mode=plan", "--model=claude-opus-5-5"]);
    let answer = talk.asked(ask("initialize"));
    assert_eq!(answer["account"]["apiKeySource"], "ANTHROPIC_API_KEY");
    assert_eq!(answer["current_permission_mode"], "plan");
    let models = answer["models"].as_array().unwrap();
    assert_eq!(models[0]["value"], "default");
    assert_eq!(models[0]["resolvedModel"], "claude-opus-5-5");
    assert_eq!(talk.asked(ask("list_models"))["models"], answer["models"]);
    talk.say("hello", None);
    let init = talk.until(|frame| frame["subtype"] == "init");
    assert_eq!(init["apiKeySource"], "ANTHROPIC_API_KEY");
    talk.result();
    assert_eq!(talk.asked(ask("get_binary_version"))["version"], env!("CARGO_PKG_VERSION"));
    talk.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_connects_again_receives_the_pending_questions() {
    let call = json!({"command": "touch made.txt", "description": "Make it"});
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Bash", call))
        .rule(when(), reply().text("Done."));
    let (_api, ostler) = place(script).await;
    let mut talk = Talk::with(&ostler, &["--permission-prompt-tool=stdio"]);
    talk.say("go", None);
    let question = talk.until(|frame| frame["request"]["subtype"] == "can_use_tool");
    let answer = talk.ask("again", ask("initialize"));
    assert_eq!(answer["pending_permission_requests"], json!([question]));
    talk.answer(&question, json!({"behavior": "deny", "message": "no"}));
    talk.result();
    let answer = talk.ask("again", ask("initialize"));
    assert!(answer.get("pending_permission_requests").is_none(), "{answer}");
    talk.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_and_the_content_of_the_context_window_are_reported() {
    let ostler = Ostler::new();
    let file = ostler.path("new.txt").display().to_string();
    let write = json!({"file_path": file, "content": "one\ntwo\n"});
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Write", write))
        .rule(when(), reply().text("Done."));
    let api = ScriptedApi::start(script).await;
    fs::write(ostler.path("CLAUDE.md"), "Use tabs. ".repeat(100)).unwrap();
    let ostler = ostler.env("ANTHROPIC_API_KEY", "key").env("ANTHROPIC_BASE_URL", &api.base_url());
    let mut talk =
        Talk::with(&ostler, &["--permission-mode=acceptEdits", "--model=claude-sonnet-4-5"]);
    talk.say("write", None);
    let result = talk.result();
    let usage = talk.asked(ask("get_usage"));
    assert_eq!(usage["session"]["total_cost_usd"], result["total_cost_usd"]);
    assert_eq!(usage["session"]["total_lines_added"], 2);
    assert_eq!(usage["session"]["model_usage"], result["modelUsage"]);
    let text = talk.asked(ask("get_session_cost"))["text"].as_str().unwrap().to_owned();
    assert!(text.contains("Cost: $") && text.contains("claude-sonnet-4-5: "), "{text}");

    let context = talk.asked(ask("get_context_usage"));
    let of = |name: &str| {
        let all = context["categories"].as_array().unwrap();
        all.iter().find(|it| it["name"] == name).map_or(0, |it| it["tokens"].as_u64().unwrap())
    };
    assert_eq!(context["maxTokens"], 200_000);
    assert_eq!(of("Memory files"), 250);
    assert_eq!(context["memoryFiles"].as_array().unwrap().len(), 1);
    let used: u64 =
        ["System prompt", "System tools", "Memory files", "Messages"].map(of).iter().sum();
    assert!(of("System tools") > 1000 && of("Messages") > 0, "{context}");
    assert_eq!(context["totalTokens"], used);
    assert_eq!(used + of("Free space"), 200_000);
    talk.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_read_as_the_rules_allow() {
    let (_api, ostler) = fine().await;
    fs::write(ostler.path("secret.txt"), "secret").unwrap();
    let mut talk = Talk::with(&ostler, &["--disallowedTools=Read(secret.txt)"]);
    let read = |path: &str| json!({"subtype": "read_file", "path": path});
    let answer = talk.asked(read("README.md"));
    assert_eq!((&answer["contents"], &answer["lossy"]), (&json!("# A readme\n"), &json!(false)));
    let path = ostler.path("README.md").canonicalize().unwrap();
    assert_eq!(answer["absPath"], path.display().to_string());
    let mut some = read("README.md");
    some["max_bytes"] = json!(3);
    some["encoding"] = json!("base64");
    let answer = talk.asked(some);
    assert_eq!((&answer["contents"], &answer["truncated"]), (&json!("IyBB"), &json!(true)));
    for denied in ["secret.txt", "/etc/passwd", "../", "no-such-file", "."] {
        let error = talk.refused(read(denied));
        assert!(error.contains("read denied") && !error.contains("root:"), "{denied}: {error}");
    }
    talk.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_the_host_has_shown_may_be_changed() {
    for is_fresh in [true, false] {
        let ostler = Ostler::new();
        let file = ostler.path("README.md");
        let edit = json!({"file_path": file, "old_string": "A readme", "new_string": "Changed"});
        let script = Script::new()
            .rule(when().turn(0), reply().tool_use("Edit", edit))
            .rule(when(), reply().text("Done."));
        let api = ScriptedApi::start(script).await;
        let ostler =
            ostler.env("ANTHROPIC_API_KEY", "key").env("ANTHROPIC_BASE_URL", &api.base_url());
        let mut talk = Talk::with(&ostler, &["--permission-mode=acceptEdits"]);
        let changed = file.metadata().unwrap().modified().unwrap();
        let since = changed.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64;
        let mtime = if is_fresh { since } else { since - 5000 };
        talk.asked(json!({"subtype": "seed_read_state", "path": file, "mtime": mtime}));
        talk.say("edit", None);
        talk.result();
        talk.end();
        assert_eq!(fs::read_to_string(&file).unwrap().contains("Changed"), is_fresh);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_shown_changed_and_written() {
    let (api, ostler) = fine().await;
    let flag = json!({"permissions": {"deny": ["WebFetch"]}, "env": {"TOKEN": "very-secret"}});
    let mut talk = Talk::with(&ostler, &["--settings", &flag.to_string(), "--model=one"]);
    let settings = talk.asked(ask("get_settings"));
    assert_eq!(settings["applied"]["model"], "one");
    assert_eq!(settings["sources"][0]["source"], "flagSettings");
    assert_eq!(settings["effective"]["permissions"]["deny"], json!(["WebFetch"]));
    assert!(!settings.to_string().contains("very-secret"), "{settings}");

    let change = json!({"model": "two", "permissions": {"deny": ["Bash"]}, "somethingElse": 1});
    talk.asked(json!({"subtype": "apply_flag_settings", "settings": change}));
    let rules = talk.asked(ask("list_permission_rules"))["state"]["rules"].clone();
    let deny = |rule: &str| json!({"behavior": "deny", "source": "flagSettings", "rule": rule, "editability": "readonly"});
    assert_eq!(rules, json!([deny("WebFetch"), deny("Bash")]), "deny rules stay");
    let change = json!({"permissions": {"allow": ["Read"]}});
    talk.asked(json!({"subtype": "apply_flag_settings", "settings": change}));
    let rules = talk.asked(ask("list_permission_rules"))["state"]["rules"].clone();
    assert_eq!(rules.as_array().unwrap().len(), 3, "the changes applied so far add up: {rules}");
    let taken_back = json!({"permissions": null});
    talk.asked(json!({"subtype": "apply_flag_settings", "settings": taken_back}));
    let rules = talk.asked(ask("list_permission_rules"))["state"]["rules"].clone();
    assert_eq!(rules, json!([deny("WebFetch")]), "only applied changes can be undone");
    let warning = talk.heard.iter().find(|frame| frame["tag"] == "settings_without_effect");
    assert!(warning.unwrap()["content"].as_str().unwrap().contains("somethingElse"));
    talk.say("hello", None);
    talk.result();
    assert_eq!(api.requests()[0].body["model"], "two");
    let odd = json!({"permissions": {"deny": ["Bash("]}});
    let error = talk.refused(json!({"subtype": "apply_flag_settings", "settings": odd}));
    assert!(error.contains("Bash("), "{error}");

    let write = |source: &str| {
        json!({
            "subtype": "update_settings", "source": source, "settings": {"outputStyle": "default"},
        })
    };
    talk.asked(write("localSettings"));
    let file = fs::read_to_string(ostler.path(".claude/settings.local.json")).unwrap();
    assert!(file.contains("outputStyle"), "{file}");
    let error = talk.refused(write("projectSettings"));
    assert!(error.contains("projectSettings"), "{error}");
    talk.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_gets_a_title_more_folders_and_an_end() {
    let (_api, ostler) = fine().await;
    fs::create_dir(ostler.path("sub")).unwrap();
    let mut talk = Talk::with(&ostler, &[]);
    talk.say("hello", None);
    talk.result();
    talk.asked(json!({"subtype": "rename_session", "title": "Our talk"}));
    assert!(ostler.run(&["sessions"]).stdout.contains("Our talk"));
    let root = |directory: &str| json!({"subtype": "register_repo_root", "directory": directory});
    talk.asked(root("sub"));
    let error = talk.refused(root("/etc"));
    assert!(error.contains("/etc"), "{error}");
    talk.asked(ask("end_session"));
    // Standard input is still open; the session ends anyway.
    while talk.next().is_some() {}
    assert_eq!(talk.end().code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_and_its_thinking_change_between_turns() {
    let (api, ostler) = fine().await;
    let mut talk = Talk::with(&ostler, &["--model=one"]);
    talk.say("hello", None);
    talk.result();
    assert_eq!(
        talk.asked(json!({"subtype": "set_model", "model": "two"})),
        json!({"model": "two"})
    );
    let note = talk.heard.iter().rev().find(|frame| frame["type"] == "user").unwrap();
    assert_eq!(note["isReplay"], true);
    assert!(note["message"]["content"].as_str().unwrap().contains("Set model to `two`"), "{note}");
    talk.say("again", None);
    talk.result();
    assert_eq!(talk.asked(ask("set_model")), json!({"model": "one"}));
    talk.say("and again", None);
    talk.result();
    let models: Vec<Value> =
        api.requests().iter().map(|request| request.body["model"].clone()).collect();
    assert_eq!(models, ["one", "two", "one"]);
    assert!(!api.requests()[2].body["messages"].to_string().contains("Set model"));
    talk.end();
}

//! Requests of a host to reload, list and move to the background.

use std::fs;
use std::process::Command;

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

fn write(ostler: &Ostler, name: &str, text: &str) {
    let path = ostler.path(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().filter_map(|it| it["name"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn skills_and_styles_can_be_reloaded() {
    let (_api, ostler) = fine().await;
    let mut talk = Talk::with(&ostler, &[]);
    assert_eq!(talk.asked(ask("reload_skills")), json!({"skills": []}));
    let text = "---\nname: greet\ndescription: Greets\n---\nSay hello.";
    write(&ostler, ".claude/skills/greet/SKILL.md", text);
    assert_eq!(names(&talk.asked(ask("reload_skills"))["skills"]), ["greet"]);
    let changed = talk.heard.iter().rev().find(|frame| frame["subtype"] == "commands_changed");
    assert!(names(&changed.unwrap()["commands"]).contains(&"greet"), "{changed:?}");
    talk.say("hello", None);
    let init = talk.until(|frame| frame["subtype"] == "init");
    assert_eq!(init["skills"], json!(["greet"]));
    talk.result();
    let text = "---\nname: Terse\ndescription: Few words\n---\nBe brief.";
    write(&ostler, ".claude/output-styles/terse.md", text);
    let styles = talk.asked(ask("reload_output_styles"))["available_output_styles"].to_string();
    assert!(styles.contains("Terse"), "{styles}");
    talk.end();
}

/// A plugin with a command, and with a hook that denies every Bash command.
fn plugin(ostler: &Ostler, hooks: &str) -> Value {
    write(ostler, "kit/.claude-plugin/plugin.json", r#"{"name": "kit", "version": "1.2"}"#);
    write(ostler, "kit/commands/tidy.md", "Tidy up.");
    write(ostler, "kit/hooks/hooks.json", hooks);
    json!([{"type": "local", "path": ostler.path("kit")}])
}

const GUARD: &str = r#"{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [
    {"type": "command", "command": "echo not this >&2; exit 2"}]}]}}"#;

#[tokio::test(flavor = "multi_thread")]
async fn an_added_plugin_brings_its_commands_and_hooks() {
    let call = json!({"command": "touch made.txt", "description": "Make it"});
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Bash", call))
        .rule(when(), reply().text("{{tool_result}}"));
    let (_api, ostler) = place(script).await;
    let mut talk = Talk::with(&ostler, &["--allowedTools", "Bash"]);
    let reload = |plugins: &Value| json!({"subtype": "reload_plugins", "add_plugins": plugins});
    let odd = plugin(&ostler, r#"{"hooks": {"PreTooluse": []}}"#);
    let error = talk.refused(reload(&odd));
    assert!(error.contains("kit") && error.contains("PreTooluse"), "{error}");
    assert_eq!(
        talk.asked(ask("reload_plugins"))["plugins"],
        json!([]),
        "the plugin is not half loaded"
    );

    let answer = talk.asked(reload(&plugin(&ostler, GUARD)));
    assert_eq!(names(&answer["plugins"]), ["kit"]);
    assert_eq!(answer["plugins"][0]["version"], "1.2");
    assert!(names(&answer["commands"]).contains(&"kit:tidy"), "{answer}");
    assert_eq!(answer["error_count"], 0);
    let listed = talk.asked(ask("get_hooks_listing"))["hooks"].clone();
    assert_eq!((&listed[0]["pluginName"], &listed[0]["matcher"]), (&json!("kit"), &json!("Bash")));
    talk.say("go", None);
    let result = talk.result();
    assert!(result["result"].as_str().unwrap().contains("not this"), "{result}");
    assert!(!ostler.path("made.txt").exists());
    talk.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_of_plugins_in_the_initialize_request_run_too() {
    let call = json!({"command": "touch made.txt", "description": "Make it"});
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Bash", call))
        .rule(when(), reply().text("{{tool_result}}"));
    let (_api, ostler) = place(script).await;
    let mut talk = Talk::with(&ostler, &["--allowedTools", "Bash"]);
    let plugins = plugin(&ostler, GUARD);
    talk.asked(json!({"subtype": "initialize", "plugins": plugins}));
    talk.say("go", None);
    assert!(talk.result()["result"].as_str().unwrap().contains("not this"));
    assert!(!ostler.path("made.txt").exists());
    talk.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_can_be_refused_during_a_turn_and_held_to_keep_the_cache() {
    let call = json!({"command": "touch made.txt", "description": "Make it"});
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Bash", call))
        .rule(when(), reply().text("Done."));
    let (_api, ostler) = place(script).await;
    let mut talk = Talk::with(&ostler, &["--permission-prompt-tool=stdio"]);
    talk.say("go", None);
    let question = talk.until(|frame| frame["request"]["subtype"] == "can_use_tool");
    let reload = json!({"subtype": "reload_plugins", "refuse_if_busy": true});
    assert_eq!(talk.ask("busy", reload.clone())["error_code"], "reload_plugins_busy");
    talk.answer(&question, json!({"behavior": "deny", "message": "no"}));
    talk.result();
    talk.asked(reload);
    let plugins = plugin(&ostler, r#"{"hooks": {}}"#);
    let servers = r#"{"mcpServers": {"s": {"command": "/bin/false"}}}"#;
    write(&ostler, "kit/.mcp.json", servers);
    let mut reload = json!({"subtype": "reload_plugins", "add_plugins": plugins});
    reload["hold_on_cache_impact"] = json!(true);
    let held = talk.asked(reload.clone());
    assert_eq!((&held["held"], &held["plugins"]), (&json!(true), &json!([])));
    assert_eq!(held["cache_impact"]["mcp_servers_added"], json!(["plugin:kit:s"]));
    reload["hold_on_cache_impact"] = json!(false);
    let answer = talk.asked(reload);
    assert_eq!(names(&answer["mcpServers"]), ["plugin:kit:s"]);
    assert!(answer.get("held").is_none(), "{answer}");
    talk.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_suggested_for_typed_text() {
    let (_api, ostler) = fine().await;
    write(&ostler, "src/main.rs", "");
    write(&ostler, "secret-main", "");
    let mut talk = Talk::with(&ostler, &["--disallowedTools=Read(secret-main)"]);
    let answer = talk.asked(json!({"subtype": "file_suggestions", "query": "main"}));
    assert_eq!(answer["suggestions"], json!([{"path": "src/main.rs"}]));
    let folder = ostler.folder.path().canonicalize().unwrap();
    assert_eq!(answer["cwd"], folder.display().to_string());
    talk.end();
}

fn make_pipe(ostler: &Ostler, name: &str) {
    assert!(Command::new("mkfifo").arg(ostler.path(name)).status().unwrap().success());
}

/// A frame that arrived before or after an answer.
fn came(talk: &mut Talk, fits: impl Fn(&Value) -> bool) -> Value {
    match talk.heard.iter().find(|frame| fits(frame)) {
        Some(frame) => frame.clone(),
        None => talk.until(fits),
    }
}

/// Reports that it has begun, and continues when the gate opens.
const SLOW: &str = "echo before; echo up > up; cat gate; echo after";

#[tokio::test(flavor = "multi_thread")]
async fn a_running_command_can_be_moved_to_the_background() {
    let call = json!({"command": SLOW, "description": "Slow"});
    let script = Script::new()
        .rule(when().prompt_contains("Background task"), reply().text("It has ended."))
        .rule(when().turn(0), reply().tool_use("Bash", call))
        .rule(when(), reply().text("I continue."));
    let (api, ostler) = place(script).await;
    make_pipe(&ostler, "up");
    make_pipe(&ostler, "gate");
    let mut talk = Talk::with(&ostler, &["--allowedTools", "Bash"]);
    talk.say("go", None);
    fs::read_to_string(ostler.path("up")).unwrap();
    let background = |call: &str| json!({"subtype": "background_tasks", "tool_use_id": call});
    assert_eq!(talk.asked(background("toolu_unknown")), json!({"backgrounded": false}));
    assert_eq!(talk.asked(ask("background_tasks")), json!({}));
    let frame = came(&mut talk, |frame| frame["type"] == "user");
    let output = &frame["tool_use_result"];
    assert_eq!(output["backgroundedByUser"], true, "{frame}");
    assert_eq!(talk.result()["result"], "I continue.");
    fs::write(ostler.path("gate"), "through\n").unwrap();
    let ended = talk.until(|frame| frame["subtype"] == "task_notification");
    assert_eq!(
        (&ended["status"], &ended["task_id"]),
        (&json!("completed"), &output["backgroundTaskId"])
    );
    assert_eq!(talk.result()["result"], "It has ended.");
    let task = json!({"subtype": "get_task_output", "task_id": ended["task_id"]});
    assert_eq!(talk.asked(task)["output"], "before\nthrough\nafter\n");
    assert_eq!(api.requests().len(), 3);
    talk.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_subagent_can_be_moved_to_the_background() {
    let agent = json!({
        "description": "Sub", "prompt": "SUBWORK", "subagent_type": "general-purpose",
        "run_in_background": false,
    });
    let call = json!({"command": SLOW, "description": "Slow"});
    let script = Script::new()
        .rule(when().prompt_contains("Background agent"), reply().text("I have its report."))
        .rule(when().prompt_contains("SUBWORK").turn(0), reply().tool_use("Bash", call))
        .rule(when().prompt_contains("SUBWORK"), reply().text("The report."))
        .rule(when().turn(0), reply().tool_use("Agent", agent))
        .rule(when(), reply().text("I continue."));
    let (_api, ostler) = place(script).await;
    make_pipe(&ostler, "up");
    make_pipe(&ostler, "gate");
    let ostler = ostler.env("CLAUDE_CODE_SDK_READS_SESSION_STATE", "1");
    let mut talk = Talk::with(&ostler, &["--allowedTools", "Bash"]);
    talk.say("go", None);
    let started = talk.until(|frame| frame["subtype"] == "task_started");
    fs::read_to_string(ostler.path("up")).unwrap();
    let background = json!({"subtype": "background_tasks", "tool_use_id": started["tool_use_id"]});
    assert_eq!(talk.asked(background), json!({"backgrounded": true}));
    let is_launched = |frame: &Value| frame["tool_use_result"]["status"] == "async_launched";
    let frame = came(&mut talk, is_launched);
    assert_eq!(frame["tool_use_result"]["agentId"], started["task_id"]);
    assert_eq!(talk.result()["result"], "I continue.");
    // The turn is over; an interrupt does not stop its background work.
    talk.asked(ask("interrupt"));
    fs::write(ostler.path("gate"), "").unwrap();
    let ended = talk.until(|frame| frame["subtype"] == "task_notification");
    assert_eq!((&ended["status"], &ended["summary"]), (&json!("completed"), &json!("The report.")));
    assert_eq!(talk.result()["result"], "I have its report.");
    let behind = talk.heard.iter().any(|frame| frame["patch"]["is_backgrounded"] == true);
    assert!(behind, "{}", talk.story());
    talk.end();
}

#[test]
fn fields_of_agents_on_the_command_line_without_effect_are_reported() {
    let agents = r#"{"a": {"description": "d", "prompt": "p", "memory": "user"}}"#;
    let ran = Ostler::new().run(&["-p", "--agents", agents, "list the files"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("the agent a is used without memory"), "{ran:?}");
}

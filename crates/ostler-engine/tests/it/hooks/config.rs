//! Settings files that change while a session runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ostler_engine::permission::{Policy, Source};
use ostler_engine::settings::{self, Folders, Sources};
use ostler_engine::settings_watcher::WatchedSettings;
use ostler_proto::frame::ToHost;
use ostler_proto::message::System;
use ostler_proto::permission::PermissionMode;
use ostler_testkit::{Script, reply, when};
use serde_json::{Value, json};

use super::{HookLog, matcher, next_callback, register};
use crate::host::TestHost;

/// Folders with the settings of all sources.
struct ServerLocation {
    root: tempfile::TempDir,
    folders: Folders,
}

impl ServerLocation {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for folder in ["user", "project/.claude/skills/tidy"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        let folders = Folders {
            user: Some(at("user")),
            project: at("project"),
            managed: Some(at("managed.json")),
        };
        Self { root, folders }
    }

    fn write(&self, source: Source, settings: &Value) {
        let path = self.folders.file(source).unwrap();
        // In one step: otherwise the session could see an empty file, and run its hooks twice.
        let new = path.with_extension("new");
        fs::write(&new, settings.to_string()).unwrap();
        fs::rename(&new, &path).unwrap();
    }

    fn skill(&self) -> PathBuf {
        self.folders.project.join(".claude/skills/tidy/SKILL.md")
    }

    /// A session with these settings, in a project that is trusted.
    async fn start(&self, script: Script) -> TestHost {
        let sources = Sources {
            user: true,
            project: true,
            local: true,
            trusts_project: true,
            ..Sources::default()
        };
        let folders = self.folders.clone();
        let load = move || settings::load(&folders, &sources);
        let now = load().unwrap();
        let all = [Source::User, Source::Project, Source::Local, Source::Managed];
        let files = all.map(|source| (source, self.folders.file(source).unwrap()));
        let mut policy = Policy::new(self.root.path(), PermissionMode::Default);
        now.apply_to(&mut policy);
        let live = WatchedSettings {
            now,
            files: files.into(),
            skills: vec![self.folders.project.join(".claude/skills")],
            load: Arc::new(load),
        };
        TestHost::with(script, |options| {
            options.policy = policy;
            options.folders = self.folders.clone();
            options.live = Some(live);
        })
        .await
    }
}

fn calls(tool: &str) -> Script {
    Script::new()
        .rule(when().has_tool_result(true), reply().text("Done: {{tool_result}}"))
        .rule(when(), reply().tool_use(tool, json!({"word": "it"})))
}

fn deny(rule: &str) -> Value {
    json!({"permissions": {"deny": [rule]}})
}

async fn answer_to(host: &mut TestHost, prompt: &str) -> String {
    host.prompt(prompt).await;
    host.result().await.result.unwrap_or_default()
}

/// Answers the next call of the callback, and returns its input.
async fn answer_callback(host: &mut TestHost, answer: Value) -> (String, PathBuf) {
    let (id, input) = next_callback(host).await;
    assert_eq!(input["hook_event_name"], "ConfigChange");
    host.respond(id, Ok(answer)).await;
    let path = input["file_path"].as_str().unwrap();
    (input["source"].as_str().unwrap().to_owned(), Path::new(path).to_owned())
}

fn remarks(host: &TestHost, tag: &str) -> Vec<String> {
    let tagged = |frame: &ToHost| match frame {
        ToHost::System(System::Informational(notice)) if notice.tag.as_deref() == Some(tag) => {
            Some(notice.content.clone())
        }
        _ => None,
    };
    host.seen.iter().filter_map(tagged).collect()
}

#[tokio::test]
async fn every_settings_file_is_reported_by_its_name_while_the_session_is_idle() {
    let place = ServerLocation::new();
    let mut host = place.start(calls("Look")).await;
    register(&mut host, "ConfigChange", matcher(json!({}))).await;
    host.until("control_response").await;
    for (source, word) in [
        (Source::User, "user_settings"),
        (Source::Project, "project_settings"),
        (Source::Local, "local_settings"),
        (Source::Managed, "policy_settings"),
    ] {
        place.write(source, &json!({}));
        let expected = (word.to_owned(), place.folders.file(source).unwrap());
        assert_eq!(answer_callback(&mut host, json!({})).await, expected);
    }
    fs::write(place.skill(), "---\nname: tidy\n---\n").unwrap();
    assert_eq!(answer_callback(&mut host, json!({})).await, ("skills".to_owned(), place.skill()));
}

#[tokio::test]
async fn rules_and_hooks_of_the_users_settings_hold_from_the_next_prompt_on() {
    let place = ServerLocation::new();
    let mut host = place.start(calls("Look")).await;
    assert_eq!(answer_to(&mut host, "go").await, "Done: saw it");
    place.write(Source::User, &deny("Look"));
    assert!(!answer_to(&mut host, "go").await.contains("saw it"));
    let ledger = HookLog::new();
    place.write(Source::User, &json!({"hooks": ledger.hooks(&["PreToolUse"])}));
    assert_eq!(
        answer_to(&mut host, "go").await,
        "Done: saw it",
        "without its line in the file the rule is gone"
    );
    assert_eq!(ledger.entries().len(), 1);
    place.write(Source::User, &json!({"disableAllHooks": true}));
    answer_to(&mut host, "go").await;
    assert_eq!(ledger.entries().len(), 1);
}

#[tokio::test]
async fn if_a_hook_objects_or_fails_the_old_settings_stay() {
    let block = json!({"decision": "block", "reason": "ask me first"});
    for answer in [Ok(block), Err("boom".to_owned())] {
        let place = ServerLocation::new();
        let mut host = place.start(calls("Look")).await;
        register(&mut host, "ConfigChange", matcher(json!({"matcher": "user_settings"}))).await;
        host.until("control_response").await;
        host.answer = Some(answer);
        place.write(Source::User, &deny("Look"));
        assert_eq!(answer_to(&mut host, "go").await, "Done: saw it");
        assert!(!remarks(&host, "config_change_blocked").is_empty());
        // A refused change does not take effect with a change of another file.
        place.write(Source::Managed, &json!({}));
        assert_eq!(answer_to(&mut host, "go").await, "Done: saw it");
    }
}

#[tokio::test]
async fn a_hook_that_gave_no_answer_is_asked_again_with_the_next_prompt() {
    let place = ServerLocation::new();
    let mut host = place.start(calls("Look")).await;
    register(&mut host, "ConfigChange", matcher(json!({}))).await;
    host.until("control_response").await;
    place.write(Source::User, &deny("Look"));
    let (id, _) = next_callback(&mut host).await;
    host.respond(id, Err("boom".to_owned())).await;
    host.until("system informational").await;
    // Its second answer counts.
    host.answer = Some(Ok(json!({})));
    assert!(!answer_to(&mut host, "go").await.contains("saw it"));
    let n_asked = host.story().iter().filter(|line| line.contains("hook_callback")).count();
    assert_eq!(n_asked, 2);
    answer_to(&mut host, "go").await;
    let n_asked = host.story().iter().filter(|line| line.contains("hook_callback")).count();
    assert_eq!(n_asked, 2, "no further time");
}

#[tokio::test]
async fn hooks_cannot_object_to_the_administrators_settings() {
    let place = ServerLocation::new();
    let mut host = place.start(calls("Look")).await;
    register(&mut host, "ConfigChange", matcher(json!({}))).await;
    host.until("control_response").await;
    place.write(Source::Managed, &deny("Look"));
    answer_callback(&mut host, json!({"decision": "block", "reason": "no"})).await;
    assert!(!answer_to(&mut host, "go").await.contains("saw it"));
}

#[tokio::test]
async fn a_projects_settings_can_only_become_stricter_while_a_session_runs() {
    for source in [Source::Project, Source::Local] {
        let place = ServerLocation::new();
        let ledger = HookLog::new();
        place.write(source, &deny("Look"));
        let mut host = place.start(calls("Change")).await;
        host = host.answering(json!({"behavior": "deny", "message": "not by me"}));
        let wider = json!({
            "permissions": {"allow": ["Change"], "additionalDirectories": ["/"]},
            "hooks": ledger.hooks(&["PreToolUse", "Stop"]),
            "disableAllHooks": true,
        });
        place.write(source, &wider);
        assert_eq!(answer_to(&mut host, "go").await, "Done: not by me", "still asked");
        assert_eq!(ledger.entries().len(), 0, "no new commands");
        place.write(source, &deny("Change"));
        let answer = answer_to(&mut host, "go").await;
        assert!(answer.contains("Change") && !answer.contains("not by me"), "{answer}");
    }
}

#[tokio::test]
async fn a_rule_of_a_project_that_denies_holds_until_the_session_ends() {
    let place = ServerLocation::new();
    place.write(Source::Project, &deny("Look"));
    let mut host = place.start(calls("Look")).await;
    place.write(Source::Project, &json!({}));
    assert!(!answer_to(&mut host, "go").await.contains("saw it"));
}

#[tokio::test]
async fn a_project_cannot_disable_the_users_hooks_while_a_session_runs() {
    let place = ServerLocation::new();
    let ledger = HookLog::new();
    let hooks = json!({"hooks": ledger.hooks(&["PreToolUse"])});
    place.write(Source::User, &hooks);
    let mut host = place.start(calls("Look")).await;
    place.write(Source::Project, &json!({"disableAllHooks": true}));
    answer_to(&mut host, "go").await;
    place.write(Source::User, &json!({"hooks": hooks["hooks"], "model": "x"}));
    answer_to(&mut host, "go").await;
    assert_eq!(ledger.entries().len(), 2);
}

#[tokio::test]
async fn malformed_settings_change_nothing() {
    for broken in
        ["{broken", r#"{"hooks": {"PreTooluse": []}}"#, r#"{"permissions": {"deny": ["Bash("]}}"#]
    {
        let place = ServerLocation::new();
        place.write(Source::User, &deny("Look"));
        let mut host = place.start(calls("Look")).await;
        fs::write(place.folders.file(Source::User).unwrap(), broken).unwrap();
        assert!(!answer_to(&mut host, "go").await.contains("saw it"), "{broken}");
        assert_eq!(remarks(&host, "config_change_failed").len(), 1, "{broken}");
        place.write(Source::User, &json!({}));
        assert_eq!(answer_to(&mut host, "go").await, "Done: saw it", "{broken}");
    }
}

#[tokio::test]
async fn settings_that_the_session_itself_writes_are_not_reported() {
    let place = ServerLocation::new();
    let ledger = HookLog::new();
    place.write(Source::User, &json!({"hooks": ledger.hooks(&["ConfigChange", "Stop"])}));
    let mut host = place.start(calls("Change")).await;
    let update = json!({"type": "addRules", "behavior": "allow", "destination": "userSettings",
        "rules": [{"toolName": "Change"}]});
    host.answer = Some(Ok(json!({"behavior": "allow", "updatedInput": {"word": "it"},
        "updatedPermissions": [update]})));
    assert_eq!(answer_to(&mut host, "go").await, "Done: changed it");
    host.answer = None;
    assert_eq!(answer_to(&mut host, "go").await, "Done: changed it", "the host is not asked again");
    let names: Vec<_> =
        ledger.entries().iter().map(|entry| entry["hook_event_name"].clone()).collect();
    assert_eq!(names, ["Stop", "Stop"]);
    let written = fs::read_to_string(place.folders.file(Source::User).unwrap()).unwrap();
    assert!(written.contains("Change"), "{written}");
}

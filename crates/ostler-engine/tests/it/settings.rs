//! Settings that reach a session.

use ostler_engine::permission::Policy;
use ostler_engine::settings::{Folders, Sources, load};
use ostler_proto::permission::PermissionMode;
use ostler_testkit::{Script, reply, when};
use serde_json::json;

use crate::host::TestHost;

#[tokio::test]
async fn variables_reach_the_commands_of_hooks() {
    let script = Script::new().rule(when(), reply().text("{{prompt}}"));
    let hook = json!({"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "echo $GREETING"}]}]});
    let mut host = TestHost::with(script, |options| {
        options.hooks = vec![hook];
        options.env = [("GREETING", "hello")].into();
    })
    .await;
    host.prompt("go").await;
    assert_eq!(host.result().await.result.as_deref(), Some("go\nhello"));
}

#[tokio::test]
async fn a_settings_file_sets_the_mode_and_the_directories_of_a_session() {
    let folder = tempfile::tempdir().unwrap();
    let (work, other) = (folder.path().join("work"), folder.path().join("other"));
    std::fs::create_dir_all(work.join(".claude")).unwrap();
    std::fs::create_dir(&other).unwrap();
    let settings = json!({"permissions": {"defaultMode": "acceptEdits", "additionalDirectories": ["../other"]}});
    std::fs::write(work.join(".claude/settings.json"), settings.to_string()).unwrap();
    let sources = Sources { project: true, trusts_project: true, ..Sources::default() };
    let settings = load(&Folders::new(&work, None, None), &sources).unwrap();
    let mut policy = Policy::new(&work, PermissionMode::Default);
    settings.apply_to(&mut policy);
    assert_eq!(policy.effective_mode(), PermissionMode::AcceptEdits);
    let directories: Vec<_> =
        policy.directories().map(|path| path.canonicalize().unwrap()).collect();
    assert_eq!(directories, [other.canonicalize().unwrap()]);

    let script = Script::new().rule(when(), reply().text("Yes."));
    let mut host = TestHost::with(script, |options| options.policy = policy).await;
    host.prompt("go").await;
    host.result().await;
    let init = serde_json::to_value(&host.seen[0]).unwrap();
    assert_eq!(init["permissionMode"], "acceptEdits");
}

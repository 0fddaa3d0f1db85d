//! Options that contradict themselves are refused before anything is started.

use ostler_sdk::options::SystemPrompt;
use ostler_sdk::{Client, ErrorKind, Options};

use crate::fake::Fake;

async fn refusal(change: impl FnOnce(&mut Options)) -> String {
    let fake = Fake::new(&["touch started"]);
    let mut options = fake.options();
    change(&mut options);
    let error = Client::connect(options).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    assert!(!fake.folder.path().join("started").exists());
    error.to_string()
}

#[tokio::test]
async fn contradictions_are_named() {
    use ostler_proto::permission::PermissionMode::BypassPermissions;
    let text = refusal(|options| options.permissions.mode = BypassPermissions).await;
    assert!(text.contains("allow_dangerously_skip_permissions"), "{text}");
    let text = refusal(|options| options.limits.max_turns = Some(0)).await;
    assert!(text.contains("max_turns"), "{text}");
    for dollars in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let text = refusal(|options| options.limits.max_budget_usd = Some(dollars)).await;
        assert!(text.contains("max_budget_usd"), "{text}");
    }
    let text = refusal(|options| {
        options.model.name = Some("a".to_owned());
        options.model.fallback = Some("a".to_owned());
    })
    .await;
    assert!(text.contains("fallback"), "{text}");
    let text = refusal(|options| options.session.choice.fork = true).await;
    assert!(text.contains("fork"), "{text}");
    let text = refusal(|options| options.session.choice.resume_at = Some("u".to_owned())).await;
    assert!(text.contains("resume_at"), "{text}");
    let text = refusal(|options| {
        options.session.choice.resume = Some("s".to_owned());
        options.session.choice.go_on = true;
    })
    .await;
    assert!(text.contains("two conversations"), "{text}");
    let text = refusal(|options| {
        options.context.settings = Some("settings.json".to_owned());
        options.context.sandbox = Some(ostler_proto::sandbox::SandboxSettings::default());
    })
    .await;
    assert!(text.contains("sandbox"), "{text}");
}

#[tokio::test]
async fn every_word_of_an_option_is_one_argument_and_no_shell_sees_it() {
    let fake = Fake::new(&[r#"for word in "$@"; do printf '%s\n' "$word" >> args; done; exit 1"#]);
    let mut options = fake.options().model("$(touch hacked)").allow(["Bash(git log:*)"]);
    options.context.system_prompt = SystemPrompt::Text("; touch hacked".to_owned());
    assert!(Client::connect(options).await.is_err());
    let args = std::fs::read_to_string(fake.folder.path().join("args")).unwrap();
    assert!(args.contains("$(touch hacked)") && args.contains("; touch hacked"), "{args}");
    assert!(!fake.folder.path().join("hacked").exists());
}

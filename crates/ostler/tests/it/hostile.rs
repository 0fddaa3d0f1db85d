//! Hostile commands and a hostile project, through the Rust SDK with the embedded engine.

use std::path::Path;
use std::sync::{Arc, Mutex};

use ostler::{Decision, Message, Options, PermissionMode, query};
use ostler_testkit::{Script, ScriptedApi, hostile, reply, when};
use serde_json::json;

/// A folder for the project, a folder outside it, and the API of a model that makes one call.
struct Stage {
    project: tempfile::TempDir,
    outside: tempfile::TempDir,
    api: ScriptedApi,
}

impl Stage {
    async fn new(command: &str) -> Self {
        let script = Script::new()
            .rule(when().has_tool_result(true), reply().text("done"))
            .rule(when(), reply().tool_use("Bash", json!({"command": command})));
        let folder = || tempfile::tempdir().unwrap();
        Self { project: folder(), outside: folder(), api: ScriptedApi::start(script).await }
    }

    /// The options of a host that does not mention settings, so that the project's files must not count.
    fn options(&self) -> Options {
        let mut options = ostler::options()
            .cwd(self.project.path())
            .env("HOME", self.outside.path().display().to_string())
            .env("PATH", std::env::var("PATH").unwrap())
            .env("IS_SANDBOX", "1")
            .env("ANTHROPIC_BASE_URL", self.api.base_url())
            .env("ANTHROPIC_API_KEY", "test");
        options.engine.env.replaces = true;
        options
    }

    /// Whether the model received an error as the result of its call.
    fn refused(&self) -> bool {
        self.api.requests().last().unwrap().tool_results().last().unwrap().is_error
    }
}

async fn run(prompt: &str, options: Options) {
    let mut query = query(prompt, options);
    let mut is_over = false;
    while let Some(message) = query.next().await {
        is_over |= matches!(message.unwrap(), Message::Result(_));
    }
    assert!(is_over, "a run ends with a result");
}

/// Options with a callback that denies every call, and the list of the commands that it was asked about.
fn asking(options: Options) -> (Options, Arc<Mutex<Vec<String>>>) {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let commands = Arc::clone(&asked);
    let options = options.on_permission(move |request| {
        let command = request.input["command"].as_str().unwrap_or_default().to_owned();
        commands.lock().unwrap().push(command);
        async { Decision::deny("no") }
    });
    (options, asked)
}

fn absent(canary: &Path, command: &str) {
    assert!(!canary.exists(), "{command} created the canary file");
}

// Seen to fail with an engine that allows commands that require approval.
#[tokio::test]
async fn no_hostile_command_runs_without_the_host_being_asked() {
    let folder = tempfile::tempdir().unwrap();
    let canary = folder.path().join("pwned");
    for command in hostile::commands(&canary) {
        let stage = Stage::new(&command).await;
        hostile::repositories(stage.project.path(), &canary).unwrap();
        let (options, asked) = asking(stage.options());
        run("go", options).await;
        assert_eq!(*asked.lock().unwrap(), [command.as_str()]);
        assert!(stage.refused(), "{command}");
        absent(&canary, &command);
    }
}

// Seen to fail with `Policy::decide` without the rules that deny.
#[tokio::test]
async fn no_spelling_of_a_denied_command_runs_in_bypass_mode() {
    let folder = tempfile::tempdir().unwrap();
    let canary = folder.path().join("pwned");
    for (rule, command) in hostile::denied(&canary) {
        let stage = Stage::new(&command).await;
        let (mut options, _) = asking(stage.options().deny([rule.as_str()]));
        options.permissions.mode = PermissionMode::BypassPermissions;
        options.permissions.allow_dangerously_skip_permissions = true;
        run("go", options).await;
        assert!(stage.refused(), "{rule}: {command}");
        absent(&canary, &command);
    }
}

// Seen to fail with `setting_sources` of project and local in `Stage::options`, which is how a host trusts a project.
#[tokio::test]
async fn a_hostile_project_shows_and_starts_nothing() {
    for prompt in ["look", "/e", "/leak", "hello @link.md"] {
        let stage = Stage::new("ls").await;
        let canary = stage.outside.path().join("pwned");
        hostile::project(stage.project.path(), stage.outside.path(), &canary).unwrap();
        let (options, _) = asking(stage.options());
        run(prompt, options).await;
        for request in stage.api.requests() {
            let body = request.body.to_string();
            assert!(!body.contains(hostile::SECRET), "{prompt}: {body}");
            assert!(!body.contains("CARGO_MANIFEST_DIR="), "{prompt}: {body}");
        }
        absent(&canary, prompt);
    }
}

// Mutant: `ask_until_settled` binds the call to the decision after the answer, and `openat2` gets no flags.
#[tokio::test]
async fn a_file_that_becomes_a_link_while_the_host_is_asked_is_not_written_through() {
    let stage = Stage::new("true").await;
    let project = stage.project.path().canonicalize().unwrap();
    std::fs::create_dir(project.join("sub")).unwrap();
    let write = json!({"file_path": "sub/new", "content": "new"});
    let script = Script::new()
        .rule(when().has_tool_result(true), reply().text("done"))
        .rule(when(), reply().tool_use("Write", write));
    let api = ScriptedApi::start(script).await;
    let (sub, outside) = (project.join("sub"), stage.outside.path().to_owned());
    let options = stage.options().env("ANTHROPIC_BASE_URL", api.base_url());
    let options = options.on_permission(move |_| {
        // The host takes its time, and a command in the background does not.
        std::fs::remove_dir(&sub).unwrap();
        std::os::unix::fs::symlink(&outside, &sub).unwrap();
        async { Decision::allow() }
    });
    run("go", options).await;
    let requests = api.requests();
    let results = requests.last().unwrap().tool_results();
    let result = results.last().unwrap();
    assert!(result.is_error, "{result:?}");
    assert!(format!("{result:?}").contains("changed into a symbolic link"), "{result:?}");
    assert!(!stage.outside.path().join("new").exists());
}

//! A disk that does not respond blocks neither the session nor the thread that it shares with others.

use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};

use ostler_engine::library::{self, Library, Places};
use ostler_engine::permission::Policy;
use ostler_engine::session::SessionOptions;
use ostler_engine::settings::Folders;
use ostler_engine::tasks::Task;
use ostler_engine::tool::{Effect, Tool, ToolCx, ToolError, ToolOutput, erase};
use ostler_proto::control::{
    AskEngine, GetTaskOutput, McpStatus, ReadFile, RegisterRepoRoot, ReloadOutputStyles,
    ReloadPlugins, ReloadSkills, Response, RewindFiles, SeedReadState, StopTask, UpdateSettings,
};
use ostler_proto::frame::ToHost;
use ostler_proto::message::System;
use ostler_proto::permission::PermissionMode;
use ostler_testkit::{Script, reply, when};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::hooks::calls;
use crate::host::{TestHost, line};

/// Runs a test on one thread, with one more for blocking work.
fn on_one_thread(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(test);
}

/// Blocks the only thread for blocking work, like a disk that does not respond.
struct Stuck(mpsc::Sender<()>);

impl Stuck {
    fn new() -> Self {
        let (free, freed) = mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || freed.recv());
        Self(free)
    }

    fn free(self) {
        drop(self.0);
    }
}

/// Sends requests that need no disk, and reads until all are answered.
async fn ask_around(host: &mut TestHost) {
    for n in 0..20 {
        let id = format!("around-{n}");
        host.ask(&id, AskEngine::McpStatus(McpStatus::default())).await;
        answer(host, &id).await.unwrap();
    }
}

async fn answer(host: &mut TestHost, id: &str) -> Result<Option<Value>, String> {
    loop {
        if let ToHost::ControlResponse(response) = host.next().await.unwrap()
            && response.response.request_id().is_some_and(|it| it.as_str() == id)
        {
            return match response.response {
                Response::Success(success) => Ok(success.response),
                Response::Error(error) => Err(error.error),
                other => Err(format!("{other:?}")),
            };
        }
    }
}

fn has_answer(host: &TestHost, id: &str) -> bool {
    host.seen.iter().any(|frame| match frame {
        ToHost::ControlResponse(it) => it.response.request_id().is_some_and(|it| it.as_str() == id),
        _ => false,
    })
}

fn at(folder: &Path) -> impl FnOnce(&mut SessionOptions) {
    let folder = folder.to_owned();
    move |options| {
        options.policy = Policy::new(&folder, PermissionMode::Default);
        options.cwd = folder.clone();
        options.folders = Folders::new(&folder, Some(folder.join("user")), None);
        options.reload = Some(Arc::new(Library::default));
        options.checkpoints = true;
    }
}

// Mutant: the work of requests done in `start_disk_work` itself is answered at once.
#[test]
fn requests_that_work_on_files_do_not_block_the_session() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    std::fs::write(folder.join("a.txt"), "text").unwrap();
    let path = "a.txt".to_owned();
    let update = UpdateSettings {
        source: "userSettings".to_owned(),
        settings: json!({"model": "m"}),
        ..UpdateSettings::default()
    };
    let requests = [
        AskEngine::ReadFile(ReadFile { path: path.clone(), ..ReadFile::default() }),
        AskEngine::SeedReadState(SeedReadState { path, ..SeedReadState::default() }),
        AskEngine::UpdateSettings(update),
        AskEngine::RegisterRepoRoot(RegisterRepoRoot {
            directory: ".".to_owned(),
            ..RegisterRepoRoot::default()
        }),
        AskEngine::ReloadSkills(ReloadSkills::default()),
        AskEngine::ReloadOutputStyles(ReloadOutputStyles::default()),
        AskEngine::ReloadPlugins(ReloadPlugins::default()),
        AskEngine::RewindFiles(RewindFiles::default()),
        AskEngine::GetTaskOutput(GetTaskOutput {
            task_id: "b0".into(),
            ..GetTaskOutput::default()
        }),
    ];
    for request in requests {
        on_one_thread(async {
            let mut host = TestHost::with(Script::new(), at(&folder)).await;
            let stuck = Stuck::new();
            host.ask("disk", request.clone()).await;
            ask_around(&mut host).await;
            assert!(!has_answer(&host, "disk"), "{request:?}");
            stuck.free();
            let _ = answer(&mut host, "disk").await;
        });
    }
}

// Mutant: the work of requests done in `start_disk_work` itself: the reload does not wait for the disk.
#[test]
fn a_prompt_after_a_reload_is_answered_with_the_reloaded_files() {
    let folder = tempfile::tempdir().unwrap();
    on_one_thread(async {
        let script = Script::new().rule(when(), reply().text("{{prompt}}"));
        let command = folder.path().join("commands");
        std::fs::create_dir(&command).unwrap();
        std::fs::write(command.join("hi.md"), "Say hi to $ARGUMENTS").unwrap();
        let mut host = TestHost::with(script, |options| {
            at(folder.path())(options);
            let folder = folder.path().to_owned();
            let places = Places { user: Some(folder), ..Places::default() };
            options.reload = Some(Arc::new(move || library::load(&places)));
        })
        .await;
        let stuck = Stuck::new();
        host.ask("reload", AskEngine::ReloadSkills(ReloadSkills::default())).await;
        host.prompt("/hi you").await;
        ask_around(&mut host).await;
        assert!(!host.seen.iter().any(|frame| line(frame).starts_with("assistant")));
        host.interrupt().await;
        answer(&mut host, "int").await.unwrap();
        stuck.free();
        let result = host.result().await.result.unwrap_or_default();
        assert!(has_answer(&host, "reload") && result.contains("Say hi to you"), "{result}");
    });
}

#[test]
fn a_rule_that_waits_for_the_settings_file_blocks_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    std::fs::create_dir(folder.join("user")).unwrap();
    // Another program changes settings below this folder.
    let held = File::open(&folder).unwrap();
    held.lock().unwrap();
    on_one_thread(async {
        let mut host = TestHost::with(calls("Change"), at(&folder)).await;
        let rule = json!({"toolName": "Change"});
        host.answer = Some(Ok(json!({"behavior": "allow", "updatedPermissions": [{
            "type": "addRules", "rules": [rule], "behavior": "allow", "destination": "userSettings",
        }]})));
        host.prompt("go").await;
        host.until("control_request can_use_tool").await;
        ask_around(&mut host).await;
        host.ask("mode", mode("plan")).await;
        answer(&mut host, "mode").await.unwrap();
        assert!(!host.seen.iter().any(|frame| line(frame).contains("changed it")));
        drop(held);
        assert_eq!(host.result().await.result.as_deref(), Some("Done: changed it"));
        let kept = std::fs::read_to_string(folder.join("user/settings.json")).unwrap();
        assert!(kept.contains("Change"), "{kept}");
    });
}

fn mode(mode: &str) -> AskEngine {
    serde_json::from_value(json!({"subtype": "set_permission_mode", "mode": mode})).unwrap()
}

/// Would write a file, whose links a decision has to follow.
struct Save;

#[derive(Deserialize, JsonSchema)]
struct SaveArgs {
    #[expect(dead_code, reason = "the script of the model sends it")]
    word: String,
}

impl Tool for Save {
    const NAME: &'static str = "Save";
    const DESCRIPTION: &'static str = "For tests.";
    type Args = SaveArgs;

    fn effect(&self, _: &ToolCx, _: &SaveArgs) -> Effect {
        Effect::Write("/no/such/folder/file".into())
    }

    async fn run(&self, _: &ToolCx, _: SaveArgs) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::new("saved", json!(null)))
    }
}

// Mutant: `policy.decide` called directly in `permit.rs`: the question comes while the disk is stuck.
#[test]
fn permissions_and_conditions_of_hooks_that_need_the_disk_are_decided_off_the_runtime() {
    let hook = json!({"PreToolUse": [{"hooks": [
        {"type": "command", "if": "Change(never)", "command": "exit 2"},
    ]}]});
    for hooks in [vec![], vec![hook]] {
        on_one_thread(async {
            let mut host = TestHost::with(calls("Save"), |options| {
                options.hooks = hooks.clone();
                options.tools.push(erase(Save));
            })
            .await;
            let stuck = Stuck::new();
            host.prompt("go").await;
            host.until("assistant").await;
            ask_around(&mut host).await;
            assert!(!host.story().iter().any(|it| it.contains("can_use_tool")), "{hooks:?}");
            stuck.free();
            host.until("control_request can_use_tool").await;
        });
    }
}

/// Starts a task that ends only when the other side of the channel lets it.
struct Slow(Mutex<Option<mpsc::Receiver<()>>>);

#[derive(Deserialize, JsonSchema)]
struct NoArgs {}

impl Tool for Slow {
    const NAME: &'static str = "Slow";
    const DESCRIPTION: &'static str = "For tests.";
    type Args = NoArgs;

    fn effect(&self, _: &ToolCx, _: &NoArgs) -> Effect {
        Effect::Nothing
    }

    async fn run(&self, cx: &ToolCx, _: NoArgs) -> Result<ToolOutput, ToolError> {
        let held = Held(self.0.lock().unwrap().take().unwrap());
        let task = Task::command(&cx.call, &cx.scratch, "wait", "wait").unwrap();
        let work = async move {
            let _held = held;
            std::future::pending().await
        };
        cx.tasks.start(task, work).await?;
        Ok(ToolOutput::new("started", json!(null)))
    }
}

struct Held(mpsc::Receiver<()>);

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.recv();
    }
}

// Mutant: `stopping.await` in `control` in place of `answer_later`: the interruption waits for the task.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_task_that_is_slow_to_stop_does_not_delay_an_interruption() {
    let (free, freed) = mpsc::channel::<()>();
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Slow", json!({})))
        .rule(when().has_tool_result(true), reply().text("It runs."));
    let slow = Slow(Mutex::new(Some(freed)));
    let mut host = TestHost::with(script, |options| options.tools = vec![erase(slow)]).await;
    host.prompt("go").await;
    host.result().await;
    let task_id = host.seen.iter().find_map(|frame| match frame {
        ToHost::System(System::TaskStarted(started)) => Some(started.task_id.clone()),
        _ => None,
    });
    let stop = StopTask { task_id: task_id.unwrap(), ..StopTask::default() };
    host.ask("stop", AskEngine::StopTask(stop)).await;
    host.interrupt().await;
    answer(&mut host, "int").await.unwrap();
    assert!(!has_answer(&host, "stop"));
    drop(free);
    answer(&mut host, "stop").await.unwrap();
    assert!(host.story().contains(&"system task_notification".to_owned()), "the end comes first");
}

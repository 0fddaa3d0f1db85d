//! Interrupting a session, and requests to a running session.

use futures::FutureExt as _;
use ostler::Decision;
use ostler::proto::permission::PermissionMode;
use ostler_testkit::{Script, reply, when};
use serde_json::json;

use super::super::stage::Stage;
use super::super::{Scenario, scenario};
use super::{deciding, replies, touch, touch_script};

pub(super) fn all() -> Vec<Scenario> {
    vec![
        scenario(
            "interrupt",
            replies(vec![
                reply().text_pieces(["Hel", "lo."]).gate(1, "midway"),
                reply().text("Again."),
            ]),
            |stage| {
                async {
                    let mut client = stage.client(stage.options()).await;
                    client.send("Say hello").await.unwrap();
                    stage.within("the response", stage.api.gate("midway").reached()).await;
                    stage.within("the interrupt", client.handle().interrupt()).await.unwrap();
                    stage.turn(&mut client).await;
                    client.send("Once more").await.unwrap();
                    stage.turn(&mut client).await;
                    drop(client);
                }
                .boxed()
            },
            r#"init
               interrupted
               result error_during_execution error
               init
               text Again.
               result success "Again.""#,
        ),
        scenario(
            "interrupt-idle",
            replies(vec![reply().text("Hello.")]),
            |stage| {
                async {
                    let mut client = stage.client(stage.options()).await;
                    stage.within("the interrupt", client.handle().interrupt()).await.unwrap();
                    client.send("Say hello").await.unwrap();
                    stage.turn(&mut client).await;
                    drop(client);
                }
                .boxed()
            },
            r#"init
               text Hello.
               result success "Hello.""#,
        ),
        scenario(
            "interrupt-perm",
            touch_script(),
            |stage| {
                async {
                    let (asks, mut asked) = tokio::sync::mpsc::unbounded_channel();
                    let options = stage.options().on_permission(move |request| {
                        asks.send(request.cancelled.clone()).unwrap();
                        futures::future::pending()
                    });
                    let mut client = stage.client(options).await;
                    client.send("Run it").await.unwrap();
                    let question = stage.within("the question", asked.recv()).await.unwrap();
                    stage.within("the interrupt", client.handle().interrupt()).await.unwrap();
                    stage.within("the withdrawal", question.cancelled()).await;
                    stage.turn(&mut client).await;
                    stage.note_file("made.txt");
                    drop(client);
                }
                .boxed()
            },
            r#"init
               call Bash {"command":"touch made.txt","description":"Make it"}
               tool failed
               interrupted
               result error_during_execution error
               made.txt is not there"#,
        ),
        scenario(
            "interrupt-tool",
            replies(vec![
                reply().tool_use(
                    "Bash",
                    json!({"command": "touch made.txt; sleep 60", "description": "Wait"}),
                ),
                reply().text("Done."),
            ]),
            |stage| {
                async {
                    let mut client = stage.client(deciding(stage, Decision::allow())).await;
                    client.send("Run it").await.unwrap();
                    let made = stage.file("made.txt");
                    let running = async {
                        while !made.exists() {
                            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                        }
                    };
                    stage.within("the command", running).await;
                    stage.within("the interrupt", client.handle().interrupt()).await.unwrap();
                    stage.turn(&mut client).await;
                    drop(client);
                }
                .boxed()
            },
            r#"init
               call Bash {"command":"touch made.txt; sleep 60","description":"Wait"}
               tool failed
               interrupted
               result error_during_execution error
               * may Bash?"#,
        ),
        scenario(
            "control",
            Script::new()
                .rule(when().turn(0), touch("made.txt"))
                .rule(when().turn(1), reply().text("Done."))
                .rule(when().turn(2), reply().text("Changed.")),
            |stage| {
                async {
                    let mut client = stage.client(deciding(stage, Decision::deny("no"))).await;
                    let handle = client.handle();
                    let mode = PermissionMode::AcceptEdits;
                    stage.within("the mode", handle.set_permission_mode(mode)).await.unwrap();
                    client.send("Run it").await.unwrap();
                    stage.turn(&mut client).await;
                    stage.note_file("made.txt");
                    let model = Some("claude-opus-4-5".to_owned());
                    stage.within("the model", handle.set_model(model)).await.unwrap();
                    client.send("Say something").await.unwrap();
                    stage.turn(&mut client).await;
                    let requests = stage.requests();
                    let model = requests.last().unwrap().body["model"].to_string();
                    stage.note(format!("the last model was {model}"));
                    drop(client);
                }
                .boxed()
            },
            r#"init
               call Bash {"command":"touch made.txt","description":"Make it"}
               tool ok
               text Done.
               result success "Done."
               made.txt is there
               note
               init
               text Changed.
               result success "Changed."
               the last model was "claude-opus-4-5""#,
        ),
        // Every request of a handle: answered with its type, or refused in a known way.
        scenario(
            "requests",
            Script::new().rule(when(), reply().text("Hello.")),
            |stage| {
                async {
                    std::fs::write(stage.file("a.txt"), "apple").unwrap();
                    let mut client = stage.client(stage.options()).await;
                    stage.within("the result", client.prompt("Say hello")).await.unwrap();
                    let handle = client.handle();
                    let uuid = || "44444444-4444-4444-8444-444444444444".into();
                    tell(stage, "mcp_server_status", handle.mcp_server_status()).await;
                    tell(stage, "set_max_thinking_tokens", handle.set_max_thinking_tokens(None))
                        .await;
                    tell(stage, "context_usage", handle.context_usage()).await;
                    tell(stage, "usage", handle.usage()).await;
                    tell(stage, "settings", handle.settings()).await;
                    let quiet = handle.apply_settings(json!({"cleanupPeriodDays": 30}));
                    tell(stage, "apply_settings", quiet).await;
                    tell(stage, "permission_rules", handle.permission_rules()).await;
                    tell(stage, "rename", handle.rename("A title")).await;
                    tell(stage, "read_file", handle.read_file("a.txt")).await;
                    tell(stage, "seed_read_state", handle.seed_read_state("a.txt", 1_u64)).await;
                    tell(stage, "reload_skills", handle.reload_skills()).await;
                    tell(stage, "reload_plugins", handle.reload_plugins()).await;
                    tell(stage, "engine_version", handle.engine_version()).await;
                    tell(stage, "cancel_queued", handle.cancel_queued(uuid())).await;
                    tell(stage, "interrupt_all", handle.interrupt_all()).await;
                    tell(stage, "move_to_background", handle.move_to_background()).await;
                    tell(stage, "reinitialize", handle.reinitialize()).await;
                    tell(stage, "task_output", handle.task_output("nobody".into())).await;
                    tell(stage, "read_mcp_resource", handle.read_mcp_resource("a", "ui://b")).await;
                    let commands = !handle.supported_commands().is_empty();
                    stage.note(format!("commands are named: {commands}"));
                    stage
                        .note(format!("the account is named: {}", handle.account_info().is_some()));
                    // The session still works.
                    stage.within("the result", client.prompt("Say hello")).await.unwrap();
                }
                .boxed()
            },
            "mcp_server_status: ok
             set_max_thinking_tokens: ok
             context_usage: ok
             usage: ok
             settings: ok
             apply_settings: ok
             permission_rules: ok
             rename: ok
             read_file: ok
             seed_read_state: ok
             reload_skills: ok
             reload_plugins: ok
             engine_version: ok
             cancel_queued: ok
             interrupt_all: ok
             move_to_background: ok
             reinitialize: ok
             task_output: Refused
             read_mcp_resource: Refused
             commands are named: true
             the account is named: true",
        ),
    ]
}

/// Notes the answer to a request.
async fn tell<T>(
    stage: &Stage,
    name: &str,
    answer: impl Future<Output = Result<T, ostler::Error>>,
) {
    match stage.within(name, answer).await {
        Ok(_) => stage.note(format!("{name}: ok")),
        Err(error) => stage.note(format!("{name}: {:?}", error.kind())),
    }
}

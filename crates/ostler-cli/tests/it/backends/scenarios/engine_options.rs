//! Options about where and how the engine works.

use futures::FutureExt as _;
use ostler::options::{PermissionMode, SettingSource};
use ostler::proto::message::System;
use ostler::{CancellationToken, Decision, Message, Options};
use ostler_testkit::{Reply, Script, reply, when};
use serde_json::json;

use super::super::stage::Stage;
use super::super::{Scenario, scenario};
use super::{deciding, replies, touch_script};

/// The model runs a command, then answers.
fn runs(command: &str) -> Script {
    let call = reply().tool_use("Bash", json!({"command": command, "description": "Run it"}));
    then_done(call)
}

fn then_done(call: Reply) -> Script {
    replies(vec![call, reply().text("Done.")])
}

/// Sends a prompt, and notes only errors.
async fn run(stage: &Stage, options: Options) {
    match stage.within("the result", ostler::prompt("Run it", options)).await {
        Ok(_) => {}
        Err(error) => stage.note(format!("error {:?}", error.kind())),
    }
}

/// Notes the content of a file.
fn note_content(stage: &Stage, name: &str) {
    let content = std::fs::read_to_string(stage.file(name)).unwrap_or_default();
    stage.note(format!("{name}: {}", content.trim()));
}

/// All messages of a prompt. Errors are noted.
async fn messages(stage: &Stage, options: Options) -> Vec<Message> {
    let (mut query, mut heard) = (ostler::query("Say hello", options), Vec::new());
    while let Some(message) = stage.within("a message", query.next()).await {
        match message {
            Ok(message) => heard.push(message),
            Err(error) => stage.note(format!("error {:?}", error.kind())),
        }
    }
    heard
}

/// The `init` message.
async fn init(stage: &Stage, options: Options) -> serde_json::Value {
    let init = |message: &Message| match message {
        Message::System(System::Init(init)) => Some(serde_json::to_value(init).unwrap()),
        _ => None,
    };
    messages(stage, options).await.iter().find_map(init).unwrap_or_default()
}

/// Settings that allow commands.
fn settings() -> String {
    json!({"permissions": {"allow": ["Bash"]}}).to_string()
}

pub(super) fn all() -> Vec<Scenario> {
    let mut scenarios = places();
    scenarios.extend(rules());
    scenarios.extend(running());
    scenarios
}

fn places() -> Vec<Scenario> {
    vec![
        scenario(
            "opt-env",
            runs("echo $GREETING > said.txt"),
            |stage| {
                async {
                    let options = stage.options().env("GREETING", "good morning");
                    run(stage, options.allow(["Bash"])).await;
                    note_content(stage, "said.txt");
                }
                .boxed()
            },
            "said.txt: good morning",
        ),
        scenario(
            "opt-env-replaces",
            Script::new()
                .rule(
                    when().turn(0),
                    // Cargo sets this variable for every test.
                    reply().tool_use(
                        "Bash",
                        json!({"command": "test -n \"$CARGO_MANIFEST_DIR\" && touch made.txt"}),
                    ),
                )
                .rule(when(), reply().text("Done.")),
            |stage| {
                async {
                    for replaces in [true, false] {
                        let mut options = stage.options().allow(["Bash"]);
                        options.engine.env.replaces = replaces;
                        run(stage, options).await;
                        stage.note(format!("replaces {replaces}"));
                        stage.note_file("made.txt");
                    }
                }
                .boxed()
            },
            "replaces true
             made.txt is not there
             replaces false
             made.txt is there",
        ),
        scenario(
            "opt-cwd",
            Script::new()
                .rule(
                    when().prompt_contains("Run it").turn(0),
                    reply().tool_use("Bash", json!({"command": "pwd > where.txt"})),
                )
                .rule(when(), reply().text("Hello.")),
            |stage| {
                async {
                    run(stage, stage.options().allow(["Bash"])).await;
                    note_content(stage, "where.txt");
                    let told = init(stage, stage.options()).await;
                    stage.note(format!("init: {}", told["cwd"].as_str().unwrap()));
                }
                .boxed()
            },
            "where.txt: FOLDER
             init: FOLDER",
        ),
        scenario(
            "opt-additional-directories",
            Script::new(),
            |stage| {
                async {
                    let other = stage.home.path().join("other");
                    std::fs::create_dir(&other).unwrap();
                    let made = other.join("made.txt");
                    let write = json!({"file_path": made, "content": "x"});
                    stage.api.append(
                        Script::new()
                            .rule(when().turn(0), reply().tool_use("Write", write))
                            .rule(when(), reply().text("Done.")),
                    );
                    for given in [false, true] {
                        let mut options = stage.options();
                        options.permissions.mode = PermissionMode::AcceptEdits;
                        if given {
                            options.context.additional_directories = vec![other.clone()];
                        }
                        let result = ostler::prompt("Write", options);
                        let result = stage.within("the result", result).await.unwrap();
                        let denied = result.permission_denials.len();
                        stage.note(format!(
                            "given {given}: denied {denied}, made {}",
                            made.exists()
                        ));
                    }
                }
                .boxed()
            },
            "given false: denied 1, made false
             given true: denied 0, made true",
        ),
        scenario(
            "opt-setting-sources",
            Script::new()
                .rule(when().turn(0), super::touch("made.txt"))
                .rule(when(), reply().text("Done.")),
            |stage| {
                async {
                    let folder = stage.home.path().join(".claude");
                    std::fs::create_dir_all(&folder).unwrap();
                    std::fs::write(folder.join("settings.json"), settings()).unwrap();
                    run(stage, stage.options()).await;
                    stage.note_file("made.txt");
                    let mut options = stage.options();
                    options.context.setting_sources = vec![SettingSource::User];
                    run(stage, options).await;
                    stage.note_file("made.txt");
                }
                .boxed()
            },
            "made.txt is not there
             made.txt is there",
        ),
        scenario(
            "opt-settings",
            Script::new()
                .rule(when().turn(0), super::touch("made.txt"))
                .rule(when(), reply().text("Done.")),
            |stage| {
                async {
                    let file = stage.home.path().join("mine.json");
                    std::fs::write(&file, settings()).unwrap();
                    for given in [settings(), file.display().to_string()] {
                        let mut options = stage.options();
                        options.context.settings = Some(given);
                        run(stage, options).await;
                        stage.note_file("made.txt");
                        std::fs::remove_file(stage.file("made.txt")).ok();
                    }
                }
                .boxed()
            },
            "made.txt is there
             made.txt is there",
        ),
    ]
}

fn rules() -> Vec<Scenario> {
    vec![
        scenario(
            "opt-permission-mode",
            Script::new()
                .rule(when().turn(0), super::touch("made.txt"))
                .rule(when(), reply().text("Done.")),
            |stage| {
                async {
                    use PermissionMode::{AcceptEdits, Default, DontAsk};
                    for mode in [Default, DontAsk, AcceptEdits] {
                        let options = deciding(stage, Decision::deny("no"));
                        run(stage, options.permission_mode(mode.clone())).await;
                        stage.note(format!("{mode}: {}", stage.file("made.txt").exists()));
                    }
                }
                .boxed()
            },
            "default: false
             dontAsk: false
             acceptEdits: true
             * may Bash?",
        ),
        scenario(
            "opt-permission-timeout",
            touch_script(),
            |stage| {
                async {
                    let mut options = stage.options().on_permission(|_| std::future::pending());
                    options.permissions.timeout = Some(std::time::Duration::from_millis(100));
                    stage.query("Run it", options).await;
                    stage.note_file("made.txt");
                }
                .boxed()
            },
            r#"init
               call Bash {"command":"touch made.txt","description":"Make it"}
               tool failed
               text Done.
               result success "Done." denied=1
               made.txt is not there"#,
        ),
        scenario(
            "opt-plugins",
            Script::new().rule(when(), reply().text("Hello.")),
            |stage| {
                async {
                    let plugin = stage.home.path().join("herbs");
                    std::fs::create_dir_all(plugin.join(".claude-plugin")).unwrap();
                    let manifest = json!({"name": "herbs", "version": "1.0.0"}).to_string();
                    std::fs::write(plugin.join(".claude-plugin/plugin.json"), manifest).unwrap();
                    let mut options = stage.options();
                    options.context.plugins = vec![plugin];
                    let told = init(stage, options).await;
                    let plugins = told["plugins"].as_array().cloned().unwrap_or_default();
                    let there = plugins.iter().any(|plugin| plugin["name"] == "herbs");
                    stage.note(format!("the plugin is there: {there}"));
                }
                .boxed()
            },
            "the plugin is there: true",
        ),
        scenario(
            "opt-checkpointing-off",
            Script::new().rule(when(), reply().text("Hello.")),
            |stage| {
                async {
                    let mut client = stage.client(stage.options()).await;
                    stage.within("the result", client.prompt("Say hello")).await.unwrap();
                    let prompt = "44444444-4444-4444-8444-444444444444".into();
                    let handle = client.handle();
                    let rewound = stage.within("the rewind", handle.rewind_files(prompt)).await;
                    stage.note(match rewound {
                        Ok(reply) => format!("rewound {}", reply.can_rewind),
                        Err(error) => format!("error {:?}", error.kind()),
                    });
                }
                .boxed()
            },
            "error Refused",
        ),
    ]
}

fn running() -> Vec<Scenario> {
    vec![
        scenario(
            "opt-cancellation",
            replies(vec![reply().text_pieces(["Hel", "lo."]).gate(1, "midway")]),
            |stage| {
                async {
                    let token = CancellationToken::new();
                    let options = stage.options().cancel_with(token.clone());
                    let mut client = stage.client(options).await;
                    client.send("Say hello").await.unwrap();
                    stage.within("the response", stage.api.gate("midway").reached()).await;
                    token.cancel();
                    // Messages before it may or may not arrive.
                    while let Some(message) = stage.within("the end", client.next()).await {
                        if let Err(error) = message {
                            stage.note(format!("error {:?}", error.kind()));
                        }
                    }
                }
                .boxed()
            },
            "error Cancelled",
        ),
        scenario(
            "opt-replay",
            Script::new().rule(when(), reply().text("Hello.")),
            |stage| {
                async {
                    let mut options = stage.options();
                    options.output.replay_user_messages = true;
                    let is_replay = |message: &Message| match message {
                        Message::User(user) => user.is_replay == Some(true),
                        _ => false,
                    };
                    let heard = messages(stage, options).await;
                    let replays = heard.iter().filter(|message| is_replay(message)).count();
                    stage.note(format!("{replays} prompt comes back"));
                }
                .boxed()
            },
            "1 prompt comes back",
        ),
        scenario(
            "opt-extra-args-odd",
            Script::new().rule(when(), reply().text("Hello.")),
            |stage| {
                async {
                    let mut options = stage.options();
                    options.engine.extra_args = vec![("seed".to_owned(), Some("7".to_owned()))];
                    match stage.within("the result", ostler::prompt("Say hello", options)).await {
                        Ok(_) => stage.note("taken"),
                        Err(error) => stage.note(format!(
                            "error {:?}, names it: {}",
                            error.kind(),
                            error.to_string().contains("--seed")
                        )),
                    }
                }
                .boxed()
            },
            "error Usage, names it: true",
        ),
        scenario(
            "opt-user",
            Script::new().rule(when(), reply().text("Hello.")),
            |stage| {
                async {
                    let mut options = stage.options();
                    let name = std::process::Command::new("id").arg("-un").output().unwrap();
                    let name = String::from_utf8(name.stdout).unwrap();
                    options.engine.user = Some(name.trim().to_owned());
                    run(stage, options).await;
                    stage.note("ran");
                }
                .boxed()
            },
            "ran",
        ),
        scenario(
            "opt-extra-args",
            Script::new().rule(when(), reply().text("Hello.")),
            |stage| {
                async {
                    let mut options = stage.options();
                    options.model.name = None;
                    let model = ("model".to_owned(), Some("claude-opus-4-5".to_owned()));
                    options.engine.extra_args = vec![model];
                    run(stage, options).await;
                    stage.note(stage.requests().last().unwrap().model().to_owned());
                }
                .boxed()
            },
            "claude-opus-4-5",
        ),
    ]
}

//! Slash commands, skills, output styles and plan mode, as a host sees them.

use std::fs;

use ostler_engine::library::{self, Places};
use ostler_engine::permission::{Behavior, Policy, Source};
use ostler_engine::session::SessionOptions;
use ostler_engine::store::{LineContext, Projects, SessionStart};
use ostler_proto::frame::ToHost;
use ostler_proto::message::User;
use ostler_proto::permission::PermissionMode;
use ostler_testkit::{Script, reply, when};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::host::TestHost;
use crate::tools;

/// A project with files, and a session in it.
struct Project {
    folder: TempDir,
    trusts: bool,
}

impl Project {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Self { folder, trusts: false }
    }

    fn trusted(self) -> Self {
        Self { trusts: true, ..self }
    }

    fn options(&self, options: &mut SessionOptions) {
        let cwd = self.folder.path().canonicalize().unwrap();
        options.policy = Policy::new(&cwd, PermissionMode::Default);
        options.library = library::load(&Places {
            project: Some(cwd.clone()),
            trusts_project: self.trusts,
            ..Places::default()
        });
        options.cwd = cwd;
        options.tools.push(tools::shell());
    }

    async fn host(&self, script: Script) -> TestHost {
        TestHost::with(script, |options| self.options(options)).await
    }
}

fn any() -> Script {
    Script::new().rule(when(), reply().text("Reply."))
}

/// The texts of the last prompt that the model read.
fn read(host: &TestHost) -> Vec<String> {
    let requests = host.api.requests();
    let last = requests.last().unwrap().messages().last().unwrap().clone();
    let blocks = last["content"].as_array().unwrap().clone();
    blocks.iter().map(|block| block["text"].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn a_command_becomes_a_prompt_with_its_arguments() {
    let text = "---\ndescription: Reviews\nmodel: haiku\n---\nReview $ARGUMENTS, $0 first.";
    let project = Project::new(&[(".claude/commands/git/review.md", text)]);
    let mut host = project.host(any()).await;
    host.prompt("/git:review a.txt b.txt").await;
    assert_eq!(host.result().await.result.as_deref(), Some("Reply."));
    let call = "<command-message>git:review</command-message>\n<command-name>/git:review</command-name>\n<command-args>a.txt b.txt</command-args>";
    assert_eq!(read(&host), [call, "Review a.txt b.txt, a.txt first."]);
    assert_eq!(host.api.requests()[0].model(), "claude-haiku-5-5");
    host.prompt("and now?").await;
    host.result().await;
    assert_eq!(host.api.requests()[1].model(), "test-model", "only for that turn");
    let first = |at: usize| host.api.requests()[at].messages()[0]["content"][1]["text"].clone();
    assert_eq!(first(1), first(0), "the prefix stays");
}

#[tokio::test]
async fn arguments_without_a_placeholder_follow_the_command() {
    let project = Project::new(&[(".claude/commands/x.md", "Do it.")]);
    let mut host = project.host(any()).await;
    host.prompt("/x now").await;
    host.result().await;
    assert_eq!(read(&host)[1], "Do it.\n\nARGUMENTS: now");
}

#[tokio::test]
async fn a_hook_may_replace_the_text_of_a_command() {
    let project = Project::new(&[(".claude/commands/x.md", "Do it.")]);
    for (context, expected) in [(json!("a gist"), Some("a gist")), (Value::Null, None)] {
        let said = json!({"hookSpecificOutput": {
            "hookEventName": "UserPromptExpansion", "suppressOriginalPrompt": true,
            "additionalContext": context,
        }});
        let command = json!({"type": "command", "command": format!("echo '{said}'")});
        let hooks = json!({"UserPromptExpansion": [{"hooks": [command]}]});
        let mut host = TestHost::with(any(), |options| {
            project.options(options);
            options.hooks = vec![hooks];
        })
        .await;
        host.prompt("/x now").await;
        host.result().await;
        match expected {
            Some(expected) => assert_eq!(read(&host), [expected]),
            None => assert!(host.api.requests().is_empty(), "nothing is left to ask"),
        }
    }
}

#[tokio::test]
async fn a_prompt_with_a_slash_but_without_a_known_command_is_a_prompt() {
    let project = Project::new(&[(".claude/commands/x.md", "Do it.")]);
    let mut host = project.host(any()).await;
    host.prompt("/nosuch hello").await;
    host.result().await;
    assert_eq!(read(&host), ["/nosuch hello"]);
}

#[tokio::test]
async fn command_lines_of_a_command_require_permission() {
    let text = "---\ndescription: x\nallowed-tools: Bash(rm a)\n---\nOut: !`rm a` end";
    let project = Project::new(&[(".claude/commands/x.md", text)]).trusted();
    let mut host = project.host(any()).await;
    host.prompt("/x").await;
    assert_eq!(host.result().await.result.as_deref(), Some("Reply."));
    // The shell of these tests prints the command.
    assert_eq!(read(&host)[1], "Out: rm a end");

    // A file of an untrusted project grants nothing: the host is asked.
    let project = Project::new(&[(".claude/commands/x.md", text)]);
    let host = project.host(any()).await;
    let mut host = host.answering(json!({"behavior": "deny", "message": "not that"}));
    host.prompt("/x").await;
    let result = host.result().await;
    let words = result.result.unwrap();
    assert!(words.contains("`rm a` was not permitted: not that"), "{words}");
    assert_eq!(host.api.requests().len(), 0, "nothing went to the model");
}

#[tokio::test]
async fn permissions_of_a_command_end_with_its_turn() {
    let text = "---\ndescription: x\nallowed-tools: Bash(rm a)\n---\nGo.";
    let project = Project::new(&[(".claude/commands/x.md", text)]).trusted();
    let call = || reply().tool_use("Bash", json!({"command": "rm a"}));
    let script = Script::new()
        .rule(when().has_tool_result(true).prompt_contains("Go."), reply().text("Reply."))
        .rule(when().prompt_contains("Go."), call())
        .rule(when().prompt_contains("later").turn(0), call())
        .rule(when(), vec![call(), reply().text("Over.")]);
    let host = project.host(script).await;
    let mut host = host.answering(json!({"behavior": "deny", "message": "no"}));
    host.prompt("/x").await;
    host.result().await;
    let asked = |host: &TestHost| {
        host.story().iter().filter(|line| line.starts_with("control_request")).count()
    };
    assert_eq!(asked(&host), 0, "{:#?}", host.story());
    host.prompt("later").await;
    host.result().await;
    assert_eq!(asked(&host), 1, "{:#?}", host.story());
}

#[tokio::test]
async fn commands_and_skills_are_listed() {
    let skill = "---\ndescription: Greets\n---\nHello.";
    let project = Project::new(&[
        (".claude/skills/greet/SKILL.md", skill),
        (".claude/commands/x.md", "Do it."),
        (".claude/skills/quiet/SKILL.md", "---\ndescription: q\nuser-invocable: false\n---\nQ"),
    ]);
    let mut host = project.host(any()).await;
    host.prompt("hello").await;
    let init = serde_json::to_value(host.until("system init").await).unwrap();
    let commands = ["greet", "x", "clear", "compact", "context", "cost", "help"];
    assert_eq!(init["slash_commands"], json!(commands));
    assert_eq!(init["skills"], json!(["greet", "quiet"]));
    assert_eq!(init["output_style"], "default");
}

#[tokio::test]
async fn the_model_loads_a_skill_when_it_needs_it() {
    let project = Project::new(&[(
        ".claude/skills/greet/SKILL.md",
        "---\ndescription: Greets people\n---\nSay hello to $ARGUMENTS.",
    )]);
    let script = Script::new()
        .rule(when().has_tool_result(true), reply().text("Hello Bob."))
        .rule(when(), reply().tool_use("Skill", json!({"skill": "greet", "args": "Bob"})));
    let mut host = project.host(script).await;
    host.prompt("greet him").await;
    host.result().await;
    let request = &host.api.requests()[0];
    let offered = serde_json::to_string(&request.body["tools"]).unwrap();
    assert!(offered.contains("\\n- greet: Greets people"), "{offered}");
    let folder = project.folder.path().canonicalize().unwrap().join(".claude/skills/greet");
    let expected =
        format!("Base directory for this skill: {}\n\nSay hello to Bob.", folder.display());
    let texts = read(&host);
    assert_eq!(texts.last(), Some(&expected), "a message of its own after the result: {texts:?}");
    let result = host.result_seen();
    assert_eq!(result.num_turns, 3, "the prompt, the result of the call, the text of the skill");
    let messages = host
        .seen
        .iter()
        .filter(|frame| matches!(frame, ToHost::User(user) if user.is_synthetic == Some(true)));
    assert_eq!(messages.count(), 1);
}

// Mutants: files are read without a decision; also those that need an approval (`may_read`); a composed prompt is expanded too.
#[tokio::test]
async fn files_that_a_prompt_mentions_are_read_if_that_needs_no_approval() {
    let project = Project::new(&[("notes.txt", "NOTE"), ("secret.txt", "SECRET")]);
    let mut host = TestHost::with(any(), |options| {
        project.options(options);
        options.tools.push(tools::read());
        let rule = "Read(secret.txt)".parse().unwrap();
        options.policy.add_rule(Behavior::Deny, rule, Source::CliArg);
    })
    .await
    .answering(json!({"behavior": "allow"}));
    let outside = tempfile::NamedTempFile::new().unwrap();
    fs::write(outside.path(), "OUTSIDE").unwrap();
    let outside = outside.path().display();
    let prompt = format!("see @notes.txt, @secret.txt, @missing.txt and @{outside}");
    host.prompt(&prompt).await;
    host.result().await;
    let texts = read(&host);
    assert_eq!(texts[0], prompt);
    assert!(texts.len() == 2 && texts[1].contains("notes.txt"), "{texts:?}");
    let asked = |frame: &ToHost| matches!(frame, ToHost::ControlRequest(_));
    assert!(!host.seen.iter().any(asked), "a mention asks nothing: {:#?}", host.story());
    let composed = User { client_composed: Some(true), ..User::prompt("see @notes.txt") };
    host.user(composed).await;
    host.result().await;
    assert_eq!(read(&host).last().unwrap(), "see @notes.txt");
}

#[tokio::test]
async fn without_skills_there_is_no_tool_for_them() {
    let mut host = Project::new(&[]).host(any()).await;
    host.prompt("hello").await;
    host.result().await;
    assert!(!host.api.requests()[0].tool_names().contains(&"Skill"));
}

#[tokio::test]
async fn commands_of_the_engine_answer_without_the_model() {
    let mut host = TestHost::start(any()).await;
    for command in ["/context", "/cost", "/help"] {
        host.prompt(command).await;
        let result = host.result().await;
        assert_eq!(result.local_command.as_deref(), Some(&command[1..]));
        assert_eq!(result.num_turns, 0);
        let text = result.result.unwrap();
        assert!(!text.is_empty());
        assert!(host.story().contains(&format!("assistant: {text}")), "{:#?}", host.story());
    }
    assert_eq!(host.api.requests().len(), 0);
}

#[tokio::test]
async fn clear_begins_another_session() {
    let folder = tempfile::tempdir().unwrap();
    let scene = LineContext {
        cwd: folder.path().to_owned(),
        version: "0.1.0".to_owned(),
        entrypoint: None,
    };
    let opened = Projects::new(folder.path()).open(scene, &SessionStart::default()).unwrap();
    let file = opened.writer.path().to_owned();
    let mut host = TestHost::with(any(), |options| options.opened = Some(opened)).await;
    host.prompt("before").await;
    let before = host.result().await;
    host.prompt("/clear").await;
    let cleared = host.result().await;
    assert_eq!(cleared.local_command.as_deref(), Some("clear"));
    assert_eq!(serde_json::to_value(&cleared.total_cost_usd).unwrap(), json!(0));
    assert_ne!(cleared.session_id, before.session_id);
    let story = host.story();
    assert_eq!(story[story.len() - 3..], ["conversation_reset", "system init", "result success: "]);
    let reset = host.seen.iter().find_map(|frame| match frame {
        ToHost::ConversationReset(reset) => Some(reset.clone()),
        _ => None,
    });
    let reset = reset.unwrap();
    assert_eq!(
        (reset.session_id, reset.new_conversation_id.clone()),
        (before.session_id, cleared.session_id)
    );
    host.prompt("after").await;
    let after = host.result().await;
    assert_eq!(after.session_id, reset.new_conversation_id);
    assert_eq!(host.api.requests()[1].messages().len(), 1, "what was said before is forgotten");
    let new = file.with_file_name(format!("{}.jsonl", after.session_id));
    assert!(fs::read_to_string(&file).unwrap().contains("before"));
    let new = fs::read_to_string(&new).unwrap();
    assert!(new.contains("after") && !new.contains("before"), "{new}");
}

#[tokio::test]
async fn a_style_is_part_of_the_system_prompt_unless_the_host_has_its_own() {
    let style = "---\nname: Pirate\n---\nTalk like a pirate.";
    let project = Project::new(&[(".claude/output-styles/p.md", style)]);
    for (own, expected) in [(None, true), (Some("You are a cat.".to_owned()), false)] {
        let mut host = TestHost::with(any(), |options| {
            project.options(options);
            options.output_style = Some("Pirate".to_owned());
            options.launch.system_prompt = own;
        })
        .await;
        host.prompt("hello").await;
        host.result().await;
        let system = host.api.requests()[0].system_text();
        assert_eq!(system.contains("Talk like a pirate."), expected, "{system}");
        let init = serde_json::to_value(&host.seen[0]).unwrap();
        assert_eq!(init["output_style"], "Pirate");
    }
}

#[tokio::test]
async fn in_plan_mode_the_instructions_go_with_the_prompt() {
    let mut host = TestHost::with(any(), |options| {
        options.policy.mode = PermissionMode::Plan;
    })
    .await;
    host.prompt("make it").await;
    host.result().await;
    let words = read(&host);
    assert_eq!(words[0], "make it");
    assert!(words[1].contains("Plan mode is on"), "{words:?}");
    assert!(!host.api.requests()[0].system_text().contains("Plan mode"), "the prefix is the same");
}

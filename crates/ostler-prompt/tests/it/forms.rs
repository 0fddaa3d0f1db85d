//! Seed 002, "SDK API Selection": the original has two forms of prompts; here the only form has all features of both.

use ostler_prompt::{Adapter, Markdown, Prompt, Session, tool_with_context};
use ostler_testkit::{Script, reply, when};
use serde_json::{Value, json};

use crate::fake::{Fake, INTRODUCES, prompt};
use crate::result;
use crate::stage::{PublishedEvents, Stage, within};

#[tokio::test]
async fn the_prompt_is_sent_as_a_streamed_message_under_its_own_name() {
    let result = result!(r#""subtype":"success","is_error":false,"result":"ok""#);
    let fake = Fake::new(&[INTRODUCES, result]);
    let adapter = Adapter::new(fake.options());
    within(adapter.evaluate(&prompt::<()>("go"), &Session::new())).await.unwrap();
    let sent = std::fs::read_to_string(fake.folder.path().join("prompt")).unwrap();
    let expected = json!({
        "type": "user",
        "message": {"role": "user", "content": "## 1. Task\n\ngo\n"},
        "parent_tool_use_id": null,
        "session_id": "test/prompt",
    });
    assert_eq!(serde_json::from_str::<Value>(&sent).unwrap(), expected);
}

#[tokio::test]
async fn row_hooks_are_always_on() {
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Bash", json!({"command": "true"})))
        .rule(when(), reply().text("Done."));
    let stage = Stage::new(script).await;
    let (session, prompt) = (Session::new(), prompt::<()>("go"));
    let mut published = PublishedEvents::of(&session);
    let response = within(stage.adapter().evaluate(&prompt, &session)).await.unwrap();
    // UserPromptSubmit, PreToolUse, PostToolUse, Stop.
    assert_eq!(response.hooks.calls, 4);
    assert!(published.lines().contains(&"invoked Bash".to_owned()));
}

#[tokio::test]
async fn row_custom_tools_via_mcp_work() {
    let tool =
        tool_with_context("hello", "Says hello", |(): (), _| async { Ok::<_, String>("hello") });
    let prompt = Prompt::<()>::builder("test", "prompt")
        .section(Markdown::new("Task", "task", "go").tool(tool))
        .build()
        .unwrap();
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("mcp__ostler__hello", json!({})))
        .rule(when(), reply().text("It says {{tool_result}}."));
    let stage = Stage::new(script).await;
    let response = within(stage.adapter().evaluate(&prompt, &Session::new())).await.unwrap();
    assert_eq!(response.text.as_deref(), Some("It says hello."));
}

#[tokio::test]
async fn row_one_shot_queries_are_one_await() {
    let stage = Stage::new(Script::new().rule(when(), reply().text("Done."))).await;
    let response = within(stage.adapter().evaluate(&prompt::<()>("go"), &Session::new())).await;
    assert_eq!(response.unwrap().text.as_deref(), Some("Done."));
}

#[tokio::test]
async fn row_lifecycle_the_engine_ends_with_the_run() {
    // The response is returned only after the engine has ended.
    let result = r#"printf '%s\n' '{"type":"result","subtype":"success","is_error":false,"result":"ok","duration_ms":1,"duration_api_ms":1,"num_turns":1,"total_cost_usd":0,"usage":{},"modelUsage":{},"permission_denials":[],"uuid":"u","session_id":"s"}'; cat > /dev/null; touch ended"#;
    let fake = Fake::new(&[INTRODUCES, result]);
    let adapter = Adapter::new(fake.options());
    within(adapter.evaluate(&prompt::<()>("go"), &Session::new())).await.unwrap();
    assert!(fake.folder.path().join("ended").exists());
}

#[test]
fn the_same_sections_always_give_the_same_text() {
    #[derive(serde::Serialize)]
    struct Params {
        name: &'static str,
    }
    let folder = tempfile::tempdir().unwrap();
    for name in ["b.txt", "a.txt", "c/d.txt"] {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "x").unwrap();
    }
    let render = || {
        let mount = ostler_prompt::HostMount::new(folder.path()).mount_path("it");
        let workspace = ostler_prompt::Workspace::builder().mount(mount).open().unwrap();
        let prompt = Prompt::<()>::builder("test/deep", "prompt")
            .name("greeting")
            .section(
                Markdown::new("Task", "task", "Greet ${name}.\n\n").params(Params { name: "Ada" }),
            )
            .section(&workspace)
            .section(Markdown::new("Manners", "manners", "Be kind."))
            .build()
            .unwrap();
        assert_eq!(
            (prompt.name(), prompt.namespace(), prompt.key()),
            ("greeting", "test/deep", "prompt")
        );
        prompt.text().to_owned()
    };
    let text = render();
    assert_eq!(text, render());
    let expected = "## 1. Task\n\nGreet Ada.\n\n## 2. Workspace\n\nThe working directory holds copies of files of the \
        host; change them as you need. Paths are relative to it.\n\n- `it`: 3 files, 3 B\n  - `it/a.txt` (1 B)\n  - \
        `it/b.txt` (1 B)\n  - `it/c/d.txt` (1 B)\n\n## 3. Manners\n\nBe kind.\n";
    assert_eq!(text, expected);
}

#[test]
fn an_invalid_prompt_is_refused_when_it_is_built() {
    let check = |namespace: &str, key: &str, sections: Vec<Markdown>, expected: &str| {
        let mut builder = Prompt::<()>::builder(namespace, key);
        for section in sections {
            builder = builder.section(section);
        }
        let error = builder.build().map(drop).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    let section = || Markdown::new("Task", "task", "go");
    check("", "key", vec![section()], "the namespace `` is not valid");
    check("ns", "Key", vec![section()], "the key `Key` is not valid");
    check("ns", "key", vec![], "has no text");
    check("ns", "key", vec![Markdown::new("T", "a b", "go")], "the section key `a b` is not valid");
    check("ns", "key", vec![section(), section()], "two sections have the key `task`");
    check("ns", "key", vec![Markdown::new("T", "t", "${who}")], "`who`");
    let unused = Markdown::new("T", "t", "go").params(json!({"who": 1}));
    check("ns", "key", vec![unused], "is not used");
    check(
        "ns",
        "key",
        vec![Markdown::new("T", "t", "go").params(7)],
        "a struct or a map is needed",
    );
}

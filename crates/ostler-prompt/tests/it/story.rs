//! The worked example: a code review by a program.
//!
//! A folder is mounted, the program offers its own tool, the answer has a type, time and money are limited, and all
//! events are published during the run. The test runs on the embedded engine and on the vendor's programs.

use std::time::Duration;

use ostler_prompt::{
    Budget, Deadline, Event, HostMount, Markdown, Prompt, Render, Session, Tool, ToolContext,
    Workspace, tool_with_context,
};
use ostler_testkit::{Script, Usage, reply, when};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::stage::{Backend, PublishedEvents, Stage, within};

/// The answer.
#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Review {
    /// From 1, bad, to 10, good.
    score: u8,
    findings: Vec<Finding>,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Finding {
    file: String,
    line: u32,
    remark: String,
}

/// The arguments of the program's own tool.
#[derive(Deserialize, JsonSchema)]
struct Owner {
    /// The file whose owner is wanted.
    file: String,
}

#[derive(Serialize)]
struct Person {
    name: &'static str,
    minutes_left: u64,
}

impl Render for Person {
    fn render(&self) -> Option<String> {
        Some(format!("{} owns it", self.name))
    }
}

fn owner_tool() -> Tool {
    tool_with_context(
        "owner",
        "Says who owns a file",
        |args: Owner, context: ToolContext| async move {
            if args.file.is_empty() {
                return Err("which file?".to_owned());
            }
            let minutes_left = context.deadline().ok_or("no deadline")?.remaining().as_secs() / 60;
            Ok(Person { name: "Ada", minutes_left })
        },
    )
}

#[derive(Serialize)]
struct Task {
    folder: &'static str,
    most: u8,
}

fn prompt(workspace: &Workspace) -> Prompt<Review> {
    let task = "Review the code in ${folder}. Report at most ${most} findings.";
    Prompt::builder("review", "code")
        .section(
            Markdown::new("Task", "task", task)
                .params(Task { folder: "project/src", most: 3 })
                .tool(owner_tool()),
        )
        .section(workspace)
        .build()
        .unwrap()
}

/// The model lists the folder, asks for the owner, changes a file, and answers.
fn script() -> Script {
    let answer = json!({
        "score": 4,
        "findings": [{"file": "project/src/main.rs", "line": 1, "remark": "Ada should say why"}],
    });
    let answers = when().tool_result_of("Bash").turn(2);
    Script::new()
        .rule(
            when().prompt_contains("Review the code in project/src").turn(0),
            reply()
                .tool_use("Read", json!({"file_path": "project/src/main.rs"}))
                .usage(Usage::tokens(100, 10)),
        )
        .rule(
            when().tool_result_contains("fn main").turn(1),
            reply()
                .tool_use("mcp__ostler__owner", json!({"file": "main.rs"}))
                .tool_use("Bash", json!({"command": "echo '// reviewed' >> project/src/main.rs"}))
                .usage(Usage::tokens(120, 20)),
        )
        .rule(answers, reply().tool_use("StructuredOutput", answer).usage(Usage::tokens(150, 30)))
        // The older vendor program may ask for a last message.
        .rule(when().tool_result_of("StructuredOutput"), reply().text("Done."))
}

async fn review(backend: Backend) {
    let host = tempfile::tempdir().unwrap();
    std::fs::create_dir(host.path().join("src")).unwrap();
    std::fs::write(host.path().join("src/main.rs"), "fn main() {}\n").unwrap();
    std::fs::write(host.path().join("src/main.pyc"), [0; 64]).unwrap();
    let workspace = Workspace::builder()
        .mount(
            HostMount::new("src")
                .mount_path("project/src")
                .exclude_glob(["*.pyc", "__pycache__/*"])
                .max_bytes(1_000_000),
        )
        .allowed_host_roots([host.path()])
        .open()
        .unwrap();
    let stage = Stage::on(backend, script()).await;
    let session = Session::new();
    let mut published = PublishedEvents::of(&session);
    let prompt = prompt(&workspace);

    let response = within(
        stage
            .adapter()
            .evaluate(&prompt, &session)
            .deadline(Deadline::after(Duration::from_secs(600)))
            .budget(Budget::tokens(1_000_000).max_usd(100.0)),
    )
    .await
    .unwrap();

    // The answer is decoded.
    let finding = Finding {
        file: "project/src/main.rs".to_owned(),
        line: 1,
        remark: "Ada should say why".to_owned(),
    };
    assert_eq!(response.output, Review { score: 4, findings: vec![finding] });
    assert_eq!(response.prompt_name, "review/code");
    // Usage is exact to the token.
    assert!(
        response.usage.input_tokens >= 370 && response.usage.output_tokens >= 60,
        "{:?}",
        response.usage
    );
    assert!(response.cost_usd > 0.0);
    assert_eq!((response.tool_calls, response.denied_calls), (4, 0));

    // Every event was published, each call once.
    let events = published.events();
    let invoked: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::ToolInvoked(call) => Some(call),
            _ => None,
        })
        .collect();
    let names: Vec<&str> = invoked.iter().map(|call| call.name.as_str()).collect();
    assert_eq!(names, ["Read", "mcp__ostler__owner", "Bash", "StructuredOutput"]);
    assert!(invoked.iter().all(|call| call.success && call.adapter == "claude_agent_sdk"));
    assert!(invoked[1].result.to_string().contains("Ada owns it"), "{}", invoked[1].result);
    assert_eq!(invoked[2].result["interrupted"], false);
    let Some(Event::PromptRendered(rendered)) = events.first() else { panic!("{events:?}") };
    assert_eq!(rendered.tools, ["mcp__ostler__owner"]);
    assert!(
        rendered.text.contains("## 2. Workspace")
            && rendered.text.contains("`project/src/main.rs` (13 B)")
    );
    let Some(Event::PromptExecuted(executed)) = events.last() else { panic!("{events:?}") };
    assert_eq!(executed.output.as_ref().unwrap()["score"], 4);
    assert_eq!((executed.usage, &executed.error), (response.usage, &None));
    assert!(executed.hooks.calls >= 9, "{:?}", executed.hooks);

    // The original is unchanged, and the changes can be listed and applied.
    let original = host.path().join("src/main.rs");
    assert_eq!(std::fs::read_to_string(&original).unwrap(), "fn main() {}\n");
    let changes = workspace.changes().unwrap();
    assert!(changes.to_patch().contains("\n+// reviewed\n"), "{}", changes.to_patch());
    assert_eq!(changes.apply().unwrap().applied, [original.canonicalize().unwrap()]);
    assert_eq!(std::fs::read_to_string(&original).unwrap(), "fn main() {}\n// reviewed\n");

    // Nothing is left behind.
    let folder = workspace.path().to_owned();
    drop((workspace, changes));
    assert!(folder.exists(), "the prompt still has it");
    drop(prompt);
    assert!(!folder.exists());
}

#[tokio::test]
async fn a_code_review_on_the_engine_in_this_process() {
    review(Backend::Embedded).await;
}

#[tokio::test]
#[ignore = "needs npm packages; run by cargo xtask test"]
async fn a_code_review_on_the_older_vendor_program() {
    review(Backend::Vendor50).await;
}

#[tokio::test]
#[ignore = "needs npm packages; run by cargo xtask test"]
async fn a_code_review_on_the_newer_vendor_program() {
    review(Backend::Vendor325).await;
}

//! The structured outputs have the published types: every tool runs here in all its modes, and the outputs are
//! checked by our own types and by the TypeScript compiler with the declarations of the official SDK.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use ostler_proto::drift;
use ostler_proto::tool::ToolOutput;
use ostler_testkit::{Reply, ScriptedApi, Usage, reply};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::session::{Session, make_pipe};
use crate::{notebook_edit, pdf, read, rules, web_search};

/// The output of one call.
struct Sample {
    tool: &'static str,
    /// The published name of its type; `None` for unpublished ones.
    shape: Option<&'static str>,
    output: Value,
}

/// Collects the outputs of calls.
#[derive(Default)]
struct Samples(Vec<Sample>);

impl Samples {
    fn add(&mut self, tool: &'static str, output: Value) {
        self.0.push(Sample { tool, shape: shape(tool), output });
    }

    async fn call(&mut self, session: &Session, tool: &'static str, input: Value) -> Value {
        let output = session.structured(tool, input).await;
        self.add(tool, output.clone());
        output
    }
}

fn shape(tool: &str) -> Option<&'static str> {
    Some(match tool {
        "AskUserQuestion" => "AskUserQuestionOutput",
        "Bash" => "BashOutput",
        "Edit" => "FileEditOutput",
        "EnterPlanMode" => "EnterPlanModeOutput",
        "ExitPlanMode" => "ExitPlanModeOutput",
        "Glob" => "GlobOutput",
        "Grep" => "GrepOutput",
        "NotebookEdit" => "NotebookEditOutput",
        "Read" => "FileReadOutput",
        "TaskCreate" => "TaskCreateOutput",
        "TaskGet" => "TaskGetOutput",
        "TaskList" => "TaskListOutput",
        "TaskStop" => "TaskStopOutput",
        "TaskUpdate" => "TaskUpdateOutput",
        "TodoWrite" => "TodoWriteOutput",
        "WebFetch" => "WebFetchOutput",
        "WebSearch" => "WebSearchOutput",
        "Write" => "FileWriteOutput",
        _ => return None,
    })
}

async fn samples() -> Vec<Sample> {
    let mut samples = Samples::default();
    files(&mut samples).await;
    searches(&mut samples).await;
    notebooks(&mut samples).await;
    commands(&mut samples).await;
    conversation(&mut samples).await;
    tasks(&mut samples).await;
    web(&mut samples).await;
    samples.0
}

async fn files(samples: &mut Samples) {
    let session = Session::new();
    let read = |path: &str| json!({"file_path": path});
    session.file("a.txt", "one\ntwo\nthree\n");
    session.file("empty.txt", "");
    session.file("long.txt", "line\n".repeat(5_000));
    session.file("wide.png", read::picture(3_000, 30));
    session.file("a.png", read::picture(3, 2));
    session.file("a.pdf", pdf::pages(3));
    session.file("a.ipynb", notebook_edit::JUPYTER);
    for path in ["a.txt", "empty.txt", "long.txt", "wide.png", "a.png", "a.pdf", "a.ipynb"] {
        samples.call(&session, "Read", read(path)).await;
    }
    // A file that has not changed.
    samples.call(&session, "Read", read("a.txt")).await;
    samples.call(&session, "Read", json!({"file_path": "a.txt", "offset": 2, "limit": 1})).await;
    samples.call(&session, "Read", json!({"file_path": "a.pdf", "pages": "2-3"})).await;

    let edit = |old: &str, new: &str, all: bool| json!({"file_path": "a.txt", "old_string": old, "new_string": new, "replace_all": all});
    samples.call(&session, "Edit", edit("two", "2", false)).await;
    samples.call(&session, "Edit", edit("e", "E", true)).await;
    samples.call(&session, "Edit", edit("2\n", "", false)).await;
    samples.call(&session, "Write", json!({"file_path": "deep/new.txt", "content": "new\n"})).await;
    samples.call(&session, "Write", json!({"file_path": "a.txt", "content": "other\n"})).await;
    samples.call(&session, "Write", json!({"file_path": "a.txt", "content": ""})).await;
}

async fn searches(samples: &mut Samples) {
    let session = Session::new();
    for number in 0..120 {
        session.file(&format!("f{number}.txt"), "needle\nhay\nneedle\n");
    }
    for pattern in ["f1.txt", "*.txt", "nothing"] {
        samples.call(&session, "Glob", json!({"pattern": pattern})).await;
    }
    for mode in ["content", "files_with_matches", "count"] {
        for pattern in ["needle", "nowhere"] {
            let input = json!({"pattern": pattern, "output_mode": mode});
            samples.call(&session, "Grep", input).await;
        }
        let input = json!({"pattern": "needle", "output_mode": mode, "head_limit": 2, "offset": 1});
        samples.call(&session, "Grep", input).await;
    }
    samples
        .call(
            &session,
            "Grep",
            json!({"pattern": "hay", "-C": 1, "output_mode": "content", "-n": false}),
        )
        .await;
}

async fn notebooks(samples: &mut Samples) {
    let session = Session::new();
    session.file("a.ipynb", notebook_edit::JUPYTER);
    session.text("Read", json!({"file_path": "a.ipynb"})).await;
    for input in [
        json!({"notebook_path": "a.ipynb", "cell_id": "c1", "new_source": "print(2)"}),
        json!({"notebook_path": "a.ipynb", "cell_id": "c1", "new_source": "more", "edit_mode": "insert", "cell_type": "markdown"}),
        json!({"notebook_path": "a.ipynb", "cell_id": "m1", "new_source": "", "edit_mode": "delete"}),
    ] {
        samples.call(&session, "NotebookEdit", input).await;
    }
}

async fn commands(samples: &mut Samples) {
    let session = Session::new();
    make_pipe(&session.path("gate"));
    for command in ["echo out; echo err >&2", "true", "seq 20000", "cd /"] {
        samples.call(&session, "Bash", json!({"command": command})).await;
    }
    let background = json!({"command": "cat gate", "run_in_background": true, "description": "d"});
    let started = samples.call(&session, "Bash", background).await;
    let task = started["backgroundTaskId"].clone();
    samples.call(&session, "TaskOutput", json!({"task_id": task, "block": false})).await;
    samples.call(&session, "TaskStop", json!({"task_id": task})).await;
    samples.call(&session, "TaskOutput", json!({"task_id": task})).await;
}

async fn conversation(samples: &mut Samples) {
    let session = Session::new();
    let todos = json!([{"content": "Run", "status": "in_progress", "activeForm": "Running"}]);
    samples.call(&session, "TodoWrite", json!({"todos": todos})).await;
    samples.call(&session, "TodoWrite", json!({"todos": []})).await;
    let option = |label: &str| json!({"label": label, "description": "d"});
    for n_options in 2..=4 {
        let options: Vec<_> =
            ["S", "M", "L", "XL"].into_iter().take(n_options).map(option).collect();
        let question =
            json!({"question": "Which?", "header": "H", "options": options, "multiSelect": true});
        let annotations = json!({"Which?": {"notes": "soon"}});
        let input = json!({"questions": [question], "answers": {"Which?": ["S", "M"]}, "annotations": annotations});
        samples.call(&session, "AskUserQuestion", input).await;
    }
    for (tool, input) in [
        ("EnterPlanMode", json!({})),
        ("ExitPlanMode", json!({"plan": "1. do it"})),
        ("ExitPlanMode", json!({})),
    ] {
        let called = rules::inside(&session, &[], tool, input).await;
        samples.add(tool, called.structured.unwrap());
    }
}

async fn tasks(samples: &mut Samples) {
    let session = Session::new();
    let input = |subject: &str| json!({"subject": subject, "description": "All of it."});
    samples.call(&session, "TaskList", json!({})).await;
    for subject in ["Look", "Leap"] {
        samples.call(&session, "TaskCreate", input(subject)).await;
    }
    for change in [
        json!({"taskId": "1", "status": "in_progress", "addBlocks": ["2"], "owner": "me"}),
        json!({"taskId": "1", "status": "completed"}),
        json!({"taskId": "2", "subject": "Leap far"}),
        json!({"taskId": "9", "status": "completed"}),
    ] {
        if let Ok(output) = session.run("TaskUpdate", change).await {
            samples.add("TaskUpdate", output.structured.unwrap());
        }
    }
    for id in ["1", "2", "9"] {
        if let Ok(output) = session.run("TaskGet", json!({"taskId": id})).await {
            samples.add("TaskGet", output.structured.unwrap());
        }
    }
    samples.call(&session, "TaskList", json!({})).await;
}

async fn web(samples: &mut Samples) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 4096]).await;
        let answer = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 4\r\n\r\nhere";
        stream.write_all(answer.as_bytes()).await.unwrap();
    });
    let session = Session::new();
    let rules = ["allow WebFetch(domain:127.0.0.1)"];
    let fetched = rules::call(&session, &rules, "WebFetch", json!({"url": url})).await;
    samples.add("WebFetch", fetched.structured);

    let found = web_search::searched("srv_1").text("Crabs.").usage(Usage::tokens(100, 50));
    let nothing: Reply = reply().text("Nothing found.");
    for answer in [found, nothing] {
        let script = web_search::script(json!({"query": "crabs"}), vec![answer]);
        let api = ScriptedApi::start(script).await;
        samples.add("WebSearch", web_search::run(&api).await.structured);
    }
}

#[tokio::test]
async fn our_own_types_know_every_field() {
    let samples = samples().await;
    let mut seen: Vec<&str> = samples.iter().map(|sample| sample.tool).collect();
    seen.sort_unstable();
    seen.dedup();
    let (usual, tasks) = (ostler_tools::session_tools(), ostler_tools::task_tools());
    let mut tools: Vec<_> = usual.iter().chain(&tasks).map(|tool| tool.spec().name).collect();
    tools.sort_unstable();
    assert_eq!(seen, tools, "every tool is called here");
    for Sample { tool, output, .. } in &samples {
        let (parsed, unknown) = drift::observe(|| ToolOutput::parse(tool, output));
        let parsed = parsed.unwrap_or_else(|error| panic!("{tool}: {error}: {output}"));
        assert!(unknown.is_empty(), "{tool}: {unknown:?} in {output}");
        let typed = !matches!(parsed, ToolOutput::Unknown { .. } | ToolOutput::TaskOutput(_));
        assert_eq!(typed, shape(tool).is_some(), "{tool}: {output}");
    }
}

/// The folder with npm packages in an environment variable.
fn peers(variable: &str) -> PathBuf {
    let folder = std::env::var_os(variable)
        .unwrap_or_else(|| panic!("{variable} names a folder with node_modules"));
    Path::new(&folder).canonicalize().unwrap().join("node_modules")
}

/// Compiles our outputs as constants of the published types.
fn compile(samples: &[Sample], declarations: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let mut program = String::new();
    for (number, Sample { tool, shape, output }) in samples.iter().enumerate() {
        let Some(shape) = shape else { continue };
        writeln!(
            program,
            "export const {tool}_{number}: import(\"./sdk-tools\").{shape} = {output};"
        )
        .unwrap();
    }
    std::fs::copy(declarations, folder.path().join("sdk-tools.d.ts")).unwrap();
    std::fs::write(folder.path().join("samples.ts"), &program).unwrap();
    let output = Command::new(peers("OSTLER_PEERS").join(".bin/tsc"))
        .args(["--strict", "--noEmit", "--skipLibCheck", "false", "--exactOptionalPropertyTypes"])
        .args(["--target", "es2022", "--module", "esnext", "--types", "", "samples.ts"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let complaints = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{complaints}\n{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test]
#[ignore = "needs the official SDK and a TypeScript compiler from npm"]
async fn typescript_accepts_the_outputs_with_the_newer_declarations() {
    let declarations = "@anthropic-ai/claude-agent-sdk/sdk-tools.d.ts";
    compile(&samples().await, &peers("OSTLER_NATIVE_PEERS").join(declarations));
}

/// Fields added later: an older host ignores them, and its declarations do not have them.
const LATER: &[(&str, &[&str])] = &[
    ("AskUserQuestion", &["annotations"]),
    ("Glob", &["totalMatches", "countIsComplete"]),
    ("Grep", &["totalFiles", "totalLines"]),
    ("NotebookEdit", &["old_source"]),
    ("WebSearch", &["searchCount"]),
    ("Write", &["userModified"]),
];

#[tokio::test]
#[ignore = "needs the official SDK and a TypeScript compiler from npm"]
async fn typescript_accepts_the_outputs_with_the_older_declarations() {
    let mut samples = samples().await;
    // The task list was added later, but tasks could be stopped before.
    samples.retain(|sample| !sample.tool.starts_with("Task") || sample.tool == "TaskStop");
    // So was the tool that enters plan mode.
    samples.retain(|sample| sample.tool != "EnterPlanMode");
    for Sample { tool, output, .. } in &mut samples {
        let later = LATER.iter().filter(|(name, _)| name == tool).flat_map(|(_, fields)| *fields);
        for field in later {
            output.as_object_mut().unwrap().shift_remove(*field);
        }
    }
    let declarations = "@anthropic-ai/claude-agent-sdk/sdk-tools.d.ts";
    compile(&samples, &peers("OSTLER_PEERS").join(declarations));
}

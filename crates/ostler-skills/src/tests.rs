//! Whole runs: a task becomes options, the embedded engine runs them, and a scripted model tries what is forbidden.

use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ostler::mcp::{Server, tool};
use ostler::options::{SystemPrompt, ToolSet};
use ostler::proto::message::System;
use ostler::{Decision, Message, Options, PermissionMode, query};
use ostler_base::error::ApiError;
use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::{Map, Value, json};

use super::folder::Folder;
use super::library::Skills;
use super::metadata::{Isolation, TaskType};
use super::run::{DEFAULT_MODEL, OperatorRules, SkillRun, TaskRequest};

/// A project, the server's skills, and skills in the folders that an engine searches by default.
struct Stage {
    place: tempfile::TempDir,
    skills: Skills,
    rules: OperatorRules,
}

impl Stage {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let path = |below: &str| place.path().join(below);
        for (folder, name) in [
            ("skills", "chosen"),
            ("skills", "other"),
            ("project/.claude/skills", "rogue"),
            ("home/.claude/skills", "homely"),
        ] {
            let text = format!(
                "---\nname: {name}\ndescription: about {name}\n---\n\n# {name}\n\n{} TEXT\n",
                name.to_uppercase()
            );
            put(&path(folder).join(name), "SKILL.md", &text);
            put(&path(folder).join(name), "notes.md", &format!("{} NOTES", name.to_uppercase()));
        }
        put(&path("project/.claude/commands"), "leftover.md", "LEFTOVER TEXT");
        put(&path("project"), "readme.md", "PROJECT TEXT");
        let rules = OperatorRules {
            default_model: DEFAULT_MODEL.to_owned(),
            may_choose_model: false,
            trusts_cms: false,
            may_bypass: true,
            trusts_project_servers: true,
            trusted_repositories: Vec::new(),
            runs: path("state/runs"),
            hidden: vec![path("home/.claude/skills")],
        };
        let skills = Skills { folders: vec![Folder(path("skills"))], cms: None };
        Self { place, skills, rules }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.place.path().canonicalize().unwrap().join(below)
    }

    /// Adds a skill with this head and body.
    fn skill(&self, name: &str, head: &str, body: &str) {
        let text = format!("---\nname: {name}\ndescription: d\n{head}\n---\n\n{body}");
        put(&self.path("skills").join(name), "SKILL.md", &text);
    }

    fn task(&self, skill: &str) -> TaskRequest {
        TaskRequest {
            kind: TaskType::Skill,
            skill: Some(skill.to_owned()),
            user_prompt: "go".to_owned(),
            permission_mode: None,
            input_values: Map::new(),
            isolation: None,
            model: None,
            project: self.path("project"),
        }
    }

    async fn prepare(&self, task: TaskRequest) -> Result<SkillRun, ApiError> {
        SkillRun::prepare(task, &self.skills, &self.rules).await
    }

    fn base(&self, api: &ScriptedApi) -> Options {
        let mut options = ostler::options()
            .env("HOME", self.path("home").display().to_string())
            .env("ANTHROPIC_BASE_URL", api.base_url())
            .env("ANTHROPIC_API_KEY", "test")
            // Tests may run as root, which may not bypass permissions outside a container.
            .env("IS_SANDBOX", "1");
        options.session.ephemeral = true;
        options
    }
}

fn put(folder: &Path, name: &str, text: &str) {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join(name), text).unwrap();
}

/// The requests to the model and the first message of a run.
struct Did {
    requests: Vec<ostler_testkit::RecordedRequest>,
    skills: Vec<String>,
    commands: Vec<String>,
    tools: Vec<String>,
}

impl Did {
    fn said(&self) -> String {
        self.requests.iter().map(|request| request.body.to_string()).collect()
    }

    /// All messages of the request after the first calls.
    fn sent(&self) -> String {
        self.requests[1].body["messages"].to_string()
    }

    /// The result of the tool call with this index.
    fn result(&self, number: usize) -> String {
        let messages = self.requests[1].body["messages"].as_array().unwrap();
        let results = messages.last().unwrap()["content"].as_array().unwrap();
        results
            .iter()
            .filter(|block| block["type"] == "tool_result")
            .nth(number)
            .unwrap()
            .to_string()
    }
}

async fn did(run: &SkillRun, options: Options, api: ScriptedApi) -> Did {
    let mut query = query(run.prompt.as_str(), run.apply(options));
    let mut init = None;
    while let Some(message) = query.next().await {
        if let Message::System(System::Init(first)) = message.unwrap() {
            init = init.or(Some(first));
        }
    }
    let init = init.expect("every session begins with an init message");
    let did = Did {
        requests: api.requests(),
        skills: init.skills.clone().unwrap_or_default(),
        commands: init.slash_commands.clone(),
        tools: init.tools.clone(),
    };
    api.finish();
    did
}

/// A model that makes these calls in one response, and then ends.
fn calls(calls: &[(&str, Value)]) -> Script {
    let first =
        calls.iter().fold(reply(), |reply, (tool, input)| reply.tool_use(*tool, input.clone()));
    Script::new().rule(when().turn(0), first).rule(when(), reply().text("done"))
}

// Seen to fail when the other skills are in the run's folder (listed, and loaded by name), when settings of the project
// are read (`rogue` is listed), and when nothing is hidden (`Read` and `cat` read them).
#[tokio::test]
async fn with_full_isolation_other_skills_cannot_be_seen_or_called() {
    let stage = Stage::new();
    let mut task = stage.task("chosen");
    task.permission_mode = Some("bypass".to_owned());
    let run = stage.prepare(task).await.unwrap();
    let own = run.folder().unwrap().join("skills/chosen/notes.md");
    let other = stage.path("skills/other/SKILL.md");
    let rogue = stage.path("project/.claude/skills/rogue/SKILL.md");
    let homely = stage.path("home/.claude/skills/homely/notes.md");
    let api = ScriptedApi::start(calls(&[
        ("Skill", json!({"skill": "other"})),
        ("Skill", json!({"skill": "rogue"})),
        ("Skill", json!({"skill": "homely"})),
        ("Skill", json!({"skill": "leftover"})),
        ("Read", json!({"file_path": other})),
        ("Read", json!({"file_path": rogue})),
        ("Read", json!({"file_path": homely})),
        ("Bash", json!({"command": format!("cat {}", other.display())})),
        ("Bash", json!({"command": format!("cd {} && cat other/SKILL.md", stage.path("skills").display())})),
        ("Bash", json!({"command": "cat .claude/skills/rogue/SKILL.md .claude/commands/leftover.md"})),
        ("Grep", json!({"pattern": "TEXT", "path": stage.path("project"), "output_mode": "content"})),
        ("Grep", json!({"pattern": "TEXT", "path": stage.path(""), "output_mode": "content"})),
        ("Read", json!({"file_path": own})),
        ("Read", json!({"file_path": stage.path("project/readme.md")})),
    ]))
    .await;
    let did = did(&run, stage.base(&api), api).await;
    assert_eq!(did.skills, ["task:chosen"]);
    let said = did.said();
    for forbidden in
        ["OTHER TEXT", "ROGUE TEXT", "HOMELY", "LEFTOVER TEXT", "about other", "about rogue"]
    {
        assert!(!said.contains(forbidden), "{forbidden} was seen: {said}");
    }
    for name in ["other", "rogue", "homely", "leftover"] {
        assert!(!did.commands.iter().any(|command| command.contains(name)), "{:?}", did.commands);
    }
    for refused in 0..10 {
        assert!(did.result(refused).contains("\"is_error\":true"), "{}", did.result(refused));
    }
    assert!(did.result(12).contains("CHOSEN NOTES"), "{}", did.result(12));
    assert!(did.result(13).contains("PROJECT TEXT"), "{}", did.result(13));
    let system = did.requests[0].body["system"].to_string();
    assert!(system.contains("FORCED SKILL EXECUTION MODE") && system.contains("CHOSEN TEXT"));
    let folder = run.folder().unwrap();
    drop(run);
    assert!(!folder.exists(), "the run's folder is removed");
}

#[tokio::test]
async fn with_partial_isolation_all_skills_are_available_and_the_selected_one_comes_first() {
    let stage = Stage::new();
    stage.skill("listing", "allowed-tools: [Read]", "LISTING TEXT");
    let mut task = stage.task("listing");
    task.kind = TaskType::Agent;
    let run = stage.prepare(task).await.unwrap();
    assert_eq!(run.metadata.isolation_level, Isolation::Partial);
    let api = ScriptedApi::start(calls(&[("Skill", json!({"skill": "other"}))])).await;
    let did = did(&run, stage.base(&api), api).await;
    assert_eq!(did.skills, ["task:chosen", "task:listing", "task:other"]);
    assert_eq!(did.tools, ["Read", "Skill"]);
    assert!(did.sent().contains("OTHER TEXT"), "{}", did.sent());
    let system = did.requests[0].body["system"].to_string();
    assert!(
        system.contains("Skill with priority: \\\"listing\\\"") && system.contains("LISTING TEXT"),
        "{system}"
    );
    assert!(!system.contains("FORCED"));
    assert!(!did.said().contains("ROGUE"), "only skills of the server");
}

#[tokio::test]
async fn with_isolation_none_a_run_has_no_skills() {
    let stage = Stage::new();
    let mut task = stage.task("chosen");
    task.isolation = Some(Isolation::None);
    let run = stage.prepare(task).await.unwrap();
    assert!(run.folder().is_none());
    let api = ScriptedApi::start(calls(&[(
        "Read",
        json!({"file_path": stage.path("skills/other/SKILL.md")}),
    )]))
    .await;
    let did = did(&run, stage.base(&api), api).await;
    assert_eq!(did.skills, Vec::<String>::new());
    assert!(!did.tools.contains(&"Skill".to_owned()), "{:?}", did.tools);
    assert!(!did.said().contains("TEXT"), "{}", did.said());
    let metadata = serde_json::to_value(&run.metadata).unwrap();
    assert_eq!(
        metadata,
        json!({"source": "none", "isolationLevel": "none", "systemPromptSource": "engine", "otherSkillsAccessible": false})
    );
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Number {
    n: i64,
}

fn calc() -> Server {
    let double = tool("double", "Doubles", |it: Number| async move { Ok::<_, String>(it.n * 2) });
    let square =
        tool("square", "Squares", |it: Number| async move { Ok::<_, String>(it.n * it.n) });
    Server::new("calc", "1.0.0").tool(double).tool(square)
}

// Seen to fail without the hook (`square` runs), and without `ToolSet::Only` (`Write` is offered).
#[tokio::test]
async fn only_the_tools_in_a_skills_list_exist_in_every_mode() {
    let stage = Stage::new();
    stage.skill("small", "allowed-tools: Read, mcp__calc__double", "SMALL");
    let mut task = stage.task("small");
    task.permission_mode = Some("bypass".to_owned());
    let run = stage.prepare(task).await.unwrap();
    let api = ScriptedApi::start(calls(&[
        ("mcp__calc__double", json!({"n": 21})),
        ("mcp__calc__square", json!({"n": 11})),
        ("Write", json!({"file_path": stage.path("project/new"), "content": "x"})),
        ("Skill", json!({"skill": "small"})),
    ]))
    .await;
    let did = did(&run, stage.base(&api).server(calc()), api).await;
    assert_eq!(
        did.tools.iter().filter(|name| !name.starts_with("mcp__")).collect::<Vec<_>>(),
        ["Read"]
    );
    assert!(did.result(0).contains("42"), "{}", did.result(0));
    assert!(did.result(1).contains("not among the tools of this skill"), "{}", did.result(1));
    assert!(
        did.result(2).contains("\"is_error\":true") && did.result(3).contains("\"is_error\":true")
    );
    assert!(!stage.path("project/new").exists());
}

// Seen to fail without the hook of the mode: reading in the project then needs no approval.
#[tokio::test]
async fn mode_ask_requests_approval_for_every_call_and_mode_default_does_not() {
    let stage = Stage::new();
    stage.skill("reader", "allowed-tools: [Read, Bash(echo:*)]", "READER");
    for (mode, expected) in [("ask", vec!["Read", "Bash"]), ("default", Vec::new())] {
        let mut task = stage.task("reader");
        task.permission_mode = Some(mode.to_owned());
        let run = stage.prepare(task).await.unwrap();
        let api = ScriptedApi::start(calls(&[
            ("Read", json!({"file_path": stage.path("project/readme.md")})),
            ("Bash", json!({"command": "echo hello"})),
        ]))
        .await;
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&asked);
        let options = stage.base(&api).on_permission(move |call| {
            heard.lock().push(call.tool_name.clone());
            async { Decision::allow() }
        });
        let did = did(&run, options, api).await;
        assert_eq!(*asked.lock(), expected, "{mode}");
        assert!(did.result(0).contains("PROJECT TEXT") && did.result(1).contains("hello"));
    }
}

#[tokio::test]
async fn the_options_of_both_examples() {
    let stage = Stage::new();
    let servers = json!({"mcpServers": {"playwright": {"command": "node", "args": ["index.js"]}}});
    put(&stage.path("project"), ".mcp.json", &servers.to_string());
    let body =
        "# Web to Markdown Converter\n\nDownload {{url}} and save to {{outputDir}}.\n\n...\n";
    stage.skill(
        "web-to-markdown-ts",
        "allowed-tools: [WebFetch, Write, Read, mcp__playwright]",
        body,
    );
    let mut task = stage.task("web-to-markdown-ts");
    task.user_prompt = "google.com".to_owned();
    task.permission_mode = Some("bypass".to_owned());
    task.input_values = json!({"url": "https://google.com", "outputDir": "./downloads"})
        .as_object()
        .unwrap()
        .clone();
    let run = stage.prepare(task).await.unwrap();
    let options = run.apply(Options::new());
    assert_eq!(run.prompt, "google.com");
    let SystemPrompt::Text(prompt) = &options.context.system_prompt else {
        panic!("{:?}", options.context)
    };
    assert!(prompt.starts_with("# ⚠️ FORCED SKILL EXECUTION MODE\n\nYou are executing ONLY the \"web-to-markdown-ts\" skill."));
    assert!(prompt.ends_with(
        "# Skill Parameters\n- url: https://google.com\n- outputDir: ./downloads\n\n# Web to Markdown Converter\n\n\
         Download https://google.com and save to ./downloads.\n\n...\n"
    ));
    assert_eq!(options.model.name.as_deref(), Some("claude-sonnet-4-5"));
    assert_eq!(options.context.cwd, Some(stage.path("project")));
    assert_eq!(run.approved(), ["WebFetch", "Write", "Read", "mcp__playwright"]);
    let base = ["WebFetch", "Write", "Read"].map(str::to_owned).to_vec();
    assert_eq!(options.tools.base, Some(ToolSet::Only(base)));
    assert_eq!(json!({"mcpServers": options.tools.mcp_servers}), servers);
    assert_eq!(options.permissions.mode, PermissionMode::BypassPermissions);
    let metadata = serde_json::to_value(&run.metadata).unwrap();
    assert_eq!(
        metadata,
        json!({
            "selectedSkillId": "web-to-markdown-ts",
            "selectedSkillName": "web-to-markdown-ts",
            "source": "filesystem",
            "isolationLevel": "full",
            "systemPromptSource": "skill.content",
            "otherSkillsAccessible": false,
        })
    );

    stage.skill(
        "simple-test-execution",
        "allowed-tools: [Read, Write, Bash]",
        "# Simple Test Execution\n",
    );
    let run = stage.prepare(stage.task("simple-test-execution")).await.unwrap();
    let options = run.apply(Options::new());
    let SystemPrompt::Text(prompt) = &options.context.system_prompt else { panic!() };
    assert!(prompt.ends_with("configuration.\n\n---\n\n# Simple Test Execution\n"), "{prompt}");
    assert_eq!(options.permissions.mode, PermissionMode::Default);
    assert!(options.tools.mcp_servers.is_empty(), "the list names none of their tools");
}

#[tokio::test]
async fn the_tasks_model_if_allowed_overrides_the_skills_and_the_skills_overrides_the_operators() {
    let mut stage = Stage::new();
    stage.skill("with-model", "model: skill-model", "x");
    let model = async |stage: &Stage, skill: &str, asked: Option<&str>| {
        let mut task = stage.task(skill);
        task.model = asked.map(str::to_owned);
        stage.prepare(task).await.map(|run| run.model)
    };
    assert_eq!(model(&stage, "chosen", None).await.unwrap(), DEFAULT_MODEL);
    assert_eq!(model(&stage, "with-model", None).await.unwrap(), "skill-model");
    assert_eq!(model(&stage, "chosen", Some("x")).await.unwrap_err().status(), 403);
    stage.rules.may_choose_model = true;
    assert_eq!(model(&stage, "with-model", Some("x")).await.unwrap(), "x");
}

#[tokio::test]
async fn an_invalid_task_is_refused_before_anything_runs() {
    let mut stage = Stage::new();
    stage.skill("strict", "inputs: {url: {type: string, required: true}}", "{{url}}");
    stage.rules.may_bypass = false;
    let check = async |change: fn(&mut TaskRequest), status: u16, field: Option<&str>| {
        let mut task = stage.task("strict");
        task.input_values.insert("url".to_owned(), json!("x"));
        change(&mut task);
        let error = stage.prepare(task).await.expect_err("it must be refused");
        assert_eq!(
            (error.status().as_u16(), error.detail().field.as_deref()),
            (status, field),
            "{error}"
        );
    };
    check(|task| task.input_values.clear(), 422, Some("inputValues.url")).await;
    check(|task| task.skill = Some("../other".to_owned()), 404, None).await;
    check(|task| task.skill = None, 422, Some("agentId")).await;
    check(|task| task.permission_mode = Some("bypass".to_owned()), 403, Some("permissionMode"))
        .await;
    check(|task| task.permission_mode = Some("yolo".to_owned()), 422, Some("permissionMode")).await;
    check(|task| task.project = "/no/such/project".into(), 422, Some("project")).await;
    check(|task| task.project = task.project.join("../skills/other"), 422, Some("project")).await;
    let runs = stage.path("state/runs");
    assert!(
        !runs.exists() || std::fs::read_dir(runs).unwrap().next().is_none(),
        "no folder of a run stays"
    );
}

// Seen to fail when parameters are written into the run's copy of the skill: engines run command lines in there.
#[tokio::test]
async fn a_parameter_never_becomes_a_command_of_a_skill() {
    let stage = Stage::new();
    stage.skill("echo", "", "Say {{word}}.");
    let marker = stage.path("project/pwned");
    let mut task = stage.task("echo");
    task.permission_mode = Some("bypass".to_owned());
    task.input_values.insert("word".to_owned(), json!(format!("!`touch {}`", marker.display())));
    let run = stage.prepare(task).await.unwrap();
    let api = ScriptedApi::start(calls(&[("Skill", json!({"skill": "echo"}))])).await;
    let did = did(&run, stage.base(&api), api).await;
    assert!(did.sent().contains("Say {{word}}."), "{}", did.sent());
    assert!(!marker.exists());
}

#[tokio::test]
async fn two_runs_of_one_skill_use_different_folders() {
    let stage = Stage::new();
    let (one, two) =
        tokio::join!(stage.prepare(stage.task("chosen")), stage.prepare(stage.task("chosen")));
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_ne!(one.folder(), two.folder());
    drop(one);
    assert!(two.folder().unwrap().join("skills/chosen/SKILL.md").exists());
}

#[tokio::test]
async fn a_failing_source_is_reported_and_folders_come_first() {
    let mut stage = Stage::new();
    let cms = super::cms::Cms::new("http://127.0.0.1:1/api/skills", None, Duration::from_secs(30))
        .unwrap();
    stage.skills.cms = Some(cms);
    assert!(
        stage.prepare(stage.task("chosen")).await.is_ok(),
        "the content management system is not asked"
    );
    let error = stage.prepare(stage.task("elsewhere")).await.unwrap_err();
    assert_eq!(
        (error.status().as_u16(), error.detail().code.as_ref()),
        (502, "skill_source_failed")
    );
    let listed = stage.skills.list().await;
    assert_eq!((listed.skills.len(), listed.problems.len()), (2, 1));
}

//! Tasks and skills over HTTP.

use std::path::PathBuf;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{delete, get, post};
use ostler_base::error::{ApiError, Fallible, JsonBody, OptionalBody, PathOf, QueryOf};
use ostler_core::app::App;
use ostler_core::log::Logged;
use ostler_core::log_writers;
use ostler_core::spaces::Asked;
use ostler_core::tasks::NewTask;
use ostler_core::tasks::record::{Task, TaskView};
use ostler_door::users::Caller;
use ostler_skills::definition::Skill;
use ostler_skills::metadata::{Isolation, TaskType};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::keyed::KeyBody;
use super::listing::{Listing, PageQuery, seen_by};
use super::names::{named, named_list};
use super::openapi::{Api, Op};
use super::sessions::AfterQuery;
use super::sse::{self, Rendered};

pub(super) fn routes(api: Api) -> Api {
    let executes = "Executes a task; with Accept: text/event-stream the answer is its stream";
    let follows = "The events of the last execution, as `data: {\"type\": …}` events up to `done`";
    api.on(
        Op::get("/api/skills", "listSkills", "All skills").returns::<SkillList>(200, "The skills"),
        get(skills),
    )
    .on(
        Op::get("/api/tasks", "listTasks", "Tasks")
            .query::<PageQuery>()
            .returns::<Listing<TaskView>>(200, "The tasks"),
        get(list),
    )
    .on(
        Op::post("/api/tasks", "createTask", "Creates a task")
            .takes::<TaskBody>()
            .returns::<TaskView>(201, "The task"),
        post(create),
    )
    .on(
        Op::get("/api/tasks/{id}", "getTask", "A task and its status")
            .returns::<TaskView>(200, "The task"),
        get(show),
    )
    .on(
        Op::delete("/api/tasks/{id}", "removeTask", "Cancels and deletes a task")
            .returns_nothing(204, "Forgotten"),
        delete(remove),
    )
    .on(
        Op::post("/api/tasks/{id}/execute", "executeTask", executes)
            .may_take::<KeyBody>()
            .returns::<TaskView>(202, "The task; follow its events")
            .returns_events(200, &[], "Its events"),
        post(execute),
    )
    .on(
        Op::post("/api/tasks/{id}/cancel", "cancelTask", "Ends the last execution")
            .returns::<TaskView>(202, "The task"),
        post(cancel),
    )
    .on(
        Op::get("/api/tasks/{id}/events", "followTask", follows)
            .query::<AfterQuery>()
            .returns_events(200, &[], "The events"),
        get(events),
    )
}

/// The skills, and why others are left out.
#[derive(Serialize, JsonSchema)]
struct SkillList {
    items: Vec<SkillView>,
    problems: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SkillView {
    id: String,
    name: String,
    description: String,
    /// Its source.
    source: &'static str,
    /// The only tools it has; all if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<String>>,
    inputs: Vec<InputView>,
}

#[derive(Serialize, JsonSchema)]
struct InputView {
    name: String,
    required: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// The type in JSON Schema; any if absent.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    /// The allowed values; any if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    allowed: Vec<Value>,
    /// The default value.
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<Value>,
}

impl From<Skill> for SkillView {
    fn from(skill: Skill) -> Self {
        let input = |input: ostler_skills::inputs::Input| InputView {
            name: input.name,
            required: input.is_required,
            description: input.description,
            kind: input.kind.map(ostler_skills::inputs::Kind::word),
            allowed: input.allowed,
            default: input.default,
        };
        Self {
            id: skill.id,
            name: skill.name,
            description: skill.description,
            source: skill.source.word(),
            tools: skill.tools,
            inputs: skill.inputs.declared.into_iter().map(input).collect(),
        }
    }
}

async fn skills(State(app): State<App>, _: Caller) -> Json<SkillList> {
    let listed = app.tasks.workshop.skills.list().await;
    let items = listed.skills.into_iter().map(SkillView::from).collect();
    Json(SkillList { items, problems: listed.problems })
}

async fn list(
    State(app): State<App>,
    caller: Caller,
    QueryOf(query): QueryOf<PageQuery>,
) -> Fallible<Json<Listing<TaskView>>> {
    let found: Vec<Task> = app.sessions.records.list(&seen_by(&caller), &query.page()?).await?;
    let mut items = Vec::with_capacity(found.len());
    for task in found {
        items.push(app.tasks.view(task).await?);
    }
    Ok(named_list(&app, items))
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TaskBody {
    #[schemars(length(min = 1))]
    name: String,
    /// The skill, by its id or name.
    #[serde(default)]
    agent_id: Option<String>,
    /// `skill` uses one skill, `agent` all of them.
    task_type: TaskType,
    #[schemars(length(min = 1))]
    user_prompt: String,
    /// `default`, `ask`, `acceptEdits`, `plan`, or `bypass` where the operator allows it.
    #[serde(default)]
    permission_mode: Option<String>,
    /// Values for the skill's parameters.
    #[serde(default)]
    input_values: Map<String, Value>,
    /// Which skills it can see; the default depends on the type.
    #[serde(default)]
    isolation: Option<Isolation>,
    #[serde(default)]
    model: Option<String>,
    /// The space to which it belongs, whose policy applies whatever the skill says.
    #[serde(default)]
    space: Option<String>,
    /// The folder in which it works, inside the folder of the space, or else inside the server's workspace. These are
    /// also the defaults.
    #[serde(default)]
    project: Option<PathBuf>,
}

async fn create(
    State(app): State<App>,
    caller: Caller,
    JsonBody(body): JsonBody<TaskBody>,
) -> Fallible<(StatusCode, Json<TaskView>)> {
    let project = match &body.space {
        Some(space) => {
            let asked = Asked { cwd: body.project, ..Asked::default() };
            app.spaces.begin(&caller, space, asked).await?.cwd
        }
        None => {
            let project = app.folder(body.project)?;
            app.spaces.check_free(&project).await?;
            project
        }
    };
    let new = NewTask {
        name: body.name,
        agent_id: body.agent_id,
        task_type: body.task_type,
        user_prompt: body.user_prompt,
        permission_mode: body.permission_mode,
        input_values: body.input_values,
        isolation: body.isolation,
        model: body.model,
        space: body.space,
        project,
    };
    Ok((StatusCode::CREATED, named(&app, app.tasks.create(&caller, new).await?)))
}

async fn show(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Fallible<Json<TaskView>> {
    let task = app.tasks.find(&caller, &id).await?;
    Ok(named(&app, app.tasks.view(task).await?))
}

async fn remove(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Fallible<StatusCode> {
    app.tasks.remove(&caller, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn execute(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    headers: HeaderMap,
    OptionalBody(KeyBody { key }): OptionalBody<KeyBody>,
) -> Fallible<Response> {
    let task = app.tasks.execute(&caller, &id, key.as_deref()).await?;
    let accepts = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    if accepts.is_some_and(|accept| accept.contains("text/event-stream")) {
        return follow(&app, &caller, &task, 0);
    }
    Ok((StatusCode::ACCEPTED, named(&app, app.tasks.view(task).await?)).into_response())
}

async fn cancel(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Fallible<(StatusCode, Json<TaskView>)> {
    let task = app.tasks.cancel(&caller, &id).await?;
    Ok((StatusCode::ACCEPTED, named(&app, app.tasks.view(task).await?)))
}

async fn events(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    QueryOf(query): QueryOf<AfterQuery>,
    headers: HeaderMap,
) -> Fallible<Response> {
    let task = app.tasks.find(&caller, &id).await?;
    follow(&app, &caller, &task, sse::position(&headers, query.after)?)
}

fn follow(app: &App, caller: &Caller, task: &Task, after: u64) -> Fallible<Response> {
    let Some(execution) = &task.execution else {
        return Err(ApiError::conflict("not_executed", "this task was never executed")
            .hint("POST to its /execute first"));
    };
    let reader = app.sessions.log.reader(&log_writers::stream(&execution.session)?, after);
    let run = execution.run.clone();
    sse::stream(app, caller, reader, Box::new(move |logged| frames(logged, &run)))
}

/// An event of the log in the format of task streams.
fn frames(logged: &Logged, run: &str) -> Rendered {
    let event = &logged.event;
    let body: Value = event.body.to().unwrap_or_default();
    let (out, is_last) = match event.kind.as_str() {
        "message" => (vec![message(&body["message"])], false),
        "approval" => (vec![json!({"type": "approval", "approval": body["approval"]})], false),
        "run" if body["run"]["id"] == run => status(&body["run"]),
        _ => (Vec::new(), false),
    };
    let mut text = String::new();
    for value in out {
        text.push_str(&format!("id: {}\ndata: {value}\n\n", event.seq));
    }
    Rendered { frame: text.into(), is_last }
}

fn message(message: &Value) -> Value {
    json!({"type": "message", "messageType": message["type"], "content": message})
}

fn status(run: &Value) -> (Vec<Value>, bool) {
    let state = run["state"].as_str().unwrap_or_default();
    let error = &run["outcome"]["error"];
    let out = match state {
        "running" => vec![json!({"type": "status", "status": "starting"})],
        "completed" => vec![
            json!({"type": "status", "status": "completed", "result": run["outcome"]["result"]}),
        ],
        "failed" | "cancelled" | "interrupted" => vec![
            json!({"type": "error", "error": error["message"], "code": error["code"]}),
            json!({"type": "status", "status": state}),
        ],
        other => return (vec![json!({"type": "status", "status": other})], false),
    };
    let is_last = state != "running";
    let done = is_last.then(|| json!({"type": "done"}));
    (out.into_iter().chain(done).collect(), is_last)
}

//! `ostler task`.

use std::process::ExitCode;

use ostler_client::items;
use serde_json::{Map, Value, json};

use super::reach::{Server, Trouble, folder};
use super::{approvals, field, follow, row, text, time};
use crate::args::client::{HowTask, RunTask, TaskCommand};
use crate::screen::Screen;

const TASKS: &str = "/api/tasks";
/// Lists more tasks than a user will refer to by the beginning of an id.
const LISTED: &str = "/api/tasks?limit=500";

pub(super) async fn run(
    command: &TaskCommand,
    server: &Server,
    screen: &mut Screen,
) -> Result<ExitCode, Trouble> {
    match command {
        TaskCommand::Run(task) => start(task, server, screen).await,
        TaskCommand::List => list(server, screen).await,
        TaskCommand::Show { id } => {
            let id = server.full_id(LISTED, "task", id).await?;
            let task = server.get(&format!("{TASKS}/{id}")).await?;
            show(&task, server, screen)
        }
        TaskCommand::Log { id, follow } => {
            let id = server.full_id(LISTED, "task", id).await?;
            if *follow {
                return follow::follow(&id, server, screen).await;
            }
            follow::log(&id, server, screen).await
        }
        TaskCommand::Cancel { id } => {
            let id = server.full_id(LISTED, "task", id).await?;
            let task = server.post(&format!("{TASKS}/{id}/cancel"), json!({})).await?;
            if server.is_json {
                return super::json(screen, &task);
            }
            screen.line("cancellation requested")?;
            Ok(ExitCode::SUCCESS)
        }
        TaskCommand::Pending => approvals::list(server, screen).await,
        TaskCommand::Approve { id, scope, rule, whole_tool, unattended } => {
            let decision = json!({
                "approved": true, "scope": scope.word(), "rule": rule,
                "wholeTool": whole_tool, "unattended": unattended,
            });
            approvals::decide(id, decision, server, screen).await
        }
        TaskCommand::Deny { id, note, stop } => {
            approvals::deny(id, note.as_deref(), *stop, server, screen).await
        }
        TaskCommand::Answer { id, answers } => approvals::answer(id, answers, server, screen).await,
    }
}

/// The body of the request that creates a task.
pub(super) fn body(
    name: &str,
    skill: &str,
    prompt: Option<&str>,
    how: &HowTask,
) -> Result<Value, Trouble> {
    let prompt = prompt.map_or_else(|| format!("Do what the skill {skill} says."), str::to_owned);
    let mut body = json!({
        "name": name,
        "agentId": skill,
        "taskType": "skill",
        "userPrompt": prompt,
        "inputValues": how.values(),
    });
    let fields: &mut Map<String, Value> = match &mut body {
        Value::Object(fields) => fields,
        _ => return Ok(body),
    };
    let mut add = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            fields.insert(name.to_owned(), value);
        }
    };
    add("permissionMode", how.mode.clone().map(Value::from));
    add("isolation", how.isolation.clone().map(Value::from));
    add("space", how.space.clone().map(Value::from));
    let project = how.project.as_deref().map(folder).transpose()?;
    add("project", project.map(|project| project.display().to_string().into()));
    Ok(body)
}

async fn start(task: &RunTask, server: &Server, screen: &mut Screen) -> Result<ExitCode, Trouble> {
    let new = body(&task.skill, &task.skill, task.prompt.as_deref(), &task.how)?;
    let made = server.post(TASKS, new).await?;
    let id = text(&made["id"]).to_owned();
    let executed = server.post(&format!("{TASKS}/{id}/execute"), json!({})).await?;
    if task.follow {
        if !server.is_json {
            screen.remark(&id)?;
        }
        return follow::follow(&id, server, screen).await;
    }
    if server.is_json {
        return super::json(screen, &executed);
    }
    screen.line(&id)?;
    screen.hint(&format!("`ostler task log --follow {id}` shows its events"))?;
    Ok(ExitCode::SUCCESS)
}

async fn list(server: &Server, screen: &mut Screen) -> Result<ExitCode, Trouble> {
    let mut tasks: Vec<Value> = Vec::new();
    loop {
        let after = tasks.last().map(|last| format!("&after={}", text(&last["id"])));
        let path = format!("{TASKS}?limit=500{}", after.unwrap_or_default());
        let some: Vec<Value> = items(&server.get(&path).await?).cloned().collect();
        let is_last = some.len() < 500;
        tasks.extend(some);
        if is_last {
            break;
        }
    }
    tasks.sort_by_key(|task| task["created"].as_u64());
    if server.is_json {
        return super::json(screen, &json!({"items": tasks}));
    }
    for task in &tasks {
        row(screen, &task["id"], text(&task["status"]), text(&task["name"]))?;
    }
    if tasks.is_empty() {
        screen.remark("no tasks yet; `ostler task run SKILL` starts one")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show(task: &Value, server: &Server, screen: &mut Screen) -> Result<ExitCode, Trouble> {
    if server.is_json {
        return super::json(screen, task);
    }
    for (name, value) in [
        ("task", text(&task["id"])),
        ("name", text(&task["name"])),
        ("skill", text(&task["agentId"])),
        ("prompt", text(&task["userPrompt"])),
        ("status", text(&task["status"])),
        ("created", &time(&task["created"], None)),
        ("started", &time(&task["started"], None)),
        ("ended", &time(&task["ended"], None)),
        ("session", text(&task["execution"]["session"])),
        ("result", text(&task["result"])),
        ("error", text(&task["error"]["message"])),
    ] {
        field(screen, name, value)?;
    }
    Ok(ExitCode::SUCCESS)
}

//! `ostler schedule`.

use std::process::ExitCode;

use ostler_client::items;
use serde_json::{Value, json};

use super::reach::{Server, Trouble, folder};
use super::{field, row, tasks, text, time};
use crate::args::client::{AddSchedule, ScheduleCommand};
use crate::screen::Screen;

const SCHEDULES: &str = "/api/schedules";

pub(super) async fn run(
    command: &ScheduleCommand,
    server: &Server,
    screen: &mut Screen,
) -> Result<ExitCode, Trouble> {
    let id = match command {
        ScheduleCommand::List => return list(server, screen).await,
        ScheduleCommand::Add(new) => {
            let made = add(new, server).await?;
            return show(&made, server, screen);
        }
        ScheduleCommand::Show { id }
        | ScheduleCommand::Pause { id }
        | ScheduleCommand::Resume { id }
        | ScheduleCommand::Run { id }
        | ScheduleCommand::Remove { id }
        | ScheduleCommand::Log { id } => {
            server.full_id(&format!("{SCHEDULES}?limit=500"), "schedule", id).await?
        }
    };
    let path = format!("{SCHEDULES}/{id}");
    let schedule = match command {
        ScheduleCommand::Pause { .. } => server.post(&format!("{path}/pause"), json!({})).await?,
        ScheduleCommand::Resume { .. } => server.post(&format!("{path}/resume"), json!({})).await?,
        ScheduleCommand::Remove { .. } => {
            server.delete(&path).await?;
            if !server.is_json {
                screen.line("forgotten")?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        ScheduleCommand::Run { .. } => {
            let firing = server.post(&format!("{path}/run"), json!({})).await?;
            if server.is_json {
                return super::json(screen, &firing);
            }
            screen.line("started")?;
            screen.hint(&format!("`ostler schedule log {id}` shows the result"))?;
            return Ok(ExitCode::SUCCESS);
        }
        ScheduleCommand::Log { .. } => return log(&path, server, screen).await,
        _ => server.get(&path).await?,
    };
    show(&schedule, server, screen)
}

async fn list(server: &Server, screen: &mut Screen) -> Result<ExitCode, Trouble> {
    let listed = server.get(&format!("{SCHEDULES}?limit=500")).await?;
    if server.is_json {
        return super::json(screen, &listed);
    }
    let mut is_empty = true;
    for schedule in items(&listed) {
        is_empty = false;
        let zone = schedule["when"]["zone"].as_str();
        let next = time(&schedule["nextRuns"][0], zone);
        let about = format!("{}  {}  {next}", text(&schedule["name"]), plan(&schedule["when"]));
        row(screen, &schedule["id"], text(&schedule["state"]), about.trim_end())?;
    }
    if is_empty {
        screen.remark("no schedules yet; `ostler schedule add --help` shows how to add one")?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn add(new: &AddSchedule, server: &Server) -> Result<Value, Trouble> {
    let start = match (&new.task, &new.skill, &new.prompt) {
        (Some(task), _, _) => {
            json!({"task": server.full_id("/api/tasks?limit=500", "task", task).await?})
        }
        (None, Some(skill), prompt) => {
            let task = tasks::body(&new.name, skill, prompt.as_deref(), &new.how)?;
            json!({"task": server.post("/api/tasks", task).await?["id"]})
        }
        (None, None, prompt) => {
            if !new.how.param.is_empty() || new.how.isolation.is_some() {
                let text = "--param and --isolation need a skill: name it with --skill";
                return Err(Trouble::Server(text.to_owned()));
            }
            let cwd = new.how.project.as_deref().map(folder).transpose()?;
            json!({
                "prompt": prompt,
                "session": new.session,
                "space": new.how.space,
                "cwd": cwd,
                "permissionMode": new.how.mode,
            })
        }
    };
    let mut body = json!({
        "name": new.name,
        "start": start,
        "when": {"cron": new.cron, "every": new.every, "at": new.at, "zone": new.zone},
    });
    if let Some(catch_up) = &new.catch_up {
        body["catchUp"] = catch_up.as_str().into();
    }
    if !new.check.is_empty() {
        body["check"] = json!({"command": new.check, "tell": new.tell});
    }
    Ok(server.post(SCHEDULES, body).await?)
}

fn show(schedule: &Value, server: &Server, screen: &mut Screen) -> Result<ExitCode, Trouble> {
    if server.is_json {
        return super::json(screen, schedule);
    }
    let zone = schedule["when"]["zone"].as_str();
    let times = schedule["nextRuns"].as_array().into_iter().flatten();
    let times: Vec<String> = times.map(|next| time(next, zone)).collect();
    let start = &schedule["start"];
    let check: Vec<&str> =
        schedule["check"]["command"].as_array().into_iter().flatten().map(text).collect();
    for (name, value) in [
        ("schedule", text(&schedule["id"])),
        ("name", text(&schedule["name"])),
        ("prompt", text(&start["prompt"])),
        ("session", text(&start["session"])),
        ("task", text(&start["task"])),
        ("when", &plan(&schedule["when"])),
        ("if missed", text(&schedule["catchUp"])),
        ("check", &check.join(" ")),
        ("state", text(&schedule["state"])),
        ("next", &times.join("\n")),
        ("last", text(&schedule["last"]["state"])),
    ] {
        field(screen, name, value)?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn log(path: &str, server: &Server, screen: &mut Screen) -> Result<ExitCode, Trouble> {
    let log = server.get(&format!("{path}/log")).await?;
    if server.is_json {
        return super::json(screen, &log);
    }
    let schedule = server.get(path).await?;
    let zone = schedule["when"]["zone"].as_str();
    for entry in items(&log) {
        let mut about = text(&entry["run"]).to_owned();
        for more in [text(&entry["note"]), &again(entry, zone)] {
            if !more.is_empty() {
                about = format!("{about}  {more}");
            }
        }
        let planned = Value::from(time(&entry["planned"], zone));
        row(screen, &planned, text(&entry["state"]), about.trim_start())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn again(entry: &Value, zone: Option<&str>) -> String {
    match time(&entry["retryAt"], zone) {
        at if at.is_empty() => at,
        at => format!("(try {} at {at})", entry["retries"]),
    }
}

fn plan(when: &Value) -> String {
    let zone = when["zone"].as_str().unwrap_or_default();
    if let Some(every) = when["every"].as_str() {
        return format!("every {every}");
    }
    let plan = when["cron"].as_str().or(when["at"].as_str()).unwrap_or_default();
    format!("{plan} {zone}").trim_end().to_owned()
}

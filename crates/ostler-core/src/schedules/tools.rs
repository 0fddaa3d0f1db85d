//! Schedules as tools of an agent: it creates and sees those of its user, if its session was set up for that.
//!
//! They are tools like any other, and calls require approval as usual. A run that an agent plans has the strictest
//! permissions, works in the agent's folder, and has no check command.

use std::sync::{Arc, OnceLock, Weak};

use async_trait::async_trait;
use ostler::mcp::{Output, Server, Tool, raw_tool};
use ostler_base::error::{ApiError, Fallible};
use ostler_door::users::Caller;
use serde::Deserialize;
use serde_json::{Value, json};

use super::plan::When;
use super::record::CatchUp;
use super::{MOST_RETRIES, NewSchedule, ScheduleView, Schedules};
use crate::model::run::{Session, Setup};
use crate::runs::options::{EngineParts, EngineSetup};
use crate::start::Start;

/// The name of the MCP server.
const SERVER: &str = "schedules";

/// The tools that the server itself provides to agents.
#[derive(Default)]
pub struct OwnTools {
    /// Set later: schedules need the sessions, and those need this.
    schedules: OnceLock<Weak<Schedules>>,
}

impl OwnTools {
    pub fn reach(&self, schedules: &Arc<Schedules>) {
        // A second call sets the same value.
        let _ = self.schedules.set(Arc::downgrade(schedules));
    }
}

#[async_trait]
impl EngineSetup for OwnTools {
    async fn set_up(&self, session: &Session, engine_parts: &mut EngineParts) -> Fallible<()> {
        if session.setup.schedules {
            let schedules = self.schedules.get().cloned().unwrap_or_default();
            let hand = Hand { schedules, session: Arc::new(session.clone()) };
            let options = std::mem::take(&mut engine_parts.options);
            engine_parts.options = options.server(hand.server());
        }
        Ok(())
    }
}

/// The access of one agent.
#[derive(Clone)]
struct Hand {
    schedules: Weak<Schedules>,
    session: Arc<Session>,
}

/// The arguments of a new schedule.
#[derive(Deserialize)]
struct Wanted {
    name: String,
    prompt: String,
    /// The remaining fields say when.
    #[serde(flatten)]
    when: serde_json::Map<String, Value>,
}

impl Hand {
    fn server(self) -> Server {
        let text = |about: &str| json!({"type": "string", "description": about});
        let new = json!({
            "type": "object",
            "properties": {
                "name": text("The name of the schedule."),
                "prompt": text("The prompt for the agent each time, in a new conversation: it must say everything."),
                "cron": text("Minute, hour, day of the month, month, day of the week, such as `0 9 * * 1-5`."),
                "every": text("Or an interval, such as `15m`, `2h` or `1d`."),
                "at": text("Or one time, such as `2026-12-24T18:00`."),
                "zone": text("The zone of `cron` and `at`, such as `Europe/Berlin`."),
            },
            "required": ["name", "prompt"],
            "additionalProperties": false,
        });
        let one = json!({
            "type": "object",
            "properties": {"id": text("The schedule's id.")},
            "required": ["id"],
            "additionalProperties": false,
        });
        let none = json!({"type": "object", "properties": {}, "additionalProperties": false});
        let words = "Starts an agent with a prompt at certain times: give exactly one of `cron`, `every` and `at`.";
        Server::new(SERVER, env!("CARGO_PKG_VERSION"))
            .tool(self.tool("schedule", words, new, Kind::Make))
            .tool(self.tool("list", "Lists the user's schedules.", none, Kind::List).read_only())
            .tool(self.tool("pause", "Pauses a schedule.", one.clone(), Kind::Pause))
            .tool(self.tool("resume", "Resumes a paused schedule.", one.clone(), Kind::Resume))
            .tool(self.tool("cancel", "Removes a schedule for good.", one, Kind::Cancel))
    }

    fn tool(&self, name: &str, words: &str, schema: Value, kind: Kind) -> Tool {
        let hand = self.clone();
        raw_tool(name, words, schema, move |arguments, _| {
            let hand = hand.clone();
            async move {
                let done = hand.call(kind, arguments).await;
                done.map(|said| Output::text(said.to_string())).map_err(|error| spoken(&error))
            }
        })
    }

    async fn call(&self, kind: Kind, arguments: Value) -> Fallible<Value> {
        let Some(schedules) = self.schedules.upgrade() else {
            return Err(ApiError::unavailable("stopping", "the server is stopping"));
        };
        let caller = Caller::on_behalf(&self.session.owner);
        let id = arguments.get("id").and_then(Value::as_str).unwrap_or_default();
        match kind {
            Kind::Make => {
                let made = schedules.create(&caller, self.wanted(arguments)?).await?;
                Ok(shown(&made))
            }
            Kind::List => {
                let all = schedules.of_user(&caller.user).await?;
                Ok(all.iter().map(shown).collect())
            }
            Kind::Pause => Ok(shown(&schedules.pause(&caller, id).await?)),
            Kind::Resume => Ok(shown(&schedules.resume(&caller, id).await?)),
            Kind::Cancel => {
                schedules.remove(&caller, id).await?;
                Ok(json!({"removed": id}))
            }
        }
    }

    fn wanted(&self, arguments: Value) -> Fallible<NewSchedule> {
        let unreadable =
            |error: serde_json::Error| ApiError::invalid("arguments", error.to_string());
        let Wanted { name, prompt, when } =
            serde_json::from_value(arguments).map_err(unreadable)?;
        let when: When = serde_json::from_value(Value::Object(when)).map_err(unreadable)?;
        let now = &self.session.setup;
        // In the space of the session, if it has one: its policy applies then, too.
        let (cwd, model, space) = (now.cwd.clone(), now.model.clone(), now.space.clone());
        let setup = Setup { cwd, model, space, ..Setup::default() };
        let start = Start::Prompt { prompt, setup: Box::new(setup) };
        let catch_up = CatchUp::default();
        Ok(NewSchedule { name, start, when, catch_up, check: None, retries: MOST_RETRIES })
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Make,
    List,
    Pause,
    Resume,
    Cancel,
}

/// A schedule as the agent sees it.
fn shown(view: &ScheduleView) -> Value {
    let schedule = &view.schedule;
    json!({
        "id": schedule.id,
        "name": schedule.name,
        "start": schedule.start,
        "when": schedule.when,
        "state": schedule.state,
        "next": view.next_runs.iter().filter_map(|time| in_zone(*time, &schedule.when)).collect::<Vec<_>>(),
    })
}

/// A time in the schedule's zone.
fn in_zone(time: u64, when: &When) -> Option<String> {
    let zone = when.zone.as_deref().unwrap_or("UTC");
    let time = jiff::Timestamp::from_millisecond(i64::try_from(time).ok()?).ok()?;
    Some(time.in_tz(zone).ok()?.to_string())
}

/// An error as the model reads it.
fn spoken(error: &ApiError) -> String {
    let detail = error.detail();
    let field = detail.field.as_ref().map(|field| format!("{field}: ")).unwrap_or_default();
    let hint = detail.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!("{field}{}{hint}", detail.message)
}

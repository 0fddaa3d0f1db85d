//! The program as a client of a server: tasks, pending approvals, schedules.
//!
//! It uses only the server's HTTP interface. Control characters are removed from everything that a server sends.

mod approvals;
mod follow;
mod reach;
mod schedules;
mod tasks;

use std::process::ExitCode;

use serde_json::Value;

use self::reach::{Server, Trouble};
use crate::args::client::{Schedules, Tasks};
use crate::screen::{DIM, Screen};
use crate::text::clean;

/// Exit code when the server cannot be reached or refuses. A failed run has another code.
const UNREACHED: u8 = 2;

/// `ostler task …`.
pub(crate) async fn task(tasks: &Tasks, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    let Some(command) = &tasks.command else {
        screen.complain("the command is missing: `ostler task --help` lists the commands");
        return Ok(ExitCode::from(UNREACHED));
    };
    let done = match Server::of(&tasks.reach) {
        Ok(server) => tasks::run(command, &server, screen).await,
        Err(trouble) => Err(trouble),
    };
    exit_code(done, screen)
}

/// `ostler schedule …`.
pub(crate) async fn schedule(args: &Schedules, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    let Some(command) = &args.command else {
        screen.complain("the command is missing: `ostler schedule --help` lists the commands");
        return Ok(ExitCode::from(UNREACHED));
    };
    let done = match Server::of(&args.reach) {
        Ok(server) => schedules::run(command, &server, screen).await,
        Err(trouble) => Err(trouble),
    };
    exit_code(done, screen)
}

fn exit_code(done: Result<ExitCode, Trouble>, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    match done {
        Ok(code) => Ok(code),
        Err(Trouble::Screen(error)) => Err(error.into()),
        Err(Trouble::Server(text)) => {
            screen.complain(&text);
            Ok(ExitCode::from(UNREACHED))
        }
    }
}

/// A line of a list: id, state, description.
fn row(screen: &mut Screen, id: &Value, state: &str, about: &str) -> Result<(), Trouble> {
    let about = clean(about).replace('\n', " ");
    let line = format!("{}  {:<11}  {about}", clean(text(id)), clean(state));
    Ok(screen.line(&screen.one_line(&line))?)
}

/// A line with a name and its value; nothing if the value is empty.
fn field(screen: &mut Screen, name: &str, value: &str) -> Result<(), Trouble> {
    if value.is_empty() {
        return Ok(());
    }
    let mut lines = screen.fitted(&clean(value), 12).into_iter();
    let first = lines.next().unwrap_or_default();
    screen.line(&format!("{DIM}{name:<12}{DIM:#}{first}"))?;
    for line in lines {
        screen.line(&format!("{:12}{line}", ""))?;
    }
    Ok(())
}

/// Prints the whole answer for programs.
fn json(screen: &mut Screen, value: &Value) -> Result<ExitCode, Trouble> {
    screen.line(&serde_json::to_string_pretty(value).unwrap_or_default())?;
    Ok(ExitCode::SUCCESS)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A time for people, in this machine's time zone unless another zone is named.
fn time(millis: &Value, zone: Option<&str>) -> String {
    let time = millis.as_i64().and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok());
    let Some(time) = time else { return String::new() };
    let zone = zone.and_then(|zone| jiff::tz::TimeZone::get(zone).ok());
    let zone = zone.unwrap_or_else(jiff::tz::TimeZone::system);
    time.to_zoned(zone).strftime("%Y-%m-%d %H:%M:%S %Z").to_string()
}

//! The runs of a session according to its log, newest first: the log has the prompts in order.

use ostler_base::error::{self, Fallible};
use ostler_core::app::App;
use ostler_core::log_writers;
use ostler_core::model::run::{Run, Session};
use ostler_store::Event;

use super::connect::{PromptEvent, prompt_id};
use super::history_page::{History, STEP, glance};

/// Some runs of a session, oldest first, and the event before which there are more.
pub(crate) struct RunPage {
    pub(crate) runs: Vec<Run>,
    pub(crate) earlier: Option<u64>,
}

/// The newest runs of a session, or those before an event.
pub(crate) async fn page(
    app: &App,
    session: &Session,
    before: Option<u64>,
    limit: usize,
) -> Fallible<RunPage> {
    let history = History { app, session, tools: &[] };
    let first = session.begins + 1;
    let end = app.sessions.log.head(&log_writers::stream(&session.id)?).await? + 1;
    let mut high = before.unwrap_or(end).min(end);
    let mut runs = Vec::new();
    while high > first {
        let low = high.saturating_sub(STEP).max(first);
        for event in history.range(low, high).await?.iter().rev() {
            let Some(id) = begun(event) else { continue };
            if runs.iter().any(|run: &Run| run.id == id) {
                continue;
            }
            let found = app.sessions.records.find::<Run>(&id).await?;
            // Runs that a fork copied belong to the original session.
            let Some((run, _)) = found.filter(|(run, _)| run.session == session.id) else {
                continue;
            };
            runs.push(app.sessions.as_it_is(run));
            if runs.len() == limit {
                runs.reverse();
                return Ok(RunPage { runs, earlier: Some(event.seq).filter(|seq| *seq > first) });
            }
        }
        high = low;
    }
    runs.reverse();
    Ok(RunPage { runs, earlier: None })
}

/// The run that begins with an event. One after background work has no prompt; it begins with its first event.
fn begun(event: &Event) -> Option<String> {
    let glance = glance(event)?;
    match event.kind.as_str() {
        "prompt" if !glance.steered => glance.run_id.map(str::to_owned),
        "run" => {
            let run = glance.run?;
            (run.background && run.state == "running").then(|| run.id.to_owned())
        }
        _ => None,
    }
}

/// What a message of the user started.
pub(crate) enum Begun {
    /// A run.
    Run(String),
    /// Nothing: it was sent to an active run.
    Nothing,
}

/// What a message of the user started; `None` if there is no such message.
pub(crate) async fn begun_by(
    app: &App,
    session: &Session,
    message: &str,
) -> Fallible<Option<Begun>> {
    let history = History { app, session, tools: &[] };
    let first = session.begins + 1;
    let mut high = app.sessions.log.head(&log_writers::stream(&session.id)?).await? + 1;
    while high > first {
        let low = high.saturating_sub(STEP).max(first);
        let events = history.range(low, high).await?;
        for event in events.iter().rev().filter(|event| event.kind == "prompt") {
            let entry: PromptEvent =
                serde_json::from_str(event.body.as_str()).map_err(error::internal)?;
            let is_named = |said: &serde_json::Value| said["id"] == message;
            let is_it = match entry.messages.is_empty() {
                true => prompt_id(&entry.run_id, event.seq) == message,
                false => entry.messages.iter().any(is_named),
            };
            if is_it {
                return Ok(Some(match entry.steered {
                    true => Begun::Nothing,
                    false => Begun::Run(entry.run_id),
                }));
            }
        }
        high = low;
    }
    Ok(None)
}

//! Turns that an engine begins by itself when a background task has ended. Each is a run like any other: it is listed,
//! can be cancelled, has the limits of a run, and its usage is counted.

use std::sync::Arc;

use ostler::{Error, Message};
use ostler_base::error::{self, Fallible};
use ostler_base::ids;
use ostler_store::Expected;

use super::worker::Worker;
use super::{TRIES, tally};
use crate::model::event;
use crate::model::run::{Begin, Run, RunState};
use crate::records::Kept as _;

/// The prompt text of such a run.
const PROMPT: &str = "(background work ended)";

impl Worker {
    /// Handles a message of the engine between two runs.
    pub(super) async fn heard(&mut self, said: Option<Result<Message, Error>>) {
        match said {
            Some(Ok(message)) if begins_turn(&message) => self.perform_background(message).await,
            Some(Ok(message)) => {
                let events = self.stream_redactor.events(None, message);
                // Between two runs deltas need not be collected.
                if let (Ok(mut events), Ok(held)) = (events, self.stream_redactor.release(None)) {
                    events.extend(held);
                    // The loss of the lease is noticed elsewhere.
                    let _ = self.writer.append(events, Vec::new()).await;
                }
            }
            Some(Err(_)) | None => self.engine = None,
        }
    }

    async fn perform_background(&mut self, first: Message) {
        let run = match self.background_run().await {
            Ok(run) => run,
            Err(error) => {
                tracing::error!(session = self.session.id, %error, "a turn after background work could not be stored");
                // Without a run, no user could see or stop the turn.
                self.engine = None;
                return;
            }
        };
        self.sessions.changed(&run);
        self.work_on(&run.id);
        self.askers.run(&run);
        self.meter.begin(&run.id);
        // The engine is active already, so the run does not wait for a permit.
        self.permit = Arc::clone(&self.sessions.permits).try_acquire_owned().ok();
        if let Err(error) = self.attend(&run.id, Some(first)).await {
            self.not_kept(&run.id, &error).await;
        }
        self.work_on_nothing();
    }

    /// Stores a new run, and the activity of the session.
    async fn background_run(&mut self) -> Fallible<Run> {
        let now = self.sessions.clock.now();
        let run = Run {
            id: ids::new("run"),
            session: self.session.id.clone(),
            owner: self.session.owner.clone(),
            prompt: PROMPT.to_owned(),
            begin: Begin::Here,
            state: RunState::Running,
            unattended: self.askers.is_unattended(),
            background: true,
            created: now,
            started: Some(now),
            ended: None,
            outcome: None,
        };
        for _ in 0..TRIES {
            let touched = self.sessions.session_put(&run.session, |session| {
                session.touch(now);
                session.tally.runs += 1;
            });
            let mut puts = vec![run.put(Expected::Absent)?];
            puts.extend(touched.await?);
            match self.write(vec![event::state(&run)?], puts).await {
                Err(error) if tally::is_behind(&error) => {}
                written => return Ok(written.map(|()| run)?),
            }
        }
        Err(error::internal(format!("the record of {} changes too fast", self.session.id)))
    }
}

/// Whether the message is one of the agent itself. Messages of subagents and tasks belong to no turn.
fn begins_turn(message: &Message) -> bool {
    match message {
        Message::Assistant(said) => said.parent_tool_use_id.is_none(),
        Message::StreamEvent(piece) => piece.parent_tool_use_id.is_none(),
        Message::Result(_) => true,
        _ => false,
    }
}

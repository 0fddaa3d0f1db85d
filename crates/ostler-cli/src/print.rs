//! `--print`: one prompt, and its answer as text or as one JSON object. There is no user to ask.

use std::process::ExitCode;

use ostler::{Error, Message};
use ostler_engine::session::Connection;
use ostler_proto::build;
use ostler_proto::message::{System, TurnResult};

use crate::args::Args;
use crate::connection;
use crate::debug::Debug;
use crate::mcp::health::Complaints;
use crate::output;
use crate::piped;
use crate::screen::Screen;
use crate::session::{Event, Session};
use crate::signals::{STOPPED, Signals, StopRequest};

/// Answers the prompt from the command line and the pipe. Exits with 1 when the last result was an error, and with 130
/// when Ctrl-C stopped it.
pub(crate) async fn run(
    args: &Args,
    connection: Connection,
    screen: &mut Screen,
) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let debug = Debug::of(args)?;
    let prompt = match piped::prompt(args.prompt.as_deref(), &mut signals).await? {
        Ok(prompt) => prompt,
        Err(signal) => {
            connection::end(connection).await;
            return Ok(signal.code());
        }
    };
    anyhow::ensure!(!prompt.trim().is_empty(), "the prompt is empty");
    let session = match Session::connect(connection, debug, false, &mut signals).await? {
        Ok(session) => session,
        Err(signal) => return Ok(signal.code()),
    };
    session.send(&prompt).await?;
    let complaints = Complaints::default();
    let mut printing =
        Printing { session, last: None, is_busy: false, is_stopped: false, complaints };
    let ended = printing.read(&mut signals, screen).await?;
    let Printing { session, last, is_stopped, .. } = printing;
    // However the run ended, everything it started ends too.
    session.end().await;
    if let Some(code) = ended {
        return Ok(ExitCode::from(code));
    }
    let code = output::finish(args.output_format, last.map(without_name))?;
    Ok(if is_stopped { ExitCode::from(STOPPED) } else { code })
}

struct Printing {
    session: Session,
    last: Option<TurnResult>,
    /// A turn is running.
    is_busy: bool,
    /// Ctrl-C was pressed.
    is_stopped: bool,
    /// About MCP servers.
    complaints: Complaints,
}

impl Printing {
    /// Reads messages until the session ends or is stopped. Returns the exit code if a signal ends the program at once.
    async fn read(
        &mut self,
        signals: &mut Signals,
        screen: &mut Screen,
    ) -> anyhow::Result<Option<u8>> {
        loop {
            tokio::select! {
                message = self.session.next() => match message? {
                    Some(Event::Message(message)) => {
                        let handle = self.session.handle();
                        for complaint in self.complaints.after(&message, &handle).await {
                            screen.complain(&complaint);
                        }
                        self.take(message).await?;
                    }
                    Some(Event::Question(_)) => {}
                    None => return Ok(None),
                },
                signal = signals.next() => match signal {
                    StopRequest::End(code) => return Ok(Some(code)),
                    // After Ctrl-C, do not wait for background tasks.
                    StopRequest::Stop if self.is_stopped || self.last.is_some() => return Ok(Some(STOPPED)),
                    StopRequest::Stop => {
                        self.is_stopped = true;
                        let handle = self.session.handle();
                        // The result reports that the turn has stopped. Until then signals must still work.
                        tokio::spawn(async move { handle.interrupt().await });
                    }
                },
            }
            if self.is_stopped && self.last.is_some() && !self.is_busy {
                return Ok(None);
            }
        }
    }

    async fn take(&mut self, message: Message) -> Result<(), Error> {
        match message {
            Message::System(System::Init(_)) => self.is_busy = true,
            Message::Result(result) => {
                self.is_busy = false;
                // One prompt has one result: end the input, so that the engine finishes.
                if self.last.replace(*result).is_none() {
                    self.session.end_input().await?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// The SDK gives every prompt an id, and engines report more about prompts with ids. The caller has given no id, so the
/// result must look as it does without one.
fn without_name(result: TurnResult) -> TurnResult {
    build!(TurnResult {
        user_message_uuid: None,
        user_message_uuids: None,
        request_sent_wall_ms: None,
        first_request_input_tokens: None,
        first_request_cache_read_input_tokens: None,
        ..result
    })
}

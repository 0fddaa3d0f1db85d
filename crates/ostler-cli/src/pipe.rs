//! Passes frames between standard input and output (`stream-json`) and the engine unchanged. The host is another
//! program.

use std::process::ExitCode;

use anyhow::Context;
use ostler::engine::StartContext;
use ostler_engine::session::Connection;
use ostler_proto::RequestId;
use ostler_proto::control::{AskHost, ControlRequest, ControlResponse};
use ostler_proto::frame::{Frame, ToEngine, ToHost};
use ostler_proto::message::{System, TurnResult, User};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::args::{Args, InputFormat, OutputFormat};
use crate::connection::{self, INTERRUPT};
use crate::debug::Debug;
use crate::frames;
use crate::output;
use crate::piped;
use crate::screen::Screen;
use crate::signals::{STOPPED, Signals, StopRequest};
use crate::spare::Spare;

/// Answers the input and prints the requested output. Exits with 1 when the last result was an error, and with 130 when
/// Ctrl-C stopped it. A program that sends frames knows this from the result, and gets 0.
pub(crate) async fn run(
    args: &Args,
    scene: StartContext,
    connection: Connection,
) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let debug = Debug::of(args)?;
    let (complain, complaints) = mpsc::channel(16);
    let (connection, parked) = match args.wire.await_claim {
        false => (connection, None),
        true => {
            let (send, mut incoming) = mpsc::channel(16);
            let reader = tokio::spawn(frames::read(send, complain.clone(), debug.clone()));
            let claimed = tokio::select! {
                claimed = Spare::new(scene, connection).claimed(&mut incoming) => claimed?,
                signal = signals.next() => return Ok(signal.code()),
            };
            let Some(connection) = claimed else {
                reader.await.context("reading standard input")??;
                return Ok(ExitCode::SUCCESS);
            };
            (connection, Some((reader, incoming)))
        }
    };
    let prompt = match args.input_format {
        InputFormat::StreamJson => None,
        InputFormat::Text => match piped::prompt(args.prompt.as_deref(), &mut signals).await? {
            Ok(text) => Some(user(text)?),
            Err(signal) => {
                connection::end(connection).await;
                return Ok(signal.code());
            }
        },
    };
    let Connection { to_engine, from_engine } = connection;
    let mut pipe = Pipe {
        format: args.output_format,
        complaints,
        debug: debug.clone(),
        from_engine,
        // Weak: the session must end when its other senders are dropped.
        to_engine: to_engine.downgrade(),
        held: (args.input_format == InputFormat::Text).then(|| to_engine.clone()),
        last: None,
        is_busy: false,
        is_stopped: false,
    };
    let reader = match (prompt, parked) {
        (Some(prompt), _) => tokio::spawn(async move { Ok(to_engine.send(prompt).await?) }),
        (None, None) => tokio::spawn(frames::read(to_engine, complain, debug)),
        (None, Some((reader, incoming))) => tokio::spawn(forward(reader, incoming, to_engine)),
    };
    let ended = pipe.carry(&mut signals).await?;
    let is_stopped = pipe.is_stopped;
    let last = pipe.last.take();
    match ended {
        // The host asked for the end, and keeps its side of the pipe open.
        Ended::ByItself if pipe.to_engine.upgrade().is_some() => reader.abort(),
        Ended::ByItself => reader.await.context("reading standard input")??,
        Ended::Signal(code) => {
            pipe.end().await;
            return Ok(ExitCode::from(code));
        }
        Ended::Stopped => pipe.end().await,
    }
    let code = output::finish(args.output_format, last)?;
    Ok(match (is_stopped, args.input_format) {
        (true, InputFormat::Text) => ExitCode::from(STOPPED),
        (true, InputFormat::StreamJson) => ExitCode::SUCCESS,
        (false, _) => code,
    })
}

/// Passes on frames that another task already reads.
async fn forward(
    reader: JoinHandle<anyhow::Result<()>>,
    mut incoming: mpsc::Receiver<ToEngine>,
    to_engine: mpsc::Sender<ToEngine>,
) -> anyhow::Result<()> {
    while let Some(frame) = incoming.recv().await {
        to_engine.send(frame).await.context("the engine has ended")?;
    }
    reader.await.context("reading standard input")?
}

/// Waits for hooks that run without a prompt. Prints their warnings; programs get the frames.
pub(crate) async fn only_hooks(
    args: &Args,
    mut connection: Connection,
    screen: &mut Screen,
) -> anyhow::Result<ExitCode> {
    while let Some(frame) = connection.from_engine.recv().await {
        match frame {
            frame if args.output_format == OutputFormat::StreamJson => {
                output::write(&frame.to_line())?
            }
            ToHost::System(System::Informational(message)) => screen.complain(&message.content),
            _ => {}
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// How the stream of frames ended.
enum Ended {
    /// The engine ended it.
    ByItself,
    /// Ctrl-C stopped the turn, and its result has arrived.
    Stopped,
    /// A signal ended the program at once, with this exit code.
    Signal(u8),
}

struct Pipe {
    format: OutputFormat,
    from_engine: mpsc::Receiver<ToHost>,
    to_engine: mpsc::WeakSender<ToEngine>,
    /// Error responses to frames that are not valid.
    complaints: mpsc::Receiver<ToHost>,
    debug: Debug,
    /// Keeps the session open until there is a result.
    held: Option<mpsc::Sender<ToEngine>>,
    last: Option<TurnResult>,
    /// A turn is running.
    is_busy: bool,
    /// Ctrl-C was pressed.
    is_stopped: bool,
}

impl Pipe {
    /// Passes frames on until the end.
    async fn carry(&mut self, signals: &mut Signals) -> anyhow::Result<Ended> {
        loop {
            tokio::select! {
                frame = self.from_engine.recv() => {
                    let Some(frame) = frame else { return Ok(Ended::ByItself) };
                    let is_our_answer = is_answer_to_interrupt(&frame);
                    if !is_our_answer {
                        self.pass(frame).await?;
                    }
                    // After Ctrl-C there is no next prompt to wait for. Without a turn there is no result either.
                    if self.is_stopped && self.held.is_none() && !self.is_busy {
                        return Ok(Ended::Stopped);
                    }
                }
                Some(complaint) = self.complaints.recv() => self.pass(complaint).await?,
                signal = signals.next() => match (signal, self.to_engine.upgrade()) {
                    (StopRequest::End(code), _) => return Ok(Ended::Signal(code)),
                    (StopRequest::Stop, Some(engine)) if !self.is_stopped => {
                        self.is_stopped = true;
                        engine.send(connection::interrupt()).await?;
                    }
                    (StopRequest::Stop, _) => return Ok(Ended::Signal(STOPPED)),
                },
            }
        }
    }

    async fn pass(&mut self, frame: ToHost) -> anyhow::Result<()> {
        self.debug.note('>', &frame);
        if self.format == OutputFormat::StreamJson {
            output::write(&frame.to_line())?;
        }
        match frame {
            ToHost::ControlRequest(request) => self.refuse(request).await?,
            ToHost::System(System::Init(_)) => self.is_busy = true,
            ToHost::Result(result) => {
                self.last = Some(*result);
                self.is_busy = false;
                // One prompt has one result: dropping this sender lets the session finish.
                self.held = None;
            }
            _ => {}
        }
        Ok(())
    }

    /// Without input frames there is no host to answer the engine's request. Sends an error, because the engine waits.
    async fn refuse(&self, request: ControlRequest<AskHost>) -> anyhow::Result<()> {
        let Some(engine) = &self.held else { return Ok(()) };
        let id = request.request_id.unwrap_or_default();
        let response = ControlResponse::error(id, "there is no host to answer");
        Ok(engine.send(ToEngine::ControlResponse(response)).await?)
    }

    /// Ends the session, whatever it is doing.
    async fn end(self) {
        if let Some(to_engine) = self.to_engine.upgrade() {
            connection::end(Connection { to_engine, from_engine: self.from_engine }).await;
        }
    }
}

fn is_answer_to_interrupt(frame: &ToHost) -> bool {
    let ToHost::ControlResponse(answer) = frame else { return false };
    answer.response.request_id() == Some(RequestId::from(INTERRUPT))
}

fn user(text: String) -> anyhow::Result<ToEngine> {
    anyhow::ensure!(!text.trim().is_empty(), "the prompt is empty");
    Ok(ToEngine::User(Box::new(User::prompt(text.as_str()))))
}

//! Without a person: frames from standard input, frames or a result to standard output.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use anyhow::Context;
use ostler_engine::session::Connection;
use ostler_proto::DecodeError;
use ostler_proto::codec::FrameDecoder;
use ostler_proto::control::{AskHost, ControlResponse};
use ostler_proto::frame::{Frame, ToEngine, ToHost};
use ostler_proto::message::{TurnResult, User};
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;

use crate::args::{Args, InputFormat, OutputFormat};
use crate::question;

/// Answers what comes in, and prints what was asked for. Exits with 1 when the last result was an error.
pub(crate) async fn run(args: &Args, connection: Connection) -> anyhow::Result<ExitCode> {
    let Connection { to_engine, mut from_engine } = connection;
    // With frames coming in, the other side answers questions itself.
    let answers = (args.input_format == InputFormat::Text).then(|| to_engine.clone());
    let reader = match args.input_format {
        InputFormat::StreamJson => tokio::spawn(read_frames(to_engine)),
        InputFormat::Text => {
            let prompt = prompt(args)?;
            tokio::spawn(async move { Ok(to_engine.send(prompt).await?) })
        }
    };
    let mut last = None;
    let mut answers = answers;
    while let Some(frame) = from_engine.recv().await {
        if args.output_format == OutputFormat::StreamJson {
            print(&frame.to_line())?;
        }
        match frame {
            ToHost::ControlRequest(request) => {
                if let (Some(engine), AskHost::CanUseTool(call)) = (&answers, &request.request) {
                    let answer = serde_json::to_value(question::nobody(call))?;
                    let response = ControlResponse::success(
                        request.request_id.unwrap_or_default(),
                        Some(answer),
                    );
                    engine.send(ToEngine::ControlResponse(response)).await?;
                }
            }
            ToHost::Result(result) => {
                last = Some(*result);
                // One prompt, one result: dropping our end lets the session finish.
                answers = None;
            }
            _ => {}
        }
    }
    reader.await.context("reading standard input")??;
    finish(args, last)
}

fn finish(args: &Args, last: Option<TurnResult>) -> anyhow::Result<ExitCode> {
    let Some(result) = last else { return Ok(ExitCode::SUCCESS) };
    let is_error = result.is_error;
    match args.output_format {
        OutputFormat::StreamJson => {}
        OutputFormat::Json => print(&ToHost::Result(Box::new(result)).to_line())?,
        OutputFormat::Text => {
            let errors = || result.errors.as_ref().map(|errors| errors.join("; "));
            let text = result.result.clone().or_else(errors).unwrap_or_default();
            print(&format!("{text}\n"))?;
        }
    }
    Ok(if is_error { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn prompt(args: &Args) -> anyhow::Result<ToEngine> {
    let text = match &args.prompt {
        Some(prompt) => prompt.clone(),
        None if io::stdin().is_terminal() => {
            anyhow::bail!("there is no prompt: write it after the options")
        }
        None => {
            io::read_to_string(io::stdin()).context("reading the prompt from standard input")?
        }
    };
    anyhow::ensure!(!text.trim().is_empty(), "the prompt is empty");
    Ok(ToEngine::User(Box::new(User::prompt(text.as_str()))))
}

/// Reads frames until the end. What is not an object is passed over; what is malformed ends the program.
async fn read_frames(to_engine: mpsc::Sender<ToEngine>) -> anyhow::Result<()> {
    let mut stdin = tokio::io::stdin();
    let mut decoder = FrameDecoder::new();
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let n = stdin.read(&mut bytes).await.context("reading standard input")?;
        if n == 0 {
            decoder.finish();
        }
        decoder.push(&bytes[..n]);
        while let Some(frame) = decoder.next_frame() {
            match frame {
                Ok(frame) => to_engine.send(frame).await.context("the engine has gone")?,
                Err(DecodeError::NotAnObject { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if n == 0 {
            return Ok(());
        }
    }
}

/// One write per frame, flushed: whoever reads wants it now.
fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

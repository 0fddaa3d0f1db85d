//! Frames from standard input.
//!
//! Values that are not objects and unknown types are skipped. A broken line, or a user message that is not a prompt,
//! ends the program: the two sides do not understand each other. A request that cannot be parsed is answered with an
//! error, because the host waits for an answer.

use anyhow::{Context, bail};
use ostler_proto::api::Role;
use ostler_proto::build;
use ostler_proto::codec::LineDecoder;
use ostler_proto::control::{ControlResponse, Failure, Response};
use ostler_proto::frame::{Frame, ToEngine, ToHost};
use ostler_proto::{DecodeError, RequestId};
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;

use crate::debug::Debug;

/// Bytes per read: frames may be large, and every read is a system call.
const PORTION: usize = 256 * 1024;

/// Passes frames to the engine until the end of standard input.
///
/// # Errors
/// When a line is not valid. The error names the line.
pub(crate) async fn read(
    to_engine: mpsc::Sender<ToEngine>,
    complain: mpsc::Sender<ToHost>,
    debug: Debug,
) -> anyhow::Result<()> {
    let mut stdin = tokio::io::stdin();
    let mut lines = LineDecoder::new();
    let mut bytes = vec![0; PORTION];
    let mut n_lines = 0_u64;
    loop {
        let n = stdin.read(&mut bytes).await.context("reading standard input")?;
        if n == 0 {
            lines.finish();
        }
        lines.push(&bytes[..n]);
        while let Some(line) = lines.next_line() {
            n_lines += 1;
            let understood = line.map_err(anyhow::Error::from).and_then(understand);
            let place = || format!("line {n_lines} of standard input");
            match understood.with_context(place)? {
                Understood::Frame(frame) => {
                    debug.note('<', &*frame);
                    to_engine.send(*frame).await.context("the engine has ended")?;
                }
                Understood::Wrong(complaint) => {
                    // The task that prints it may have ended, and the program with it.
                    let _ = complain.send(ToHost::ControlResponse(complaint)).await;
                }
                Understood::Nothing => {}
            }
        }
        if n == 0 {
            return Ok(());
        }
    }
}

/// A parsed line.
#[derive(Debug)]
enum Understood {
    Frame(Box<ToEngine>),
    /// A request that is not valid, and the error response to it.
    Wrong(ControlResponse),
    Nothing,
}

fn understand(line: &str) -> anyhow::Result<Understood> {
    match ToEngine::from_line(line) {
        Ok(ToEngine::User(user)) if user.message.role != Role::User => {
            bail!("Expected message role 'user', got '{}'", user.message.role)
        }
        Ok(frame) => Ok(Understood::Frame(Box::new(frame))),
        Err(DecodeError::NotAnObject { found, .. }) if found != "null" => Ok(Understood::Nothing),
        Err(error) => match wrong_request(line, &error) {
            Some(answer) => Ok(Understood::Wrong(answer)),
            None => Err(error.into()),
        },
    }
}

/// The error response to a request with fields that are not valid; `None` if the line is not a request.
fn wrong_request(line: &str, error: &DecodeError) -> Option<ControlResponse> {
    let DecodeError::Malformed { reason, .. } = error else { return None };
    let frame: Value = serde_json::from_str(line).ok()?;
    if frame["type"] != "control_request" || !frame["request"].is_object() {
        return None;
    }
    let subtype = frame["request"]["subtype"].as_str().unwrap_or("without subtype");
    let failure = build!(Failure {
        request_id: frame["request_id"].as_str().map(RequestId::from),
        error: format!("the control request {subtype} cannot be read: {reason}"),
        error_code: Some("invalid_request".to_owned())
    });
    Some(ControlResponse::new(Response::Error(failure)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(line: &str) -> String {
        match understand(line).unwrap() {
            Understood::Wrong(answer) => serde_json::to_string(&answer).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_request_that_is_not_valid_gets_an_error_response() {
        let answer = wrong(
            r#"{"type":"control_request","request_id":"7","request":{"subtype":"stop_task","task_id":3}}"#,
        );
        assert!(answer.contains(r#""request_id":"7""#), "{answer}");
        assert!(answer.contains("stop_task") && answer.contains("task_id"), "{answer}");
        let answer = wrong(r#"{"type":"control_request","request":{"subtype":"mcp_toggle"}}"#);
        assert!(!answer.contains("request_id"), "{answer}");
    }

    #[test]
    fn broken_lines_are_errors_and_unknown_types_are_skipped() {
        for line in ["[]", "123", "\"a\"", "true"] {
            assert!(matches!(understand(line).unwrap(), Understood::Nothing), "{line}");
        }
        for line in ["null", "hello", "{", r#"{"type":"control_request"}"#, r#"{"type":"user"}"#] {
            assert!(understand(line).is_err(), "{line}");
        }
        let assistant = r#"{"type":"user","message":{"role":"assistant","content":"x"}}"#;
        let error = understand(assistant).unwrap_err().to_string();
        assert!(error.contains("got 'assistant'"), "{error}");
    }
}

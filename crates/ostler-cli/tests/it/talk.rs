//! A host at the other end of the program's pipes: sends lines and waits for frames.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use serde_json::{Value, json};

use crate::run::{Ostler, Ran};

/// Only a broken program takes this long.
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) struct Talk {
    child: Child,
    stdin: Option<ChildStdin>,
    frames: Receiver<Value>,
    /// All frames so far.
    pub(crate) heard: Vec<Value>,
}

impl Talk {
    /// Starts the program with frames on both sides.
    pub(crate) fn with(ostler: &Ostler, arguments: &[&str]) -> Self {
        let formats =
            ["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"];
        let mut child = ostler.spawn(&[&formats, arguments].concat());
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().unwrap();
        let (send, frames) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let frame = serde_json::from_str(&line.unwrap()).unwrap();
                if send.send(frame).is_err() {
                    return;
                }
            }
        });
        Self { child, stdin, frames, heard: Vec::new() }
    }

    pub(crate) fn send(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// The next frame; `None` at the end.
    pub(crate) fn next(&mut self) -> Option<Value> {
        match self.frames.recv_timeout(LIMIT) {
            Ok(frame) => {
                self.heard.push(frame.clone());
                Some(frame)
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => None,
            Err(error) => panic!("{error}; so far:\n{}", self.story()),
        }
    }

    /// Waits for a frame.
    pub(crate) fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let Some(frame) = self.next() else { panic!("the end; so far:\n{}", self.story()) };
            if fits(&frame) {
                return frame;
            }
        }
    }

    /// Sends a request and waits for the answer; returns its `response`.
    pub(crate) fn ask(&mut self, id: &str, request: Value) -> Value {
        let frame = json!({"type": "control_request", "request_id": id, "request": request});
        self.send(&frame.to_string());
        self.until(|frame| frame["response"]["request_id"] == id)["response"].clone()
    }

    /// The answer to a request.
    pub(crate) fn asked(&mut self, request: Value) -> Value {
        let id = format!("request-{}", self.heard.len());
        let answer = self.ask(&id, request.clone());
        assert_eq!(answer["subtype"], "success", "{request}: {answer}");
        answer["response"].clone()
    }

    /// The error of a refused request.
    pub(crate) fn refused(&mut self, request: Value) -> String {
        let id = format!("request-{}", self.heard.len());
        let answer = self.ask(&id, request.clone());
        assert_eq!(answer["subtype"], "error", "{request}: {answer}");
        answer["error"].as_str().unwrap().to_owned()
    }

    /// Sends a prompt, without waiting.
    pub(crate) fn say(&mut self, text: &str, uuid: Option<&str>) {
        let mut prompt = json!({"type": "user", "message": {"role": "user", "content": text}});
        if let Some(uuid) = uuid {
            prompt["uuid"] = json!(uuid);
        }
        self.send(&prompt.to_string());
    }

    /// Waits for the end of a turn.
    pub(crate) fn result(&mut self) -> Value {
        self.until(|frame| frame["type"] == "result")
    }

    /// Answers a request of the engine.
    pub(crate) fn answer(&mut self, request: &Value, response: Value) {
        let answer = json!({"type": "control_response", "response": {
            "subtype": "success", "request_id": request["request_id"], "response": response,
        }});
        self.send(&answer.to_string());
    }

    /// Closes standard input, and waits for the end.
    pub(crate) fn end(mut self) -> Ran {
        self.stdin = None;
        while self.next().is_some() {}
        let mut ran = Ran::of(self.child);
        ran.stdout = self.heard.iter().map(|frame| format!("{frame}\n")).collect();
        ran
    }

    /// The frames so far, a line each.
    pub(crate) fn story(&self) -> String {
        self.heard.iter().map(|frame| kind(frame) + "\n").collect()
    }
}

/// A short name for a frame.
pub(crate) fn kind(frame: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = word(&frame["type"]);
    let more = match kind.as_str() {
        "system" | "result" => word(&frame["subtype"]),
        "command_lifecycle" => word(&frame["state"]),
        "control_response" => word(&frame["response"]["subtype"]),
        "control_request" => word(&frame["request"]["subtype"]),
        "user" if frame["isReplay"] == true => "replay".to_owned(),
        _ => String::new(),
    };
    let state = word(&frame["state"]);
    match (kind.as_str(), more.as_str()) {
        ("system", "session_state_changed") => format!("state {state}"),
        (_, "") => kind,
        _ => format!("{kind} {more}"),
    }
}

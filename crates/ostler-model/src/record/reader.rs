//! Reads a recording.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::RecordingError;
use super::line::{CallLine, Exchange, RunHeader, VERSION};
use super::loaded::{LoadedRecording, RecordedCall, RecordedExchange};
use super::recorded_request::{RecordedRequest, RequestPart};

/// The largest recording, in bytes.
const LONGEST_RECORDING: u64 = 1024 * 1024 * 1024;

/// Reads a recording.
///
/// # Errors
/// When it is missing, or a line of it is malformed.
pub(super) fn read(path: &Path) -> Result<LoadedRecording, RecordingError> {
    let shown = path.display();
    let text = ostler_files::read_passed_pipe(path, LONGEST_RECORDING)
        .unwrap_or_else(|| ostler_files::read_text(path, LONGEST_RECORDING));
    let text = text.map_err(|refusal| {
        RecordingError(format!(
            "cannot read the recording {shown}: {refusal}; `--record {shown}` makes one"
        ))
    })?;
    let mut reader = Reader::default();
    for (number, line) in text.lines().enumerate() {
        reader.line(number + 1, line).map_err(|reason| {
            RecordingError(format!(
                "the recording {shown} is damaged in line {}: {reason}",
                number + 1
            ))
        })?;
    }
    if reader.runs.is_empty() {
        return Err(RecordingError(format!(
            "{shown} is not a recording; `--record {shown}` would make one"
        )));
    }
    Ok(reader.library)
}

#[derive(Default)]
struct Reader {
    runs: Vec<String>,
    /// The index of each exchange, by run and number.
    known: HashMap<(usize, u64), usize>,
    library: LoadedRecording,
}

impl Reader {
    fn line(&mut self, number: usize, line: &str) -> Result<(), String> {
        let value: Value = match serde_json::from_str(line) {
            Ok(value) => value,
            // The run was killed while it wrote this line.
            Err(error) if error.is_eof() => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        if value.get("ostler_recording").is_some() {
            return self.header(value);
        }
        if self.runs.is_empty() {
            return Err("it does not begin with the header of a recording".to_owned());
        }
        if value.get("exchange").is_some() {
            self.exchange(number, typed(value)?)
        } else if value.get("tool").is_some() {
            self.call(typed(value)?)
        } else {
            // A kind of line of later versions.
            Ok(())
        }
    }

    fn header(&mut self, value: Value) -> Result<(), String> {
        if value["ostler_recording"].as_u64() > Some(VERSION) {
            let made_by = value["ostler"].as_str().unwrap_or("a later version").to_owned();
            return Err(format!(
                "it was recorded by ostler {made_by}; this version cannot read it"
            ));
        }
        let header: RunHeader = typed(value)?;
        self.library.model = Some(header.model);
        self.runs.push(header.run);
        Ok(())
    }

    fn run(&self, name: &str) -> Result<usize, String> {
        let found = self.runs.iter().position(|known| known == name);
        found.ok_or_else(|| format!("the run {name} has not begun"))
    }

    fn exchange(&mut self, line: usize, exchange: Exchange) -> Result<(), String> {
        let Exchange { run, exchange: number, request, events, ms, end } = exchange;
        let run = self.run(&run)?;
        let earlier = match request.goes_on_from {
            None => None,
            Some(from) => {
                let at = self.known.get(&(run, from));
                let at = at.ok_or_else(|| format!("there is no exchange {from} before it"))?;
                Some(&self.library.exchanges[*at].asked)
            }
        };
        let head = match earlier {
            Some(earlier) if request.head.is_empty() => Arc::clone(&earlier.head),
            _ => RequestPart::head(Value::Object(request.head)),
        };
        let mut messages = match earlier {
            Some(earlier) => earlier
                .messages
                .get(..request.messages_kept)
                .ok_or("it refers to more messages than there are")?
                .to_vec(),
            None => Vec::new(),
        };
        messages.extend(request.messages.into_iter().map(RequestPart::new));
        let asked = RecordedRequest { head, messages };
        self.known.insert((run, number), self.library.exchanges.len());
        self.library.exchanges.push(RecordedExchange {
            run,
            number,
            line,
            asked,
            events,
            ms,
            end,
            is_used: false,
        });
        Ok(())
    }

    fn call(&mut self, call: CallLine) -> Result<(), String> {
        let CallLine { run, tool, name, input, outcome } = call;
        let run = self.run(&run)?;
        let input = RequestPart::new(input);
        self.library.calls.push(RecordedCall {
            run,
            id: tool,
            name,
            input,
            outcome,
            is_used: false,
        });
        Ok(())
    }
}

fn typed<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_path_to_error::deserialize(value).map_err(|error| error.to_string())
}

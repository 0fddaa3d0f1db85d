//! Writes a recording. Each line is appended with one write, so that a killed run leaves complete lines.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::fs::{File, OpenOptions, Permissions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use futures::{StreamExt as _, stream};
use ostler_proto::api::StreamEvent;
use serde::Serialize;
use serde_json::Value;

use super::RecordingError;
use super::edit::{edit_events, edit_value};
use super::line::{
    self, CallLine, CallOutcome, Exchange, ExchangeEnd, RecordedError, RequestLine, RunHeader,
    VERSION,
};
use super::recorded_request::{RecordedRequest, RequestNormalizer};
use super::redactor::RecordingRedactor;
use crate::{EventStream, Model, ModelError, ModelEvent, Request};

/// Records the exchanges with a model and the tool calls in a file. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Recorder(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    run: String,
    normalizer: RequestNormalizer,
    n_asked: AtomicU64,
    written: Mutex<RecordingFile>,
}

#[derive(Debug)]
struct RecordingFile {
    file: File,
    /// The beginnings of conversations in the file: their exchange and number of messages.
    beginnings: HashMap<u64, (u64, usize)>,
    /// The hash of each exchange's head.
    heads: HashMap<u64, u64>,
}

impl Recorder {
    /// Adds a run to a recording, which is created if it is missing. Only this user can read it.
    ///
    /// # Errors
    /// When the file cannot be written, or is not a recording.
    pub fn new(
        path: &Path,
        redactor: RecordingRedactor,
        model: &str,
    ) -> Result<Self, RecordingError> {
        let cannot = |error: io::Error| {
            RecordingError(format!("cannot write the recording {}: {error}", path.display()))
        };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(cannot)?;
        }
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)
            .map_err(cannot)?;
        if !file.metadata().map_err(cannot)?.is_file() {
            return Err(cannot(io::Error::other("it is not a regular file")));
        }
        check_is_recording(&file, path)?;
        file.set_permissions(Permissions::from_mode(0o600)).map_err(cannot)?;
        end_torn_line(&mut file).map_err(cannot)?;
        let run = uuid::Uuid::new_v4().simple().to_string()[..8].to_owned();
        let header = RunHeader {
            ostler_recording: VERSION,
            run: run.clone(),
            ostler: env!("CARGO_PKG_VERSION").to_owned(),
            model: model.to_owned(),
            at: jiff::Timestamp::now().to_string(),
        };
        write_line(&mut file, &header).map_err(cannot)?;
        let written = RecordingFile { file, beginnings: HashMap::new(), heads: HashMap::new() };
        Ok(Self(Arc::new(Inner {
            path: path.to_owned(),
            run,
            normalizer: RequestNormalizer::new(redactor),
            n_asked: AtomicU64::new(0),
            written: Mutex::new(written),
        })))
    }

    /// Wraps a model, so that its exchanges are recorded.
    pub fn model(&self, model: Arc<dyn Model>) -> Arc<dyn Model> {
        Arc::new(RecordingModel { recorder: self.clone(), model })
    }

    fn write_exchange(&self, take: &mut ExchangeRecorder, end: ExchangeEnd) -> Result<(), String> {
        let mut events = std::mem::take(&mut take.events);
        edit_events(&mut events, &self.0.normalizer.redactor().hiding());
        let mut written = self.0.written.lock();
        let exchange = Exchange {
            run: self.0.run.clone(),
            exchange: take.number,
            request: written.request(&take.asked),
            events,
            ms: std::mem::take(&mut take.ms),
            end,
        };
        write_line(&mut written.file, &exchange).map_err(|error| self.complaint(&error))?;
        written.remember(take.number, &take.asked);
        Ok(())
    }

    /// Writes the outcome of a tool call.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_call(
        &self,
        id: &str,
        name: &str,
        input: &Value,
        outcome: CallOutcome,
    ) -> Result<(), String> {
        let hiding = self.0.normalizer.redactor().hiding();
        let mut call = CallLine {
            run: self.0.run.clone(),
            tool: id.to_owned(),
            name: name.to_owned(),
            input: input.clone(),
            outcome,
        };
        edit_value(&mut call.input, &hiding);
        if let Ok(mut outcome) = serde_json::to_value(&call.outcome) {
            edit_value(&mut outcome, &hiding);
            call.outcome = serde_json::from_value(outcome).unwrap_or(call.outcome);
        }
        let mut written = self.0.written.lock();
        write_line(&mut written.file, &call).map_err(|error| self.complaint(&error))
    }

    fn complaint(&self, error: &io::Error) -> String {
        format!("cannot write the recording {}: {error}", self.0.path.display())
    }
}

impl RecordingFile {
    /// A request as it is written: without parts that are in the file already.
    fn request(&self, asked: &RecordedRequest) -> RequestLine {
        let beginnings = beginnings(asked);
        let known = beginnings.iter().rev().find_map(|hash| self.beginnings.get(hash));
        let head = || asked.head.value.as_object().cloned().unwrap_or_default();
        let messages = |from: usize| {
            asked.messages[from..].iter().map(|message| message.value.clone()).collect()
        };
        match known {
            Some((exchange, kept)) => RequestLine {
                goes_on_from: Some(*exchange),
                messages_kept: *kept,
                head: match self.heads.get(exchange) == Some(&asked.head.hash) {
                    true => serde_json::Map::new(),
                    false => head(),
                },
                messages: messages(*kept),
            },
            None => RequestLine {
                goes_on_from: None,
                messages_kept: 0,
                head: head(),
                messages: messages(0),
            },
        }
    }

    fn remember(&mut self, number: u64, asked: &RecordedRequest) {
        self.heads.insert(number, asked.head.hash);
        for (n_before, hash) in beginnings(asked).into_iter().enumerate() {
            // The latest one: later requests continue there, and need no new head.
            self.beginnings.insert(hash, (number, n_before + 1));
        }
    }
}

/// A hash for each beginning of the conversation, from the first message alone to all of them.
fn beginnings(asked: &RecordedRequest) -> Vec<u64> {
    let mut so_far = 0_u64;
    let next = |message: &Arc<super::recorded_request::RequestPart>| {
        let mut hasher = DefaultHasher::new();
        (so_far, message.hash).hash(&mut hasher);
        so_far = hasher.finish();
        so_far
    };
    asked.messages.iter().map(next).collect()
}

/// Refuses a file that is not a recording: it must not be changed.
fn check_is_recording(file: &File, path: &Path) -> Result<(), RecordingError> {
    let mut first = String::new();
    // A file that is not text is not a recording either.
    let read = BufReader::new(file.take(4096)).read_line(&mut first);
    let is_empty = matches!(read, Ok(0));
    if is_empty || first.starts_with("{\"ostler_recording\":") {
        return Ok(());
    }
    Err(RecordingError(format!(
        "{} is not a recording and is not changed; choose another name for --record",
        path.display()
    )))
}

/// Ends an incomplete line that a killed run left, so that it does not become part of the next line.
fn end_torn_line(file: &mut File) -> io::Result<()> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(());
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    if last != *b"\n" { file.write_all(b"\n") } else { Ok(()) }
}

/// Writes a line with one write: other processes may write to the file too.
fn write_line(file: &mut File, line: &impl Serialize) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    file.write_all(&bytes)
}

struct RecordingModel {
    recorder: Recorder,
    model: Arc<dyn Model>,
}

impl Model for RecordingModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn prompt_began(&self) {
        self.model.prompt_began();
    }

    fn respond(&self, request: Request) -> EventStream {
        let inner = &self.recorder.0;
        let take = ExchangeRecorder {
            recorder: self.recorder.clone(),
            number: inner.n_asked.fetch_add(1, Ordering::Relaxed) + 1,
            asked: inner.normalizer.file(&request),
            since: Instant::now(),
            events: Vec::new(),
            ms: Vec::new(),
            is_written: false,
        };
        let answer = self.model.respond(request);
        stream::unfold((answer, take), async |(mut answer, mut take)| {
            let item = take.heard(answer.next().await)?;
            Some((item, (answer, take)))
        })
        .boxed()
    }
}

/// An answer under way. It is written when it ends, in whatever way.
struct ExchangeRecorder {
    recorder: Recorder,
    number: u64,
    asked: RecordedRequest,
    since: Instant,
    events: Vec<Value>,
    ms: Vec<u64>,
    is_written: bool,
}

impl ExchangeRecorder {
    /// Records an event and passes it on. The last one is passed on only after everything is written.
    fn heard(
        &mut self,
        item: Option<Result<ModelEvent, ModelError>>,
    ) -> Option<Result<ModelEvent, ModelError>> {
        let end = match &item {
            Some(Ok(event)) => {
                self.events.push(line::write_event(event));
                let passed = self.since.elapsed().as_millis();
                self.ms.push(u64::try_from(passed).unwrap_or(u64::MAX));
                let is_last = matches!(
                    event,
                    ModelEvent::Whole(_) | ModelEvent::Stream(StreamEvent::MessageStop(_))
                );
                is_last.then_some(ExchangeEnd::Complete)
            }
            Some(Err(error)) => Some(ExchangeEnd::Error(RecordedError::from(error))),
            None => Some(ExchangeEnd::Cut),
        };
        match end.map(|end| self.write(end)) {
            Some(Err(error)) => Some(Err(ModelError::Recording(error))),
            Some(Ok(())) | None => item,
        }
    }

    fn write(&mut self, end: ExchangeEnd) -> Result<(), String> {
        if std::mem::replace(&mut self.is_written, true) {
            return Ok(());
        }
        self.recorder.clone().write_exchange(self, end)
    }
}

impl Drop for ExchangeRecorder {
    fn drop(&mut self) {
        // A response that was dropped does not report a full disk either.
        let _ = self.write(ExchangeEnd::Abandoned);
    }
}

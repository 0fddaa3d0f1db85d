//! Answers from a recording, without any network.

use parking_lot::{Mutex, MutexGuard};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use ostler_proto::launch::{ReplayMatch, ReplayTiming, ReplayTools};
use serde_json::Value;
use tokio::time::Instant;

use super::edit::{edit_events, edit_value};
use super::line::{self, CallOutcome, ExchangeEnd};
use super::loaded::LoadedRecording;
use super::recorded_request::{RequestNormalizer, RequestPart};
use super::redactor::RecordingRedactor;
use super::{RecordingError, reader};
use crate::tool_output::{ToolError, ToolOutput};
use crate::{EventStream, Model, ModelError, ModelEvent, Request};

/// How a recording is replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayOptions {
    /// Where the results of tools come from.
    pub tools: ReplayTools,
    /// How similar a request must be to a recorded one.
    pub matching: ReplayMatch,
    /// The timing of events.
    pub timing: ReplayTiming,
}

/// Answers from a recording. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Player(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    normalizer: RequestNormalizer,
    options: ReplayOptions,
    library: Mutex<LoadedRecording>,
}

/// How long the replay of an answer waits that was dropped before its end in the recording. The reader has this long to
/// drop it again.
const PATIENCE: Duration = Duration::from_secs(30);

impl Player {
    /// Reads a recording.
    ///
    /// # Errors
    /// When it is missing, or a line of it is malformed.
    pub fn new(
        path: &Path,
        redactor: RecordingRedactor,
        options: ReplayOptions,
    ) -> Result<Self, RecordingError> {
        let library = Mutex::new(reader::read(path)?);
        let normalizer = RequestNormalizer::new(redactor);
        Ok(Self(Arc::new(Inner { path: path.to_owned(), normalizer, options, library })))
    }

    /// The model of the last recorded run.
    pub fn recorded_model(&self) -> String {
        self.library().model.clone().unwrap_or_default()
    }

    /// A model that answers from the recording, under this name.
    pub fn model(&self, name: &str) -> Arc<dyn Model> {
        Arc::new(ReplayingModel { player: self.clone(), name: name.to_owned() })
    }

    pub fn tools(&self) -> ReplayTools {
        self.0.options.tools
    }

    fn library(&self) -> MutexGuard<'_, LoadedRecording> {
        self.0.library.lock()
    }

    fn complaint(&self, text: &str) -> String {
        format!("replay of {}: {text}", self.0.path.display())
    }

    /// The outcome of a recorded call. If the call was stopped, this waits, so that it can be stopped again.
    pub async fn call(&self, id: &str, name: &str, input: &Value) -> Result<ToolOutput, ToolError> {
        let failed = |text: &str| Err(ToolError::Failed(self.complaint(text)));
        let outcome = match self.outcome(id, name, input) {
            Ok(outcome) => outcome,
            Err(text) => {
                return failed(&format!("{text}. Record again, or use `--replay-tools real`"));
            }
        };
        match outcome.result() {
            Some(result) => result,
            None => {
                tokio::time::sleep(PATIENCE).await;
                failed(&format!("this call of {name} was stopped when it was recorded"))
            }
        }
    }

    fn outcome(&self, id: &str, name: &str, input: &Value) -> Result<CallOutcome, String> {
        let mut input = input.clone();
        edit_value(&mut input, &self.0.normalizer.redactor().hiding());
        let mut library = self.library();
        let outcome = library.take_call(id, name, &RequestPart::new(input))?;
        let malformed = |error: serde_json::Error| error.to_string();
        let mut value = serde_json::to_value(outcome).map_err(malformed)?;
        edit_value(&mut value, library.learned());
        edit_value(&mut value, &self.0.normalizer.redactor().showing());
        serde_json::from_value(value).map_err(malformed)
    }

    /// The recorded answer to a request.
    fn answer(&self, request: &Request) -> Result<RecordedAnswer, ModelError> {
        let asked = self.0.normalizer.file(request);
        let mut library = self.library();
        let exchange = library
            .take(&asked, self.0.options.matching)
            .map_err(|text| ModelError::Recording(self.complaint(&text)))?;
        let (mut events, ms) = (exchange.events.clone(), exchange.ms.clone());
        let (end, line) = (exchange.end.clone(), exchange.line);
        edit_events(&mut events, library.learned());
        edit_events(&mut events, &self.0.normalizer.redactor().showing());
        let events: Result<Vec<ModelEvent>, _> = events.into_iter().map(line::read_event).collect();
        let events = events.map_err(|error| {
            ModelError::Recording(self.complaint(&format!("line {line} is damaged: {error}")))
        })?;
        Ok(RecordedAnswer { events, ms, end })
    }

    /// The end of the stream after the last event.
    fn ending(&self, end: ExchangeEnd) -> EventStream {
        match end {
            ExchangeEnd::Complete | ExchangeEnd::Cut => stream::empty().boxed(),
            ExchangeEnd::Error(failure) => stream::iter([Err(ModelError::from(failure))]).boxed(),
            ExchangeEnd::Abandoned => {
                let error = ModelError::Recording(self.complaint(
                    "the answer was dropped before its end when it was recorded, so the recording has no more of it",
                ));
                stream::once(async move {
                    tokio::time::sleep(PATIENCE).await;
                    Err(error)
                })
                .boxed()
            }
        }
    }
}

struct RecordedAnswer {
    events: Vec<ModelEvent>,
    ms: Vec<u64>,
    end: ExchangeEnd,
}

struct ReplayingModel {
    player: Player,
    name: String,
}

impl Model for ReplayingModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn respond(&self, request: Request) -> EventStream {
        let RecordedAnswer { events, ms, end } = match self.player.answer(&request) {
            Ok(answer) => answer,
            Err(error) => return stream::iter([Err(error)]).boxed(),
        };
        let end = self.player.ending(end);
        let events = stream::iter(events.into_iter().map(Ok));
        if self.player.0.options.timing == ReplayTiming::Instant {
            return events.chain(end).boxed();
        }
        let begun = Instant::now();
        let times = ms.into_iter().chain(std::iter::repeat(0)).map(Duration::from_millis);
        let paced = events.zip(stream::iter(times)).then(move |(event, time)| async move {
            tokio::time::sleep_until(begun + time).await;
            event
        });
        paced.chain(end).boxed()
    }
}

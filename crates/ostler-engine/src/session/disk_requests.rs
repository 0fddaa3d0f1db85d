//! Requests of the host that work on files. They run next to the session's own task, one after the other.
//!
//! The session answers everything else meanwhile, an interruption above all. No turn begins until they are done: a
//! prompt that follows a reload is answered with the reloaded files.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ostler_proto::RequestId;
use ostler_proto::control::AskEngine;
use ostler_proto::frame::ToHost;
use serde_json::{Value, json};
use tokio::task::{JoinError, JoinSet};

use super::Session;
use super::control::{failure, success};
use super::setup::{HostOffers, style_text};
use crate::library::Library;

/// The requests that wait for the disk. At most one runs: two that change the same thing would race.
#[derive(Debug, Default)]
pub(super) struct DiskRequests {
    waiting: VecDeque<DiskRequest>,
    running: JoinSet<(DiskRequest, DiskOutcome)>,
}

#[derive(Debug)]
pub(super) struct DiskRequest {
    id: Option<RequestId>,
    request: AskEngine,
}

/// The outcome of the work on a blocking thread. Only the session itself changes its state.
#[derive(Debug)]
pub(super) enum DiskOutcome {
    /// The answer; nothing else to do.
    Answer(Result<Value, String>),
    /// A library that was read again.
    Library(Box<Offers>),
}

/// The library of files, plugins and the host, as it was read.
#[derive(Debug)]
pub(super) struct Offers {
    pub(super) library: Library,
    pub(super) brought: HostOffers,
    /// The text of the output style.
    pub(super) style_text: Option<String>,
}

/// Work that may block.
pub(super) type DiskWork = Box<dyn FnOnce() -> DiskOutcome + Send>;

impl DiskRequests {
    /// Whether a turn may begin.
    pub(super) fn are_done(&self) -> bool {
        self.waiting.is_empty() && self.running.is_empty()
    }

    /// The next request whose work is done; `None` if none is at work.
    pub(super) async fn next(&mut self) -> Option<Result<(DiskRequest, DiskOutcome), JoinError>> {
        self.running.join_next().await
    }
}

impl Session {
    /// Queues a request that works on files.
    pub(super) async fn on_disk(&mut self, id: Option<RequestId>, request: AskEngine) {
        self.disk.waiting.push_back(DiskRequest { id, request });
        self.start_disk_work().await;
    }

    async fn start_disk_work(&mut self) {
        while self.disk.running.is_empty()
            && let Some(next) = self.disk.waiting.pop_front()
        {
            // Built only now: an earlier request may have changed the state that this one begins with.
            match self.disk_work(&next.request) {
                Ok(work) => _ = self.disk.running.spawn_blocking(move || (next, caught(work))),
                Err(error) => self.answer(next.id, Err(error)).await,
            }
        }
    }

    /// Takes over the outcome of a request's work, and answers.
    pub(super) async fn end_disk_work(
        &mut self,
        done: Result<(DiskRequest, DiskOutcome), JoinError>,
    ) {
        // Panics are caught; what is left is a runtime that shuts down.
        if let Ok((DiskRequest { id, request }, outcome)) = done {
            let answer = match outcome {
                DiskOutcome::Answer(answer) => answer,
                DiskOutcome::Library(offers) => self.offer(&request, *offers).await,
            };
            if let AskEngine::Initialize(_) = request {
                self.answer_initialize(id, answer).await;
            } else {
                self.answer(id, answer).await;
            }
        }
        self.start_disk_work().await;
    }

    fn disk_work(&self, request: &AskEngine) -> Result<DiskWork, String> {
        match request {
            AskEngine::Initialize(initialize) => {
                let library = (*self.setup.base.library).clone();
                let style = self.setup.output_style.clone();
                Ok(with_offers(library, self.offers_with(initialize), style))
            }
            AskEngine::ReloadSkills(_) | AskEngine::ReloadOutputStyles(_) => {
                self.reading_library(self.setup.brought.clone())
            }
            AskEngine::ReloadPlugins(reload) => {
                let mut brought = self.setup.brought.clone();
                brought.take_plugins(reload.add_plugins.as_ref());
                self.reading_library(brought)
            }
            AskEngine::RewindFiles(rewind) => {
                let rewind = self.context.records.rewinding(rewind)?;
                Ok(answering(move || rewind().map(|reply| json!(reply))))
            }
            AskEngine::UpdateSettings(update) => self.settings_update(update).map(answering),
            AskEngine::RegisterRepoRoot(root) => Ok(answering(self.registration(root))),
            AskEngine::SeedReadState(seed) => Ok(answering(self.seeding(seed))),
            other => Err(format!("{other:?} does not work on files, which is a bug")),
        }
    }

    /// Takes over what a request has read, and returns its answer.
    async fn offer(&mut self, request: &AskEngine, offers: Offers) -> Result<Value, String> {
        match request {
            AskEngine::Initialize(initialize) => self.initialize_with(initialize, offers),
            AskEngine::ReloadPlugins(reload) => self.reload_with(reload, offers),
            AskEngine::ReloadOutputStyles(_) => self.reload_styles(offers),
            _ => self.reload_skills(offers).await,
        }
    }

    /// Reads again what files offer.
    fn reading_library(&self, brought: HostOffers) -> Result<DiskWork, String> {
        let reload = self.setup.reload.clone().ok_or("this session cannot read its files again")?;
        let style = self.setup.output_style.clone();
        Ok(Box::new(move || with_offers(reload(), brought, style)()))
    }

    /// Sends the answer to a request.
    pub(super) async fn answer(&self, id: Option<RequestId>, answer: Result<Value, String>) {
        let response = match answer {
            Ok(payload) => success(id, payload),
            Err(error) => failure(id, error, None),
        };
        self.context.outbox.send(ToHost::ControlResponse(response)).await;
    }

    /// Answers next to the session's task, as soon as the answer is there. The session does not end before.
    pub(super) fn answer_later(
        &mut self,
        id: Option<RequestId>,
        answer: impl Future<Output = Result<Value, String>> + Send + 'static,
    ) {
        let outbox = self.context.outbox.clone();
        self.answers.spawn(async move {
            let response = match answer.await {
                Ok(payload) => success(id, payload),
                Err(error) => failure(id, error, None),
            };
            outbox.send(ToHost::ControlResponse(response)).await;
        });
    }
}

/// Adds what the host brings, whose plugins are read from the disk.
fn with_offers(mut library: Library, brought: HostOffers, style: Option<String>) -> DiskWork {
    Box::new(move || {
        brought.add_to(&mut library);
        let style_text = style_text(&library, style.as_deref());
        DiskOutcome::Library(Box::new(Offers { library, brought, style_text }))
    })
}

fn answering(work: impl FnOnce() -> Result<Value, String> + Send + 'static) -> DiskWork {
    Box::new(move || DiskOutcome::Answer(work()))
}

/// Turns a panic into an answer: the host waits for one.
fn caught(work: DiskWork) -> DiskOutcome {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let error = "the request failed with a panic, which is a bug; try it again".to_owned();
        DiskOutcome::Answer(Err(error))
    })
}

//! Appends to a store what an engine writes to its disk.
//!
//! A separate task appends the lines, so that the session can answer the engine while a store is slow. The session
//! waits for the task only before it delivers the result of a turn, and when too many bytes wait to be stored. The task
//! ends after the session, when it has tried to store everything.

use std::sync::Arc;
use std::time::Duration;

use ostler_proto::SessionId;
use ostler_proto::build;
use ostler_proto::message::TranscriptMirror;
use ostler_proto::message::system::MirrorKey;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::{ConfigFolder, SessionKey, SessionStoreOptions, StoreFlush};
use crate::callback::{Failure, called};
use crate::json_size::json_size;

/// With more waiting entries than this, they are appended before the end of the turn.
const MAX_ENTRIES: usize = 500;
/// With more waiting bytes than this, they are appended before the end of the turn.
const MAX_BYTES: usize = 1024 * 1024;
/// With more waiting bytes than this, the session waits for the store.
const MAX_UNSTORED: usize = 64 * 1024 * 1024;
/// The pauses between the three attempts to append.
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_millis(800)];

/// The session's end of the task that writes to the store.
pub(crate) struct Mirror {
    jobs: mpsc::UnboundedSender<Job>,
    unstored: mpsc::UnboundedReceiver<Unstored>,
    /// Bytes sent since the last flush.
    n_bytes: usize,
}

enum Job {
    /// Store these lines; the number is their size in bytes.
    Add(TranscriptMirror, usize),
    /// Try to store everything now, and report when that is done.
    Flush(oneshot::Sender<()>),
}

/// A report to the host about lines that could not be stored.
pub(crate) struct Unstored {
    pub(crate) key: MirrorKey,
    pub(crate) reason: String,
}

impl Mirror {
    /// Starts the task. The folder exists as long as it runs.
    pub(crate) fn start(options: SessionStoreOptions, folder: Option<Arc<ConfigFolder>>) -> Self {
        let (jobs, taken) = mpsc::unbounded_channel();
        let (reports, unstored) = mpsc::unbounded_channel();
        let writer = Writer {
            options,
            folder,
            reports,
            batches: Vec::new(),
            n_entries: 0,
            n_bytes: 0,
            has_lost: false,
        };
        tokio::spawn(writer.run(taken));
        Self { jobs, unstored, n_bytes: 0 }
    }

    pub(crate) fn add(&mut self, lines: TranscriptMirror) {
        let n_bytes = json_size(&lines.entries);
        self.n_bytes += n_bytes;
        // The task ends only after `self` is dropped.
        let _ = self.jobs.send(Job::Add(lines, n_bytes));
    }

    /// Whether the session has to wait for the store.
    pub(crate) fn is_full(&self) -> bool {
        self.n_bytes > MAX_UNSTORED
    }

    /// Tries to store everything now. The receiver gets a message when that is done.
    pub(crate) fn flush(&mut self) -> oneshot::Receiver<()> {
        self.n_bytes = 0;
        let (done, flushed) = oneshot::channel();
        let _ = self.jobs.send(Job::Flush(done));
        flushed
    }

    /// The next report about lines that could not be stored.
    pub(crate) async fn next_unstored(&mut self) -> Option<Unstored> {
        self.unstored.recv().await
    }

    /// The next report, if there is one now.
    pub(crate) fn unstored(&mut self) -> Option<Unstored> {
        self.unstored.try_recv().ok()
    }
}

struct Writer {
    options: SessionStoreOptions,
    folder: Option<Arc<ConfigFolder>>,
    reports: mpsc::UnboundedSender<Unstored>,
    /// Lines to store, one batch per transcript, the oldest one first. A batch that could not be stored waits for the
    /// next flush: lines must stay in order, and a transcript with a missing line cannot be resumed.
    batches: Vec<Batch>,
    /// Entries and bytes that were added since the last attempt.
    n_entries: usize,
    n_bytes: usize,
    /// Whether lines were dropped.
    has_lost: bool,
}

struct Batch {
    key: SessionKey,
    entries: Vec<Value>,
    n_bytes: usize,
}

impl Writer {
    async fn run(mut self, mut jobs: mpsc::UnboundedReceiver<Job>) {
        while let Some(first) = jobs.recv().await {
            let mut flushed = Vec::new();
            let mut job = Some(first);
            // Lines that arrived while the store was busy are appended together.
            while let Some(next) = job {
                match next {
                    Job::Add(lines, n_bytes) => self.add(lines, n_bytes),
                    Job::Flush(done) => flushed.push(done),
                }
                job = jobs.try_recv().ok();
            }
            if !flushed.is_empty() || self.is_due() {
                self.store().await;
            }
            for done in flushed {
                // Fails only if the session has ended.
                let _ = done.send(());
            }
        }
        self.store().await;
    }

    fn is_due(&self) -> bool {
        match self.options.flush {
            StoreFlush::Batched => self.n_entries > MAX_ENTRIES || self.n_bytes > MAX_BYTES,
            StoreFlush::Eager => self.n_entries > 0,
        }
    }

    fn add(&mut self, lines: TranscriptMirror, n_bytes: usize) {
        let TranscriptMirror { file_path, entries, .. } = lines;
        if entries.is_empty() {
            return;
        }
        let Some(mut key) = SessionKey::of_file(&file_path) else {
            let reason = format!("{file_path} is not the file of a session, so it was not stored");
            return self.report(None, reason);
        };
        if let Some(project) = &self.options.project_key {
            key.project_key.clone_from(project);
        }
        self.n_entries += entries.len();
        self.n_bytes += n_bytes;
        match self.batches.iter_mut().find(|batch| batch.key == key) {
            Some(batch) => {
                batch.entries.extend(entries);
                batch.n_bytes += n_bytes;
            }
            None => self.batches.push(Batch { key, entries, n_bytes }),
        }
    }

    async fn store(&mut self) {
        (self.n_entries, self.n_bytes) = (0, 0);
        for batch in std::mem::take(&mut self.batches) {
            if let Err(reason) = self.append(&batch).await {
                let place = self.folder.as_ref().map(|folder| {
                    format!("; the transcript is in {}", folder.transcripts().display())
                });
                self.report(Some(&batch.key), reason + &place.unwrap_or_default());
                self.batches.push(batch);
            }
        }
        let n_waiting: usize = self.batches.iter().map(|batch| batch.n_bytes).sum();
        if n_waiting > MAX_UNSTORED {
            self.has_lost = true;
            let n_entries: usize = self.batches.iter().map(|batch| batch.entries.len()).sum();
            self.batches.clear();
            let reason =
                format!("{n_entries} lines were dropped: the store has failed for too long");
            self.report(None, reason);
        }
        if let Some(folder) = &self.folder {
            folder.keep_transcripts(self.has_lost || !self.batches.is_empty());
        }
    }

    async fn append(&self, batch: &Batch) -> Result<(), String> {
        let mut pauses = PAUSES.into_iter();
        loop {
            let append = async { self.options.store.append(&batch.key, &batch.entries).await };
            let reason = match called(append, Some(self.options.append_timeout)).await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(error)) => error.to_string(),
                Err(failure @ Failure::Panicked(_)) => failure.of("session store's `append`"),
                // The append may still succeed, and two at the same time could mix their lines.
                Err(failure @ Failure::TimedOut(_)) => {
                    return Err(failure.of("session store's `append`"));
                }
            };
            match pauses.next() {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(reason),
            }
        }
    }

    fn report(&self, key: Option<&SessionKey>, reason: String) {
        tracing::warn!(?key, reason, "the session store does not have all lines");
        let key = key.map(|key| {
            build!(MirrorKey {
                project_key: key.project_key.clone(),
                session_id: SessionId::from(key.session_id.as_str()),
                subpath: key.subpath.clone()
            })
        });
        // Fails only if the session has ended.
        let _ = self.reports.send(Unstored { key: key.unwrap_or_default(), reason });
    }
}

//! The session's file while the session runs: shared by all writers, and no longer written after a failed write.

use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;

use ostler_proto::build;
use ostler_proto::message::TranscriptMirror;
use ostler_proto::{AgentId, Extra, SessionId, Uuid};

use crate::{AgentMeta, StoreError, TranscriptWriter};

/// A session's file.
#[derive(Clone, Debug)]
pub struct SharedTranscript(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    writer: TranscriptWriter,
    /// A write failed, which was reported.
    lost: bool,
}

impl SharedTranscript {
    pub fn new(writer: TranscriptWriter) -> Self {
        Self(Arc::new(Mutex::new(State { writer, lost: false })))
    }

    /// Writes. The first failure is returned; the session continues without its file after that.
    pub fn write(
        &self,
        write: impl FnOnce(&mut TranscriptWriter) -> Result<(), StoreError>,
    ) -> Option<StoreError> {
        let mut state = self.0.lock();
        let error = write(&mut state.writer).err()?;
        (!std::mem::replace(&mut state.lost, true)).then_some(error)
    }

    /// The lines since the last call, for a host that mirrors the file: as many as fit one frame.
    pub fn mirrored(&self) -> Option<TranscriptMirror> {
        let mut state = self.0.lock();
        let entries = state.writer.take_mirrored();
        let file_path = state.writer.path().display().to_string();
        let extra = Extra::default();
        (!entries.is_empty()).then_some(build!(TranscriptMirror { file_path, entries, extra }))
    }

    /// The file.
    pub fn path(&self) -> PathBuf {
        self.0.lock().writer.path().to_owned()
    }

    /// The uuid of the last written line.
    pub fn leaf(&self) -> Option<Uuid> {
        self.0.lock().writer.leaf().cloned()
    }

    /// The line of the newest prompt.
    pub fn prompt_line(&self) -> Option<Uuid> {
        self.0.lock().writer.prompt_line().cloned()
    }

    /// The file of another session of the same project; `None` when it cannot be created.
    pub fn another(&self, id: &SessionId) -> Option<Self> {
        let state = self.0.lock();
        state.writer.another(id.clone()).ok().map(Self::new)
    }

    /// The file of a subagent, next to this one; `None` when it cannot be created.
    pub fn subagent(&self, agent: &AgentId, meta: &AgentMeta) -> Option<Self> {
        let state = self.0.lock();
        state.writer.subagent(agent.clone(), meta).ok().map(Self::new)
    }
}

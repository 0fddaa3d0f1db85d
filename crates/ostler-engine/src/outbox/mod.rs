//! What the host receives: builds frames, writes them to the session's file, then sends them.
//!
//! Background tasks and hooks in the background only report to the session's task (`host_calls.rs`). `assistant.rs`, `user.rs` and
//! `status.rs` build the frames by type; `subagent.rs` decides what the host sees of a subagent.

mod assistant;
mod status;
mod subagent;
mod user;

use std::sync::Arc;

use ostler_proto::build;
use ostler_proto::control::{Ask, AskHost};
use ostler_proto::frame::ToHost;
use ostler_proto::message::System;
use ostler_proto::message::system::SessionWritesLost;
use ostler_proto::{AgentId, SessionId, ToolUseId};
use parking_lot::Mutex;
use tokio::sync::mpsc;

pub(crate) use self::subagent::SubagentIdentity;
use crate::hook_report::HookReport;
use crate::host_calls::{Calls, HostCall};
use crate::ids::fresh_uuid;
use crate::store::{SharedTranscript, StoreError, TranscriptWriter};

/// Sends frames of one conversation to the host, and asks it. Cheap to clone; a subagent has its own.
#[derive(Clone, Debug)]
pub(crate) struct Outbox {
    pub(crate) session_id: SessionId,
    /// The conversation's file; `None` when nothing is stored. Dropped before the frames: a host that sees their end
    /// may open the file.
    pub(crate) transcript: Option<SharedTranscript>,
    pub(crate) frames: mpsc::Sender<ToHost>,
    pub(crate) calls: Calls,
    /// The subagent whose frames it sends; `None` in the main conversation.
    pub(crate) subagent: Option<Arc<SubagentIdentity>>,
    /// No turn waits for what is asked.
    pub(crate) in_background: bool,
    /// Whether the host wants the events of a response.
    pub(crate) partial_messages: bool,
    /// Notices about the start for the user, until they were sent.
    pub(crate) notices: Arc<Mutex<Vec<Notice>>>,
}

/// Something that the user should know about the start of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The text.
    pub content: String,
    /// `warning` or `info`.
    pub level: &'static str,
}

impl Outbox {
    /// The id of the subagent; `None` in the main conversation.
    pub(crate) fn agent(&self) -> Option<&AgentId> {
        self.subagent.as_ref().map(|subagent| &subagent.id)
    }

    /// The call that started the subagent.
    fn parent(&self) -> Option<ToolUseId> {
        self.subagent.as_ref().map(|subagent| subagent.call.clone())
    }

    /// Sends a frame. If the host is gone, nothing happens.
    pub(crate) async fn send(&self, frame: ToHost) {
        // Disk before host: what the host has seen can be resumed.
        if let Some(lost) = self.record(|writer| writer.frame(&frame)) {
            let _ = self.frames.send(lost).await;
        }
        self.mirror().await;
        let is_init = matches!(frame, ToHost::System(System::Init(_)));
        self.show(frame).await;
        if is_init {
            self.send_notices().await;
        }
    }

    /// Sends a frame that needs no line in the session's file, if the host wants to see those of this subagent.
    async fn show(&self, frame: ToHost) {
        let frame = match &self.subagent {
            None => Some(frame),
            Some(subagent) => subagent.shown(frame),
        };
        if let Some(frame) = frame {
            let _ = self.frames.send(frame).await;
        }
    }

    /// Has the session's task send the report of a hook in the background. If the session is over, nothing happens.
    pub(crate) async fn report(&self, report: HookReport) {
        if self.subagent.as_ref().is_none_or(|subagent| !subagent.is_silent()) {
            self.calls.send(HostCall::Hook(report)).await;
        }
    }

    /// Sends what was written to the session's file since the last time, if the host wants to have it too.
    pub(crate) async fn mirror(&self) {
        let Some(transcript) = &self.transcript else { return };
        while let Some(written) = transcript.mirrored() {
            let _ = self.frames.send(ToHost::TranscriptMirror(written)).await;
        }
    }

    /// Writes to the session's file, if there is one. Returns the frame that reports a failure, the first time.
    pub(crate) fn record(
        &self,
        write: impl FnOnce(&mut TranscriptWriter) -> Result<(), StoreError>,
    ) -> Option<ToHost> {
        let error = self.transcript.as_ref()?.write(write)?;
        let lost = build!(SessionWritesLost {
            error_code: error.code().unwrap_or("EIO").to_owned(),
            lost: vec!["transcript".to_owned()],
            session_id: self.session_id.clone(),
            uuid: fresh_uuid()
        });
        Some(ToHost::System(System::SessionWritesLost(lost)))
    }

    /// Writes a frame to the session's file that the host does not see.
    async fn record_only(&self, frame: &ToHost) {
        if let Some(lost) = self.record(|writer| writer.frame(frame)) {
            let _ = self.frames.send(lost).await;
        }
        self.mirror().await;
    }

    /// Asks the host, see [`Calls::ask`].
    pub(crate) async fn ask<Q: Ask>(&self, request: AskHost) -> Result<Q::Reply, String> {
        let of_subagent = self.subagent.as_ref().is_some_and(|it| it.is_in_background());
        self.calls.ask::<Q>(request, self.in_background || of_subagent).await
    }
}

//! The records of a session: its usage, its checkpoints, and a recording.

use std::path::Path;

use ostler_files::RealPath;
use ostler_proto::Uuid;
use ostler_proto::control::{RewindFiles, RewindFilesReply};
use ostler_proto::transcript::TranscriptLine;

use crate::checkpoint::Checkpoints;
use crate::model::ledger::Ledger;
use crate::outbox::Outbox;
use crate::record::Recording;

/// The records of a session. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct SessionRecords {
    /// What the session has cost so far.
    pub(crate) ledger: Ledger,
    /// Files as they were before each prompt, if checkpoints are enabled.
    pub(crate) checkpoints: Option<Checkpoints>,
    /// What calls are recorded in, or replayed from.
    pub(crate) recording: Option<Recording>,
}

impl SessionRecords {
    /// Makes a checkpoint before a prompt.
    pub(crate) async fn checkpoint(&self, outbox: &Outbox, prompt: &Uuid) {
        let (Some(checkpoints), prompt) = (self.checkpoints.clone(), prompt.clone()) else {
            return;
        };
        let line = tokio::task::spawn_blocking(move || checkpoints.begin(&prompt)).await;
        append(outbox, line.ok()).await;
    }

    /// Adds a file to the checkpoint before a tool changes it. If that fails, the user is notified and the permitted
    /// call still runs.
    ///
    /// `real` is the path that the call may write.
    pub(crate) async fn checkpoint_file(&self, outbox: &Outbox, path: &Path, real: &RealPath) {
        let Some(checkpoints) = self.checkpoints.clone() else { return };
        let message = outbox.transcript.as_ref().and_then(|transcript| transcript.leaf());
        let (file, real, path) = (path.to_owned(), real.clone(), path.display());
        let kept =
            tokio::task::spawn_blocking(move || checkpoints.before_write(&file, &real, message));
        let why = match kept.await {
            Ok(Ok(line)) => return append(outbox, line).await,
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        let text = format!("{path} has no checkpoint and a rewind will not restore it: {why}");
        outbox.inform(text, "warning", Some("checkpoint_failed")).await;
    }

    /// Restores files, see [`Checkpoints::rewind`]. The returned function blocks.
    pub(crate) fn rewinding(
        &self,
        rewind: &RewindFiles,
    ) -> Result<impl FnOnce() -> Result<RewindFilesReply, String> + Send + use<>, String> {
        let checkpoints: Checkpoints =
            self.checkpoints.clone().ok_or_else(|| "File rewinding is not enabled.".to_owned())?;
        let (prompt, dry_run) = (rewind.user_message_id.clone(), rewind.dry_run.unwrap_or(false));
        Ok(move || checkpoints.rewind(&prompt, dry_run))
    }
}

async fn append(outbox: &Outbox, line: Option<TranscriptLine>) {
    let Some(line) = line else { return };
    if let Some(lost) = outbox.record(|writer| writer.append(&line)) {
        outbox.send(lost).await;
    }
}

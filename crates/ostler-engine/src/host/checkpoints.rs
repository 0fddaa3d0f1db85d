//! When checkpoints are made: as a prompt is taken up, and before a tool changes a file.

use std::path::Path;

use ostler_proto::Uuid;
use ostler_proto::control::{RewindFiles, RewindFilesReply};
use ostler_proto::transcript::TranscriptLine;

use super::Host;
use crate::checkpoint::Checkpoints;

impl Host {
    /// Keeps how files are before a prompt.
    pub(crate) async fn checkpoint(&self, prompt: &Uuid) {
        let (Some(checkpoints), prompt) = (self.checkpoints.clone(), prompt.clone()) else {
            return;
        };
        let line = tokio::task::spawn_blocking(move || checkpoints.begin(&prompt)).await;
        self.keep(line.ok()).await;
    }

    /// Keeps how a file is before a tool changes it. Where that cannot be done, the user is told: the call was
    /// permitted, and goes on.
    pub(crate) async fn checkpoint_file(&self, path: &Path) {
        let Some(checkpoints) = self.checkpoints.clone() else { return };
        let message = self.transcript.as_ref().and_then(|transcript| transcript.leaf());
        let (file, path) = (path.to_owned(), path.display());
        let kept = tokio::task::spawn_blocking(move || checkpoints.before_write(&file, message));
        let why = match kept.await {
            Ok(Ok(line)) => return self.keep(line).await,
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        let text = format!("{path} has no checkpoint and will not be put back by a rewind: {why}");
        self.inform(text, "warning", Some("checkpoint_failed")).await;
    }

    async fn keep(&self, line: Option<TranscriptLine>) {
        let Some(line) = line else { return };
        if let Some(lost) = self.record(|writer| writer.append(&line)) {
            self.send(lost).await;
        }
    }

    /// Puts files back, see [`Checkpoints::rewind`]. What it returns blocks.
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

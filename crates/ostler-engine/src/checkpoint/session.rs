//! When checkpoints are made: as a prompt is taken up, and before a tool changes a file.

use std::path::Path;

use ostler_proto::Uuid;
use ostler_proto::transcript::TranscriptLine;

use super::Checkpoints;
use crate::host::Host;

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

    /// Puts files back, see [`Checkpoints::rewind`].
    pub(crate) async fn rewind(
        &self,
        prompt: &Uuid,
        dry_run: bool,
    ) -> Result<ostler_proto::control::RewindFilesReply, String> {
        let checkpoints: Checkpoints =
            self.checkpoints.clone().ok_or_else(|| "File rewinding is not enabled.".to_owned())?;
        let prompt = prompt.clone();
        let rewound = tokio::task::spawn_blocking(move || checkpoints.rewind(&prompt, dry_run));
        rewound.await.map_err(|error| format!("rewinding broke down: {error}"))?
    }
}

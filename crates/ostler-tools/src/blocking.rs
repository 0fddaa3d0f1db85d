//! File work off the runtime's threads.

use ostler_engine::tool::ToolError;

/// Runs `work` on a blocking thread. A panic, such as of an image decoder, fails this call only.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(ToolError::Failed(format!("the tool broke down: {error}"))),
    }
}

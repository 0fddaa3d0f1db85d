//! The callback that shows dialogs for an engine.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use ostler_proto::control::{Ack, DialogCompleted, RequestUserDialog, UserDialogReply};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::callback::{Failure, Reply, called};

/// A request of the engine to show a dialog: `request.dialog_kind` is its kind, `request.payload` its content.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DialogRequest {
    /// The request as received.
    pub question: RequestUserDialog,
    /// Fires when the engine no longer waits for an answer.
    pub cancelled: CancellationToken,
}

impl Deref for DialogRequest {
    type Target = RequestUserDialog;

    fn deref(&self) -> &RequestUserDialog {
        &self.question
    }
}

/// How a dialog ended.
///
/// ```
/// use ostler_sdk::{Dialog, Options};
///
/// let options = Options::new().on_dialog(["pick_color"], |asked| match asked.payload["colors"][0].as_str() {
///     Some(color) => Dialog::completed(color),
///     None => Dialog::cancelled(),
/// });
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Dialog(UserDialogReply);

impl Dialog {
    /// The user completed the dialog with this result. The kind of dialog defines the form of the result.
    pub fn completed(result: impl Into<Value>) -> Self {
        let result = result.into();
        Self(UserDialogReply::Completed(DialogCompleted { result, ..DialogCompleted::default() }))
    }

    /// The user closed the dialog without a result.
    pub fn cancelled() -> Self {
        Self(UserDialogReply::Cancelled(Ack::default()))
    }
}

/// A callback that shows dialogs, and the kinds it can show.
#[derive(Clone)]
pub(crate) struct OnDialog {
    pub(crate) kinds: Vec<String>,
    callback: Arc<dyn Fn(DialogRequest) -> BoxFuture<'static, Dialog> + Send + Sync>,
}

impl OnDialog {
    pub(crate) fn new<F, R, K>(kinds: Vec<String>, callback: F) -> Self
    where
        F: Fn(DialogRequest) -> R + Send + Sync + 'static,
        R: Reply<Dialog, K>,
    {
        Self { kinds, callback: Arc::new(move |request| callback(request).into_future()) }
    }

    /// Shows a dialog. It is cancelled if the callback cannot show its kind, panics or takes too long.
    pub(crate) async fn show(
        &self,
        request: DialogRequest,
        timeout: Option<Duration>,
    ) -> Result<UserDialogReply, (UserDialogReply, Failure)> {
        if !self.kinds.contains(&request.dialog_kind) {
            return Ok(Dialog::cancelled().0);
        }
        // A callback may panic before it returns its future, too.
        let dialog = called(async { (self.callback)(request).await }, timeout).await;
        dialog.map(|dialog| dialog.0).map_err(|failure| (Dialog::cancelled().0, failure))
    }
}

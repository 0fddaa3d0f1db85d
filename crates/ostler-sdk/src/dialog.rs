//! Dialogs that an engine wants shown, as a callback.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use ostler_proto::control::{Ack, DialogCompleted, RequestUserDialog, UserDialogReply};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::callback::{Failure, Reply, called};

/// The engine wants a dialog shown: `request.dialog_kind` says which, `request.payload` what is in it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DialogRequest {
    /// The request as it came.
    pub question: RequestUserDialog,
    /// Fires when the engine no longer wants an answer.
    pub cancelled: CancellationToken,
}

impl Deref for DialogRequest {
    type Target = RequestUserDialog;

    fn deref(&self) -> &RequestUserDialog {
        &self.question
    }
}

/// What came of a dialog.
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
    /// The user went through it, with this as the result. What that looks like depends on the kind of dialog.
    pub fn completed(result: impl Into<Value>) -> Self {
        let result = result.into();
        Self(UserDialogReply::Completed(DialogCompleted { result, ..DialogCompleted::default() }))
    }

    /// The user turned away.
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

    /// Has a dialog shown. One that cannot be shown is cancelled, and so is one whose callback panics or takes too long.
    pub(crate) async fn show(
        &self,
        request: DialogRequest,
        timeout: Option<Duration>,
    ) -> Result<UserDialogReply, (UserDialogReply, Failure)> {
        if !self.kinds.contains(&request.dialog_kind) {
            return Ok(Dialog::cancelled().0);
        }
        // A callback may panic before it returns its future, too.
        let shown = called(async { (self.callback)(request).await }, timeout).await;
        shown.map(|shown| shown.0).map_err(|failure| (Dialog::cancelled().0, failure))
    }
}

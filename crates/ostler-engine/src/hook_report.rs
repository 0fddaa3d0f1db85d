//! What a hook in the background reports to the session's task, which alone sends its frames.

use std::sync::Arc;

use ostler_proto::SessionId;
use ostler_proto::build;
use ostler_proto::frame::ToHost;
use ostler_proto::message::System;
use ostler_proto::message::system::{HookOutcome, HookProgress, HookResponse, HookStarted};

use crate::ids::fresh_uuid;

/// A report of a hook.
#[derive(Debug)]
pub(crate) enum HookReport {
    /// A run of it has begun, printed something or ended.
    Run(Arc<HookRun>, HookNews),
    /// A message for the user, of the conversation with that id.
    Message {
        session_id: SessionId,
        content: String,
        level: &'static str,
        tag: Option<&'static str>,
    },
}

/// One run of a hook, as the host knows it.
#[derive(Debug)]
pub(crate) struct HookRun {
    pub(crate) session_id: SessionId,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) event: String,
}

/// What has happened in a run.
#[derive(Debug)]
pub(crate) enum HookNews {
    Started,
    /// The output so far.
    Progress(HookOutputText),
    Ended {
        output: HookOutputText,
        exit_code: Option<i32>,
        outcome: HookOutcome,
    },
}

/// The output of a hook.
#[derive(Clone, Debug, Default)]
pub(crate) struct HookOutputText {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl HookRun {
    /// The frame with the news.
    pub(crate) fn frame(&self, news: HookNews) -> ToHost {
        let (hook_name, hook_event) = (self.name.clone(), self.event.clone());
        let (session_id, uuid) = (self.session_id.clone(), fresh_uuid());
        ToHost::System(match news {
            HookNews::Started => System::HookStarted(build!(HookStarted {
                hook_id: self.id.clone(),
                hook_name,
                hook_event,
                session_id,
                uuid,
            })),
            HookNews::Progress(HookOutputText { stdout, stderr }) => {
                System::HookProgress(build!(HookProgress {
                    hook_id: self.id.clone(),
                    hook_name,
                    hook_event,
                    output: format!("{stdout}{stderr}"),
                    stdout,
                    stderr,
                    session_id,
                    uuid,
                }))
            }
            HookNews::Ended { output, exit_code, outcome } => {
                let HookOutputText { stdout, stderr } = output;
                System::HookResponse(build!(HookResponse {
                    hook_name,
                    hook_event,
                    output: format!("{stdout}{stderr}"),
                    stdout,
                    stderr,
                    exit_code: exit_code.map(i64::from),
                    session_id,
                    uuid,
                    ..HookResponse::new(&self.id, outcome)
                }))
            }
        })
    }
}

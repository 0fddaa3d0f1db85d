//! `tool_progress`: a heartbeat while a tool works, and what the tool itself reports. It stops with the tool, so none
//! comes after the tool's result.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use ostler_process::Environment;
use ostler_proto::Extra;
use ostler_proto::api::ToolUseBlock;
use ostler_proto::build;
use ostler_proto::frame::ToHost;
use ostler_proto::message::ToolProgress;
use serde_json::json;
use tokio::sync::watch;

use crate::ids::fresh_uuid;
use crate::outbox::Outbox;
use crate::tool::CallProgress;

/// The time between two heartbeats, unless `OSTLER_HEARTBEAT_MS` sets another.
const PAUSE: Duration = Duration::from_secs(30);
/// The shortest time between two reports of a tool. Those in between are dropped.
const SHORTEST: Duration = Duration::from_millis(250);
/// The most characters of a report's text.
const MAX_TEXT: usize = 500;

pub(super) fn pause(env: &Environment) -> Duration {
    let wanted = env.get("OSTLER_HEARTBEAT_MS").and_then(|text| text.parse().ok());
    wanted.filter(|pause| *pause > 0).map_or(PAUSE, Duration::from_millis)
}

/// Sends the host a heartbeat from time to time, and the tool's reports, until the future is dropped.
pub(super) async fn tell(
    outbox: &Outbox,
    call: &ToolUseBlock,
    pause: Duration,
    mut reports: watch::Receiver<Option<CallProgress>>,
) -> Infallible {
    let begun = Instant::now();
    let (mut n_told, mut n_reports) = (0_u64, 0_u64);
    let mut next = tokio::time::Instant::now() + pause;
    loop {
        tokio::select! {
            () = tokio::time::sleep_until(next) => {
                next += pause;
                let elapsed = pause.as_secs_f64() * (n_told + 1) as f64;
                let id = format!("{}-heartbeat-{n_told}", call.id);
                outbox.send(frame(outbox, call, id, elapsed, None)).await;
                n_told += 1;
            }
            // The sender lives as long as the call.
            Ok(()) = reports.changed() => {
                let Some(report) = reports.borrow_and_update().clone() else { continue };
                let id = format!("{}-progress-{n_reports}", call.id);
                let elapsed = begun.elapsed().as_secs_f64();
                outbox.send(frame(outbox, call, id, elapsed, Some(report))).await;
                n_reports += 1;
                tokio::time::sleep(SHORTEST).await;
            }
        }
    }
}

fn frame(
    outbox: &Outbox,
    call: &ToolUseBlock,
    id: String,
    elapsed: f64,
    report: Option<CallProgress>,
) -> ToHost {
    let heartbeat = report.is_none().then_some(true);
    let mut extra = Extra::default();
    if let Some(CallProgress { done, total, message }) = report {
        extra.insert("progress", json!(done));
        if let Some(total) = total {
            extra.insert("total", json!(total));
        }
        if let Some(message) = message {
            extra.insert("message", json!(message.chars().take(MAX_TEXT).collect::<String>()));
        }
    }
    ToHost::ToolProgress(build!(ToolProgress {
        tool_use_id: id.into(),
        tool_name: call.name.clone(),
        parent_tool_use_id: Some(call.id.clone()),
        elapsed_time_seconds: elapsed.into(),
        heartbeat,
        session_id: outbox.session_id.clone(),
        uuid: fresh_uuid(),
        extra
    }))
}

//! `tool_progress`: a heartbeat while a tool works. It stops with the tool, so none comes after the tool's result.

use std::convert::Infallible;
use std::time::Duration;

use ostler_process::Environment;
use ostler_proto::api::ToolUseBlock;
use ostler_proto::build;
use ostler_proto::frame::ToHost;
use ostler_proto::message::ToolProgress;

use crate::ids::fresh_uuid;
use crate::outbox::Outbox;

/// The time between two heartbeats, unless `OSTLER_HEARTBEAT_MS` sets another.
const PAUSE: Duration = Duration::from_secs(30);

pub(super) fn pause(env: &Environment) -> Duration {
    let wanted = env.get("OSTLER_HEARTBEAT_MS").and_then(|text| text.parse().ok());
    wanted.filter(|pause| *pause > 0).map_or(PAUSE, Duration::from_millis)
}

/// Sends the host a heartbeat from time to time, until the future is dropped.
pub(super) async fn tell(outbox: &Outbox, call: &ToolUseBlock, pause: Duration) -> Infallible {
    let mut n_told = 0_u64;
    loop {
        tokio::time::sleep(pause).await;
        let elapsed = pause.as_secs_f64() * (n_told + 1) as f64;
        outbox
            .send(ToHost::ToolProgress(build!(ToolProgress {
                tool_use_id: format!("{}-heartbeat-{n_told}", call.id).into(),
                tool_name: call.name.clone(),
                parent_tool_use_id: Some(call.id.clone()),
                elapsed_time_seconds: elapsed.into(),
                heartbeat: Some(true),
                session_id: outbox.session_id.clone(),
                uuid: fresh_uuid()
            })))
            .await;
        n_told += 1;
    }
}

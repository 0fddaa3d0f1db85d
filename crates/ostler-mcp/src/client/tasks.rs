//! Calls of tools that run only as tasks (MCP 2025-11-25): the server answers at once with a task, and the client asks
//! how it is until there is a result.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::options::Progress;
use super::session::Session;
use super::{CallOptions, Client, Error, ToolInfo};

/// How long the server is asked to keep a result, in milliseconds.
const KEPT_MS: u64 = 60 * 60 * 1000;
/// How long to wait before asking again: the least, without a wish of the server, and the most.
const PAUSES: [Duration; 3] =
    [Duration::from_millis(50), Duration::from_secs(1), Duration::from_secs(10)];

impl ToolInfo {
    /// Whether the tool can be called only as a task.
    pub(super) fn requires_task(&self) -> bool {
        self.execution.as_ref().is_some_and(|it| it["taskSupport"] == "required")
    }
}

impl Client {
    /// Whether a call of this tool must be a task: the server said so in its last list, and has tasks for calls.
    pub(super) fn must_be_task(&self, tool: &str) -> bool {
        let has_tasks = self.details().is_some_and(|details| {
            let tasks = details.capabilities.get("tasks");
            tasks.is_some_and(|tasks| tasks.pointer("/requests/tools/call").is_some())
        });
        has_tasks && self.session().is_ok_and(|it| it.shared().task_tools.lock().contains(tool))
    }

    /// Calls a tool as a task. The limits of the call are for the whole task.
    pub(super) async fn call_as_task(
        &self,
        what: &str,
        mut params: Value,
        mut options: CallOptions,
    ) -> Result<Value, Error> {
        let session = self.session()?;
        let limit = options.most.take().or(options.timeout).or(self.inner.options.request_timeout);
        let (cancellation, listener) = (options.cancellation.clone(), options.on_progress.clone());
        params["task"] = json!({"ttl": KEPT_MS});
        let whole = async {
            let created = self.request(what, "tools/call", params, options).await?;
            let Some(id) = created["task"]["taskId"].as_str() else {
                let reason = "it is not the answer to a call as a task: `task.taskId` is missing";
                return Err(self.malformed(what, reason.to_owned()));
            };
            let mut running = Running { session: &session, id: id.to_owned(), is_over: false };
            let mut state = created["task"].clone();
            let (mut n_reports, mut told) = (0_u32, Value::Null);
            // A task that waits for the user's answer sends its question while the result is awaited.
            while state["status"] == "working" {
                if let Some(hear) = listener.as_ref().filter(|_| state["statusMessage"] != told) {
                    told = state["statusMessage"].clone();
                    n_reports += 1;
                    let message = told.as_str().map(str::to_owned);
                    hear(Progress { done: f64::from(n_reports), total: None, message });
                }
                tokio::time::sleep(pause(&state)).await;
                let params = json!({"taskId": running.id});
                state = self.request(what, "tasks/get", params, self.brief()).await?;
            }
            running.is_over = state["status"] != "input_required";
            let params = json!({"taskId": running.id});
            let result = self.request(what, "tasks/result", params, CallOptions::default()).await;
            running.is_over = true;
            result
        };
        let (server, what) = (self.inner.name.clone(), what.to_owned());
        let timed_out = async {
            match limit {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        let cancelled = async {
            match &cancellation {
                Some(token) => token.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            result = whole => result,
            () = cancelled => Err(Error::Cancelled { server, what }),
            () = timed_out => {
                Err(Error::TimedOut { server, what, after: limit.unwrap_or_default() })
            }
        }
    }
}

fn pause(state: &Value) -> Duration {
    let [least, usual, most] = PAUSES;
    let wanted = state["pollInterval"].as_u64().map(Duration::from_millis);
    wanted.unwrap_or(usual).clamp(least, most)
}

/// A task whose result is awaited. Dropping it before the end cancels the task at the server.
struct Running<'a> {
    session: &'a Arc<Session>,
    id: String,
    is_over: bool,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.session.try_request("tasks/cancel", json!({"taskId": self.id}));
        }
    }
}

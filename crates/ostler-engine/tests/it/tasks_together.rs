//! Background tasks that end at the same moment.

use std::collections::HashSet;
use std::sync::Arc;

use ostler_engine::tasks::{Task, TaskResult};
use ostler_engine::tool::{Effect, Tool, ToolCx, ToolError, ToolOutput, erase};
use ostler_proto::frame::ToHost;
use ostler_proto::message::System;
use ostler_proto::message::system::TaskOutcome;
use ostler_testkit::{Script, reply, when};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Barrier;

use crate::host::TestHost;

#[derive(Deserialize, JsonSchema)]
struct Args {
    rounds: usize,
}

/// Starts two tasks in every round, lets them end together and waits for both.
struct Pairs;

impl Tool for Pairs {
    const NAME: &'static str = "Pairs";
    const DESCRIPTION: &'static str = "For tests.";
    type Args = Args;

    fn effect(&self, _: &ToolCx, _: &Args) -> Effect {
        Effect::Nothing
    }

    async fn run(&self, cx: &ToolCx, args: Args) -> Result<ToolOutput, ToolError> {
        for _ in 0..args.rounds {
            let gate = Arc::new(Barrier::new(3));
            let mut started = Vec::new();
            for name in ["one", "other"] {
                let task = Task::command(&cx.call, &cx.scratch, "wait", name).unwrap();
                let at_gate = Arc::clone(&gate);
                let work = async move {
                    at_gate.wait().await;
                    TaskResult::new(TaskOutcome::Completed, name)
                };
                cx.tasks.start(task.clone(), work).await?;
                // No turn follows: only the frames matter here.
                cx.tasks.known(&task.id);
                started.push(task.id);
            }
            gate.wait().await;
            for id in &started {
                cx.tasks.wait(id).await;
            }
        }
        Ok(ToolOutput::new("all ended", json!(null)))
    }
}

/// Reads to the end as a slow host: frames wait for room in the channel, so that a task that sends several frames can
/// be overtaken.
async fn read_slowly(host: &mut TestHost) {
    loop {
        let frames = &host.connection.from_engine;
        for _ in 0..100 {
            if frames.len() == frames.max_capacity() {
                break;
            }
            tokio::task::yield_now().await;
        }
        if host.next().await.is_none() {
            return;
        }
    }
}

/// Hosts take the last list as the truth, and wait for the tasks in it.
///
/// Mutants: `Inner::report` for an end replaced by sending the frames from the task itself, with the list made before; `end_of`
/// lists the task itself; the task reports its end before it marks it; the end is never marked as announced.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_tasks_that_end_together_never_stay_in_the_list_of_running_tasks() {
    const ROUNDS: usize = 1000;
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Pairs", json!({"rounds": ROUNDS})))
        .rule(when(), reply().text("Done."));
    let mut host = TestHost::with(script, |options| options.tools.push(erase(Pairs))).await;
    host.prompt("start").await;
    host.leave();
    read_slowly(&mut host).await;

    let mut ended = HashSet::new();
    let mut last = Vec::new();
    for frame in &host.seen {
        match frame {
            ToHost::System(System::BackgroundTasksChanged(it)) => {
                last = it.tasks.iter().map(|task| task.task_id.clone()).collect();
                let ghosts: Vec<_> = last.iter().filter(|id| ended.contains(*id)).collect();
                assert!(ghosts.is_empty(), "after {} ends the list has {ghosts:?}", ended.len());
            }
            ToHost::System(System::TaskNotification(it)) => _ = ended.insert(it.task_id.clone()),
            _ => {}
        }
    }
    assert_eq!((ended.len(), last), (2 * ROUNDS, Vec::new()));
}

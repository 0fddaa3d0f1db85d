//! One hook, from its start to its answer.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures::FutureExt;
use ostler_proto::ToolUseId;
use ostler_proto::control::{AskHost, HookCallback};
use ostler_proto::hook::{HookEvent, HookOutput};
use ostler_proto::message::system::HookOutcome;
use serde_json::Value;
use tokio::time::Instant;

use super::command::{self, CommandProgress, CommandReply, Program, RunningHook};
use super::frames::HookRunFrames;
use super::registry::{FailurePolicy, Hook, Kind};
use super::verdict::Verdict;
use super::{HookServices, Hooks};
use super::{event, http, mcp, question};
use crate::disk::on_disk;
use crate::host_calls::HostCall;
use crate::host_question::{ProgramAsker, Requester};
use crate::ids::fresh_uuid;
use crate::outbox::Outbox;
use crate::sandbox::Confinement;

/// How often the output of a slow hook is sent.
const PROGRESS: Duration = Duration::from_secs(1);

/// What a hook runs with. Owned, because a hook may outlast the event.
#[derive(Clone)]
pub(super) struct HookCall {
    pub(super) hooks: Hooks,
    pub(super) cwd: PathBuf,
    pub(super) event: HookEvent,
    /// The value that matchers are compared with.
    pub(super) subject: Option<String>,
    pub(super) call: Option<ToolUseId>,
    pub(super) input: Value,
}

impl HookCall {
    pub(super) fn outbox(&self) -> &Outbox {
        &self.hooks.scope.outbox
    }

    /// The same call of a hook that the turn does not wait for.
    pub(super) fn in_background(&self) -> Self {
        Self { hooks: self.hooks.in_background(), ..self.clone() }
    }
}

/// Runs a hook within its timeout and before a deadline. An error says why there is no answer.
pub(super) async fn run(
    hook: &Hook,
    hook_call: &HookCall,
    deadline: Option<Instant>,
) -> Result<HookOutput, String> {
    let answer = AssertUnwindSafe(answer(hook, hook_call)).catch_unwind();
    let answer = async { answer.await.unwrap_or_else(|_| Err("failed with a panic".to_owned())) };
    let own = hook.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let output = match own.into_iter().chain(deadline).min() {
        None => answer.await,
        Some(end) => tokio::time::timeout_at(end, answer).await.unwrap_or_else(|_| {
            let limit =
                if own == Some(end) { "its timeout" } else { "the time of the prompt was up" };
            Err(format!("did not respond before {limit}"))
        }),
    };
    about(&hook_call.event, output?)
}

/// Refuses an answer about another event than the one in the input: a guard that answers about the wrong event has not
/// allowed this one.
fn about(event: &HookEvent, output: HookOutput) -> Result<HookOutput, String> {
    match &output.hook_specific_output {
        Some(specific) if specific.tag() != Some(event.as_str()) => {
            let named = specific.tag().unwrap_or("nothing");
            Err(format!("answered for {named}: its `hookEventName` must be {event}"))
        }
        _ => Ok(output),
    }
}

/// Runs a hook in the background: its text reaches the model with the next prompt.
pub(super) async fn run_apart(hook: Hook, hook_call: HookCall) {
    let outcome = run(&hook, &hook_call, None).await;
    let objection = outcome.as_ref().ok().filter(|output| output.decision.is_some());
    if let (true, Some(objection)) = (hook.wakes, objection) {
        let words = objection.reason.clone().unwrap_or_default();
        let words = format!("{} hook feedback:\n{words}", hook_call.event);
        // If the session is over, nothing happens.
        hook_call.outbox().calls.send(HostCall::Wake(words)).await;
        return;
    }
    report(&hook_call, outcome).await;
}

async fn answer(hook: &Hook, hook_call: &HookCall) -> Result<HookOutput, String> {
    match &hook.kind {
        Kind::Callback(id) => callback(id, hook_call).await,
        Kind::Command { command, args } => {
            let program = (command.as_str(), args.as_deref());
            run_command(program, hook, hook_call).await
        }
        Kind::Http(server) => {
            let HookCall { event, input, .. } = hook_call;
            let (clients, env) = (&hook_call.hooks.shared.http, &hook_call.hooks.scope.env);
            let answer = http::ask(clients, server, event, input.to_string(), env);
            shown_whole(hook_call, answer).await
        }
        Kind::Prompt(hook) => {
            let HookCall { hooks, event, input, .. } = hook_call;
            let judge = &helpers(hook_call)?.judge;
            shown_whole(hook_call, question::ask(hook, judge, &hooks.scope, event, input)).await
        }
        Kind::Mcp(hook) => {
            let HookCall { cwd, event, input, .. } = hook_call;
            let servers = &helpers(hook_call)?.servers;
            shown_whole(hook_call, mcp::call(hook, servers, cwd, event, input)).await
        }
        Kind::Unsupported(kind) => Err(format!(
            "is of type `{kind}`, which is not supported; use command, http, prompt or mcp_tool"
        )),
    }
}

fn helpers(hook_call: &HookCall) -> Result<&HookServices, String> {
    hook_call
        .hooks
        .shared
        .helpers
        .get()
        .ok_or_else(|| "was called before the session began".to_owned())
}

async fn callback(id: &str, hook_call: &HookCall) -> Result<HookOutput, String> {
    let input = serde_json::from_value(hook_call.input.clone());
    let call = hook_call.call.clone();
    let mut request = HookCallback::new(id, input.map_err(|error| error.to_string())?);
    request.tool_use_id = Some(call.unwrap_or_else(|| ToolUseId::from(fresh_uuid().as_str())));
    hook_call.outbox().ask::<HookCallback>(AskHost::HookCallback(Box::new(request))).await
}

async fn show(hook_call: &HookCall) -> HookRunFrames {
    let HookCall { hooks, event, subject, .. } = hook_call;
    let is_shown = hooks.shared.shows_hooks;
    let in_background = hooks.in_background;
    HookRunFrames::start(hook_call.outbox(), event, subject.as_deref(), is_shown, in_background)
        .await
}

/// Sends the frames of a hook that answers in one piece.
async fn shown_whole(
    hook_call: &HookCall,
    answer: impl Future<Output = Result<(String, HookOutput), String>>,
) -> Result<HookOutput, String> {
    let mut shown = show(hook_call).await;
    match answer.await {
        Ok((text, output)) => {
            shown.printed(text, String::new());
            let hides = output.suppress_output == Some(true);
            shown.finish(None, HookOutcome::Success, hides).await;
            Ok(output)
        }
        Err(error) => {
            shown.printed(String::new(), error.clone());
            shown.finish(None, HookOutcome::Error, false).await;
            Err(error)
        }
    }
}

/// Whether the command of a hook runs in the sandbox.
async fn confinement(
    hook_call: &HookCall,
    command: &str,
    args: Option<&[String]>,
) -> Result<Confinement, String> {
    let scope = Arc::clone(&hook_call.hooks.scope);
    if scope.sandbox.is_none() {
        return Ok(Confinement::None);
    }
    let words = std::iter::once(command).chain(args.into_iter().flatten().map(String::as_str));
    let line = words.collect::<Vec<_>>().join(" ");
    let folder = hook_call.cwd.clone();
    let event = hook_call.event.to_string();
    let asker = Arc::new(ProgramAsker {
        calls: scope.outbox.calls.clone(),
        permissions: scope.permissions.clone(),
        ledger: scope.ledger.clone(),
        requester: Requester::Hook { event, command: line.clone() },
        agent: scope.outbox.agent().cloned(),
        in_background: AtomicBool::new(hook_call.hooks.in_background),
        may_wait_for_session: false,
    });
    on_disk(move || Confinement::of(scope.sandbox.as_ref(), asker, &folder, &line)).await
}

async fn run_command(
    (command, args): (&str, Option<&[String]>),
    hook: &Hook,
    hook_call: &HookCall,
) -> Result<HookOutput, String> {
    let on_failure = hook.on_failure;
    let objects = hook.wakes || event::takes_objections(&hook_call.event);
    let HookCall { hooks, cwd, input, .. } = hook_call;
    let (project, env) = (&hooks.shared.project, &hooks.scope.env);
    let confinement = confinement(hook_call, command, args).await?;
    let boundary = confinement.boundary();
    let program = Program { command, args, cwd, project, env, boundary };
    let mut running = RunningHook::start(&program, input.to_string())?;
    let mut shown = show(hook_call).await;
    let mut tick = tokio::time::interval_at(Instant::now() + PROGRESS, PROGRESS);
    loop {
        let step = tokio::select! {
            step = running.step() => step?,
            _ = tick.tick() => {
                shown.progress().await;
                continue;
            }
        };
        if shown.lags(running.len()) {
            shown.printed(running.stdout(), running.stderr());
        }
        match step {
            CommandProgress::Output => {
                let Some(limit) = running.detaches() else { continue };
                confinement.moved_to_background();
                let (shown, hook_call) = (shown.in_background(), hook_call.in_background());
                let apart = continue_in_background(running, shown, limit, hook_call);
                hooks.shared.background.spawn(apart);
                return Ok(HookOutput::none());
            }
            CommandProgress::Ended(status) => {
                let (stdout, stderr) = (running.stdout(), running.stderr());
                let said = command::read(&hook_call.event, objects, status, &stdout, &stderr);
                return ended(said, status.code(), on_failure, shown, hook_call).await;
            }
        }
    }
}

async fn ended(
    said: Result<CommandReply, String>,
    code: Option<i32>,
    on_failure: FailurePolicy,
    shown: HookRunFrames,
    hook_call: &HookCall,
) -> Result<HookOutput, String> {
    let hides =
        matches!(&said, Ok(CommandReply::Answer(output)) if output.suppress_output == Some(true));
    let outcome = if code == Some(0) { HookOutcome::Success } else { HookOutcome::Error };
    shown.finish(code, outcome, hides).await;
    match said? {
        CommandReply::Answer(output) => Ok(output),
        CommandReply::Complaint(complaint) if on_failure == FailurePolicy::Block => {
            Err(format!("failed: {complaint}"))
        }
        CommandReply::Complaint(complaint) => {
            let text = format!("{} hook failed: {complaint}", hook_call.event);
            hook_call.hooks.inform(text, "warning", Some("hook_failed")).await;
            Ok(HookOutput::none())
        }
    }
}

/// Waits for a command that continues in the background.
async fn continue_in_background(
    mut running: RunningHook,
    mut shown: HookRunFrames,
    limit: Duration,
    hook_call: HookCall,
) {
    let to_its_end = async {
        loop {
            if let CommandProgress::Ended(status) = running.step().await? {
                return Ok::<_, String>(status);
            }
        }
    };
    let Ok(ended) = tokio::time::timeout(limit, to_its_end).await else {
        return report(&hook_call, Err("did not end in the time it asked for".to_owned())).await;
    };
    shown.printed(running.stdout(), running.stderr());
    let outcome = match ended {
        Ok(status) => {
            let stdout = running.stdout();
            // The first line only announced the background run.
            let rest = stdout.split_once('\n').map_or("", |(_, rest)| rest);
            let objects = event::takes_objections(&hook_call.event);
            let said = command::read(&hook_call.event, objects, status, rest, &running.stderr());
            self::ended(said, status.code(), FailurePolicy::Usual, shown, &hook_call).await
        }
        Err(error) => Err(error),
    };
    report(&hook_call, outcome).await;
}

/// Passes on the answer of a background hook: to the user at once, to the model with the next prompt.
async fn report(hook_call: &HookCall, outcome: Result<HookOutput, String>) {
    let mut verdict = Verdict::default();
    match outcome {
        Ok(output) => verdict.add(output),
        Err(why) => verdict.warnings.push(format!("{} hook {why}", hook_call.event)),
    }
    hook_call.hooks.shared.shorten(&mut verdict).await;
    // It is too late for a decision, but the model reads the reason.
    let objection = verdict.block.filter(|reason| !reason.is_empty());
    hook_call.hooks.shared.background.say(verdict.context.into_iter().chain(objection).collect());
    for warning in verdict.warnings {
        hook_call.hooks.inform(warning, "warning", None).await;
    }
}

//! Turns the questions of an engine into approvals.

use parking_lot::Mutex;
use std::sync::Arc;

use ostler::engine::sandbox::NETWORK_TOOL;
use ostler::proto::control::CanUseTool;
use ostler::{Answers, CancellationToken, Decision, Options};
use serde_json::Value;
use tokio::sync::watch;

use crate::approvals::record::{Approval, ApprovalKind, ApprovalState, Origin};
use crate::approvals::{Approvals, Asker};
use crate::config::Questions;
use crate::model::run::{Run, Session};

/// The approvals of a session: knows which run asks, and how many requests are pending.
#[derive(Clone)]
pub(super) struct Askers {
    approvals: Arc<Approvals>,
    asker: Arc<Mutex<Asker>>,
    waiters: Waiters,
    /// Whether a run is in progress. Between two runs the engine may begin a turn by itself, and ask before the worker
    /// has created a run for that turn.
    is_at_work: watch::Sender<bool>,
    /// Cancelled when the worker loses the session: requests stay pending.
    abandoned: CancellationToken,
}

/// Counts what waits for users in a session. Cheap to clone; clones count together.
#[derive(Clone, Debug)]
pub struct Waiters(watch::Sender<usize>);

impl Waiters {
    pub(crate) fn new() -> Self {
        Self(watch::channel(0).0)
    }

    /// Counts one more until the result is dropped. The time limits of the run stop meanwhile.
    pub fn wait(&self) -> Waiting {
        self.0.send_modify(|count| *count += 1);
        Waiting(self.0.clone())
    }
}

/// Counts a request while it waits.
pub struct Waiting(watch::Sender<usize>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl Askers {
    pub(super) fn new(approvals: Arc<Approvals>, session: &Session) -> Self {
        let asker = Asker {
            owner: session.owner.clone(),
            session: session.id.clone(),
            run: String::new(),
            origin: Origin::default(),
        };
        let (asker, waiters) = (Arc::new(Mutex::new(asker)), Waiters::new());
        let (is_at_work, abandoned) = (watch::channel(false).0, CancellationToken::new());
        Self { approvals, asker, waiters, is_at_work, abandoned }
    }

    /// Leaves the pending requests as they are, so that they can be answered when the run is resumed.
    pub(super) fn abandon(&self) {
        self.abandoned.cancel();
    }

    /// Sets the run that asks from now on.
    pub(super) fn run(&self, run: &Run) {
        let mut asker = self.asker.lock();
        run.id.clone_into(&mut asker.run);
        asker.origin.unattended = run.unattended;
        drop(asker);
        self.is_at_work.send_replace(true);
    }

    /// Notes that the run has ended. The agent's next question belongs to a new run.
    pub(super) fn run_ended(&self) {
        self.is_at_work.send_replace(false);
    }

    /// Whether a hook or a schedule started the run that asks.
    pub(super) fn is_unattended(&self) -> bool {
        self.asker.lock().origin.unattended
    }

    /// Sets the engine that asks from now on, with its options.
    pub(super) fn engine(&self, session: &Session, options: &Options, people_only: bool) {
        let mut asker = self.asker.lock();
        asker.origin = Origin {
            folder: options.context.cwd.clone().unwrap_or_else(|| session.setup.cwd.clone()),
            space: session.setup.space.clone(),
            directories: options.context.additional_directories.clone(),
            unattended: asker.origin.unattended,
            people_only,
        };
    }

    /// How many requests wait for users.
    pub(super) fn waiting(&self) -> watch::Receiver<usize> {
        self.waiters.0.subscribe()
    }

    pub(super) fn waiters(&self) -> Waiters {
        self.waiters.clone()
    }

    /// Passes all questions of the engine to users, or refuses them if no user can be asked.
    pub(super) fn listen(
        &self,
        options: Options,
        questions: Questions,
        nobody: Option<String>,
    ) -> Options {
        if let Some(why) = nobody {
            return refuse_all(options, why);
        }
        let (permissions, answers) = (self.clone(), self.clone());
        let options = options.on_permission(move |request| {
            let askers = permissions.clone();
            async move {
                decision(
                    askers
                        .ask(ApprovalKind::Permission, &request.question, &request.cancelled)
                        .await,
                )
            }
        });
        if questions == Questions::Never {
            return options.deny(["AskUserQuestion"]);
        }
        options.on_question(move |request| {
            let askers = answers.clone();
            async move {
                spoken(
                    askers.ask(ApprovalKind::Question, &request.question, &request.cancelled).await,
                )
            }
        })
    }

    /// Every error counts as a denial.
    async fn ask(
        &self,
        kind: ApprovalKind,
        call: &CanUseTool,
        cancelled: &CancellationToken,
    ) -> Result<Approval, String> {
        // A background subagent may ask between two runs; no run begins because of it.
        // So may a program in the background that wants to reach a host.
        if call.agent_id.is_none() && call.tool_name != NETWORK_TOOL {
            self.until_at_work(cancelled).await?;
        }
        let asker = self.asker.lock().clone();
        let waits = || self.waiters.wait();
        let asking = self.approvals.ask(&asker, kind, call, cancelled, waits);
        let asked = tokio::select! {
            // First: a dropped engine cancels its questions, which would withdraw the request.
            biased;
            () = self.abandoned.cancelled() => return Err("the server has lost the session".to_owned()),
            asked = asking => asked,
        };
        asked.map_err(|error| format!("no user could be asked: {error}"))
    }
}

impl Askers {
    /// Waits for the run to which a question belongs. It begins with the message that contains the call, which the
    /// engine sends before the question.
    async fn until_at_work(&self, cancelled: &CancellationToken) -> Result<(), String> {
        let mut is_at_work = self.is_at_work.subscribe();
        tokio::select! {
            biased;
            () = self.abandoned.cancelled() => Err("the server has lost the session".to_owned()),
            () = cancelled.cancelled() => Err("the question was withdrawn".to_owned()),
            begun = is_at_work.wait_for(|it| *it) => {
                begun.map(drop).map_err(|_| "the session has ended".to_owned())
            }
        }
    }
}

/// Denies everything that requires approval.
fn refuse_all(options: Options, why: String) -> Options {
    let words = why.clone();
    options
        .on_permission(move |_| {
            let words = words.clone();
            async move { Decision::deny(words) }
        })
        .on_question(move |_| {
            let why = why.clone();
            async move { Answers::decline(why) }
        })
}

fn decision(decided: Result<Approval, String>) -> Decision {
    let approval = match decided {
        Ok(approval) => approval,
        Err(why) => return Decision::deny(why),
    };
    let answer = approval.answer.unwrap_or_else(|| crate::approvals::unattended("server", 0));
    if approval.state == ApprovalState::Allowed {
        // Runs exactly the arguments that the user saw or wrote, not what the engine may have changed since.
        return Decision::allow().with_input(answer.input.unwrap_or(approval.input));
    }
    let denied = Decision::deny(refusal(approval.state, answer.note));
    if answer.stop { denied.and_stop() } else { denied }
}

fn spoken(decided: Result<Approval, String>) -> Answers {
    match decided {
        Err(why) => Answers::decline(why),
        Ok(Approval { state: ApprovalState::Allowed, answer: Some(answer), .. }) => {
            let given = answer.input.unwrap_or_default();
            let fields = given.as_object().into_iter().flatten();
            fields.fold(Answers::new(), |answers, (question, labels)| {
                let labels = labels.as_array().into_iter().flatten().filter_map(Value::as_str);
                answers.answer(question, labels)
            })
        }
        Ok(approval) => {
            let note = approval.answer.and_then(|answer| answer.note);
            Answers::decline(refusal(approval.state, note))
        }
    }
}

fn refusal(state: ApprovalState, note: Option<String>) -> String {
    let said = match state {
        ApprovalState::Expired => "There was no answer in time, so the answer is no.",
        ApprovalState::Withdrawn => "The request was withdrawn.",
        _ => "The user said no.",
    };
    match note {
        Some(note) if state == ApprovalState::Denied && !note.trim().is_empty() => {
            format!("{said} They say: {note}")
        }
        _ => said.to_owned(),
    }
}

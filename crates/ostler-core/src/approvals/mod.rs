//! Approvals: requests for a user's decision, stored until they are decided, even if clients and engines disconnect.
//!
//! The record in the store is the request; the call that waits in an engine reads it, and so does every client. The
//! first answer wins. It is written in one transaction with its event in the log and its entry in the audit. A server
//! that stops leaves its requests pending: they can still be answered, and the answer counts when the run is resumed
//! and asks for exactly the same call again.

pub mod answer;
pub mod audit;
mod denied;
mod digest;
mod hidden;
pub mod record;
pub mod rule;
mod summary;
mod upgrade;
mod wait;

use parking_lot::{Mutex, MutexGuard};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use ostler::engine::coverage::CallPlace;
use ostler::engine::sandbox::NETWORK_TOOL;
use ostler_base::error::{self, ApiError, Fallible};
use ostler_door::users::{Caller, Role};
use ostler_store::{Error, Expected, Filter, Page, Put};
use tokio::sync::{broadcast, oneshot};

use self::answer::{Answering, AnswersRequest, DecisionRequest};
use self::audit::Audited;
use self::record::{Answer, Approval, ApprovalState, Origin, Scope};
use self::rule::Granted;
use crate::clock::Clock;
use crate::config::{Config, EngineChoice};
use crate::confine::environment;
use crate::confine::redact::Redactor;
use crate::log_writers::LogWriters;
use crate::model::event;
use crate::records::Records;

/// How often a decision is tried again after a concurrent change of the request.
const RETRIES: usize = 20;
/// How many notifications a client may miss before it has to load the whole list again.
const NEWS: usize = 1_024;

/// All requests of the server.
pub struct Approvals {
    records: Records,
    log_writers: Arc<LogWriters>,
    clock: Clock,
    waiting: Mutex<HashMap<String, oneshot::Sender<Approval>>>,
    /// Ids of requests whose end is being written. One stays here if the task was cancelled before it notified clients.
    unannounced: Mutex<HashSet<String>>,
    news: broadcast::Sender<Arc<Approval>>,
    limit: Option<std::time::Duration>,
    redactor: Redactor,
    /// What applies to calls in all folders: the home directory, trusted repositories, the environment.
    everywhere: CallPlace,
    /// Whether the engine decides again about arguments that an answer changed.
    checks_changes: bool,
}

/// The session and run that ask.
#[derive(Clone, Debug)]
pub struct Asker {
    pub owner: String,
    pub session: String,
    pub run: String,
    pub origin: Origin,
}

/// The parts that approvals need.
pub struct Parts {
    pub records: Records,
    pub log_writers: Arc<LogWriters>,
    pub clock: Clock,
    pub redactor: Redactor,
    pub config: Arc<Config>,
}

impl Approvals {
    pub fn new(parts: Parts) -> Self {
        let Parts { records, log_writers, clock, redactor, config } = parts;
        let env = environment::of(&config);
        let everywhere = CallPlace {
            home: env.get("HOME").map(PathBuf::from),
            trusted_repositories: config.trusted_repositories.clone(),
            env,
            ..CallPlace::default()
        };
        Self {
            records,
            log_writers,
            clock,
            waiting: Mutex::default(),
            unannounced: Mutex::default(),
            news: broadcast::channel(NEWS).0,
            limit: config.limits.approval,
            redactor,
            everywhere,
            checks_changes: config.engine == EngineChoice::Embedded,
        }
    }

    /// Notifications of new and decided requests of all users. Everything sent here is redacted.
    pub fn news(&self) -> broadcast::Receiver<Arc<Approval>> {
        self.news.subscribe()
    }

    /// The pending requests of this caller, oldest first.
    pub async fn pending(&self, caller: &Caller, page: &Page) -> Fallible<Vec<Approval>> {
        let owner = (caller.role < Role::Admin).then(|| caller.user.clone());
        let filter = Filter { owner, ..pending() };
        let mut found: Vec<Approval> = self.records.list(&filter, page).await?;
        found.sort_by_key(|approval| approval.asked);
        Ok(self.shown(&found))
    }

    /// The pending requests of a session, oldest first.
    pub async fn pending_in(&self, caller: &Caller, session: &str) -> Fallible<Vec<Approval>> {
        let owner = (caller.role < Role::Admin).then(|| caller.user.clone());
        let field = Some(("session".to_owned(), session.to_owned()));
        let any_of = Some(("state".to_owned(), vec!["pending".to_owned()]));
        let filter = Filter { owner, field, any_of, ..Filter::default() };
        let mut found: Vec<Approval> = self.records.all(filter).await?;
        found.sort_by_key(|approval| approval.asked);
        Ok(self.shown(&found))
    }

    /// The pending requests of all users.
    pub(crate) async fn all_pending(&self) -> Fallible<Vec<Approval>> {
        Ok(self.shown(&self.records.all(pending()).await?))
    }

    fn shown(&self, approvals: &[Approval]) -> Vec<Approval> {
        approvals.iter().map(|approval| approval.shown(&self.redactor)).collect()
    }

    /// One request, if the caller may see it.
    pub async fn find(&self, caller: &Caller, id: &str) -> Fallible<Approval> {
        match self.records.find::<Approval>(id).await? {
            Some((approval, _)) if caller.may_see(&approval.owner) => {
                Ok(approval.shown(&self.redactor))
            }
            _ => Err(error::not_found("approval", id)),
        }
    }

    /// Decides about a tool call.
    pub async fn decide(
        &self,
        caller: &Caller,
        via: &'static str,
        id: &str,
        request: DecisionRequest,
    ) -> Fallible<Approval> {
        let asked = self.find(caller, id).await?;
        if asked.tool_name == NETWORK_TOOL {
            check_host_answer(caller, &request)?;
        }
        if request.approved {
            self.refuse_denied(id, request.input.as_ref()).await?;
        }
        let who = Answering { user: caller.user.clone(), via, at: self.clock.now() };
        let decide = |approval: &Approval| {
            answer::decide(approval, request.clone(), &who, self.checks_changes)
        };
        let decided = self.settle(id, decide).await?;
        self.settle_covered(&decided).await;
        Ok(decided.shown(&self.redactor))
    }

    /// Answers the agent's questions.
    pub async fn answer(
        &self,
        caller: &Caller,
        via: &'static str,
        id: &str,
        request: AnswersRequest,
    ) -> Fallible<Approval> {
        self.find(caller, id).await?;
        let who = Answering { user: caller.user.clone(), via, at: self.clock.now() };
        let answer = |approval: &Approval| answer::answers(approval, request.clone(), &who);
        Ok(self.settle(id, answer).await?.shown(&self.redactor))
    }

    /// Withdraws the pending requests of a run that ended.
    pub(crate) async fn withdraw_all(&self, run: &str) {
        let of_run = Some(("run".to_owned(), run.to_owned()));
        let found =
            self.records.all::<Approval>(Filter { field: of_run, ..Filter::default() }).await;
        for approval in found.unwrap_or_default() {
            if approval.is_pending() {
                // A program in the background may outlast the run; its engine withdraws the question when it ends.
                if approval.tool_name == NETWORK_TOOL && self.is_awaited(&approval.id) {
                    continue;
                }
                self.end(&approval.id, ApprovalState::Withdrawn, "the run is over").await;
            } else if self.take_unannounced(&approval.id) {
                self.tell(&approval);
            }
        }
    }

    /// Whether a call in this process waits for the decision.
    fn is_awaited(&self, id: &str) -> bool {
        self.waiting.lock().contains_key(id)
    }

    /// Withdraws the pending requests of a session.
    pub(crate) async fn withdraw_session(&self, session: &str) -> Fallible<()> {
        for approval in self.open_in(session).await? {
            self.end(&approval.id, ApprovalState::Withdrawn, "the session was deleted").await;
        }
        Ok(())
    }

    /// Whether a session has a pending request, also if no engine waits for its answer.
    pub(crate) async fn are_pending_in(&self, session: &str) -> Fallible<bool> {
        Ok(!self.open_in(session).await?.is_empty())
    }

    async fn open_in(&self, session: &str) -> Fallible<Vec<Approval>> {
        let of_session = Some(("session".to_owned(), session.to_owned()));
        let mut found: Vec<Approval> =
            self.records.all(Filter { field: of_session, ..Filter::default() }).await?;
        found.retain(Approval::is_pending);
        Ok(found)
    }

    /// Ends a request without an answer. If an answer came first, the answer counts.
    async fn end(&self, id: &str, state: ApprovalState, note: &str) {
        let by = if state == ApprovalState::Expired { "expiry" } else { "server" };
        let ended = self.settle(id, |_| {
            let at = self.clock.now();
            Ok((state, Answer { note: Some(note.to_owned()), ..unattended(by, at) }))
        });
        if let Err(error) = ended.await
            && error.detail().code != "already_answered"
        {
            tracing::warn!(approval = id, %error, "a request could not be ended");
        }
    }

    /// Decides once: the record, the log and the audit change together, and only if the request was pending.
    async fn settle(
        &self,
        id: &str,
        decide: impl Fn(&Approval) -> Fallible<(ApprovalState, Answer)>,
    ) -> Fallible<Approval> {
        for _ in 0..RETRIES {
            let found = self.records.find::<Approval>(id).await?;
            let Some((mut approval, version)) = found else {
                return Err(error::not_found("approval", id));
            };
            if !approval.is_pending() {
                return Err(already_answered(&approval));
            }
            let (state, answer) = decide(&approval)?;
            approval.state = state;
            approval.answer = Some(answer);
            self.unannounced().insert(id.to_owned());
            let written = self.write(&approval, Expected::Version(version)).await;
            self.take_unannounced(id);
            match written {
                Ok(()) => {
                    self.tell(&approval);
                    return Ok(approval);
                }
                Err(Error::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(error::internal(format!("approval {id} changes too fast")))
    }

    fn unannounced(&self) -> MutexGuard<'_, HashSet<String>> {
        self.unannounced.lock()
    }

    fn take_unannounced(&self, id: &str) -> bool {
        self.unannounced().remove(id)
    }

    async fn write(&self, approval: &Approval, expected: Expected) -> Result<(), Error> {
        let now = self.clock.now();
        let mut puts = vec![put(&approval.to_keep(&self.redactor), expected)?];
        if !approval.is_pending() {
            puts.push(put(&Audited::of(approval, now), Expected::Absent)?);
        }
        if let Some(granted) = granted(approval, now) {
            puts.push(put(&granted, Expected::Absent)?);
        }
        let event = event::approval(&approval.shown(&self.redactor)).map_err(unwritten)?;
        self.log_writers.write(&approval.session, vec![event], puts).await.map(drop)
    }

    /// Notifies the waiting call and all watching clients.
    fn tell(&self, approval: &Approval) {
        let waiting = self.waiting.lock().remove(&approval.id);
        if !approval.is_pending()
            && let Some(waiting) = waiting
        {
            // The waiting call may have ended.
            let _ = waiting.send(approval.clone());
        }
        // There may be no watching clients.
        let _ = self.news.send(Arc::new(approval.shown(&self.redactor)));
    }

    /// Applies a newly granted rule to other pending requests.
    async fn settle_covered(&self, decided: &Approval) {
        if granted(decided, decided.asked).is_none() {
            return;
        }
        let filter = Filter { owner: Some(decided.owner.clone()), ..pending() };
        let found: Fallible<Vec<Approval>> = self.records.all(filter).await;
        for approval in found.unwrap_or_default() {
            if let Ok(granted) = self.granted_for(&approval).await
                && !granted.is_empty()
            {
                self.settle_by(&approval.id, &granted).await;
            }
        }
    }

    /// Lets rules answer a request, unless a user answers first.
    async fn settle_by(&self, id: &str, granted: &[Granted]) {
        let rule = Some(labels(granted));
        let settled = self.settle(id, |_| {
            let answer = Answer { rule: rule.clone(), ..unattended("rule", self.clock.now()) };
            Ok((ApprovalState::Allowed, answer))
        });
        if let Err(error) = settled.await
            && error.detail().code != "already_answered"
        {
            tracing::warn!(approval = id, %error, "a rule could not answer a request");
        }
    }

    /// The granted rules of a user.
    pub async fn rules(&self, owner: Option<String>, page: &Page) -> Fallible<Vec<Granted>> {
        let filter = Filter { owner, ..Filter::default() };
        let granted: Vec<Granted> = self.records.list(&filter, page).await?;
        Ok(granted.into_iter().map(|granted| granted.redacted(&self.redactor)).collect())
    }

    /// Revokes a rule. This takes effect at once, also in active runs.
    pub async fn revoke(&self, caller: &Caller, via: &str, id: &str) -> Fallible<()> {
        let found = self.records.find::<Granted>(id).await?;
        let Some((granted, version)) = found.filter(|(granted, _)| caller.may_see(&granted.owner))
        else {
            return Err(error::not_found("rule", id));
        };
        let audited = revoked(&granted, "revoked", &caller.user, via, self.clock.now());
        self.records.replace(&granted, version, &audited).await
    }
}

/// Refuses what no answer about a host may do: name another host, or, by a member, reach beyond the session. Which hosts the
/// sessions of a folder reach is for administrators.
fn check_host_answer(caller: &Caller, request: &DecisionRequest) -> Fallible<()> {
    if request.approved && request.input.is_some() {
        let message = "an answer cannot name another host than the question";
        return Err(ApiError::invalid("input", message)
            .hint("allow this host, or deny it with a note that names the other one"));
    }
    if request.approved && request.scope == Scope::Always && caller.role < Role::Admin {
        let message = "only an administrator can allow a host in all sessions of a folder";
        return Err(ApiError::forbidden("needs_admin", message)
            .hint("allow it once or for this session, or ask an administrator to answer"));
    }
    Ok(())
}

/// The audit entry for a rule that no longer applies.
fn revoked(granted: &Granted, decision: &str, by: &str, via: &str, at: u64) -> Audited {
    Audited {
        id: audit::id(at),
        at,
        owner: granted.owner.clone(),
        by: by.to_owned(),
        via: via.to_owned(),
        decision: decision.to_owned(),
        approval: None,
        session: granted.session.clone(),
        subject: granted.rule.clone(),
        digest: None,
        rule: Some(granted.rule.clone()),
        scope: granted.scope(),
        run: None,
        sandbox: None,
    }
}

fn labels(granted: &[Granted]) -> String {
    granted.iter().map(|granted| granted.rule.as_str()).collect::<Vec<_>>().join(" and ")
}

/// The rule that a decision grants.
fn granted(approval: &Approval, now: u64) -> Option<Granted> {
    let answer = approval.answer.as_ref()?;
    let is_granted = approval.state == ApprovalState::Allowed && answer.scope != Scope::Once;
    if !is_granted || answer.granted.is_empty() {
        return None;
    }
    let is_always = answer.scope == Scope::Always;
    Some(Granted {
        // One id per decision: writing it again does not make a second rule.
        id: format!("rule_{}", approval.id.trim_start_matches("approval_")),
        owner: approval.owner.clone(),
        session: (!is_always).then(|| approval.session.clone()),
        folder: is_always.then(|| approval.origin.folder.clone()),
        space: approval.origin.space.clone().filter(|_| is_always),
        unattended: answer.unattended,
        rule: answer.rule.clone()?,
        rules: answer.granted.clone(),
        by: answer.by.clone(),
        approval: approval.id.clone(),
        created: now,
        last_used: None,
    })
}

fn pending() -> Filter {
    Filter { field: Some(("state".to_owned(), "pending".to_owned())), ..Filter::default() }
}

fn put(value: &impl crate::records::Kept, expected: Expected) -> Result<Put, Error> {
    value.put(expected).map_err(unwritten)
}

fn unwritten(error: ApiError) -> Error {
    Error::Failed { doing: "writing an approval".to_owned(), why: error.to_string() }
}

pub fn unattended(by: &str, at: u64) -> Answer {
    Answer {
        by: by.to_owned(),
        via: "server".to_owned(),
        at,
        rule: None,
        granted: Vec::new(),
        scope: Scope::Once,
        unattended: false,
        note: None,
        stop: false,
        input: None,
    }
}

fn already_answered(approval: &Approval) -> ApiError {
    let by = approval.answer.as_ref().map_or("another user", |answer| &answer.by);
    ApiError::conflict("already_answered", format!("this was answered already, by {by}"))
        .hint("load the request to see the answer")
}

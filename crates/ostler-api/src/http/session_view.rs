//! Sessions as clients see them: the record, and the current state.

use std::collections::HashMap;

use ostler_base::error::{self, Fallible};
use ostler_core::app::App;
use ostler_core::model::run::{Forked, Run, RunState, Session, Setup};
use ostler_core::model::tally::Tokens;
use ostler_store::Filter;
use schemars::JsonSchema;
use serde::Serialize;

/// A conversation. Its events are in the log of the same name.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Session")]
#[serde(rename_all = "camelCase")]
pub(super) struct SessionView {
    id: String,
    /// The name of the user to whom it belongs, also of a removed one.
    owner: String,
    /// Its title for people.
    title: String,
    /// The key by which a client finds it again, such as the thread of AG-UI.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// Milliseconds since 1970.
    created: u64,
    /// The engine's id of the conversation, after the first turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    engine_session: Option<String>,
    setup: Setup,
    /// The time of the last prompt or end of a run.
    last_activity: u64,
    /// The number of its runs.
    runs: u64,
    /// The total cost of its ended runs.
    cost_usd: f64,
    tokens: Tokens,
    state: SessionState,
    /// The session from which it was forked, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    forked_from: Option<Forked>,
}

/// Whether a session has an active run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum SessionState {
    Idle,
    /// A run is active or queued.
    Working,
    /// A run waits for a user's answer.
    Waiting,
}

impl SessionView {
    fn new(app: &App, session: Session, state: SessionState) -> Self {
        let Session { id, owner, title, key, created, engine_session, setup, .. } = session;
        let (tally, forked_from) = (session.tally, session.forked_from);
        Self {
            id,
            owner: app.guard.users.name_of(&owner),
            title,
            key,
            created,
            engine_session,
            setup,
            // Records of earlier versions have only the time of creation.
            last_activity: tally.last_activity.max(created),
            runs: tally.runs,
            cost_usd: tally.spent.cost_usd,
            tokens: tally.spent.tokens,
            state,
            forked_from,
        }
    }
}

/// A session with its state.
pub(super) async fn view(app: &App, session: Session) -> Fallible<SessionView> {
    let run = app.sessions.live_run(&session.id).await?;
    let state = run.map_or(SessionState::Idle, |run| state_of(run.state));
    Ok(SessionView::new(app, session, state))
}

/// Sessions with their states; of one user, or of all.
pub(super) async fn views(
    app: &App,
    owner: Option<String>,
    sessions: Vec<Session>,
) -> Fallible<Vec<SessionView>> {
    let states = at_work(app, owner).await?;
    let state = |id: &str| states.get(id).copied().unwrap_or(SessionState::Idle);
    let view = |session: Session| {
        let state = state(&session.id);
        SessionView::new(app, session, state)
    };
    Ok(sessions.into_iter().map(view).collect())
}

/// The maximum number of active sessions that one list considers.
const MOST_AT_WORK: usize = 10_000;

/// The sessions with active runs. Counted in the store, which is correct also after a crash.
async fn at_work(app: &App, owner: Option<String>) -> Fallible<HashMap<String, SessionState>> {
    let mut states = HashMap::new();
    // The last one wins: a session that waits for a user may have queued runs too.
    for state in [RunState::Queued, RunState::Running, RunState::Waiting] {
        let word = serde_json::to_value(state).map_err(error::internal)?;
        let field = word.as_str().map(|word| ("state".to_owned(), word.to_owned()));
        let filter = Filter { owner: owner.clone(), field, ..Filter::default() };
        let counts = app.sessions.records.count_by::<Run>(&filter, "session", MOST_AT_WORK).await?;
        states.extend(counts.into_iter().map(|(session, _)| (session, state_of(state))));
    }
    // Their records say that they are active, because their ends cannot be stored yet.
    for run in app.sessions.over_but_not_written() {
        if let Some((run, _)) = app.sessions.records.find::<Run>(&run).await?
            && app.sessions.live_run(&run.session).await?.is_none()
        {
            states.remove(&run.session);
        }
    }
    Ok(states)
}

fn state_of(run: RunState) -> SessionState {
    match run {
        RunState::Waiting => SessionState::Waiting,
        state if state.is_over() => SessionState::Idle,
        _ => SessionState::Working,
    }
}

//! Sessions as clients see them: the record, and what goes on just now.

use std::collections::HashMap;

use ostler_store::Filter;
use schemars::JsonSchema;
use serde::Serialize;

use crate::app::App;
use crate::fault::Fallible;
use crate::runs::record::{Forked, Run, RunState, Session, Setup};
use crate::runs::tally::Tokens;

/// A conversation. Everything said in it is in the event log of the same name.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Session")]
#[serde(rename_all = "camelCase")]
pub(super) struct SessionView {
    id: String,
    /// The user it belongs to.
    owner: String,
    /// What people call it.
    title: String,
    /// The name by which a client finds it again, such as the thread of AG-UI.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// Milliseconds since 1970.
    created: u64,
    /// The engine's name for the conversation, once there was a turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    engine_session: Option<String>,
    setup: Setup,
    /// When something happened in it last: a prompt, or the end of a run.
    last_activity: u64,
    /// How many runs it had.
    runs: u64,
    /// What they cost together, as far as they are over.
    cost_usd: f64,
    tokens: Tokens,
    state: SessionState,
    /// The session it was made from, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    forked_from: Option<Forked>,
}

/// Whether something goes on in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum SessionState {
    Idle,
    /// A run works, or waits for its turn.
    Working,
    /// Somebody's answer is waited for.
    Waiting,
}

impl SessionView {
    fn new(session: Session, state: SessionState) -> Self {
        let Session { id, owner, title, key, created, engine_session, setup, .. } = session;
        let (tally, forked_from) = (session.tally, session.forked_from);
        Self {
            id,
            owner,
            title,
            key,
            created,
            engine_session,
            setup,
            // Records from before there were tallies say only when they were made.
            last_activity: tally.last_activity.max(created),
            runs: tally.runs,
            cost_usd: tally.spent.cost_usd,
            tokens: tally.spent.tokens,
            state,
            forked_from,
        }
    }
}

/// One session with its state.
pub(super) async fn view(app: &App, session: Session) -> Fallible<SessionView> {
    let owner = Some(session.owner.clone());
    let state = at_work(app, owner).await?.remove(&session.id).unwrap_or(SessionState::Idle);
    Ok(SessionView::new(session, state))
}

/// Sessions with their states, which are those of one user or of anybody.
pub(super) async fn views(
    app: &App,
    owner: Option<String>,
    sessions: Vec<Session>,
) -> Fallible<Vec<SessionView>> {
    let states = at_work(app, owner).await?;
    let state = |id: &str| states.get(id).copied().unwrap_or(SessionState::Idle);
    let view = |session: Session| {
        let state = state(&session.id);
        SessionView::new(session, state)
    };
    Ok(sessions.into_iter().map(view).collect())
}

/// The sessions in which something goes on. There are never many, and asking the runs is right also after a crash.
async fn at_work(app: &App, owner: Option<String>) -> Fallible<HashMap<String, SessionState>> {
    let mut states = HashMap::new();
    for word in ["queued", "running", "waiting"] {
        let field = Some(("state".to_owned(), word.to_owned()));
        let filter = Filter { owner: owner.clone(), field, ..Filter::default() };
        for run in app.hub.records.all::<Run>(filter).await? {
            let run = app.hub.as_it_is(run);
            let state = match run.state {
                RunState::Waiting => SessionState::Waiting,
                state if state.is_over() => continue,
                _ => SessionState::Working,
            };
            let known = states.entry(run.session).or_insert(state);
            *known = state.max(*known);
        }
    }
    Ok(states)
}

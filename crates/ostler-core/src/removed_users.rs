//! The work of removed users: their runs are cancelled, their engines end, and nothing of theirs starts again. Their
//! records stay, and no other user gets them.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use ostler_base::error::{self, ApiError, Fallible};
use ostler_door::users::Users;
use ostler_store::{Filter, Page, Store};

use crate::app::App;
use crate::model::run::Session;
use crate::model::space::Space;
use crate::records::KINDS;
use crate::runs::options::{EngineParts, EngineSetup};

/// How many records are read at once.
const STEP: usize = 500;

/// Ends the work of removed users, now and whenever a user is removed.
pub async fn end_their_work(app: App) {
    let mut changes = app.guard.users.changes().subscribe();
    let mut ended: HashSet<String> = HashSet::new();
    loop {
        for user in app.guard.users.removed() {
            if ended.contains(&user) {
                continue;
            }
            match end_work_of(&app, &user).await {
                Ok(()) => _ = ended.insert(user),
                Err(error) => {
                    tracing::error!(user, %error, "the work of a removed user could not be ended");
                }
            }
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}

async fn end_work_of(app: &App, user: &str) -> Fallible<()> {
    let owner = Some(user.to_owned());
    let sessions: Vec<Session> =
        app.sessions.records.all(Filter { owner, ..Filter::default() }).await?;
    futures::future::join_all(sessions.iter().map(|session| app.sessions.close(&session.id))).await;
    app.mcp.forget_user(user).await;
    Ok(())
}

/// Starts no engine for a removed user: runs may be queued, or resumed by an administrator.
pub struct NoEngineForRemoved(pub Arc<Users>);

impl NoEngineForRemoved {
    fn check(&self, session: &Session) -> Fallible<()> {
        if !self.0.is_removed(&session.owner) {
            return Ok(());
        }
        let name = self.0.name_of(&session.owner);
        let message = format!("the user {name} was removed, so nothing starts in this session");
        Err(ApiError::forbidden("user_removed", message)
            .hint("start it in a session of another user"))
    }
}

#[async_trait]
impl EngineSetup for NoEngineForRemoved {
    async fn set_up(&self, session: &Session, _: &mut EngineParts) -> Fallible<()> {
        self.check(session)
    }

    async fn stamp(&self, session: &Session) -> Fallible<String> {
        self.check(session).map(|()| String::new())
    }
}

/// Finds the users that an earlier version removed without storing it: ids that have records and belong to no user.
/// Without this a new user of that name would get those records.
pub async fn remember_earlier(users: &Users, store: &dyn Store) -> Fallible<()> {
    if !users.lacks_removed() {
        return Ok(());
    }
    let mut owners = BTreeSet::new();
    for kind in KINDS {
        let mut after = None;
        loop {
            let page = Page { limit: STEP, after: after.take(), ..Page::default() };
            let records = store.list(kind, &Filter::default(), &page).await?;
            after = records.last().map(|record| record.id.clone());
            let is_last = records.len() < STEP;
            for record in records {
                if kind == "space" {
                    let space: Space =
                        serde_json::from_value(record.body).map_err(error::internal)?;
                    owners.extend(space.members.into_keys());
                }
                owners.extend(record.owner);
            }
            if is_last {
                break;
            }
        }
    }
    users.retire(owners)
}

//! Deleting sessions: the log, all records of its runs, and the engine's files.
//!
//! What stays, without text: usage totals, for charts and limits, and audit entries of decisions.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ostler_base::error::{self, Fallible};
use ostler_store::{Expected, Filter, Page, Put};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::app::App;
use crate::log_writers;
use crate::model::run::Session;
use crate::records::{Kept as _, kept, quarantine};

/// Kinds of records that belong to a session, found by their field `session`.
const OF_SESSION: [&str; 6] = ["run", "changes", "approval", "rule", "cancelRequest", "mcpServers"];
/// A kind of record that stays without its text.
struct WithoutText {
    kind: &'static str,
    /// The field with the id of the session.
    session: &'static str,
    /// Required fields with text, which become empty.
    emptied: &'static [&'static str],
    /// Optional fields, which are removed.
    removed: &'static [&'static str],
}

const WITHOUT_TEXT: [WithoutText; 4] = [
    WithoutText { kind: "usage", session: "session", emptied: &["prompt"], removed: &[] },
    WithoutText { kind: "audit", session: "session", emptied: &["subject"], removed: &["rule"] },
    WithoutText {
        kind: "firing",
        session: "session",
        emptied: &[],
        removed: &["note", "checkSaid"],
    },
    WithoutText {
        kind: "task",
        session: "execution.session",
        emptied: &[],
        removed: &["execution"],
    },
];
/// How often old sessions are looked for.
const ROUND: Duration = Duration::from_secs(60 * 60);

/// How often interrupted deletions are looked for.
const AGAIN: Duration = Duration::from_secs(60);

/// A session that is being deleted. After a crash or a full disk, this record restarts the deletion.
#[derive(Debug, Serialize, Deserialize)]
struct Deletion {
    id: String,
    owner: String,
    session: Session,
}

kept!(Deletion, "deletion");

impl App {
    /// Ends everything in a session and deletes it.
    pub async fn forget(&self, session: &Session) -> Fallible<()> {
        let _one_at_a_time = self.deleting.lock().await;
        self.forget_now(session).await
    }

    async fn forget_now(&self, session: &Session) -> Fallible<()> {
        let (id, owner) = (session.id.clone(), session.owner.clone());
        let deletion = Deletion { id, owner, session: session.clone() };
        self.store.put(vec![deletion.put(Expected::Any)?]).await?;
        self.sessions.delete(&session.id).await?;
        self.mcp.pool.end_unused_of(&session.owner);
        self.schedules.session_deleted(&session.id).await?;
        let Traces { conversations, names } = self.traces(session).await?;
        for records in &WITHOUT_TEXT {
            self.clear_text(records, &session.id).await?;
        }
        let mut gone = self.quarantined(&session.id, &names).await?;
        for kind in OF_SESSION {
            for record in self.of_session(kind, "session", &session.id).await? {
                if kind == "run" {
                    gone.push(("attached".to_owned(), record.id.clone()));
                }
                gone.push((kind.to_owned(), record.id));
            }
        }
        for kind in [Session::KIND, "sessionTotals", "thread", "about", Deletion::KIND] {
            gone.push((kind.to_owned(), session.id.clone()));
        }
        // While the record of the deletion still exists.
        for conversation in conversations {
            self.remove_conversation(&session.id, &conversation).await?;
        }
        let stream = log_writers::stream(&session.id)?;
        let forgotten = self.store.forget(&stream, gone).await;
        // The cache must not serve the old log to a new session of the same id.
        self.sessions.log.forget(&stream);
        match forgotten {
            // The next checkpoint of the database removes the rest.
            Err(error @ ostler_store::Error::Failed { .. }) => {
                tracing::warn!(session = session.id, %error, "a deleted session may still be in the log of the database");
                Ok(())
            }
            forgotten => Ok(forgotten?),
        }
    }

    async fn of_session(
        &self,
        kind: &str,
        field: &str,
        session: &str,
    ) -> Fallible<Vec<ostler_store::Record>> {
        let field = Some((field.to_owned(), session.to_owned()));
        let filter = Filter { field, ..Filter::default() };
        let mut found: Vec<ostler_store::Record> = Vec::new();
        loop {
            let after = found.last().map(|record| record.id.clone());
            let page = Page { after, limit: 500, ..Page::default() };
            let some = self.store.list(kind, &filter, &page).await?;
            if some.is_empty() {
                return Ok(found);
            }
            found.extend(some);
        }
    }

    async fn clear_text(&self, records: &WithoutText, session: &str) -> Fallible<()> {
        let WithoutText { kind, session: field, emptied, removed } = records;
        let found = self.of_session(kind, field, session).await?;
        for some in found.chunks(100) {
            let puts = some.iter().cloned().map(|mut record| {
                emptied.iter().for_each(|field| record.body[*field] = "".into());
                if let Some(fields) = record.body.as_object_mut() {
                    fields.retain(|name, _| !removed.contains(&name.as_str()));
                }
                Put::update(record)
            });
            match self.store.put(puts.collect()).await {
                // One of the records was changed at this moment. Nothing can add records to this session any more.
                Err(ostler_store::Error::Conflict { .. }) => {
                    return Box::pin(self.clear_text(records, session)).await;
                }
                put => put.map(drop)?,
            }
        }
        Ok(())
    }

    /// Quarantined records of a session, with what belongs to them.
    async fn quarantined(
        &self,
        session: &str,
        names: &HashSet<String>,
    ) -> Fallible<Vec<(String, String)>> {
        let mut gone = Vec::new();
        for aside in quarantine::all(self.store.as_ref()).await? {
            let record = &aside.body["record"];
            let id = record["id"].as_str().unwrap_or_default();
            if record["body"]["session"] == session || id == session || names.contains(id) {
                gone.push(("attached".to_owned(), id.to_owned()));
                gone.push((aside.kind, aside.id));
            }
        }
        Ok(gone)
    }

    /// Ids in the log of a session: the engine's ids of all its conversations, and the ids of its runs and approvals.
    async fn traces(&self, session: &Session) -> Fallible<Traces> {
        let stream = log_writers::stream(&session.id)?;
        let mut traces = Traces {
            conversations: session.engine_session.iter().cloned().collect(),
            names: HashSet::new(),
        };
        let mut after = session.begins;
        loop {
            let events = self.store.read_from(&stream, after, 500).await?;
            let Some(last) = events.last() else { return Ok(traces) };
            after = last.seq;
            for event in &events {
                traces.take(&event.kind, &event.body.to().map_err(error::internal)?);
            }
        }
    }

    /// Removes the engine's files of a conversation, unless a fork uses it.
    async fn remove_conversation(&self, session: &str, conversation: &str) -> Fallible<()> {
        if uuid::Uuid::parse_str(conversation).is_err() {
            // The id becomes part of a path.
            return Ok(());
        }
        for field in ["engineSession", "origin"] {
            let contains = Some((field.to_owned(), conversation.to_owned()));
            let filter = Filter { contains, ..Filter::default() };
            let others = self.store.list(Session::KIND, &filter, &Page::default()).await?;
            if others.iter().any(|other| other.id != session) {
                return Ok(());
            }
        }
        let Some(engine) = self.config.env.get("CLAUDE_CONFIG_DIR").map(PathBuf::from) else {
            return Ok(());
        };
        let name = conversation.to_owned();
        let removed = tokio::task::spawn_blocking(move || remove_files(&engine, &name)).await;
        removed.map_err(error::internal)?.map_err(|error| {
            error::internal(format!("removing the files of {conversation}: {error}"))
        })
    }
}

/// Ids found in a log.
struct Traces {
    conversations: Vec<String>,
    names: HashSet<String>,
}

impl Traces {
    fn take(&mut self, kind: &str, body: &Value) {
        let name = match kind {
            "message" => {
                let name = body["message"]["session_id"].as_str().unwrap_or_default();
                if !name.is_empty() && self.conversations.iter().all(|known| known != name) {
                    self.conversations.push(name.to_owned());
                }
                return;
            }
            "run" => &body["run"]["id"],
            "approval" => &body["approval"]["id"],
            _ => return,
        };
        self.names.extend(name.as_str().map(str::to_owned));
    }
}

/// Removes the transcript, the files next to it, and the copies of files.
fn remove_files(engine: &Path, conversation: &str) -> std::io::Result<()> {
    gone(std::fs::remove_dir_all(engine.join("file-history").join(conversation)))?;
    let projects = match std::fs::read_dir(engine.join("projects")) {
        Ok(projects) => projects,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for project in projects {
        let project = project?.path();
        gone(std::fs::remove_file(project.join(format!("{conversation}.jsonl"))))?;
        gone(std::fs::remove_dir_all(project.join(conversation)))?;
    }
    Ok(())
}

/// A file that does not exist counts as removed.
fn gone(removed: std::io::Result<()>) -> std::io::Result<()> {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    match removed {
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Ok(()),
        removed => removed,
    }
}

/// Completes interrupted deletions, at the start and regularly.
pub async fn finish_deletions(app: App) {
    loop {
        if let Err(error) = finish(&app).await {
            tracing::error!(%error, "a session could not be deleted; it is tried again in a minute");
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn finish(app: &App) -> Fallible<()> {
    // A deletion in progress has its record there too.
    let _one_at_a_time = app.deleting.lock().await;
    let begun: Vec<Deletion> = app.sessions.records.all(Filter::default()).await?;
    for deletion in begun {
        app.forget_now(&deletion.session).await?;
    }
    Ok(())
}

/// Regularly deletes sessions in which nothing happened for this long.
pub async fn keep_sessions_for(app: App, time: Duration) {
    loop {
        if let Err(error) = delete_older(&app, time).await {
            tracing::error!(%error, "old sessions could not be deleted");
        }
        tokio::time::sleep(ROUND).await;
    }
}

async fn delete_older(app: &App, time: Duration) -> Fallible<()> {
    let time = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let oldest = app.sessions.clock.now().saturating_sub(time);
    let mut page = Page { limit: 100, by: Some("place".to_owned()), ..Page::default() };
    loop {
        let sessions: Vec<Session> = app.sessions.records.list(&Filter::default(), &page).await?;
        let Some(last) = sessions.last() else { return Ok(()) };
        page.after = Some(last.place.clone());
        for session in &sessions {
            if session.tally.last_activity.max(session.created) >= oldest {
                return Ok(());
            }
            // A run that waits for a user is not over, however long that takes, and also if the server was restarted meanwhile.
            let waits = app.sessions.live_run(&session.id).await?.is_some()
                || app.sessions.approvals.are_pending_in(&session.id).await?;
            if !waits {
                tracing::info!(
                    session = session.id,
                    "deleting a session in which nothing happened for a long time"
                );
                app.forget(session).await?;
            }
        }
    }
}

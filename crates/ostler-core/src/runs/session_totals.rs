//! The totals of a session's runs, stored as sums: a query about a session reads one record and a page of the newest
//! runs, however many runs it had.

use std::collections::BTreeMap;

use ostler_store::{Error, Expected, Filter, Put};
use serde::{Deserialize, Serialize};

use super::Sessions;
use super::edits::RunChanges;
use crate::model::run::Session;
use crate::model::tally::{Context, RunUsage, Spent, ToolUsed};
use crate::records::{Kept as _, kept};
use ostler_base::error::Fallible;

/// How many tools have separate sums. Models can make up names.
const MOST_TOOLS: usize = 1_000;
/// The name of the sum of all other tools.
const OTHER_TOOLS: &str = "other tools";

/// The sums of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionTotals {
    /// The id of the session.
    pub id: String,
    pub owner: String,
    /// When the session was created. A deleted session with the same key had other sums.
    created: u64,
    /// Runs with usage.
    pub runs: u64,
    pub spent: Spent,
    tools: BTreeMap<String, ToolUsed>,
    /// How full the context window was at the end of the last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Context>,
    /// Added lines.
    pub added: u64,
    /// Removed lines.
    pub removed: u64,
}

kept!(SessionTotals, "sessionTotals");

impl SessionTotals {
    fn add_usage(&mut self, run: &RunUsage) {
        self.runs += 1;
        run.models.iter().for_each(|model| self.spent.add(&model.spent));
        for tool in &run.tools {
            let is_known = self.tools.contains_key(&tool.name);
            let has_sum = is_known || self.tools.len() < MOST_TOOLS;
            let name = if has_sum { tool.name.as_str() } else { OTHER_TOOLS }.to_owned();
            let none = ToolUsed { name: name.clone(), ..ToolUsed::default() };
            self.tools.entry(name).or_insert(none).add(tool);
        }
        self.context = run.context.or(self.context);
    }

    fn add_changes(&mut self, run: &RunChanges) {
        self.added += run.files.iter().map(|file| file.added).sum::<u64>();
        self.removed += run.files.iter().map(|file| file.removed).sum::<u64>();
    }

    pub fn into_tools(self) -> Vec<ToolUsed> {
        self.tools.into_values().collect()
    }
}

/// The current sums.
struct Totals {
    sums: SessionTotals,
    /// The version that must be stored for an update to be valid.
    expected: Expected,
    /// Whether they were read from the store, and not just added up.
    are_kept: bool,
}

impl Sessions {
    /// The sums of a session, with all ended runs.
    pub async fn session_totals(&self, session: &Session) -> Fallible<SessionTotals> {
        let Totals { sums, expected, are_kept } = self.totals(session).await?;
        if !are_kept && sums.runs > 0 {
            match self.records.exchange(vec![sums.put(expected)?], Vec::new()).await {
                // A run has just ended, and has written them.
                Ok(()) | Err(Error::Conflict { .. }) => {}
                // They are added up again with the next query.
                Err(error) => {
                    tracing::warn!(session = session.id, %error, "the sums of a session could not be stored");
                }
            }
        }
        Ok(sums)
    }

    /// A write of the sums of a session with one more run, for the commit of its end; `None` if the session is gone.
    pub(super) async fn totals_put(
        &self,
        session: &str,
        usage: &RunUsage,
        changes: &RunChanges,
    ) -> Fallible<Option<Put>> {
        let Some((session, _)) = self.records.find::<Session>(session).await? else {
            return Ok(None);
        };
        let Totals { mut sums, expected, .. } = self.totals(&session).await?;
        sums.add_usage(usage);
        sums.add_changes(changes);
        sums.put(expected).map(Some)
    }

    async fn totals(&self, session: &Session) -> Fallible<Totals> {
        let found = self.records.find::<SessionTotals>(&session.id).await?;
        let expected = found.as_ref().map_or(Expected::Absent, |(_, at)| Expected::Version(*at));
        Ok(match found {
            Some((sums, _)) if sums.created == session.created => {
                Totals { sums, expected, are_kept: true }
            }
            _ => Totals { sums: self.added_up(session).await?, expected, are_kept: false },
        })
    }

    /// The sums of a session of an earlier version, which stored none: reads all of its runs, once.
    async fn added_up(&self, session: &Session) -> Fallible<SessionTotals> {
        let field = Some(("session".to_owned(), session.id.clone()));
        let filter = Filter { field, ..Filter::default() };
        let mut usage: Vec<RunUsage> = self.records.all(filter.clone()).await?;
        let changes: Vec<RunChanges> = self.records.all(filter).await?;
        usage.sort_by_key(|usage| usage.ended);
        let (id, owner, created) = (session.id.clone(), session.owner.clone(), session.created);
        let mut totals = SessionTotals { id, owner, created, ..SessionTotals::default() };
        // Older runs belong to a deleted session with the same key.
        usage.iter().filter(|run| run.ended >= created).for_each(|run| totals.add_usage(run));
        changes.iter().filter(|run| run.at >= created).for_each(|run| totals.add_changes(run));
        Ok(totals)
    }
}

//! Usage per day, stored as sums: a query for a year reads 366 records, however many runs there were.
//!
//! The end of a run writes its usage as a separate record, so that ends never wait for each other. Those records are
//! added to the sums and removed in one commit, once per lease and before the sums are read.

use std::collections::BTreeMap;

use ostler_base::error::Fallible;
use ostler_store::{Error, Expected, Filter, Page, Put};
use serde::{Deserialize, Serialize};

use super::Sessions;
use crate::clock;
use crate::model::tally::{ModelUsed, RunUsage, Spent};
use crate::records::{Kept as _, kept};

/// The owner of the sums of all users together. Names of users begin with a letter.
const EVERYBODY: &str = "*";
/// How many runs are added in one commit.
const STEP: usize = 500;
/// The record that marks that the runs of earlier versions are in the sums. It sorts before every day.
const UPGRADED: &str = "0";

/// The usage of a run that is not in the sums yet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct UncountedUsage {
    /// The id of its [`RunUsage`].
    id: String,
    owner: String,
    /// Milliseconds since 1970.
    ended: u64,
    models: Vec<ModelUsed>,
}

kept!(UncountedUsage, "uncountedUsage");

impl From<&RunUsage> for UncountedUsage {
    fn from(usage: &RunUsage) -> Self {
        let RunUsage { id, owner, ended, models, .. } = usage.clone();
        Self { id, owner, ended, models }
    }
}

/// The usage of a user's runs, or of all runs, on one day in UTC.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DayUsage {
    /// The day and the user.
    pub id: String,
    pub owner: String,
    /// Such as `2026-11-16`.
    pub day: String,
    pub runs: u64,
    pub models: BTreeMap<String, ModelDay>,
}

kept!(DayUsage, "dayUsage");

/// The usage of a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelDay {
    /// Runs that used it; a run with two models counts for both.
    pub runs: u64,
    pub spent: Spent,
}

impl DayUsage {
    fn add(&mut self, run: &UncountedUsage) {
        self.runs += 1;
        for ModelUsed { model, spent } in &run.models {
            let sum = self.models.entry(model.clone()).or_default();
            sum.runs += 1;
            sum.spent.add(spent);
        }
    }
}

impl Sessions {
    /// The sums of a user, or of all users together, beginning with a day. Days without runs are left out.
    pub async fn usage_since(&self, day: &str, owner: Option<String>) -> Fallible<Vec<DayUsage>> {
        self.count_usage().await?;
        let owner = Some(owner.unwrap_or_else(|| EVERYBODY.to_owned()));
        let filter = Filter { owner, ..Filter::default() };
        let page = Page { after: Some(day.to_owned()), limit: STEP, ..Page::default() };
        self.records.list(&filter, &page).await
    }

    /// Adds the usage of ended runs to the sums.
    pub(super) async fn count_usage(&self) -> Fallible<()> {
        let _one_at_a_time = self.counting.lock().await;
        loop {
            let page = Page { limit: STEP, ..Page::default() };
            let runs: Vec<UncountedUsage> = self.records.list(&Filter::default(), &page).await?;
            if runs.is_empty() {
                return Ok(());
            }
            let counted = |run: &UncountedUsage| {
                (UncountedUsage::KIND.to_owned(), run.id.clone(), Expected::Any)
            };
            let puts = self.sums(&runs).await?;
            match self.records.exchange(puts, runs.iter().map(counted).collect()).await {
                // Another server has just counted some of them.
                Ok(()) | Err(Error::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The sums to which these runs belong, including them.
    async fn sums(&self, runs: &[UncountedUsage]) -> Fallible<Vec<Put>> {
        let mut groups: BTreeMap<(String, &str), Vec<&UncountedUsage>> = BTreeMap::new();
        for run in runs {
            for owner in [run.owner.as_str(), EVERYBODY] {
                groups.entry((clock::day(run.ended), owner)).or_default().push(run);
            }
        }
        let mut puts = Vec::with_capacity(groups.len());
        for ((day, owner), runs) in groups {
            let id = format!("{day}:{owner}");
            let (mut sum, expected) = match self.records.find::<DayUsage>(&id).await? {
                Some((sum, version)) => (sum, Expected::Version(version)),
                None => {
                    let owner = owner.to_owned();
                    (DayUsage { id, owner, day, ..DayUsage::default() }, Expected::Absent)
                }
            };
            runs.into_iter().for_each(|run| sum.add(run));
            puts.push(sum.put(expected)?);
        }
        Ok(puts)
    }

    /// Counts the runs of earlier versions, which stored no sums. Called once, before anything runs.
    pub async fn count_earlier_usage(&self) -> Fallible<()> {
        if self.records.find::<DayUsage>(UPGRADED).await?.is_some() {
            return Ok(());
        }
        let earlier: Vec<RunUsage> = self.records.all(Filter::default()).await?;
        let earlier: Vec<_> = earlier.iter().map(UncountedUsage::from).collect();
        let upgraded =
            DayUsage { id: UPGRADED.to_owned(), owner: "server".to_owned(), ..DayUsage::default() };
        let mut puts = self.sums(&earlier).await?;
        puts.push(upgraded.put(Expected::Absent)?);
        Ok(self.records.exchange(puts, Vec::new()).await?)
    }
}

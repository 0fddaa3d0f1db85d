//! Usage over HTTP: by day and model, and of one session by run.

use axum::Json;
use axum::extract::State;
use axum::routing::get;
use ostler_base::error::{ApiError, Fallible, PathOf, QueryOf};
use ostler_core::app::App;
use ostler_core::clock;
use ostler_core::model::tally::{Context, ModelUsed, RunUsage, Spent, ToolUsed};
use ostler_core::runs::day_usage;
use ostler_door::users::{Caller, Role};
use ostler_store::Filter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::openapi::{Api, Op};
use super::sessions::readable;

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
/// The maximum number of days.
const MOST_DAYS: u64 = 366;
/// How many runs of a session are listed: the last ones. Its sums contain all runs.
const MOST_RUNS: usize = 500;

pub(super) fn routes(api: Api) -> Api {
    let by_day = "The usage of runs, by day in UTC and by model";
    let by_run = "The usage of a session's runs, oldest first; the last 500 of them";
    api.on(
        Op::get("/api/usage", "usage", by_day)
            .query::<UsageQuery>()
            .returns::<Usage>(200, "The usage"),
        get(by_days),
    )
    .on(
        Op::get("/api/sessions/{id}/usage", "sessionUsage", by_run)
            .returns::<SessionUsage>(200, "The usage"),
        get(of_session),
    )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UsageQuery {
    /// The number of days, including today; 30 by default.
    #[schemars(range(min = 1, max = MOST_DAYS))]
    days: Option<u64>,
    /// Only the usage of the caller, also for administrators.
    mine: Option<bool>,
}

/// The usage of some days.
#[derive(Serialize, JsonSchema)]
struct Usage {
    /// The first day of the query.
    from: String,
    /// Today.
    to: String,
    /// The days with usage.
    days: Vec<DayUsage>,
    total: Total,
}

#[derive(Serialize, JsonSchema)]
struct DayUsage {
    /// Such as `2026-11-16`.
    day: String,
    models: Vec<DayModel>,
}

impl From<day_usage::DayUsage> for DayUsage {
    fn from(sum: day_usage::DayUsage) -> Self {
        let model = |(model, day_usage::ModelDay { runs, spent })| DayModel {
            runs,
            used: ModelUsed { model, spent },
        };
        Self { day: sum.day, models: sum.models.into_iter().map(model).collect() }
    }
}

#[derive(Serialize, JsonSchema)]
struct DayModel {
    /// Runs that used it; a run with two models counts for both.
    runs: u64,
    #[serde(flatten)]
    used: ModelUsed,
}

/// The totals.
#[derive(Default, Serialize, JsonSchema)]
struct Total {
    runs: u64,
    #[serde(flatten)]
    spent: Spent,
}

async fn by_days(
    State(app): State<App>,
    caller: Caller,
    QueryOf(query): QueryOf<UsageQuery>,
) -> Fallible<Json<Usage>> {
    let days @ 1..=MOST_DAYS = query.days.unwrap_or(30) else {
        return Err(ApiError::invalid("days", format!("days must be between 1 and {MOST_DAYS}")));
    };
    let is_all = caller.role >= Role::Admin && query.mine != Some(true);
    let now = app.sessions.clock.now();
    let from = clock::day(now.saturating_sub((days - 1) * DAY_MS));
    let sums = app.sessions.usage_since(&from, (!is_all).then_some(caller.user)).await?;
    let mut total = Total::default();
    for sum in &sums {
        total.runs += sum.runs;
        sum.models.values().for_each(|model| total.spent.add(&model.spent));
    }
    let days = sums.into_iter().map(DayUsage::from).collect();
    Ok(Json(Usage { from, to: clock::day(now), days, total }))
}

/// The usage of a session.
#[derive(Serialize, JsonSchema)]
struct SessionUsage {
    runs: Vec<RunView>,
    total: Total,
    /// Of all runs.
    tools: Vec<ToolUsed>,
    /// How full the context window was at the end of the last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<Context>,
}

/// The usage of a run.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RunView {
    run: String,
    /// The beginning of its prompt.
    prompt: String,
    /// Milliseconds since 1970.
    ended: u64,
    /// From its start to its end, including time spent waiting for users.
    duration_ms: u64,
    #[serde(flatten)]
    spent: Spent,
    /// The fraction of the models' input that came from the cache, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_share: Option<f64>,
    models: Vec<ModelUsed>,
    tools: Vec<ToolUsed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<Context>,
}

impl From<RunUsage> for RunView {
    fn from(usage: RunUsage) -> Self {
        let mut spent = Spent::default();
        usage.models.iter().for_each(|model| spent.add(&model.spent));
        Self {
            run: usage.run,
            prompt: usage.prompt,
            ended: usage.ended,
            duration_ms: usage.duration_ms,
            spent,
            cache_share: spent.tokens.cache_share(),
            models: usage.models,
            tools: usage.tools,
            context: usage.context,
        }
    }
}

async fn of_session(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Fallible<Json<SessionUsage>> {
    let session = readable(&app, &caller, &id).await?;
    let totals = app.sessions.session_totals(&session).await?;
    let field = Some(("session".to_owned(), session.id));
    let filter = Filter { field, ..Filter::default() };
    let mut found: Vec<RunUsage> = app.sessions.records.newest(&filter, MOST_RUNS).await?;
    // A deleted session may have had the same id.
    found.retain(|usage| usage.ended >= session.created);
    let runs = found.into_iter().rev().map(RunView::from).collect();
    let total = Total { runs: totals.runs, spent: totals.spent };
    let context = totals.context;
    Ok(Json(SessionUsage { runs, total, tools: totals.into_tools(), context }))
}

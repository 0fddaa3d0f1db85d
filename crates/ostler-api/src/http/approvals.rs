//! Approvals, questions, rules and the audit over HTTP.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{delete, get, post};
use ostler_base::error::{Fallible, JsonBody, PathOf, QueryOf};
use ostler_core::app::App;
use ostler_core::approvals::answer::{AnswersRequest, DecisionRequest};
use ostler_core::approvals::audit::Audited;
use ostler_core::approvals::record::Approval;
use ostler_core::approvals::rule::Granted;
use ostler_door::users::Caller;

use super::listing::{Listing, PageQuery, seen_by};
use super::names::{named, named_list};
use super::openapi::{Api, Op};

pub(super) fn routes(api: Api) -> Api {
    let all = "Pending requests of the caller, oldest first";
    let decides = "Decides about a tool call; the first decision wins. An approval is refused if the session's space denies the \
                   call now";
    let answers = "Answers the agent's questions; the first answers win";
    api.on(
        Op::get("/api/approvals", "listPending", all)
            .query::<PageQuery>()
            .returns::<Listing<Approval>>(200, "The requests"),
        get(pending),
    )
    .on(
        Op::get("/api/approvals/{id}", "getApproval", "A request, pending or decided")
            .returns::<Approval>(200, "The request"),
        get(show),
    )
    .on(
        Op::post("/api/approvals/{id}/decision", "decide", decides)
            .takes::<DecisionRequest>()
            .returns::<Approval>(200, "The request, decided"),
        post(decide),
    )
    .on(
        Op::post("/api/questions/{id}/answers", "answer", answers)
            .takes::<AnswersRequest>()
            .returns::<Approval>(200, "The request, answered"),
        post(answer),
    )
    .on(
        Op::get("/api/rules", "listRules", "Rules that were granted for a session or permanently")
            .query::<PageQuery>()
            .returns::<Listing<Granted>>(200, "The rules"),
        get(rules),
    )
    .on(
        Op::delete("/api/rules/{id}", "revokeRule", "Revokes a rule, with immediate effect")
            .returns_nothing(204, "Revoked"),
        delete(revoke),
    )
    .on(
        Op::get("/api/audit", "readAudit", "Who decided what, oldest first")
            .query::<PageQuery>()
            .returns::<Listing<Audited>>(200, "The decisions"),
        get(audit),
    )
}

async fn pending(
    State(app): State<App>,
    caller: Caller,
    QueryOf(query): QueryOf<PageQuery>,
) -> Fallible<Json<Listing<Approval>>> {
    Ok(named_list(&app, app.approvals.pending(&caller, &query.whole_page()?).await?))
}

async fn show(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Fallible<Json<Approval>> {
    Ok(named(&app, app.approvals.find(&caller, &id).await?))
}

async fn decide(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    headers: HeaderMap,
    JsonBody(request): JsonBody<DecisionRequest>,
) -> Fallible<Json<Approval>> {
    Ok(named(&app, app.decide(&caller, via(&headers), &id, request).await?))
}

async fn answer(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    headers: HeaderMap,
    JsonBody(request): JsonBody<AnswersRequest>,
) -> Fallible<Json<Approval>> {
    Ok(named(&app, app.answer(&caller, via(&headers), &id, request).await?))
}

/// The client that answered, as it names itself; nothing depends on it.
fn via(headers: &HeaderMap) -> &'static str {
    match headers.get("x-ostler-client").map(|client| client.as_bytes()) {
        Some(b"cli") => "cli",
        _ => "rest",
    }
}

async fn rules(
    State(app): State<App>,
    caller: Caller,
    QueryOf(query): QueryOf<PageQuery>,
) -> Fallible<Json<Listing<Granted>>> {
    let items = app.approvals.rules(seen_by(&caller).owner, &query.whole_page()?).await?;
    Ok(named_list(&app, items))
}

async fn revoke(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Fallible<StatusCode> {
    app.approvals.revoke(&caller, "rest", &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn audit(
    State(app): State<App>,
    caller: Caller,
    QueryOf(query): QueryOf<PageQuery>,
) -> Fallible<Json<Listing<Audited>>> {
    let items: Vec<Audited> = app.sessions.records.list(&seen_by(&caller), &query.page()?).await?;
    Ok(named_list(&app, items))
}

//! The text of a skill over HTTP, for users who want to read it before they run it.

use axum::Json;
use axum::extract::State;
use axum::routing::get;
use ostler_base::error::{Fallible, PathOf};
use ostler_core::app::App;
use ostler_door::users::Caller;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::openapi::{Api, Op};
use super::tasks::SkillView;

pub(super) fn routes(api: Api) -> Api {
    api.on(
        Op::get("/api/skills/{name}", "getSkill", "A skill, by its name or id, with its text")
            .returns::<SkillText>(200, "The skill"),
        get(show),
    )
}

/// A skill with its text.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SkillText {
    #[serde(flatten)]
    skill: SkillView,
    /// The model that it requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// The fields of its head, as written.
    front_matter: Map<String, Value>,
    /// The instructions for the agent, in Markdown.
    body: String,
}

async fn show(
    State(app): State<App>,
    _: Caller,
    PathOf(name): PathOf<String>,
) -> Fallible<Json<SkillText>> {
    let mut skill = app.tasks.workshop.skills.find(&name).await?;
    let front_matter = std::mem::take(&mut skill.head);
    let body = std::mem::take(&mut skill.content);
    let model = skill.model.take();
    Ok(Json(SkillText { skill: skill.into(), model, front_matter, body }))
}

//! A conversation is in memory once, however long it gets: no turn, call or suggestion copies it.

use std::sync::{Arc, Mutex};

use ostler_engine::model::{ChatMessage, EventStream, Model, Request};
use ostler_engine::tool::{Effect, Tool, ToolCx, ToolError, ToolOutput, erase};
use ostler_proto::api::{ContentBlock, Role};
use ostler_proto::control::{AskEngine, Initialize, SetModel};
use ostler_testkit::{Script, reply, when};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::host::TestHost;

/// Notes the address of the first message of every request.
struct Noting {
    model: Arc<dyn Model>,
    places: Arc<Mutex<Vec<usize>>>,
}

impl Model for Noting {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn respond(&self, request: Request) -> EventStream {
        self.places.lock().unwrap().push(request.messages[0].content.as_ptr() as usize);
        self.model.respond(request)
    }
}

// Mutant: `self.conversation.clone()` in `suggest.rs`: the guess has a copy.
#[tokio::test]
async fn turns_calls_and_suggestions_share_the_same_conversation() {
    let places = Arc::new(Mutex::new(Vec::new()));
    let script = Script::new()
        .rule(when().prompt_contains("Guess what"), reply().text("And then?"))
        .rule(
            when().prompt_contains("call").has_tool_result(false),
            reply().tool_use("Look", json!({"word": "it"})),
        )
        .rule(when(), reply().text("Yes."));
    let mut host = TestHost::with(script, |options| {
        options.model =
            Arc::new(Noting { model: Arc::clone(&options.model), places: Arc::clone(&places) });
    })
    .await;
    let wishes = Initialize { prompt_suggestions: Some(true), ..Initialize::default() };
    host.ask("init", AskEngine::Initialize(Box::new(wishes))).await;
    for prompt in ["one", "call", "three", "four"] {
        host.prompt(prompt).await;
        host.result().await;
        if prompt != "one" {
            host.until("prompt_suggestion").await;
        }
    }
    let places = places.lock().unwrap();
    assert_eq!(places.len(), 8, "five for the prompts, three for the suggestions");
    assert!(places.iter().all(|place| *place == places[0]), "{places:x?}");
}

/// Asks the model from within a call, as a search does.
struct Search;

#[derive(Deserialize, JsonSchema)]
struct NoArgs {}

impl Tool for Search {
    const NAME: &'static str = "Search";
    const DESCRIPTION: &'static str = "For tests.";
    type Args = NoArgs;

    fn effect(&self, _: &ToolCx, _: &NoArgs) -> Effect {
        Effect::Nothing
    }

    async fn run(&self, cx: &ToolCx, _: NoArgs) -> Result<ToolOutput, ToolError> {
        let content = vec![ContentBlock::text("search")];
        let request = Request::new("", vec![ChatMessage { role: Role::User, content }]);
        cx.session.as_ref().unwrap().ask_model(request).await.unwrap();
        Ok(ToolOutput::new("found", json!(null)))
    }
}

// Mutant: `model.name()` in `tool_session.rs`, the model of the session's start.
#[tokio::test]
async fn a_search_asks_the_model_that_was_set_last() {
    let script = Script::new()
        .rule(when().prompt_contains("search"), reply().text("Found."))
        .rule(when().turn(0), reply().tool_use("Search", json!({})))
        .rule(when(), reply().text("Yes."));
    let mut host = TestHost::with(script, |options| options.tools = vec![erase(Search)]).await;
    let set = SetModel { model: Some("claude-haiku-5-5".to_owned()), ..SetModel::default() };
    host.ask("model", AskEngine::SetModel(set)).await;
    host.until("control_response").await;
    host.prompt("go").await;
    host.result().await;
    let models: Vec<_> = host.api.requests().iter().map(|it| it.model().to_owned()).collect();
    assert_eq!(models, ["claude-haiku-5-5"; 3]);
}

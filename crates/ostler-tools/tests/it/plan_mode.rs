//! Plan mode: the effects of its two tools, and that they need a session.

use ostler_engine::tool::Effect;
use serde_json::json;

use crate::session::Session;

#[test]
fn leaving_plan_mode_requires_approval_and_entering_it_does_not() {
    let session = Session::new();
    let effect = |tool: &str| session.prepare(tool, &json!({})).ok().unwrap().effect;
    assert_eq!(effect("ExitPlanMode"), Effect::AskUser);
    assert_eq!(effect("EnterPlanMode"), Effect::Nothing);
}

#[tokio::test]
async fn without_a_session_there_is_no_mode_to_change() {
    for tool in ["ExitPlanMode", "EnterPlanMode"] {
        let error = Session::new().run(tool, json!({"plan": "x"})).await.unwrap_err();
        assert!(error.to_string().contains("no session"), "{error}");
    }
}

#[test]
fn the_plan_argument_is_optional() {
    let tools = ostler_tools::session_tools();
    let spec = tools.iter().map(|tool| tool.spec()).find(|spec| spec.name == "ExitPlanMode");
    assert_eq!(spec.unwrap().input_schema["required"], json!(["plan"]));
    assert!(Session::new().prepare("ExitPlanMode", &json!({})).is_ok());
}

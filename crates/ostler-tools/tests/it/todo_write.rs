//! The to-do list.

use ostler_engine::tool::Effect;
use serde_json::json;

use crate::session::Session;

#[tokio::test]
async fn the_list_is_replaced_and_the_old_one_returned() {
    let session = Session::new();
    let first = json!([{ "content": "Run", "status": "in_progress", "activeForm": "Running" }]);
    let second = json!([
        { "content": "Run", "status": "completed", "activeForm": "Running" },
        { "content": "Rest", "status": "pending", "activeForm": "Resting" },
    ]);
    assert_eq!(session.effect("TodoWrite", json!({ "todos": first })), Effect::Nothing);
    let structured = session.structured("TodoWrite", json!({ "todos": first })).await;
    assert_eq!(structured, json!({ "oldTodos": [], "newTodos": first }));
    let output = session.run("TodoWrite", json!({ "todos": second })).await.unwrap();
    assert_eq!(output.content.text(), "The list is saved: 1 done, 0 in progress, 1 to do.");
    assert_eq!(output.structured.unwrap(), json!({ "oldTodos": first, "newTodos": second }));
}

#[tokio::test]
async fn a_list_that_is_too_long_is_refused() {
    let todo = json!({ "content": "Run", "status": "pending", "activeForm": "Running" });
    let error = Session::new().error("TodoWrite", json!({ "todos": vec![todo; 201] })).await;
    assert!(error.contains("200"), "{error}");
}

#[test]
fn an_unknown_status_is_refused() {
    let todo = json!({ "content": "Run", "status": "blocked", "activeForm": "Running" });
    assert!(Session::new().prepare("TodoWrite", &json!({ "todos": [todo] })).is_err());
}

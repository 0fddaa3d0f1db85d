//! Questions to the user: what the model receives.

use ostler_engine::tool::Effect;
use serde_json::{Value, json};

use crate::session::Session;

fn questions() -> Value {
    let options = json!([{ "label": "Red", "description": "warm" }, { "label": "Blue", "description": "cool" }]);
    json!([
        { "question": "Which colour?", "header": "Colour", "options": options, "multiSelect": false },
        { "question": "Which sizes?", "header": "Sizes", "options": options, "multiSelect": true },
    ])
}

#[tokio::test]
async fn answers_are_rendered_as_text() {
    let input = json!({
        "questions": questions(),
        "answers": { "Which colour?": "Blue", "Which sizes?": ["S", "L"] },
        "annotations": { "Which colour?": { "notes": "the dark one" } },
    });
    let output = Session::new().run("AskUserQuestion", input).await.unwrap();
    assert_eq!(
        output.content.text(),
        "Which colour?\nThe user answers: Blue\nThe user adds: the dark one\nWhich sizes?\nThe user answers: S, L\n"
    );
    let structured = output.structured.unwrap();
    assert_eq!(structured["questions"], questions());
    assert_eq!(structured["answers"], json!({ "Which colour?": "Blue", "Which sizes?": "S, L" }));
}

#[tokio::test]
async fn a_missing_answer_is_not_assumed() {
    let session = Session::new();
    for input in [
        json!({ "questions": questions() }),
        json!({ "questions": questions(), "answers": {} }),
        json!({ "questions": questions(), "answers": { "Which colour?": " ", "Something else?": "Yes" } }),
    ] {
        let error = session.error("AskUserQuestion", input).await;
        assert!(error.starts_with("The user gave no answer."), "{error}");
    }
}

#[tokio::test]
async fn an_unanswered_question_is_named() {
    let input = json!({ "questions": questions(), "answers": { "Which colour?": "Blue" } });
    let text = Session::new().text("AskUserQuestion", input).await;
    assert!(
        text.ends_with("Which sizes?\nThe user answers: (no answer; do not assume one)\n"),
        "{text}"
    );
}

#[test]
fn too_few_and_too_many_choices_are_refused_before_the_user_is_asked() {
    let session = Session::new();
    let one_option = json!([{ "question": "?", "header": "H", "options": [{ "label": "a", "description": "" }] }]);
    let many = vec![questions()[0].clone(); 5];
    for questions in [json!([]), one_option, json!(many)] {
        let error =
            session.prepare("AskUserQuestion", &json!({ "questions": questions })).err().unwrap();
        assert!(error.contains("entries, found"), "{error}");
    }
}

#[test]
fn a_question_needs_the_user() {
    let effect = Session::new().effect("AskUserQuestion", json!({ "questions": questions() }));
    assert_eq!(effect, Effect::AskUser);
}

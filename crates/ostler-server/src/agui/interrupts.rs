//! Questions to the client: what they look like to it, and what its answers mean.

use ostler::proto::permission::PermissionUpdate;
use ostler::proto::tool::Question;
use ostler::{Answers, Decision};
use ostler_agui::event::Interrupt;
use ostler_agui::input::{Resume, ResumeStatus};
use serde_json::{Map, Value, json};

use super::desk::{Answer, AskKind, OpenAsk};

/// What is asked, for the end of a run. `owner` is the subagent that wants to know.
pub(super) fn interrupt(ask: &OpenAsk, owner: Option<String>) -> Interrupt {
    let call = ask.question.call();
    let (reason, message, schema, metadata) = match &ask.question {
        AskKind::Permission(call) => {
            let message = call.title.clone().or_else(|| call.description.clone());
            let message =
                message.unwrap_or_else(|| format!("May the agent use {}?", call.tool_name));
            let metadata = json!({
                "toolName": call.tool_name, "input": call.input, "reason": call.decision_reason,
                "suggestions": call.permission_suggestions,
            });
            ("tool_call", message, permission_schema(), metadata)
        }
        AskKind::Question(questions, _) => {
            let texts: Vec<_> = questions.iter().map(|it| it.question.as_str()).collect();
            let metadata = json!({"questions": questions});
            ("input_required", texts.join("\n"), question_schema(questions), metadata)
        }
    };
    Interrupt {
        id: ask.id.clone(),
        reason: reason.to_owned(),
        message: Some(message),
        tool_call_id: call.tool_use_id.as_ref().map(ToString::to_string),
        response_schema: object(schema),
        expires_at: None,
        metadata: object(without_nulls(metadata)),
        subagent_run_id: owner,
    }
}

/// The arguments with which a client's own tool is asked the same.
pub(super) fn arguments(ask: &OpenAsk) -> Value {
    let interrupt = interrupt(ask, None);
    without_nulls(json!({
        "interruptId": interrupt.id, "reason": interrupt.reason, "message": interrupt.message,
        "toolCallId": interrupt.tool_call_id, "details": interrupt.metadata,
    }))
}

fn permission_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "approved": {"type": "boolean"},
            "editedArgs": {"type": "object", "description": "Arguments in place of all of the call's own."},
            "always": {"type": "boolean", "description": "Do not ask again, as the suggestions say."},
            "message": {"type": "string", "description": "Why not, for the agent."},
        },
        "required": ["approved"],
    })
}

fn question_schema(questions: &[Question]) -> Value {
    let answer = json!({"type": ["string", "array"], "items": {"type": "string"}});
    let properties: Map<String, Value> =
        questions.iter().map(|it| (it.question.clone(), answer.clone())).collect();
    let names: Vec<_> = questions.iter().map(|it| it.question.clone()).collect();
    let answers = json!({"type": "object", "properties": properties, "required": names});
    json!({"type": "object", "properties": {"answers": answers}, "required": ["answers"]})
}

fn object(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(map) => Some(map),
        _ => None,
    }
}

fn without_nulls(mut value: Value) -> Value {
    if let Value::Object(map) = &mut value {
        map.retain(|_, value| !value.is_null());
    }
    value
}

/// What a client's answer means; `None` when it cannot be understood, and the question stays.
pub(super) fn answer(ask: &OpenAsk, resume: &Resume) -> Option<Answer> {
    let payload = match resume.status {
        ResumeStatus::Cancelled => return Some(abandoned(ask)),
        ResumeStatus::Resolved => resume.payload.as_ref()?,
    };
    understood(ask, payload)
}

/// The same for what a client's tool said.
pub(super) fn understood(ask: &OpenAsk, payload: &Value) -> Option<Answer> {
    match &ask.question {
        AskKind::Permission(call) => {
            let suggestions = call.permission_suggestions.clone().unwrap_or_default();
            decision(payload, suggestions).map(Answer::Decision)
        }
        AskKind::Question(questions, _) => answers(questions, payload).map(Answer::Answers),
    }
}

fn abandoned(ask: &OpenAsk) -> Answer {
    let words = "The user did not answer and left the question.";
    match ask.question {
        AskKind::Permission(_) => Answer::Decision(Decision::deny(words)),
        AskKind::Question(..) => Answer::Answers(Answers::decline(words)),
    }
}

/// What it means when a client's tool said something that cannot be understood.
pub(super) fn unclear(ask: &OpenAsk) -> Answer {
    let words = "The application's answer could not be understood.";
    match ask.question {
        AskKind::Permission(_) => Answer::Decision(Decision::deny(words)),
        AskKind::Question(..) => Answer::Answers(Answers::decline(words)),
    }
}

fn decision(payload: &Value, suggestions: Vec<PermissionUpdate>) -> Option<Decision> {
    let approved = match payload {
        Value::Bool(approved) => *approved,
        _ => payload.get("approved")?.as_bool()?,
    };
    let word = |name: &str| payload.get(name).filter(|value| !value.is_null());
    if !approved {
        let message = word("message").and_then(Value::as_str);
        let message = message.unwrap_or("The user does not want this.");
        return Some(Decision::deny(message));
    }
    let mut decision = Decision::allow();
    if let Some(edited) = word("editedArgs") {
        // A yes to something else than was asked must be clear about what it is.
        edited.as_object()?;
        decision = decision.with_input(edited.clone());
    }
    if word("always").and_then(Value::as_bool) == Some(true) {
        decision = decision.with_rules(suggestions);
    }
    Some(decision)
}

fn answers(questions: &[Question], payload: &Value) -> Option<Answers> {
    let labels = |value: &Value| -> Option<Vec<String>> {
        match value {
            Value::String(text) => Some(vec![text.clone()]),
            Value::Array(items) => {
                items.iter().map(|item| item.as_str().map(str::to_owned)).collect()
            }
            _ => None,
        }
    };
    // One question can be answered with nothing but the answer.
    if let ([question], Value::String(text)) = (questions, payload) {
        return Some(Answers::new().answer(&question.question, [text]));
    }
    let given = payload.get("answers")?;
    questions.iter().try_fold(Answers::new(), |answers, question| {
        let labels = labels(given.get(&question.question)?)?;
        Some(answers.answer(&question.question, labels))
    })
}

#[cfg(test)]
mod tests {
    use ostler::proto::control::CanUseTool;

    use super::*;

    fn ask(question: AskKind) -> OpenAsk {
        OpenAsk { id: "q".into(), question, by_call: None }
    }

    fn permission() -> OpenAsk {
        let call: CanUseTool = serde_json::from_value(json!({
            "tool_name": "Bash", "input": {"command": "ls"}, "tool_use_id": "c1", "title": "Run ls?",
        }))
        .unwrap();
        ask(AskKind::Permission(Box::new(call)))
    }

    fn decided(payload: Value) -> Option<Decision> {
        match understood(&permission(), &payload)? {
            Answer::Decision(decision) => Some(decision),
            Answer::Answers(_) => panic!("no decision"),
        }
    }

    #[test]
    fn only_a_clear_yes_is_a_yes_and_what_is_unclear_is_no_answer() {
        assert_eq!(decided(json!({"approved": true})), Some(Decision::allow()));
        assert_eq!(decided(json!(true)), Some(Decision::allow()));
        let edited = json!({"approved": true, "editedArgs": {"command": "pwd"}});
        let expected = Decision::allow().with_input(json!({"command": "pwd"}));
        assert_eq!(decided(edited), Some(expected));
        let no = json!({"approved": false, "message": "too risky", "editedArgs": {"a": 1}});
        assert_eq!(decided(no), Some(Decision::deny("too risky")));
        for unclear in [
            json!({}),
            json!({"approved": "yes"}),
            json!({"approved": 1}),
            json!("true"),
            json!(null),
            json!({"approved": true, "editedArgs": "pwd"}),
        ] {
            assert_eq!(decided(unclear.clone()), None, "{unclear}");
        }
    }

    #[test]
    fn a_question_that_was_left_is_a_no() {
        let left = Resume {
            interrupt_id: "q".into(),
            status: ResumeStatus::Cancelled,
            payload: Some(json!({"approved": true})),
            metadata: None,
        };
        let Some(Answer::Decision(decision)) = answer(&permission(), &left) else { panic!("none") };
        assert_eq!(decision, Decision::deny("The user did not answer and left the question."));
    }

    #[test]
    fn every_question_needs_its_answer() {
        let question = |text: &str| Question { question: text.into(), ..Question::default() };
        let two = [question("A?"), question("B?")];
        let given = json!({"answers": {"A?": "x", "B?": ["y", "z"]}});
        let expected = Answers::new().answer("A?", ["x"]).answer("B?", ["y", "z"]);
        assert_eq!(answers(&two, &given), Some(expected));
        assert_eq!(answers(&two, &json!({"answers": {"A?": "x"}})), None);
        assert_eq!(answers(&two, &json!("x")), None);
        let expected = Answers::new().answer("A?", ["x"]);
        assert_eq!(answers(&two[..1], &json!("x")), Some(expected));
    }

    #[test]
    fn an_interrupt_says_what_it_is_about() {
        let it = serde_json::to_value(interrupt(&permission(), Some("agent-1".into()))).unwrap();
        assert_eq!((&it["reason"], &it["toolCallId"]), (&json!("tool_call"), &json!("c1")));
        assert_eq!((&it["message"], &it["subagentRunId"]), (&json!("Run ls?"), &json!("agent-1")));
        assert_eq!(it["metadata"], json!({"toolName": "Bash", "input": {"command": "ls"}}));
        assert_eq!(it["responseSchema"]["required"], json!(["approved"]));
    }
}

//! Questions to the client as interrupts, and the meaning of its answers.

use ostler::engine::sandbox::NETWORK_TOOL;
use ostler_agui::event::Interrupt;
use ostler_agui::input::{Resume, ResumeStatus};
use ostler_core::approvals::answer::{AnswersRequest, DecisionRequest, questions};
use ostler_core::approvals::record::{Approval, ApprovalKind, Scope};
use serde_json::{Map, Value, json};

/// The message for the model if the user did not answer.
const LEFT: &str = "The user did not answer and left the question.";

/// The answer of a client.
#[derive(Clone, Debug)]
pub(super) enum Said {
    Decision(DecisionRequest),
    Answers(AnswersRequest),
}

/// A question, for the end of a run. `owner` is the subagent that asks.
pub(super) fn interrupt(ask: &Approval, owner: Option<String>) -> Interrupt {
    let (reason, message, schema, metadata) = match ask.kind {
        ApprovalKind::Permission => {
            let message = format!("May the agent do this? {}", ask.summary);
            let metadata = json!({
                "toolName": ask.tool_name, "input": ask.input, "reason": ask.reason,
                "description": ask.description,
                "rules": ask.rules, "offers": ask.offers, "folder": ask.origin.folder,
                "redacted": ask.redacted, "digest": ask.digest,
            });
            ("tool_call", message, permission_schema(&ask.rules), metadata)
        }
        ApprovalKind::Question => {
            let texts: Vec<_> = questions(&ask.input).collect();
            let metadata = json!({"questions": ask.input.get("questions"), "digest": ask.digest});
            ("input_required", texts.join("\n"), question_schema(&texts), metadata)
        }
    };
    Interrupt {
        id: ask.id.clone(),
        reason: reason.to_owned(),
        message: Some(message),
        // A question about a host is not about a call that the client knows.
        tool_call_id: ask.tool_use_id.clone().filter(|_| ask.tool_name != NETWORK_TOOL),
        response_schema: object(schema),
        expires_at: ask.expires.and_then(date),
        metadata: object(without_nulls(metadata)),
        subagent_run_id: owner,
    }
}

/// The arguments of the call with which a client's own tool is asked.
pub(super) fn arguments(ask: &Approval) -> Value {
    let interrupt = interrupt(ask, None);
    without_nulls(json!({
        "interruptId": interrupt.id, "reason": interrupt.reason, "message": interrupt.message,
        "toolCallId": interrupt.tool_call_id, "details": interrupt.metadata,
    }))
}

fn permission_schema(rules: &[String]) -> Value {
    let mut properties = json!({
        "approved": {"type": "boolean"},
        "editedArgs": {"type": "object", "description": "Arguments that replace all arguments of the call."},
        "message": {"type": "string", "description": "The reason of a denial, for the agent."},
        "stop": {"type": "boolean", "description": "With a denial: whether the agent ends its turn."},
    });
    if !rules.is_empty() {
        properties["scope"] = json!({
            "enum": ["once", "session", "always"],
            "description": "Beyond this call a rule is granted, and the calls it covers need no further approval; with always in all sessions in this folder.",
        });
        properties["rule"] =
            json!({"enum": rules, "description": "The rule to grant; the first by default."});
        properties["wholeTool"] = json!({"type": "boolean",
            "description": "Confirms a rule that allows every use of its tool; needed where the offer says wholeTool."});
        properties["unattended"] = json!({"type": "boolean",
            "description": "Whether the rule also applies to runs that hooks and schedules start."});
        properties["always"] =
            json!({"type": "boolean", "description": "The same as scope always."});
    }
    json!({"type": "object", "properties": properties, "required": ["approved"]})
}

fn question_schema(questions: &[&str]) -> Value {
    let answer = json!({"type": ["string", "array"], "items": {"type": "string"}});
    let properties: Map<String, Value> =
        questions.iter().map(|it| ((*it).to_owned(), answer.clone())).collect();
    let answers = json!({"type": "object", "properties": properties, "required": questions});
    json!({"type": "object", "properties": {"answers": answers}, "required": ["answers"]})
}

fn date(milliseconds: u64) -> Option<String> {
    let at = jiff::Timestamp::from_millisecond(i64::try_from(milliseconds).ok()?).ok()?;
    Some(at.to_string())
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

/// Parses a client's answer; `None` if it is unclear, and the question stays open.
pub(super) fn answer(ask: &Approval, resume: &Resume) -> Option<Said> {
    match resume.status {
        ResumeStatus::Cancelled => Some(no(ask, LEFT)),
        ResumeStatus::Resolved => understood(ask, resume.payload.as_ref()?),
    }
}

/// The same for the answer of a client's tool.
pub(super) fn understood(ask: &Approval, payload: &Value) -> Option<Said> {
    match ask.kind {
        ApprovalKind::Permission => decision(ask, payload).map(Said::Decision),
        ApprovalKind::Question => answers(ask, payload).map(Said::Answers),
    }
}

/// A denial, for permission requests and questions.
pub(super) fn no(ask: &Approval, words: &str) -> Said {
    let note = Some(words.to_owned());
    match ask.kind {
        ApprovalKind::Permission => {
            Said::Decision(DecisionRequest { note, ..DecisionRequest::default() })
        }
        ApprovalKind::Question => {
            Said::Answers(AnswersRequest { declined: true, note, ..AnswersRequest::default() })
        }
    }
}

fn decision(ask: &Approval, payload: &Value) -> Option<DecisionRequest> {
    let approved = match payload {
        Value::Bool(approved) => *approved,
        _ => payload.get("approved")?.as_bool()?,
    };
    let word = |name: &str| payload.get(name).filter(|value| !value.is_null());
    let is = |name: &str| word(name).and_then(Value::as_bool) == Some(true);
    let text = |name: &str| word(name).and_then(Value::as_str).map(str::to_owned);
    let digest = digest(payload)?;
    let mut request = DecisionRequest { approved, digest, ..DecisionRequest::default() };
    if !approved {
        (request.note, request.stop) = (text("message"), is("stop"));
        return Some(request);
    }
    if let Some(edited) = word("editedArgs") {
        // An approval with changed arguments must contain an object, and applies once.
        edited.as_object()?;
        request.input = Some(edited.clone());
        return Some(request);
    }
    let scope = match word("scope") {
        Some(scope) => serde_json::from_value(scope.clone()).ok()?,
        None if is("always") && !ask.rules.is_empty() => Scope::Always,
        None => Scope::Once,
    };
    (request.scope, request.rule) = (scope, text("rule"));
    (request.whole_tool, request.unattended) = (is("wholeTool"), is("unattended"));
    Some(request)
}

/// The digest of the request that the user saw, if the client sends it; `None` if it is not text, which is unclear.
fn digest(payload: &Value) -> Option<Option<String>> {
    match payload.get("digest").filter(|value| !value.is_null()) {
        Some(digest) => digest.as_str().map(|digest| Some(digest.to_owned())),
        None => Some(None),
    }
}

fn answers(ask: &Approval, payload: &Value) -> Option<AnswersRequest> {
    let asked: Vec<&str> = questions(&ask.input).collect();
    // A single question can be answered with the plain answer.
    let answers = match (asked.as_slice(), payload) {
        ([question], Value::String(text)) => {
            Map::from_iter([((*question).to_owned(), json!(text))])
        }
        _ => payload.get("answers")?.as_object()?.clone(),
    };
    let is_answer = |question: &&str| match answers.get(*question) {
        Some(Value::Array(labels)) => labels.iter().all(Value::is_string),
        given => given.is_some_and(Value::is_string),
    };
    let digest = digest(payload)?;
    let are_answered = asked.iter().all(is_answer);
    are_answered.then(|| AnswersRequest { answers, digest, ..AnswersRequest::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(kind: &str, tool: &str, input: &Value) -> Approval {
        serde_json::from_value(json!({
            "id": "q", "kind": kind, "session": "s", "run": "r", "owner": "ann", "toolName": tool,
            "toolUseId": "c1", "input": input, "digest": "d", "summary": "ls", "rules": ["Bash(ls:*)"],
            "asked": 0, "state": "pending",
        }))
        .unwrap()
    }

    fn permission() -> Approval {
        ask("permission", "Bash", &json!({"command": "ls"}))
    }

    fn decided(payload: Value) -> Option<Value> {
        match understood(&permission(), &payload)? {
            Said::Decision(decision) => Some(without_nulls(json!(decision))),
            Said::Answers(_) => panic!("no decision"),
        }
    }

    #[test]
    fn only_a_clear_approval_counts_and_an_unclear_answer_is_ignored() {
        let yes = json!({"approved": true, "scope": "once", "stop": false, "wholeTool": false, "unattended": false});
        assert_eq!(decided(json!({"approved": true})), Some(yes.clone()));
        assert_eq!(decided(json!(true)), Some(yes));
        let edited = json!({"approved": true, "editedArgs": {"command": "pwd"}, "scope": "always"});
        let expected = json!({"approved": true, "scope": "once", "stop": false, "wholeTool": false, "unattended": false,
                "input": {"command": "pwd"}});
        assert_eq!(decided(edited), Some(expected), "changed arguments are allowed once");
        let no = json!({"approved": false, "message": "too risky", "editedArgs": {"a": 1}});
        let expected = json!({"approved": false, "scope": "once", "stop": false, "wholeTool": false, "unattended": false,
                "note": "too risky"});
        assert_eq!(decided(no), Some(expected));
        for (always, rule) in [
            (json!({"approved": true, "always": true}), None),
            (
                json!({"approved": true, "scope": "always", "rule": "Bash(ls:*)"}),
                Some("Bash(ls:*)"),
            ),
        ] {
            let decided = decided(always).unwrap();
            assert_eq!(decided["scope"], "always");
            assert_eq!(decided.get("rule").and_then(Value::as_str), rule);
        }
        for unclear in [
            json!({}),
            json!({"approved": "yes"}),
            json!({"approved": 1}),
            json!("true"),
            json!(null),
            json!({"approved": true, "editedArgs": "pwd"}),
            json!({"approved": true, "scope": "for ever"}),
            json!({"approved": true, "digest": 5}),
        ] {
            assert_eq!(decided(unclear.clone()), None, "{unclear}");
        }
    }

    // Mutants: `decision`, or `answers`, without the digest.
    #[test]
    fn the_digest_of_what_the_user_saw_is_part_of_the_answer() {
        let decision = decided(json!({"approved": true, "digest": "d"})).unwrap();
        assert_eq!(decision["digest"], "d");
        let input = json!({"questions": [{"question": "Which?"}]});
        let answered = |digest: Value| {
            let payload = json!({"answers": {"Which?": "Red"}, "digest": digest});
            match understood(&ask("question", "AskUserQuestion", &input), &payload)? {
                Said::Answers(answers) => Some(answers.digest),
                Said::Decision(_) => panic!("no answers"),
            }
        };
        assert_eq!(answered(json!("d")), Some(Some("d".to_owned())));
        assert_eq!(answered(json!(null)), Some(None));
        assert_eq!(answered(json!(5)), None);
    }

    #[test]
    fn a_cancelled_question_is_a_denial() {
        let left = Resume {
            interrupt_id: "q".into(),
            status: ResumeStatus::Cancelled,
            payload: Some(json!({"approved": true})),
            metadata: None,
        };
        let Some(Said::Decision(decision)) = answer(&permission(), &left) else { panic!("none") };
        assert!(!decision.approved);
        assert_eq!(decision.note.as_deref(), Some(LEFT));
    }

    #[test]
    fn every_question_needs_its_answer() {
        let asked = |texts: &[&str]| {
            let list: Vec<_> = texts.iter().map(|text| json!({"question": text})).collect();
            ask("question", "AskUserQuestion", &json!({"questions": list}))
        };
        let said =
            |ask: &Approval, payload: Value| answers(ask, &payload).map(|it| json!(it.answers));
        let two = asked(&["A?", "B?"]);
        let given = json!({"A?": "x", "B?": ["y", "z"]});
        assert_eq!(said(&two, json!({"answers": given})), Some(given));
        assert_eq!(said(&two, json!({"answers": {"A?": "x"}})), None);
        assert_eq!(said(&two, json!({"answers": {"A?": "x", "B?": 7}})), None);
        assert_eq!(said(&two, json!("x")), None);
        assert_eq!(said(&asked(&["A?"]), json!("x")), Some(json!({"A?": "x"})));
    }

    #[test]
    fn an_interrupt_contains_the_details_of_the_call() {
        let it = json!(interrupt(&permission(), Some("agent-1".into())));
        assert_eq!((&it["reason"], &it["toolCallId"]), (&json!("tool_call"), &json!("c1")));
        assert_eq!(it["message"], "May the agent do this? ls");
        assert_eq!(it["subagentRunId"], "agent-1");
        assert_eq!(it["metadata"]["input"], json!({"command": "ls"}));
        assert_eq!(it["metadata"]["rules"], json!(["Bash(ls:*)"]));
        assert_eq!(it["responseSchema"]["required"], json!(["approved"]));
    }

    #[test]
    fn a_question_that_expires_says_when() {
        let mut asked = permission();
        assert_eq!(interrupt(&asked, None).expires_at, None);
        asked.expires = Some(1_000);
        assert_eq!(interrupt(&asked, None).expires_at.as_deref(), Some("1970-01-01T00:00:01Z"));
    }
}

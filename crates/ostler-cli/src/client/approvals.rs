//! Pending approvals and questions, and answering them.

use std::process::ExitCode;

use ostler_client::approval::{self, find, is_question, questions};
use ostler_client::items;
use serde_json::{Map, Value, json};

use super::reach::{Server, Trouble};
use super::text;
use crate::screen::{BOLD, Screen};
use crate::text::{clean, spelled};

pub(super) async fn list(server: &Server, screen: &mut Screen) -> Result<ExitCode, Trouble> {
    let pending = server.get(approval::LIST).await?;
    if server.is_json {
        return super::json(screen, &pending);
    }
    let mut is_empty = true;
    for approval in items(&pending) {
        is_empty = false;
        show(approval, screen)?;
        screen.remark(&how_to_answer(approval))?;
    }
    if is_empty {
        screen.remark("no approvals or questions are pending")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows the question and the choices.
pub(super) fn show(approval: &Value, screen: &mut Screen) -> Result<(), Trouble> {
    if !is_question(approval) {
        let summary = spelled(text(&approval["summary"]));
        for line in screen.fitted(&format!("allow {summary}?"), 0) {
            screen.line(&format!("{BOLD}{line}{BOLD:#}"))?;
        }
        for line in arguments(approval) {
            screen.remark(&line)?;
        }
        if let Some(reason) = approval["reason"].as_str() {
            screen.remark(&format!("why: {reason}"))?;
        }
        return Ok(());
    }
    for question in questions(approval) {
        screen.line(&format!("{BOLD}{}{BOLD:#}", clean(text(&question["question"]))))?;
        for (n, option) in question["options"].as_array().into_iter().flatten().enumerate() {
            let (label, about) = (text(&option["label"]), text(&option["description"]));
            screen.line(&format!("  {}. {}  {}", n + 1, clean(label), clean(about)))?;
        }
    }
    Ok(())
}

/// The call's arguments, one per line, and a note if secrets were redacted.
fn arguments(approval: &Value) -> Vec<String> {
    let mut lines = crate::text::arguments(&approval["input"]);
    if approval["redacted"] == true {
        lines.push("secrets are redacted here; the call runs with the real values".to_owned());
    }
    lines
}

pub(super) fn how_to_answer(approval: &Value) -> String {
    let id = text(&approval["id"]);
    if is_question(approval) {
        return format!("answer with `ostler task answer {id} ANSWER…`");
    }
    format!("answer with `ostler task approve {id}` or `ostler task deny {id} --note …`")
}

pub(super) async fn decide(
    id: &str,
    decision: Value,
    server: &Server,
    screen: &mut Screen,
) -> Result<ExitCode, Trouble> {
    let approval = find(server, id).await?;
    if is_question(&approval) {
        return Err(Trouble::Server(format!("these are questions: {}", how_to_answer(&approval))));
    }
    let decided = approval::answer(server, &approval, decision).await?;
    done(&decided, server, screen)
}

pub(super) async fn deny(
    id: &str,
    note: Option<&str>,
    stop: bool,
    server: &Server,
    screen: &mut Screen,
) -> Result<ExitCode, Trouble> {
    let approval = find(server, id).await?;
    let no = if is_question(&approval) {
        if stop {
            let text = "a run ends with a tool call that is refused; questions are only declined";
            return Err(Trouble::Server(text.to_owned()));
        }
        json!({"declined": true, "note": note})
    } else {
        json!({"approved": false, "note": note, "stop": stop})
    };
    let decided = approval::answer(server, &approval, no).await?;
    done(&decided, server, screen)
}

pub(super) async fn answer(
    id: &str,
    answers: &[String],
    server: &Server,
    screen: &mut Screen,
) -> Result<ExitCode, Trouble> {
    let approval = find(server, id).await?;
    if !is_question(&approval) {
        return Err(Trouble::Server(format!(
            "this is a tool call, not a question: {}",
            how_to_answer(&approval)
        )));
    }
    let asked: Vec<&Value> = questions(&approval).collect();
    if asked.len() != answers.len() {
        let list: Vec<String> =
            asked.iter().map(|it| format!("  {}", clean(text(&it["question"])))).collect();
        return Err(Trouble::Server(format!(
            "{} answers are needed, one for each of these questions, in this order:\n{}",
            asked.len(),
            list.join("\n")
        )));
    }
    let given: Map<String, Value> = asked
        .iter()
        .zip(answers)
        .map(|(question, said)| (text(&question["question"]).to_owned(), chosen(question, said)))
        .collect();
    let answered = approval::answer(server, &approval, json!({"answers": given})).await?;
    done(&answered, server, screen)
}

/// The chosen labels: from a number, from numbers with commas if several answers are allowed, or the typed text itself.
pub(super) fn chosen(question: &Value, said: &str) -> Value {
    let labels: Vec<&str> = question["options"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|option| text(&option["label"]))
        .collect();
    let label = |word: &str| {
        let at = word.parse::<usize>().ok()?.checked_sub(1)?;
        labels.get(at).map(|label| Value::from(*label))
    };
    let said = said.trim();
    let numbers: Option<Vec<Value>> = said.split(',').map(|word| label(word.trim())).collect();
    let several = question["multiSelect"] == true;
    match numbers {
        Some(chosen) if several || chosen.len() == 1 => Value::Array(chosen),
        _ => json!([said]),
    }
}

fn done(decided: &Value, server: &Server, screen: &mut Screen) -> Result<ExitCode, Trouble> {
    if server.is_json {
        return super::json(screen, decided);
    }
    screen.line(&outcome(decided))?;
    Ok(ExitCode::SUCCESS)
}

/// The decision as text for the user.
pub(super) fn outcome(decided: &Value) -> String {
    let answer = &decided["answer"];
    let rule = match (answer["scope"].as_str(), answer["rule"].as_str()) {
        (Some("session"), Some(rule)) => format!(", and {rule} for this session"),
        (Some("always"), Some(rule)) => {
            format!(", and {rule} always in {}", text(&decided["origin"]["folder"]))
        }
        _ => String::new(),
    };
    let (state, by) = (text(&decided["state"]), text(&answer["by"]));
    let state = if is_question(decided) && state == "allowed" { "answered" } else { state };
    clean(&format!("{state}{rule}, by {by} ({})", text(&answer["via"])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_select_labels_and_other_text_is_the_answer_itself() {
        let question = json!({"options": [{"label": "red"}, {"label": "green"}]});
        let mut several = question.clone();
        several["multiSelect"] = json!(true);
        assert_eq!(chosen(&question, " 2 "), json!(["green"]));
        assert_eq!(chosen(&question, "red"), json!(["red"]));
        assert_eq!(chosen(&question, "1,2"), json!(["1,2"]), "one question, one answer");
        assert_eq!(chosen(&several, "1, 2"), json!(["red", "green"]));
        for odd in ["0", "3", "99999999999999999999", "mauve, perhaps"] {
            assert_eq!(chosen(&several, odd), json!([odd]));
        }
    }

    // Mutant: `arguments` that shows the command only.
    #[test]
    fn every_argument_and_every_character_is_shown() {
        let approval =
            json!({"input": {"command": "a\u{202e}b\nc", "timeout": 5}, "redacted": true});
        let lines = arguments(&approval);
        assert!(lines.contains(&"command: a\\u{202e}b".to_owned()), "{lines:?}");
        assert!(lines.contains(&"c".to_owned()) && lines.contains(&"timeout: 5".to_owned()));
        assert!(lines.last().unwrap().contains("secrets"));
    }
}

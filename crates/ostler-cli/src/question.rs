//! Questions of the agent to the user: may a tool run, and what the agent itself wants to know.

use std::io;

use ostler_proto::control::CanUseTool;
use ostler_proto::permission::{Allow, Deny, PermissionResult};
use ostler_proto::quirks;
use ostler_proto::tool::{AskUserQuestionInput, ToolInput};

use crate::lines::Lines;
use crate::screen::{Screen, clean, subject};

/// Asks the user, and turns what is typed into an answer. No answer is a no.
pub(crate) async fn ask(
    request: &CanUseTool,
    lines: &mut Lines,
    screen: &mut Screen,
) -> io::Result<PermissionResult> {
    let answer = match ToolInput::parse(&request.tool_name, &request.input) {
        Ok(ToolInput::AskUserQuestion(input)) => questions(input, lines, screen).await?,
        _ => permission(request, lines, screen).await?,
    };
    Ok(quirks::complete_answer(request, answer))
}

async fn permission(
    request: &CanUseTool,
    lines: &mut Lines,
    screen: &mut Screen,
) -> io::Result<PermissionResult> {
    let reason = request
        .decision_reason
        .as_deref()
        .map(|reason| format!(" ({})", clean(reason)))
        .unwrap_or_default();
    let question =
        format!("Allow {} {}?{reason} [y/N]", clean(&request.tool_name), subject(&request.input));
    screen.prompt(&question)?;
    let typed = read(lines, screen).await?;
    Ok(match typed.as_deref().map(str::trim) {
        Some("y" | "Y" | "yes" | "Yes") => PermissionResult::Allow(Allow::default()),
        Some(_) => deny("The user did not allow it."),
        None => deny("Nobody was there to allow it."),
    })
}

async fn questions(
    input: AskUserQuestionInput,
    lines: &mut Lines,
    screen: &mut Screen,
) -> io::Result<PermissionResult> {
    let mut answered = input.clone();
    for question in &input.questions {
        screen.line(&clean(&question.question))?;
        for (number, option) in question.options.iter().enumerate() {
            screen.line(&format!(
                "  {}. {}  {}",
                number + 1,
                clean(&option.label),
                clean(&option.description)
            ))?;
        }
        let several = question.multi_select == Some(true);
        screen.prompt(if several {
            "numbers, or your own words:"
        } else {
            "number, or your own words:"
        })?;
        let Some(typed) = read(lines, screen).await? else {
            return Ok(deny("Nobody was there to answer."));
        };
        let labels: Vec<&str> =
            question.options.iter().map(|option| option.label.as_str()).collect();
        answered = answered.answered(&question.question, chosen(&typed, &labels, several));
    }
    let updated_input = serde_json::to_value(&answered).ok();
    Ok(PermissionResult::Allow(Allow { updated_input, ..Allow::default() }))
}

/// The labels behind the numbers that were typed; anything else is an answer in the user's own words.
fn chosen<'a>(typed: &'a str, labels: &[&'a str], several: bool) -> Vec<&'a str> {
    let label = |number: &str| {
        number.parse::<usize>().ok()?.checked_sub(1).and_then(|at| labels.get(at)).copied()
    };
    let typed = typed.trim();
    let numbers: Vec<&str> = typed.split([',', ' ']).filter(|part| !part.is_empty()).collect();
    let picked: Option<Vec<&str>> = numbers.iter().map(|number| label(number)).collect();
    match picked {
        Some(picked) if !picked.is_empty() && (several || picked.len() == 1) => picked,
        _ => vec![typed],
    }
}

async fn read(lines: &mut Lines, screen: &mut Screen) -> io::Result<Option<String>> {
    let typed = lines.next().await;
    if !lines.is_terminal {
        screen.echo(typed.as_deref().unwrap_or("(no answer)"))?;
    }
    Ok(typed)
}

/// The answer when there is nobody to ask.
pub(crate) fn nobody(request: &CanUseTool) -> PermissionResult {
    let text = "Nobody can be asked here. Start ostler in a terminal, or choose another --permission-mode.";
    quirks::complete_answer(request, deny(text))
}

fn deny(message: &str) -> PermissionResult {
    PermissionResult::Deny(Deny { message: message.to_owned(), ..Deny::default() })
}

#[cfg(test)]
mod tests {
    use super::chosen;

    #[test]
    fn numbers_pick_labels_and_words_stand_for_themselves() {
        let labels = ["red", "green", "blue"];
        assert_eq!(chosen(" 2 ", &labels, false), ["green"]);
        assert_eq!(chosen("1, 3", &labels, true), ["red", "blue"]);
        assert_eq!(chosen("1 3", &labels, false), ["1 3"], "one question, one answer");
        assert_eq!(chosen("purple", &labels, true), ["purple"]);
        for odd in ["0", "4", "", "-1", "99999999999999999999"] {
            assert_eq!(chosen(odd, &labels, true), [odd]);
        }
    }
}

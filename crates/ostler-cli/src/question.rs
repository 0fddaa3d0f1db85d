//! Questions of the agent to the user: may a tool run, and what the agent itself wants to know.
//!
//! At a terminal they are answered by keys (`permission`, `menu`), through a pipe by lines.

use std::io;

use ostler_proto::control::CanUseTool;
use ostler_proto::permission::{Allow, PermissionResult};
use ostler_proto::quirks;
use ostler_proto::tool::{AskUserQuestionInput, Question, ToolInput};

use crate::input::Input;
use crate::menu::{Menu, Step};
use crate::permission::{self, Asking, deny};
use crate::screen::Screen;
use crate::show::subject;
use crate::text::{arguments, clean};

/// Asks the user, and makes what is pressed or typed an answer. No answer is a no.
pub(crate) async fn ask(request: &CanUseTool, at: Asking<'_>) -> io::Result<PermissionResult> {
    let answer = match ToolInput::parse(&request.tool_name, &request.input) {
        Ok(ToolInput::AskUserQuestion(input)) => questions(input, at.input, at.screen).await?,
        _ if at.input.is_terminal => permission::ask(request, at).await?,
        _ => by_line(request, at.input, at.screen).await?,
    };
    Ok(quirks::complete_answer(request, answer))
}

async fn by_line(
    request: &CanUseTool,
    input: &mut Input,
    screen: &mut Screen,
) -> io::Result<PermissionResult> {
    let reason = request
        .decision_reason
        .as_deref()
        .map(|reason| format!(" ({})", clean(reason)))
        .unwrap_or_default();
    for line in arguments(&request.input) {
        screen.remark(&line)?;
    }
    let subject = subject(&request.input, screen.columns());
    let question = format!("Allow {} {subject}?{reason} [y/N]", clean(&request.tool_name));
    screen.prompt(&question)?;
    let typed = read(input, screen).await?;
    Ok(match typed.as_deref().map(str::trim) {
        Some("y" | "Y" | "yes" | "Yes") => PermissionResult::Allow(Allow::default()),
        Some(_) => deny("The user did not allow it."),
        None => deny("Nobody was there to allow it."),
    })
}

async fn questions(
    asked: AskUserQuestionInput,
    input: &mut Input,
    screen: &mut Screen,
) -> io::Result<PermissionResult> {
    let mut answered = asked.clone();
    for question in &asked.questions {
        let answer = if input.is_terminal && screen.is_live() {
            by_menu(question, input, screen).await?
        } else {
            by_number(question, input, screen).await?
        };
        match answer {
            Ok(labels) => answered = answered.answered(&question.question, labels),
            Err(why) => return Ok(deny(why)),
        }
    }
    let updated_input = serde_json::to_value(&answered).ok();
    Ok(PermissionResult::Allow(Allow { updated_input, ..Allow::default() }))
}

/// The labels of the answer, or why there is none.
type Answer = Result<Vec<String>, &'static str>;

async fn by_menu(
    question: &Question,
    input: &mut Input,
    screen: &mut Screen,
) -> io::Result<Answer> {
    let mut menu = Menu::new(question);
    let mut keys = input.keys().await?;
    let answer = 'asking: loop {
        screen.draw(&menu.lines(screen.columns()))?;
        let Some(pressed) = keys.next().await else {
            break Err("Nobody was there to answer.");
        };
        for key in pressed {
            match menu.press(key) {
                Step::Stay => {}
                Step::Chosen(labels) => break 'asking Ok(labels),
                Step::Left => break 'asking Err("The user did not want to answer."),
            }
        }
    };
    drop(keys);
    screen.line(&clean(&question.question))?;
    let given = answer.as_ref().map_or("no answer".to_owned(), |labels| labels.join(", "));
    screen.remark(&format!("→ {given}"))?;
    Ok(answer)
}

async fn by_number(
    question: &Question,
    input: &mut Input,
    screen: &mut Screen,
) -> io::Result<Answer> {
    screen.line(&clean(&question.question))?;
    for (number, option) in question.options.iter().enumerate() {
        let (label, description) = (clean(&option.label), clean(&option.description));
        screen.line(&format!("  {}. {label}  {description}", number + 1))?;
    }
    let several = question.multi_select == Some(true);
    screen.prompt(if several {
        "numbers, or your own words:"
    } else {
        "number, or your own words:"
    })?;
    let Some(typed) = read(input, screen).await? else {
        return Ok(Err("Nobody was there to answer."));
    };
    let labels: Vec<&str> = question.options.iter().map(|option| option.label.as_str()).collect();
    Ok(Ok(chosen(&typed, &labels, several).into_iter().map(str::to_owned).collect()))
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

async fn read(input: &mut Input, screen: &mut Screen) -> io::Result<Option<String>> {
    let Some(typed) = input.line().await else {
        screen.echo("(no answer)")?;
        return Ok(None);
    };
    if !typed.is_shown {
        screen.echo(&typed.text)?;
    }
    Ok(Some(typed.text))
}

/// The answer when there is nobody to ask.
pub(crate) fn nobody(request: &CanUseTool) -> PermissionResult {
    let text = "Nobody can be asked here. Start ostler in a terminal, or choose another --permission-mode.";
    quirks::complete_answer(request, deny(text))
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

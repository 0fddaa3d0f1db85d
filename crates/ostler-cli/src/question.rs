//! Questions of the agent to the user: a menu at a terminal, numbers and lines elsewhere.

use std::io;

use ostler::Answers;
use ostler_proto::tool::Question;

use crate::input::Input;
use crate::menu::{Menu, Step};
use crate::reply::answered;
use crate::screen::Screen;
use crate::text::clean;

/// Asks the questions one after the other. If one is not answered, there are no answers at all.
pub(crate) async fn ask(
    questions: &[Question],
    input: &mut Input,
    screen: &mut Screen,
) -> io::Result<Answers> {
    let mut answers = Answers::new();
    for question in questions {
        let answer = if input.is_terminal && screen.is_live() {
            by_menu(question, input, screen).await?
        } else {
            by_number(question, input, screen).await?
        };
        match answer {
            Ok(labels) => answers = answers.answer(&question.question, labels),
            Err(why) => return Ok(Answers::decline(why)),
        }
    }
    Ok(answers)
}

/// The labels of the answer, or why there is no answer.
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
            break Err("There was no user to answer.");
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
    let mark = if several { "numbers, or your own text:" } else { "number, or your own text:" };
    let Some(typed) = answered(mark, input, screen).await? else {
        return Ok(Err("There was no user to answer."));
    };
    let labels: Vec<&str> = question.options.iter().map(|option| option.label.as_str()).collect();
    Ok(Ok(chosen(&typed, &labels, several).into_iter().map(str::to_owned).collect()))
}

/// The labels of the typed numbers. Any other text is the answer itself.
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

#[cfg(test)]
mod tests {
    use super::chosen;

    #[test]
    fn numbers_select_labels_and_other_text_is_the_answer_itself() {
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

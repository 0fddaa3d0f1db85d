//! A question with options: which one is under the cursor, which are marked, and the typed text.
//!
//! Pure: keys go in, lines come out.

use ostler_proto::tool::Question;

use crate::keys::Key;
use crate::screen::{BOLD, CYAN, DIM};
use crate::text::{clean, clipped, width, wrapped};

#[derive(Debug)]
pub(crate) struct Menu {
    question: String,
    /// Labels and descriptions.
    options: Vec<(String, String)>,
    several: bool,
    /// `options.len()` stands for the user's own text.
    cursor: usize,
    marked: Vec<bool>,
    own: String,
    typing: bool,
}

/// What a key leads to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// No answer yet.
    Stay,
    /// The answers.
    Chosen(Vec<String>),
    /// The user declines to answer.
    Left,
}

impl Menu {
    pub(crate) fn new(question: &Question) -> Self {
        let one_line = |text: &str| clean(text).replace(['\n', '\t'], " ");
        let options = question.options.iter();
        let options: Vec<_> =
            options.map(|option| (option.label.clone(), one_line(&option.description))).collect();
        Self {
            question: clean(&question.question),
            marked: vec![false; options.len()],
            options,
            several: question.multi_select == Some(true),
            cursor: 0,
            own: String::new(),
            typing: false,
        }
    }

    pub(crate) fn press(&mut self, key: Key) -> Step {
        if self.typing {
            return self.type_own(key);
        }
        let n = self.options.len() + 1;
        match key {
            Key::Up | Key::Letter('k') => self.cursor = (self.cursor + n - 1) % n,
            Key::Down | Key::Letter('j') | Key::Tab => self.cursor = (self.cursor + 1) % n,
            Key::Letter(digit @ '1'..='9') => {
                let at = digit as usize - '1' as usize;
                if at < n {
                    self.cursor = at;
                    return self.pick();
                }
            }
            Key::Letter(' ') => return self.pick(),
            Key::Enter if self.several && self.cursor < self.options.len() => return self.done(),
            Key::Enter => return self.pick(),
            Key::Escape | Key::End => return Step::Left,
            _ => {}
        }
        Step::Stay
    }

    /// Chooses the option under the cursor, or marks it if several are allowed.
    fn pick(&mut self) -> Step {
        match self.options.get(self.cursor) {
            None => self.typing = true,
            Some(_) if self.several => self.marked[self.cursor] = !self.marked[self.cursor],
            Some((label, _)) => return Step::Chosen(vec![label.clone()]),
        }
        Step::Stay
    }

    /// All marked options, or the one under the cursor if none is marked.
    fn done(&self) -> Step {
        let options = self.options.iter().zip(&self.marked);
        let marked = options.filter(|(_, marked)| **marked).map(|((label, _), _)| label.clone());
        let mut chosen: Vec<_> = marked.collect();
        chosen.extend(Some(self.own.trim().to_owned()).filter(|own| !own.is_empty()));
        if chosen.is_empty() {
            chosen.extend(self.options.get(self.cursor).map(|(label, _)| label.clone()));
        }
        Step::Chosen(chosen)
    }

    fn type_own(&mut self, key: Key) -> Step {
        match key {
            Key::Letter(character) => self.own.push(character),
            Key::Backspace => _ = self.own.pop(),
            Key::Enter if self.own.trim().is_empty() => self.typing = false,
            Key::Enter if !self.several => return Step::Chosen(vec![self.own.trim().to_owned()]),
            Key::Enter => {
                self.typing = false;
                self.cursor = 0;
            }
            Key::Escape => {
                self.own.clear();
                self.typing = false;
            }
            Key::End => return Step::Left,
            _ => {}
        }
        Step::Stay
    }

    /// The menu as lines, each at most this wide.
    pub(crate) fn lines(&self, columns: usize) -> Vec<String> {
        let question = self.question.lines().flat_map(|line| wrapped(line, columns));
        let mut lines: Vec<_> = question.map(|line| format!("{BOLD}{line}{BOLD:#}")).collect();
        for (at, (label, description)) in self.options.iter().enumerate() {
            let label = clean(label).replace(['\n', '\t'], " ");
            lines.push(self.option(at, &label, description, columns));
        }
        let own = match (self.typing, self.own.as_str()) {
            (false, "") => "other: type it".to_owned(),
            (true, own) => format!("other: {own}▏"),
            (false, own) => format!("other: {own}"),
        };
        lines.push(self.option(self.options.len(), &own, "", columns));
        let help = match (self.typing, self.several) {
            (true, _) => "Enter to confirm, Esc to go back",
            (false, true) => "↑↓ move, Space mark, Enter done, Esc no answer",
            (false, false) => "↑↓ move, Enter choose, Esc no answer",
        };
        lines.push(format!("{DIM}{}{DIM:#}", clipped(help, columns)));
        lines
    }

    fn option(&self, at: usize, label: &str, description: &str, columns: usize) -> String {
        let pointer = if at == self.cursor { "❯" } else { " " };
        let mark = match self.marked.get(at) {
            Some(true) if self.several => "[x] ",
            Some(false) if self.several => "[ ] ",
            _ if self.several => "    ",
            _ => "",
        };
        let label = clipped(&format!("{}. {mark}{label}", at + 1), columns.saturating_sub(2));
        let room = columns.saturating_sub(4 + width(&label));
        let about = if room > 3 { clipped(description, room) } else { String::new() };
        let style = if at == self.cursor { CYAN } else { anstyle::Style::new() };
        let line = format!("{style}{pointer} {label}{style:#}  {DIM}{about}{DIM:#}");
        if about.is_empty() { format!("{style}{pointer} {label}{style:#}") } else { line }
    }
}

#[cfg(test)]
mod tests {
    use super::Key::*;
    use super::*;

    fn menu(several: bool) -> Menu {
        let question = serde_json::json!({"question": "Which colour do you like best?", "header": "Colour",
            "multiSelect": several, "options": [{"label": "red", "description": "like fire"},
            {"label": "green", "description": "like grass"}, {"label": "blue", "description": ""}]});
        Menu::new(&serde_json::from_value(question).unwrap())
    }

    fn check(several: bool, keys: &[Key], expected: Option<&[&str]>) {
        let mut menu = menu(several);
        let (last, before) = keys.split_last().unwrap();
        for key in before {
            assert_eq!(menu.press(*key), Step::Stay, "{key:?} of {keys:?}");
        }
        let expected = expected.map(|chosen| chosen.iter().map(|label| (*label).to_owned()));
        let expected = expected.map_or(Step::Left, |chosen| Step::Chosen(chosen.collect()));
        assert_eq!(menu.press(*last), expected, "{keys:?}");
    }

    #[test]
    fn one_answer_is_chosen_by_arrow_letter_or_digit() {
        check(false, &[Enter], Some(&["red"]));
        check(false, &[Down, Enter], Some(&["green"]));
        check(false, &[Letter('j'), Letter('j'), Letter('k'), Letter(' ')], Some(&["green"]));
        check(false, &[Letter('3')], Some(&["blue"]));
        check(false, &[Letter('9'), Letter('x'), Other, Letter('1')], Some(&["red"]));
        check(false, &[Escape], None);
    }

    #[test]
    fn the_user_can_type_another_answer() {
        let typed =
            [Up, Enter, Letter('m'), Letter('j'), Letter('1'), Backspace, Letter(' '), Enter];
        check(false, &typed, Some(&["mj"]));
        check(false, &[Letter('4'), Letter('x'), Escape, Escape], None);
        check(false, &[Letter('4'), Enter, Letter('2')], Some(&["green"]));
    }

    #[test]
    fn several_answers_are_marked() {
        check(true, &[Letter(' '), Down, Down, Letter(' '), Enter], Some(&["red", "blue"]));
        check(true, &[Letter('1'), Letter('1'), Letter('2'), Enter], Some(&["green"]));
        check(true, &[Down, Enter], Some(&["green"]));
        let own = [Letter('1'), Letter('4'), Letter('z'), Enter, Enter];
        check(true, &own, Some(&["red", "z"]));
    }

    #[test]
    fn it_fits_a_narrow_window() {
        for columns in [16, 20, 40, 100] {
            for line in menu(true).lines(columns) {
                let plain = anstream::adapter::strip_str(&line).to_string();
                assert!(width(&plain) <= columns, "{columns}: {plain:?}");
            }
        }
    }
}

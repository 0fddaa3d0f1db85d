//! "Ask me which colour I like: red, green or blue" as a question with options, and the user's answer.

use serde_json::{Value, json};

use super::words::{typed, words};

/// The tool takes two to four answers.
const MOST_OPTIONS: usize = 4;
/// The longest header of a question.
const LONGEST_HEADER: usize = 12;

/// A question to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) text: String,
    pub(super) header: String,
    pub(super) options: Vec<String>,
    /// How many options were left out.
    pub(super) n_left_out: usize,
}

impl Question {
    /// The question that the user described, or a default one.
    pub(super) fn about(about: Option<&str>) -> Self {
        let about = about.unwrap_or("which colour I like best: red, green or blue");
        let (topic, named) = match about.split_once(':') {
            Some((topic, named)) if !topic.trim().is_empty() => (topic, options(named)),
            _ => (about.trim_start_matches(':'), alternatives(about)),
        };
        let mut offered = match named.len() {
            0 | 1 if is_yes_or_no(topic) => vec!["Yes".to_owned(), "No".to_owned()],
            // There must be two; the user can still type another answer.
            0 | 1 => vec!["You decide".to_owned(), "I would rather not say".to_owned()],
            _ => named,
        };
        let n_left_out = offered.len().saturating_sub(MOST_OPTIONS);
        offered.truncate(MOST_OPTIONS);
        Self { text: asked(topic), header: header(topic), options: offered, n_left_out }
    }

    /// The input of `AskUserQuestion`.
    pub(super) fn input(&self) -> Value {
        let option =
            |label: &String| json!({"label": label, "description": format!("Answer “{label}”")});
        let options: Vec<Value> = self.options.iter().map(option).collect();
        json!({"questions": [{
            "question": self.text, "header": self.header, "multiSelect": false, "options": options,
        }]})
    }

    /// The chosen answer. `None` if the tool's result has none.
    pub(super) fn answer(&self, result: &str) -> Option<String> {
        self.own_answer(result)
            .or_else(|| self.peer_answer(result))
            .filter(|answer| !answer.is_empty())
    }

    /// The format of Ostler's tool: the question, and the answer on the next line.
    fn own_answer(&self, result: &str) -> Option<String> {
        let (_, rest) = result.split_once(&format!("{}\nThe user answers: ", self.text))?;
        let answer = rest.lines().next()?;
        (!answer.starts_with("(no answer")).then(|| answer.trim().to_owned())
    }

    /// The format of other peers: `"question"="answer".`
    fn peer_answer(&self, result: &str) -> Option<String> {
        let (_, rest) = result.split_once(&format!("\"{}\"=\"", self.text))?;
        let end = rest.find("\".").or_else(|| rest.find('"'))?;
        Some(rest[..end].to_owned())
    }
}

/// The parts of "red, green or blue", each only once.
fn options(list: &str) -> Vec<String> {
    let words = words(list);
    let mut options: Vec<String> = Vec::new();
    let mut start = 0;
    for (index, word) in words.iter().enumerate() {
        let joins = word.key == "or" || word.key == "and";
        let ends = word.tail.contains([',', ';']) || index + 1 == words.len();
        if !joins && !ends {
            continue;
        }
        let piece = &words[start..if joins { index } else { index + 1 }];
        start = index + 1;
        let option = match piece {
            [word] => word.text.clone(),
            _ => typed(list, piece).trim_end_matches([',', ';', '.', '?', '!']).to_owned(),
        };
        if !option.trim().is_empty() && !options.contains(&option) {
            options.push(option);
        }
    }
    options
}

/// The two words around an "or": "tea or coffee".
fn alternatives(topic: &str) -> Vec<String> {
    let words = words(topic);
    let found =
        words.windows(3).find(|three| three[1].key == "or" && three[0].text != three[2].text);
    found.map(|three| vec![three[0].text.clone(), three[2].text.clone()]).unwrap_or_default()
}

fn is_yes_or_no(topic: &str) -> bool {
    words(topic).first().is_some_and(|word| ["whether", "if", "for"].contains(&word.key.as_str()))
}

/// Turns "which colour I like" into "Which colour do you like?"
fn asked(topic: &str) -> String {
    let words = words(topic);
    let mut turned: Vec<String> = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let next = words.get(index + 1).map_or("", |word| word.key.as_str());
        let piece = match word.key.as_str() {
            "whether" | "if" if index == 0 => continue,
            "am" if index > 0 && words[index - 1].key == "i" => continue,
            "to" if index == 1 && turned.is_empty() => "should I".to_owned(),
            "i" if next == "am" => "are you".to_owned(),
            "i" => "do you".to_owned(),
            "my" => "your".to_owned(),
            _ => typed(topic, &words[index..=index]).to_owned(),
        };
        turned.push(piece);
    }
    let text = turned.join(" ");
    let text = text.trim_end_matches(['.', '?', '!', ',', ';', ' ']);
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => format!("{}{}?", first.to_uppercase(), letters.as_str()),
        None => "What do you say?".to_owned(),
    }
}

/// The header of "which colour I like" is "Colour".
fn header(topic: &str) -> String {
    let words = words(topic);
    let mut keys =
        words.iter().skip_while(|word| !["which", "what"].contains(&word.key.as_str())).skip(1);
    let noun = keys.next().map_or("", |word| word.text.as_str());
    let mut letters = noun.chars().filter(|letter| letter.is_alphanumeric());
    match letters.next() {
        Some(first) if noun.chars().count() > 2 => {
            first.to_uppercase().chain(letters).take(LONGEST_HEADER).collect()
        }
        _ => "Question".to_owned(),
    }
}

//! `AskUserQuestion`: the model asks, the host allows the call with the answers filled in.
//!
//! This file only renders the answers as text. A missing answer is never assumed.

use std::collections::BTreeMap;

use ostler_engine::tool::{Effect, Tool, ToolCx, ToolError, ToolOutput};
use ostler_proto::build;
use ostler_proto::tool::{AnswerNote, AskUserQuestionOutput, Question, QuestionOption};
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

pub(crate) struct AskUserQuestion;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    #[serde(deserialize_with = "between::<1, 4, _, _>")]
    #[schemars(length(min = 1, max = 4))]
    questions: Vec<Asked>,
    /// By the question's text. The host fills it in.
    #[schemars(skip)]
    answers: Option<BTreeMap<String, GivenAnswer>>,
    #[schemars(skip)]
    annotations: Option<BTreeMap<String, AnswerNote>>,
    #[schemars(skip)]
    #[expect(dead_code, reason = "a host may send it along")]
    metadata: Option<Value>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Asked {
    /// A whole question.
    question: String,
    /// One or two words to stand above it.
    header: String,
    #[serde(deserialize_with = "between::<2, 4, _, _>")]
    #[schemars(length(min = 2, max = 4))]
    options: Vec<Choice>,
    /// Several may be chosen.
    #[serde(default)]
    multi_select: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Choice {
    /// The answer, in a few words.
    label: String,
    /// What it means or leads to.
    description: String,
    /// What it would look like, such as a snippet.
    preview: Option<String>,
}

/// One answer, or several chosen ones.
#[derive(Deserialize)]
#[serde(untagged)]
enum GivenAnswer {
    One(String),
    Several(Vec<String>),
}

impl Tool for AskUserQuestion {
    const NAME: &'static str = "AskUserQuestion";
    const DESCRIPTION: &'static str = "Asks the user to choose when only they can decide. They may always answer in \
        their own words. Put a recommended option first and say so in its label.";
    const HOST_ONLY: &'static [&'static str] = &["answers", "annotations"];
    type Args = Args;

    fn effect(&self, _: &ToolCx, _: &Args) -> Effect {
        Effect::AskUser
    }

    async fn run(&self, _: &ToolCx, args: Args) -> Result<ToolOutput, ToolError> {
        let questions: Vec<Question> = args.questions.into_iter().map(Question::from).collect();
        let answers: BTreeMap<String, String> = args
            .answers
            .unwrap_or_default()
            .into_iter()
            .map(|(question, answer)| (question, String::from(answer)))
            .filter(|(_, answer)| !answer.trim().is_empty())
            .collect();
        if !questions.iter().any(|question| answers.contains_key(&question.question)) {
            return Err(ToolError::Failed(
                "The user gave no answer. Do not assume one: continue without it where that is safe, or stop and say what you need to know.".to_owned(),
            ));
        }
        let text = questions
            .iter()
            .map(|it| render(it, &answers, args.annotations.as_ref()))
            .collect::<String>();
        let structured =
            build!(AskUserQuestionOutput { questions, answers, annotations: args.annotations });
        Ok(ToolOutput::new(text, structured))
    }
}

fn render(
    question: &Question,
    answers: &BTreeMap<String, String>,
    annotations: Option<&BTreeMap<String, AnswerNote>>,
) -> String {
    let question = &question.question;
    let answer = answers.get(question).map_or("(no answer; do not assume one)", String::as_str);
    let notes = annotations.and_then(|notes| notes.get(question)?.notes.as_deref());
    let notes = notes.map_or_else(String::new, |notes| format!("\nThe user adds: {notes}"));
    format!("{question}\nThe user answers: {answer}{notes}\n")
}

impl From<Asked> for Question {
    fn from(asked: Asked) -> Self {
        build!(Self {
            question: asked.question,
            header: asked.header,
            options: asked.options.into_iter().map(QuestionOption::from).collect(),
            multi_select: Some(asked.multi_select),
        })
    }
}

impl From<Choice> for QuestionOption {
    fn from(choice: Choice) -> Self {
        let Choice { label, description, preview } = choice;
        build!(Self { label, description, preview })
    }
}

impl From<GivenAnswer> for String {
    fn from(answer: GivenAnswer) -> Self {
        match answer {
            GivenAnswer::One(answer) => answer,
            GivenAnswer::Several(answers) => answers.join(", "),
        }
    }
}

/// Checked while the call is decoded, so that the user never sees a question without a choice.
fn between<'de, const MIN: usize, const MAX: usize, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let list = Vec::deserialize(deserializer)?;
    if !(MIN..=MAX).contains(&list.len()) {
        return Err(D::Error::custom(format!(
            "expected {MIN} to {MAX} entries, found {}",
            list.len()
        )));
    }
    Ok(list)
}

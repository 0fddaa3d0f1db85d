//! `AskUserQuestion`: the model asks, the host answers by allowing the call with the answers filled in.

use std::collections::BTreeMap;

use ostler_proto_derive::Wire;

use crate::{Extra, Num};

/// Questions to the user and, once the host has allowed the call, the answers.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct AskUserQuestionInput {
    /// The questions.
    pub questions: Vec<Question>,
    /// The answers, by the question's text.
    pub answers: Option<BTreeMap<String, String>>,
    /// Notes on the answers, by the question's text. Newer peers only.
    pub annotations: Option<BTreeMap<String, AnswerNote>>,
    /// Where the questions come from.
    pub metadata: Option<QuestionMetadata>,
    /// Unknown fields.
    pub extra: Extra,
}

impl AskUserQuestionInput {
    /// The same questions with one more answered: by one of the labels, by several, or by free text.
    ///
    /// The result is the `updatedInput` with which the call is allowed.
    ///
    /// ```
    /// use ostler_proto::tool::AskUserQuestionInput;
    ///
    /// let asked = AskUserQuestionInput::default();
    /// let input = asked.answered("Which colour?", ["Blue"]).answered("Which sizes?", ["S", "L"]);
    /// assert_eq!(input.answers.unwrap()["Which sizes?"], "S, L");
    /// ```
    #[must_use]
    pub fn answered<L: AsRef<str>>(
        mut self,
        question: impl Into<String>,
        labels: impl IntoIterator<Item = L>,
    ) -> Self {
        let mut answer = String::new();
        for (index, label) in labels.into_iter().enumerate() {
            if index > 0 {
                answer.push_str(", ");
            }
            answer.push_str(label.as_ref());
        }
        self.answers.get_or_insert_default().insert(question.into(), answer);
        self
    }
}

/// One question.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct Question {
    /// The question; it also names the answer.
    pub question: String,
    /// A heading of one or two words.
    pub header: String,
    /// The answers to choose from. The user may always write another.
    pub options: Vec<QuestionOption>,
    /// Whether several may be chosen; not so if absent.
    pub multi_select: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// An answer to choose from.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct QuestionOption {
    /// The answer.
    pub label: String,
    /// What it means.
    pub description: String,
    /// What it would look like. Newer peers only.
    pub preview: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A note on an answer.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct AnswerNote {
    /// What the chosen answer looks like.
    pub preview: Option<String>,
    /// What the user added.
    pub notes: Option<String>,
    /// Why there is no answer.
    pub unanswered: Option<Unanswered>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum Unanswered {
    /// The user skipped it.
    Skipped,
    /// The user wrote something else instead.
    RepliedInChat,
    /// The user closed it.
    Dismissed,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// Where questions come from.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct QuestionMetadata {
    /// Their origin.
    pub source: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// The user's answers.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct AskUserQuestionOutput {
    /// The questions.
    pub questions: Vec<Question>,
    /// The answers, by the question's text.
    pub answers: BTreeMap<String, String>,
    /// What the user wrote instead. Newer peers only.
    pub response: Option<String>,
    /// Notes on the answers, by the question's text. Newer peers only.
    pub annotations: Option<BTreeMap<String, AnswerNote>>,
    /// The idle timeout after which the user was considered away, in milliseconds. Newer peers only.
    pub afk_timeout_ms: Option<Num>,
    /// Unknown fields.
    pub extra: Extra,
}

//! Scripts: which request gets which reply, and how scripts are read from JSON.
//!
//! A [`Script`] is a plain value. `rulebook` counts uses and chooses a rule for a request.

use std::path::Path;

use serde::Deserialize;

use crate::object::{self, Object};
use crate::reply::Reply;
use crate::when::When;

/// An ordered list of rules; the first that matches a request and has uses left answers it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The rules, in order of precedence.
    #[serde(default)]
    pub(crate) rules: Vec<Rule>,
    /// The answer of `count_tokens`; estimated from the request when absent.
    #[serde(default)]
    pub(crate) count_tokens: Option<u64>,
}

impl Script {
    /// A script without rules: every request is a failure.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule: requests that match `when` get `replies`, one reply or a list used in order.
    pub fn rule(self, when: When, replies: impl Into<Replies>) -> Self {
        self.with(Rule::new(when, replies))
    }

    /// Adds a rule made with [`Rule::new`], for rules with limits or a name.
    pub fn with(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Makes `count_tokens` answer this number.
    pub fn count_tokens(mut self, input_tokens: u64) -> Self {
        self.count_tokens = Some(input_tokens);
        self
    }

    /// Reads a script from JSON; the format is described at the top of this crate.
    pub fn from_json(json: &str) -> Result<Self, ScriptError> {
        let mut deserializer = serde_json::Deserializer::from_str(json);
        let Object(script) =
            serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
                let place = error.path().to_string();
                // At the top level the path is a single dot, or a question mark where the text ends.
                let place =
                    if matches!(place.as_str(), "." | "?") { "script".to_owned() } else { place };
                ScriptError::Malformed { place, source: error.into_inner() }
            })?;
        deserializer
            .end()
            .map_err(|source| ScriptError::Malformed { place: "script".to_owned(), source })?;
        Ok(script)
    }

    /// Reads a script from a JSON file.
    pub fn from_file(path: &Path) -> Result<Self, ScriptError> {
        let json = std::fs::read_to_string(path).map_err(ScriptError::Unreadable)?;
        Self::from_json(&json)
    }
}

/// One rule of a [`Script`]: a condition, its replies, and how often it can be used.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Object<RuleShape>")]
pub struct Rule {
    pub(crate) name: Option<String>,
    pub(crate) when: When,
    /// Never empty.
    pub(crate) replies: Vec<Reply>,
    pub(crate) times: Option<u32>,
    pub(crate) per_conversation: bool,
}

impl Rule {
    /// A rule without a name and without limits.
    ///
    /// With a single reply it can be used any number of times. With a list it is used up after its last reply, so that
    /// a retry too many is a failure; [`Rule::times`] repeats the last reply.
    ///
    /// # Panics
    /// If the list of replies is empty.
    pub fn new(when: When, replies: impl Into<Replies>) -> Self {
        let Replies(replies) = replies.into();
        assert!(!replies.is_empty(), "a rule needs at least one reply");
        Self { name: None, when, replies, times: None, per_conversation: false }
    }

    /// Names the rule in reports and recorded requests.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Limits how often the rule can be used.
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// Counts uses per conversation; conversations are distinguished by their first message.
    pub fn per_conversation(mut self) -> Self {
        self.per_conversation = true;
        self
    }

    /// How often the rule can be used, if there is a limit.
    pub(crate) fn limit(&self) -> Option<usize> {
        match self.times {
            Some(times) => Some(times as usize),
            None if self.replies.len() > 1 => Some(self.replies.len()),
            None => None,
        }
    }

    /// The reply for the use with this number, from 0.
    pub(crate) fn reply(&self, use_number: usize) -> &Reply {
        &self.replies[use_number.min(self.replies.len() - 1)]
    }
}

/// One reply, or several used in order.
#[derive(Clone, Debug)]
pub struct Replies(pub(crate) Vec<Reply>);

impl From<Reply> for Replies {
    fn from(reply: Reply) -> Self {
        Self(vec![reply])
    }
}

impl From<Vec<Reply>> for Replies {
    fn from(replies: Vec<Reply>) -> Self {
        Self(replies)
    }
}

impl<const N: usize> From<[Reply; N]> for Replies {
    fn from(replies: [Reply; N]) -> Self {
        Self(replies.into())
    }
}

/// Why a script could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file could not be read.
    #[error("cannot read the script: {0}")]
    Unreadable(#[source] std::io::Error),
    /// The JSON is invalid or is not a script; `place` is the path to the error, such as `rules[2].reply.usage`.
    #[error("{place}: {source}")]
    Malformed {
        /// Where in the script.
        place: String,
        /// What is wrong there.
        source: serde_json::Error,
    },
}

/// A rule as it is written in JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleShape {
    name: Option<String>,
    #[serde(default, deserialize_with = "object::only")]
    when: When,
    reply: Option<Object<Reply>>,
    replies: Option<Vec<Object<Reply>>>,
    times: Option<u32>,
    #[serde(default)]
    per_conversation: bool,
}

impl TryFrom<Object<RuleShape>> for Rule {
    type Error = &'static str;

    fn try_from(Object(shape): Object<RuleShape>) -> Result<Self, Self::Error> {
        let replies = match (shape.reply, shape.replies) {
            (Some(Object(reply)), None) => vec![reply],
            (None, Some(replies)) if !replies.is_empty() => {
                replies.into_iter().map(|Object(reply)| reply).collect()
            }
            (None, Some(_)) => return Err("`replies` must not be empty"),
            (None, None) => return Err("a rule needs `reply` or `replies`"),
            (Some(_), Some(_)) => return Err("a rule takes `reply` or `replies`, not both"),
        };
        let RuleShape { name, when, times, per_conversation, .. } = shape;
        Ok(Self { name, when, replies, times, per_conversation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_in(json: &str) -> String {
        Script::from_json(json).unwrap_err().to_string()
    }

    #[test]
    fn an_error_names_the_rule_and_the_field() {
        let misspelt =
            error_in(r#"{"rules": [{"reply": {}}, {"when": {"promt": "x"}, "reply": {}}]}"#);
        assert!(misspelt.starts_with("rules[1].when.promt: unknown field `promt`"), "{misspelt}");
        let wrong_type = error_in(r#"{"rules": [{"reply": {"usage": {"input_tokens": "many"}}}]}"#);
        assert!(
            wrong_type.starts_with("rules[0].reply.usage.input_tokens: invalid type: string"),
            "{wrong_type}"
        );
        let block =
            error_in(r#"{"rules": [{"reply": {"content": [{"type": "text", "txt": "x"}]}}]}"#);
        assert!(
            block.starts_with("rules[0].reply.content[0]") && block.contains("`txt`"),
            "{block}"
        );
    }

    #[test]
    fn a_rule_needs_exactly_one_kind_of_reply() {
        assert!(
            error_in(r#"{"rules": [{}]}"#)
                .starts_with("rules[0]: a rule needs `reply` or `replies`")
        );
        assert!(error_in(r#"{"rules": [{"reply": {}, "replies": []}]}"#).contains("not both"));
        assert!(error_in(r#"{"rules": [{"replies": []}]}"#).contains("must not be empty"));
    }

    #[test]
    fn a_list_in_place_of_an_object_is_an_error() {
        let check = |json: &str, place: &str| {
            let error = error_in(json);
            assert!(error.starts_with(place) && error.contains("expected an object"), "{error}");
        };
        check("[]", "script: ");
        check(r#"{"rules": [[]]}"#, "rules[0]: ");
        check(r#"{"rules": [{"when": ["x"], "reply": {}}]}"#, "rules[0].when: ");
        check(r#"{"rules": [{"reply": []}]}"#, "rules[0].reply: ");
        check(r#"{"rules": [{"replies": [{}, []]}]}"#, "rules[0].replies[1]: ");
        check(r#"{"rules": [{"reply": {"usage": [1]}}]}"#, "rules[0].reply.usage: ");
        check(r#"{"rules": [{"reply": {"status": [529]}}]}"#, "rules[0].reply.status: ");
        check(
            r#"{"rules": [{"reply": {"interruptions": [[1, "cut"]]}}]}"#,
            "rules[0].reply.interruptions[0]: ",
        );
    }

    #[test]
    fn broken_json_and_trailing_text_are_errors() {
        assert!(error_in("{").starts_with("script: EOF"));
        assert!(error_in("{} extra").starts_with("script: trailing characters"));
    }

    #[test]
    fn a_list_of_replies_is_used_up_and_a_single_reply_is_not() {
        let script = Script::from_json(
            r#"{"rules": [{"reply": {}}, {"replies": [{}, {}]}, {"reply": {}, "times": 3}]}"#,
        );
        let limits: Vec<_> = script.unwrap().rules.iter().map(Rule::limit).collect();
        assert_eq!(limits, [None, Some(2), Some(3)]);
    }
}

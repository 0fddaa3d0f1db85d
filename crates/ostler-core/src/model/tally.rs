//! What sessions and runs have used: kept in their records when it happens, so that lists need not work it out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::run::Session;
use crate::records::kept;

/// How much of a prompt is searched, and shown where there is a line for it.
const WORDS: usize = 120;
/// How much of all prompts together is searched, in characters.
const SEARCHED: usize = 4_000;

/// Tokens, by what they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Tokens {
    /// Read again.
    pub input: u64,
    pub(crate) output: u64,
    /// Read from the cache.
    pub(crate) cache_read: u64,
    /// Written to the cache.
    pub(crate) cache_creation: u64,
}

impl Tokens {
    pub fn add(&mut self, more: &Self) {
        self.input += more.input;
        self.output += more.output;
        self.cache_read += more.cache_read;
        self.cache_creation += more.cache_creation;
    }

    /// How much of what was read came from the cache; `None` when nothing was read.
    pub fn cache_share(&self) -> Option<f64> {
        let read = self.input + self.cache_read + self.cache_creation;
        (read > 0).then(|| self.cache_read as f64 / read as f64)
    }
}

/// Tokens and dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Spent {
    pub cost_usd: f64,
    pub tokens: Tokens,
}

impl Spent {
    pub fn add(&mut self, more: &Self) {
        self.cost_usd += more.cost_usd;
        self.tokens.add(&more.tokens);
    }

    /// What came since. A count that has begun again, as after `/clear`, is all of it.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let (now, then) = (&self.tokens, &before.tokens);
        let less = |now: u64, then: u64| now.checked_sub(then);
        let tokens = (|| {
            Some(Tokens {
                input: less(now.input, then.input)?,
                output: less(now.output, then.output)?,
                cache_read: less(now.cache_read, then.cache_read)?,
                cache_creation: less(now.cache_creation, then.cache_creation)?,
            })
        })();
        match tokens {
            Some(tokens) => Self { cost_usd: (self.cost_usd - before.cost_usd).max(0.0), tokens },
            None => *self,
        }
    }
}

/// What happened in a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Tally {
    /// Milliseconds since 1970.
    pub last_activity: u64,
    pub runs: u64,
    pub spent: Spent,
}

/// What one run used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunUsage {
    /// The day it ended, in UTC, and the run: so those of some days stand together.
    pub id: String,
    pub owner: String,
    pub session: String,
    pub run: String,
    /// How its prompt begins.
    pub prompt: String,
    /// Milliseconds since 1970.
    pub ended: u64,
    pub duration_ms: u64,
    pub models: Vec<ModelUsed>,
    pub tools: Vec<ToolUsed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Context>,
    /// When it ended, and the run: the order in the list of its session.
    #[serde(default)]
    pub place: String,
}

kept!(RunUsage, "usage");

/// What was used of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelUsed {
    pub model: String,
    #[serde(flatten)]
    pub spent: Spent,
}

/// How long the calls of a tool took, without the time that people were waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolUsed {
    pub name: String,
    pub count: u64,
    pub total_ms: u64,
    pub longest_ms: u64,
}

impl ToolUsed {
    pub(crate) fn add(&mut self, more: &Self) {
        self.count += more.count;
        self.total_ms += more.total_ms;
        self.longest_ms = self.longest_ms.max(more.longest_ms);
    }
}

/// How full the model's window was at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Context {
    /// In tokens.
    pub(crate) used: u64,
    /// In tokens, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) size: Option<u64>,
}

impl Session {
    /// Something happened in it.
    pub(crate) fn touch(&mut self, now: u64) {
        self.tally.last_activity = self.tally.last_activity.max(now);
        self.place = place(self.tally.last_activity, &self.id);
    }

    /// Gives it a title, by which it is found too.
    pub fn call(&mut self, title: &str) {
        let said = self.search.split_once('\n').map_or("", |(_, said)| said);
        self.search = format!("{}\n{said}", searched(title));
        title.clone_into(&mut self.title);
    }

    pub fn said(&mut self, prompt: &str) {
        let words = searched(&first_words(prompt));
        if self.search.chars().count() + words.len() < SEARCHED {
            self.search.push_str(&words);
            self.search.push('\n');
        }
    }
}

/// A time and a name as a text. All have one width, so that text and time have the same order.
pub(crate) fn place(time: u64, name: &str) -> String {
    format!("{time:015}-{name}")
}

/// How a text begins, on one line.
pub(crate) fn first_words(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(WORDS).collect()
}

/// A text as it is searched: in small letters, on one line.
pub fn searched(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(input: u64, cost_usd: f64) -> Spent {
        Spent { cost_usd, tokens: Tokens { input, ..Tokens::default() } }
    }

    #[test]
    fn what_came_since_is_the_difference_unless_the_count_began_anew() {
        assert_eq!(spent(30, 3.0).since(&spent(10, 1.0)), spent(20, 2.0));
        assert_eq!(spent(5, 0.5).since(&spent(10, 1.0)), spent(5, 0.5));
    }

    #[test]
    fn the_share_of_the_cache_is_of_all_that_was_read() {
        let tokens = Tokens { input: 10, output: 99, cache_read: 30, cache_creation: 0 };
        assert_eq!(tokens.cache_share(), Some(0.75));
        assert_eq!(Tokens::default().cache_share(), None);
    }
}

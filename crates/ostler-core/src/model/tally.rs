//! The usage of sessions and runs, stored in their records when it occurs, so that lists need not compute it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::run::Session;
use crate::records::kept;

/// How many characters of a prompt are searched, and shown in lists.
const WORDS: usize = 120;
/// How many characters of all prompts together are searched.
const SEARCHED: usize = 4_000;

/// Tokens, by price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Tokens {
    /// Input tokens that were not in the cache.
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

    /// The fraction of the input that came from the cache; `None` without input.
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

    /// The usage since `before`. If the count was reset, as after `/clear`, all of it.
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

/// The totals of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Tally {
    /// Milliseconds since 1970.
    pub last_activity: u64,
    pub runs: u64,
    pub spent: Spent,
}

/// The usage of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunUsage {
    /// The day it ended, in UTC, and the run, so that the runs of a day are adjacent.
    pub id: String,
    pub owner: String,
    pub session: String,
    pub run: String,
    /// The beginning of its prompt.
    pub prompt: String,
    /// Milliseconds since 1970.
    pub ended: u64,
    pub duration_ms: u64,
    pub models: Vec<ModelUsed>,
    pub tools: Vec<ToolUsed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Context>,
    /// The sort key in the list of its session: time of its end, and the run.
    #[serde(default)]
    pub place: String,
}

kept!(RunUsage, "usage");

/// The usage of one model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelUsed {
    pub model: String,
    #[serde(flatten)]
    pub spent: Spent,
}

/// How long the calls of a tool took, without the time spent waiting for users.
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

/// How full the model's context window was at the end.
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
    /// Notes that something happened in the session.
    pub(crate) fn touch(&mut self, now: u64) {
        self.tally.last_activity = self.tally.last_activity.max(now);
        self.place = place(self.tally.last_activity, &self.id);
    }

    /// Sets the title, which is also searched.
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

/// A time and a name as text. All have the same width, so that text and time sort alike.
pub(crate) fn place(time: u64, name: &str) -> String {
    format!("{time:015}-{name}")
}

/// The beginning of a text, on one line.
pub(crate) fn first_words(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(WORDS).collect()
}

/// A text for searches: in lower case, on one line.
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
    fn usage_since_is_the_difference_unless_the_count_was_reset() {
        assert_eq!(spent(30, 3.0).since(&spent(10, 1.0)), spent(20, 2.0));
        assert_eq!(spent(5, 0.5).since(&spent(10, 1.0)), spent(5, 0.5));
    }

    #[test]
    fn the_cache_share_is_a_fraction_of_all_input() {
        let tokens = Tokens { input: 10, output: 99, cache_read: 30, cache_creation: 0 };
        assert_eq!(tokens.cache_share(), Some(0.75));
        assert_eq!(Tokens::default().cache_share(), None);
    }
}

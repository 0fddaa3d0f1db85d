//! Chooses the rule for a request, counts uses, and explains why none applies.

use std::collections::HashMap;
use std::fmt::Write;

use serde_json::Value;

use crate::conversation::Conversation;
use crate::reply::Reply;
use crate::script::{Rule, Script};
use crate::transcript::render_conversation;

/// The rules of the script, and how often each was used.
pub(crate) struct Rulebook {
    rules: Vec<RuleInUse>,
    pub(crate) count_tokens: Option<u64>,
}

impl Rulebook {
    pub(crate) fn new(script: Script) -> Self {
        let mut rulebook = Self { rules: Vec::new(), count_tokens: None };
        rulebook.append(script);
        rulebook
    }

    /// Appends the rules of another script; existing rules keep their uses.
    pub(crate) fn append(&mut self, script: Script) {
        self.rules
            .extend(script.rules.into_iter().map(|rule| RuleInUse { rule, uses: HashMap::new() }));
        self.count_tokens = script.count_tokens.or(self.count_tokens);
    }

    /// Uses the first rule that matches and has uses left. The error has a reason for every rule that does not apply.
    pub(crate) fn choose(&mut self, body: &Value) -> Result<Choice, Vec<String>> {
        let request = Conversation::of(body);
        let mut reasons = Vec::new();
        for (number, entry) in self.rules.iter_mut().enumerate() {
            match entry.rule.when.mismatch(request).map_or_else(|| entry.take(request), Err) {
                Ok(reply) => {
                    return Ok(Choice { rule: number, name: entry.rule.name.clone(), reply });
                }
                Err(reason) => {
                    let name = entry
                        .rule
                        .name
                        .as_ref()
                        .map(|name| format!(" ({name})"))
                        .unwrap_or_default();
                    reasons.push(format!("{number}{name}: {reason}"));
                }
            }
        }
        Err(reasons)
    }

    /// The rules that were never used, by number.
    pub(crate) fn unused(&self) -> Vec<usize> {
        let unused = self.rules.iter().enumerate().filter(|(_, entry)| entry.uses.is_empty());
        unused.map(|(number, _)| number).collect()
    }
}

/// The rule that answers a request.
pub(crate) struct Choice {
    pub(crate) rule: usize,
    pub(crate) name: Option<String>,
    pub(crate) reply: Reply,
}

/// The report on a request that no rule covers.
pub(crate) fn uncovered_report(sequence: usize, body: &Value, reasons: &[String]) -> String {
    let request = Conversation::of(body);
    let streaming = if request.streaming() { "streaming" } else { "not streaming" };
    let mut report = format!(
        "no rule covers request {sequence} (model {}, turn {}, {streaming})\n\nconversation:\n{}\nrules:\n",
        request.model(),
        request.turn(),
        render_conversation(request.messages()),
    );
    if reasons.is_empty() {
        report.push_str("(the script has none)\n");
    }
    for reason in reasons {
        writeln!(report, "{reason}").expect("writing to a string does not fail");
    }
    report
}

struct RuleInUse {
    rule: Rule,
    /// The number of uses by conversation; all under the empty key if the rule does not distinguish conversations.
    uses: HashMap<String, usize>,
}

impl RuleInUse {
    fn take(&mut self, request: Conversation<'_>) -> Result<Reply, String> {
        let key = if self.rule.per_conversation { request.identity() } else { String::new() };
        let used = self.uses.get(&key).copied().unwrap_or_default();
        match self.rule.limit() {
            Some(limit) if used >= limit => {
                Err(format!("matches, but is used up ({used} of {limit})"))
            }
            _ => {
                self.uses.insert(key, used + 1);
                Ok(self.rule.reply(used).clone())
            }
        }
    }
}

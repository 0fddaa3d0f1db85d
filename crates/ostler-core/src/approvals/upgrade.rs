//! Rules that an earlier version stored as text. At the start they become values, or are revoked: the text is never
//! split.

use ostler::engine::coverage;
use ostler_base::error::Fallible;
use ostler_store::Filter;

use super::record::Approval;
use super::rule::{Granted, ToolRule};
use super::{Approvals, revoked};
use crate::model::run::Session;

/// The separator between rules that were granted together. A command may contain it, too.
const JOINT: &str = " + ";

impl Approvals {
    /// Converts the rules of earlier versions. Those that are ambiguous, or that allow every use of a built-in tool (no
    /// user confirmed that), are revoked with an entry in the audit.
    pub async fn upgrade_rules(&self) -> Fallible<()> {
        let granted: Vec<Granted> = self.records.all(Filter::default()).await?;
        for old in granted.into_iter().filter(|granted| granted.rules.is_empty()) {
            match self.upgraded(&old).await? {
                Some(new) => self.records.save(&new).await?,
                None => {
                    self.records.remove::<Granted>(&old.id).await?;
                    let note = revoked(&old, "expired", "server", "server", self.clock.now());
                    self.records.create(&note).await?;
                }
            }
        }
        Ok(())
    }

    async fn upgraded(&self, old: &Granted) -> Fallible<Option<Granted>> {
        let Some(rule) = single(&old.rule) else { return Ok(None) };
        let mut new = Granted { rules: vec![rule], ..old.clone() };
        if new.session.is_none() {
            // The old rule applied everywhere. From now on it applies where it was granted.
            let Some((approval, _)) = self.records.find::<Approval>(&old.approval).await? else {
                return Ok(None);
            };
            let Some((session, _)) = self.records.find::<Session>(&approval.session).await? else {
                return Ok(None);
            };
            new.folder = Some(session.setup.cwd);
            new.space = session.setup.space;
        }
        Ok(Some(new))
    }
}

/// The rule, if the text is exactly one rule.
fn single(text: &str) -> Option<ToolRule> {
    if text.contains(JOINT) {
        return None;
    }
    let rule = coverage::parse(text)?;
    let is_unconfirmed = coverage::is_whole_tool(&rule) && !rule.tool_name.starts_with("mcp__");
    let rule = ToolRule { tool_name: rule.tool_name, rule_content: rule.rule_content };
    (!is_unconfirmed).then_some(rule)
}

#[cfg(test)]
mod tests {
    use super::single;

    // Mutant: `single` that splits, or that keeps what allows a whole tool.
    #[test]
    fn an_old_text_becomes_one_rule_or_is_revoked() {
        let content = |text| single(text).map(|rule| (rule.tool_name, rule.rule_content));
        assert_eq!(content("Bash(git log:*)"), Some(("Bash".into(), Some("git log:*".into()))));
        assert_eq!(content("mcp__x__y"), Some(("mcp__x__y".into(), None)));
        for text in ["Bash(a:*) + Bash(b:*)", "Bash(x + Bash + y)", "Bash", "Write", "Bash(*)", "("]
        {
            assert_eq!(content(text), None, "{text}");
        }
    }
}

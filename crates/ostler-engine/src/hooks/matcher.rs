//! Matchers: the tools, or the kinds of an event, that a hook is for.

use fancy_regex::Regex;
use ostler_proto::hook::HookEvent;

/// What a hook's `matcher` says.
#[derive(Clone, Debug)]
pub(super) enum Matcher {
    All,
    /// Plain names, which must be equal.
    Names(Vec<String>),
    /// A pattern that may match anywhere in the name.
    Pattern(Regex),
}

impl Matcher {
    /// No matcher, an empty one and `*` match everything. Names are separated by `|`; any other character makes it a
    /// regular expression.
    ///
    /// # Errors
    /// When it is not a valid regular expression: a guard must not be left out because of a misspelling.
    pub(super) fn parse(event: &HookEvent, text: Option<&str>) -> Result<Self, String> {
        let text = match text.map(str::trim) {
            None | Some("" | "*") => return Ok(Self::All),
            Some(text) => text,
        };
        // Files and errors may have any name, so for these two only names of simple characters count as plain names.
        let is_narrow = matches!(event, HookEvent::FileChanged | HookEvent::StopFailure);
        let others: &[char] = if is_narrow { &['_', '|'] } else { &['_', '|', '-', ',', ' '] };
        let is_plain =
            |character: char| character.is_ascii_alphanumeric() || others.contains(&character);
        if text.chars().all(is_plain) {
            let names = text.split(['|', ',']).map(|name| name.trim().to_owned());
            return Ok(Self::Names(names.filter(|name| !name.is_empty()).collect()));
        }
        Regex::new(text).map(Self::Pattern).map_err(|error| {
            format!("the matcher `{text}` is neither a list of names nor a pattern: {error}")
        })
    }

    /// Whether it fits a name; every matcher fits an event without one.
    pub(super) fn fits(&self, name: Option<&str>) -> bool {
        match (self, name) {
            (Self::All, _) | (_, None) => true,
            (Self::Names(names), Some(name)) => names.iter().any(|known| known == name),
            // A pattern that gives up on a name may match it: one hook too many is safer.
            (Self::Pattern(pattern), Some(name)) => pattern.is_match(name).unwrap_or(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matcher_names_tools() {
        for (matcher, tool, expected) in [
            (None, "Bash", true),
            (Some("*"), "Bash", true),
            (Some(""), "Bash", true),
            (Some("Bash"), "Bash", true),
            (Some("Bash"), "BashOutput", false),
            (Some("Edit|Write"), "Write", true),
            (Some("Edit, Write"), "Write", true),
            (Some("mcp__.*"), "mcp__a__b", true),
            (Some("mcp__.*__c"), "mcp__a__b", false),
            (Some("^Notebook"), "NotebookEdit", true),
            (Some("Note.*"), "NotebookEdit", true),
            (Some("bash.*"), "Bash", false),
            (Some("^(?!Bash).*"), "Read", true),
            (Some("^(?!Bash).*"), "Bash", false),
        ] {
            let parsed = Matcher::parse(&HookEvent::PreToolUse, matcher).unwrap();
            assert_eq!(parsed.fits(Some(tool)), expected, "{matcher:?} {tool}");
        }
        let parse = |text| Matcher::parse(&HookEvent::PreToolUse, Some(text));
        assert!(parse("Bash").unwrap().fits(None));
        assert!(parse("Bash(").unwrap_err().contains("`Bash(`"));
    }

    #[test]
    fn a_file_matcher_with_other_than_simple_characters_is_a_pattern() {
        let fits = |event: &HookEvent, matcher, name| {
            Matcher::parse(event, Some(matcher)).unwrap().fits(Some(name))
        };
        let files = HookEvent::FileChanged;
        assert!(fits(&files, ".envrc|.env", ".env"));
        assert!(fits(&files, "Makefile|notes", "notes"));
        assert!(!fits(&files, "Makefile", "GNUMakefile"));
        assert!(fits(&files, "a-b", "xa-b.txt"), "a pattern, found anywhere");
        assert!(!fits(&HookEvent::PreToolUse, "a-b", "xa-b.txt"));
    }
}

//! Phrases that need a second reading. Each may be left in a number of places,
//! and that number is only ever lowered.
//!
//! A line with `plain-english: ` and a reason after it does not count, for the few right uses.

use super::Finding;

/// What escapes a line.
const ESCAPE: &str = "plain-english: ";

/// The phrase, how many places may be left, and what to write instead.
const LEFT: &[(&str, usize, &str)] = &[
    ("is none", 98, "is missing, is not a valid …"),
    ("anew", 14, "again"),
    ("is no ", 365, "is not a …"),
    ("go on", 140, "continue, resume"),
    ("goes on", 177, "continues"),
    ("put out", 4, "signed out"),
    ("beside", 165, "next to, in addition to"),
    ("whoever", 153, "name who: the user, the client, the caller"),
    ("somebody", 240, "name who: the user, the client, another process"),
    ("unasked", 26, "without approval"),
    ("to be had", 4, "available"),
    ("letter", 211, "character"),
];

/// The rule itself, and quoted text.
const EXEMPT: &[&str] = &["xtask/src/tidy/words.rs", "fixtures/", "LICENSE"];

/// Phrases that stand in more places than may be left.
pub(super) fn check(texts: &[(String, String)]) -> Vec<Finding> {
    check_with(texts, LEFT)
}

fn check_with(texts: &[(String, String)], left: &[(&str, usize, &str)]) -> Vec<Finding> {
    let counted = texts.iter().filter(|(path, _)| !EXEMPT.iter().any(|it| path.starts_with(it)));
    let counted: Vec<_> = counted.collect();
    let findings = left.iter().filter_map(|(phrase, most, instead)| {
        let count: usize = counted.iter().map(|(_, text)| places(text, phrase)).sum();
        (count > *most).then(|| {
            let message = format!(
                "{phrase:?} stands in {count} places and may be left in {most}: write {instead} in what you added, \
                 or say `{ESCAPE}reason` on that line"
            );
            Finding::new("xtask/src/tidy/words.rs", 1, message)
        })
    });
    findings.collect()
}

/// How often a phrase stands in a text as words of its own.
fn places(text: &str, phrase: &str) -> usize {
    let lines = text.lines().filter(|line| !line.contains(ESCAPE));
    lines
        .map(|line| {
            line.match_indices(phrase).filter(|(at, _)| is_whole(line, *at, phrase)).count()
        })
        .sum()
}

fn is_whole(line: &str, at: usize, phrase: &str) -> bool {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    let before = line[..at].chars().next_back();
    let after = line[at + phrase.len()..].chars().next();
    !before.is_some_and(is_letter) && (phrase.ends_with(' ') || !after.is_some_and(is_letter))
}

#[cfg(test)]
mod tests {
    use super::{check_with, places};

    #[test]
    fn a_phrase_counts_as_words_of_its_own_and_not_where_a_reason_is_given() {
        assert_eq!(
            places("it begins anew, and anew_too, manew\nanew // plain-english: a name", "anew"),
            1
        );
        assert_eq!(places("is no permission rule; is nothing; this is no.", "is no "), 1);
    }

    #[test]
    fn more_places_than_may_be_left_are_reported_with_the_better_word() {
        let texts = [
            ("a.rs".to_owned(), "anew anew".to_owned()),
            ("fixtures/x".to_owned(), "anew".to_owned()),
        ];
        assert!(check_with(&texts, &[("anew", 2, "again")]).is_empty());
        let found = check_with(&texts, &[("anew", 1, "again")]);
        assert_eq!(found.len(), 1);
        assert!(found[0].message.contains("in 2 places") && found[0].message.contains("again"));
    }
}

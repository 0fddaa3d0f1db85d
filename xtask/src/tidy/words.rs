//! Phrases that need a second reading. Each may remain in a number of places, which is only ever lowered.
//!
//! Upper and lower case count alike. A line with `plain-english: ` and a reason after it does not count, and neither
//! does a phrase inside one of [`RIGHT`].

use super::Finding;

/// Exempts a line.
const ESCAPE: &str = "plain-english: ";

/// The phrase, in how many places it may remain, and what to write instead.
const LEFT: &[(&str, usize, &str)] = &[
    ("is none", 0, "is missing, is not a valid …"),
    ("anew", 5, "again"),
    ("is no ", 1, "is not a …"),
    ("go on", 16, "continue, resume"),
    ("goes on", 2, "continues"),
    ("put out", 0, "signed out"),
    ("beside", 0, "next to, in addition to"),
    ("whoever", 1, "name who: the user, the client, the caller"),
    ("somebody", 5, "name who: the user, the client, another process"),
    ("nobody", 57, "name who: no user, no client, no other process"),
    ("everybody", 7, "name who: every user, every client"),
    ("unasked", 6, "without approval"),
    ("to be had", 0, "available"),
    ("letter", 91, "character"),
    ("told", 84, "is notified, is reported, receives"),
    ("hears", 0, "receives"),
    ("speaks", 1, "sends, uses"),
    ("in words", 3, "as text"),
];

/// Longer phrases in which one of the above is right.
const RIGHT: &[&str] =
    &["there is no ", "there is none", "is no longer", "is no more than", "word in words"];

/// The rule itself, and quoted text.
const EXEMPT: &[&str] = &["xtask/src/tidy/words.rs", "fixtures/", "LICENSE"];

/// Reports phrases that are in more places than allowed.
pub(super) fn check(texts: &[(String, String)]) -> Vec<Finding> {
    check_with(texts, LEFT)
}

fn check_with(texts: &[(String, String)], left: &[(&str, usize, &str)]) -> Vec<Finding> {
    let counted = texts.iter().filter(|(path, _)| !EXEMPT.iter().any(|it| path.starts_with(it)));
    let counted: Vec<_> = counted.map(|(_, text)| text.to_lowercase()).collect();
    let findings = left.iter().filter_map(|(phrase, most, instead)| {
        let count: usize = counted.iter().map(|text| places(text, phrase)).sum();
        (count > *most).then(|| {
            let message = format!(
                "{phrase:?} is in {count} places and may remain in {most}: write {instead} in your change, \
                 or add `{ESCAPE}reason` to that line"
            );
            Finding::new("xtask/src/tidy/words.rs", 1, message)
        })
    });
    findings.collect()
}

/// How often a lower-case text contains a phrase as separate words.
fn places(text: &str, phrase: &str) -> usize {
    let lines = text.lines().filter(|line| !line.contains(ESCAPE));
    lines
        .map(|line| {
            let found = line.match_indices(phrase).map(|(at, _)| at);
            found.filter(|at| is_whole(line, *at, phrase) && !is_right(line, *at, phrase)).count()
        })
        .sum()
}

fn is_whole(line: &str, at: usize, phrase: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let before = line[..at].chars().next_back();
    let after = line[at + phrase.len()..].chars().next();
    !before.is_some_and(is_part) && (phrase.ends_with(' ') || !after.is_some_and(is_part))
}

/// Whether the phrase is inside one of [`RIGHT`].
fn is_right(line: &str, at: usize, phrase: &str) -> bool {
    RIGHT.iter().any(|right| {
        right.match_indices(phrase).any(|(inner, _)| {
            at.checked_sub(inner)
                .is_some_and(|start| line.get(start..).is_some_and(|rest| rest.starts_with(right)))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::{check_with, places};

    #[test]
    fn a_phrase_counts_as_separate_words_and_not_where_a_reason_is_given() {
        assert_eq!(
            places("it begins anew, and anew_too, manew\nanew // plain-english: a name", "anew"),
            1
        );
        assert_eq!(places("is no permission rule; is nothing; this is no.", "is no "), 1);
    }

    // Mutant: `is_right` always false.
    #[test]
    fn a_phrase_inside_a_right_one_does_not_count() {
        assert_eq!(places("there is no key, and it is no longer read", "is no "), 0);
        assert_eq!(places("there is none, and this is none", "is none"), 1);
    }

    // Mutant: the texts not in lower case.
    #[test]
    fn upper_and_lower_case_count_alike() {
        let texts = [("a.rs".to_owned(), "Nobody knows".to_owned())];
        assert_eq!(check_with(&texts, &[("nobody", 0, "no one")]).len(), 1);
    }

    #[test]
    fn more_places_than_allowed_are_reported_with_the_better_word() {
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

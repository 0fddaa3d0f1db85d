//! Places that an agent must not look into, said to its engine in rules that hold in every mode.
//!
//! The rules speak of tools and of commands that can be read. A program that a command starts is beyond them: only a
//! sandbox holds that back.

use std::path::{Path, PathBuf};

/// Deny rules that keep an agent out of these files and folders, under the names they were given by and where links
/// lead.
pub fn deny_rules(places: &[PathBuf]) -> Vec<String> {
    let real = places.iter().filter_map(|place| place.canonicalize().ok());
    let mut all: Vec<PathBuf> = places.iter().cloned().chain(real).collect();
    all.sort();
    all.dedup();
    let mut rules = Vec::new();
    for place in all {
        let pattern = pattern(&place);
        for rule in ["Read", "Edit"] {
            // The thing itself, and all below it.
            rules.push(format!("{rule}({pattern})"));
            rules.push(format!("{rule}({pattern}/**)"));
        }
    }
    rules
}

/// A path as rules write it: from the root, and with nothing in it that is a pattern.
pub fn pattern(place: &Path) -> String {
    format!("/{}", escaped(place.to_string_lossy().trim_end_matches('/'), "*?"))
}

/// Text as rules write it. Characters that always mean something in a rule are escaped, and those in `wildcards` too.
pub fn escaped(text: &str, wildcards: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        if matches!(character, '[' | ']' | '!' | '#' | '\\' | ' ') || wildcards.contains(character)
        {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_named_from_the_root_and_is_no_pattern() {
        let rules = deny_rules(&[PathBuf::from("/no/such/a b[1]*/")]);
        let expected = [
            r"Read(//no/such/a\ b\[1\]\*)",
            r"Read(//no/such/a\ b\[1\]\*/**)",
            r"Edit(//no/such/a\ b\[1\]\*)",
            r"Edit(//no/such/a\ b\[1\]\*/**)",
        ];
        assert_eq!(rules, expected);
    }

    #[test]
    fn a_link_is_kept_out_of_with_what_it_leads_to() {
        let place = tempfile::tempdir().unwrap();
        let real = place.path().canonicalize().unwrap().join("real");
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, place.path().join("link")).unwrap();
        let said = deny_rules(&[place.path().join("link")]).join(" ");
        assert!(said.contains("/link)") && said.contains("/real)"), "{said}");
    }
}

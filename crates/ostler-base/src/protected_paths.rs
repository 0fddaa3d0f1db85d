//! Deny rules for paths that an agent must not read or change. They apply in every mode.
//!
//! The rules cover tools and commands that the engine can parse. They do not cover a program that a command starts:
//! only a sandbox restricts that.

use std::path::{Path, PathBuf};

/// Deny rules for these files and folders, as given and with links resolved.
pub fn deny_rules(places: &[PathBuf]) -> Vec<String> {
    let real = places.iter().filter_map(|place| place.canonicalize().ok());
    let mut all: Vec<PathBuf> = places.iter().cloned().chain(real).collect();
    all.sort();
    all.dedup();
    let mut rules = Vec::new();
    for place in all {
        let pattern = pattern(&place);
        for rule in ["Read", "Edit"] {
            // The path itself, and everything below it.
            rules.push(format!("{rule}({pattern})"));
            rules.push(format!("{rule}({pattern}/**)"));
        }
    }
    rules
}

/// A path in the syntax of rules: absolute, with all wildcards escaped.
pub fn pattern(place: &Path) -> String {
    format!("/{}", escaped(place.to_string_lossy().trim_end_matches('/'), "*?"))
}

/// Text in the syntax of rules. Characters that are special in every rule are escaped, and so are those in `wildcards`.
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
    fn a_path_becomes_absolute_rules_with_escaped_wildcards() {
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
    fn the_rules_cover_a_link_and_its_target() {
        let place = tempfile::tempdir().unwrap();
        let real = place.path().canonicalize().unwrap().join("real");
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, place.path().join("link")).unwrap();
        let said = deny_rules(&[place.path().join("link")]).join(" ");
        assert!(said.contains("/link)") && said.contains("/real)"), "{said}");
    }
}

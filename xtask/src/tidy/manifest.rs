//! Rules for `Cargo.toml`.

use super::Finding;

pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let has_table = |name: &str| text.lines().any(|line| line.trim() == name);
    // Only packages of this workspace can share its lints; one with its own workspace cannot.
    if !has_table("[package]") || has_table("[workspace]") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    if value(text, "[lints]", "workspace") != Some("true") {
        findings.push(Finding::new(path, 1, "add [lints] with workspace = true"));
    }
    let public = value(text, "[package]", "publish") != Some("false");
    let described = value(text, "[package]", "description").is_some_and(|text| text.len() > 2);
    if public && !described {
        findings.push(Finding::new(path, 1, "add a description, or publish = false"));
    }
    findings
}

/// The value of a key in a table, as written. Enough for the plain manifests of this repository.
fn value<'a>(text: &'a str, table: &str, key: &str) -> Option<&'a str> {
    let lines = text.lines().map(str::trim).skip_while(|line| *line != table).skip(1);
    lines
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once('='))
        .find(|(name, _)| name.trim() == key)
        .map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::check;

    fn messages(text: &str) -> Vec<String> {
        check("crates/x/Cargo.toml", text).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn a_good_manifest_has_no_findings() {
        assert_eq!(
            messages("[package]\nname = \"x\"\ndescription = \"X\"\n\n[lints]\nworkspace = true\n"),
            [""; 0]
        );
        assert_eq!(messages("[package]\npublish = false\n[lints]\nworkspace = true"), [""; 0]);
        assert_eq!(messages("[workspace]\n[package]\nname = \"own\""), [""; 0]);
        assert_eq!(messages("[workspace]\nmembers = []"), [""; 0]);
    }

    #[test]
    fn a_package_without_shared_lints_is_reported() {
        for lints in
            ["", "[lints]\n", "[lints]\nworkspace = false\n", "[other]\nworkspace = true\n"]
        {
            let text = format!("[package]\npublish = false\n\n{lints}");
            assert_eq!(messages(&text), ["add [lints] with workspace = true"], "{lints}");
        }
    }

    #[test]
    fn a_public_package_without_a_description_is_reported() {
        for package in ["", "description = \"\"\n", "publish = true\n"] {
            let text = format!("[package]\n{package}[lints]\nworkspace = true\n");
            assert_eq!(messages(&text), ["add a description, or publish = false"], "{package}");
        }
    }
}

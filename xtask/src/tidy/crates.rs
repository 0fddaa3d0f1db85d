//! The table of crates in ARCHITECTURE.md: it has every crate, and each uses only those of our crates that its row
//! names.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;

/// Where the table is.
pub(super) const PAGE: &str = "ARCHITECTURE.md";

/// The rows of the table: crate, and what it may use.
type Rows<'a> = BTreeMap<&'a str, (usize, BTreeSet<&'a str>)>;

/// Compares the page with all manifests, which are given with their paths.
pub(super) fn check(page: &str, manifests: &[(String, String)]) -> Vec<Finding> {
    let rows = rows(page);
    let mut findings = Vec::new();
    let mut known = BTreeSet::new();
    for (path, text) in manifests {
        let Some(name) = crate_of(path) else { continue };
        known.insert(name);
        let Some((line, allowed)) = rows.get(name) else {
            findings.push(Finding::new(
                PAGE,
                1,
                format!("the table of crates has no row for {name}"),
            ));
            continue;
        };
        let used = dependencies(text);
        for other in used.difference(allowed) {
            let message = format!("{name} may not use {other}, or the table has to say so");
            findings.push(Finding::new(path, 1, message));
        }
        for other in allowed.difference(&used) {
            findings.push(Finding::new(PAGE, *line, format!("{name} does not use {other}")));
        }
    }
    for (name, (line, _)) in rows.iter().filter(|(name, _)| !known.contains(*name)) {
        findings.push(Finding::new(PAGE, *line, format!("there is no crate {name}")));
    }
    findings
}

/// The crate of a manifest below `crates/`.
fn crate_of(path: &str) -> Option<&str> {
    let name = path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
    (!name.contains('/')).then_some(name)
}

/// Rows of three cells whose first is the name of a crate of ours.
fn rows(page: &str) -> Rows<'_> {
    let mut rows = Rows::new();
    for (index, line) in page.lines().enumerate() {
        let cells: Vec<&str> = line.trim().split('|').map(str::trim).collect();
        let ["", name, _, allowed, ""] = cells.as_slice() else { continue };
        let Some(name) = names(name).next() else { continue };
        rows.insert(name, (index + 1, names(allowed).collect()));
    }
    rows
}

/// Names of our crates in backticks.
fn names(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2).filter(|name| is_ours(name))
}

fn is_ours(name: &str) -> bool {
    name == "ostler" || name.starts_with("ostler-")
}

/// Our own crates that a manifest depends on outside of tests.
fn dependencies(text: &str) -> BTreeSet<&str> {
    let lines = text.lines().map(str::trim).skip_while(|line| *line != "[dependencies]").skip(1);
    let names = lines
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split(['.', ' ', '=']).next().filter(|name| is_ours(name)));
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::check;

    fn findings(page: &str, manifests: &[(&str, &str)]) -> Vec<String> {
        let manifests: Vec<_> = manifests
            .iter()
            .map(|(name, text)| (format!("crates/{name}/Cargo.toml"), (*text).to_owned()))
            .collect();
        check(page, &manifests).into_iter().map(|finding| finding.message).collect()
    }

    const PAGE: &str = "| crate | purpose | may use |\n|---|---|---|\n| `ostler-a` | it | |\n| `ostler` | all | `ostler-a` |\n";
    const A: (&str, &str) = (
        "ostler-a",
        "[dependencies]\nserde = \"1\"\n[dev-dependencies]\nostler.workspace = true\n",
    );

    #[test]
    fn a_table_that_agrees_with_the_manifests_has_no_findings() {
        let all = ("ostler", "[dependencies]\nostler-a.workspace = true\n");
        assert_eq!(findings(PAGE, &[A, all]), [""; 0]);
        let all = ("ostler", "[dependencies]\nostler-a = { workspace = true, optional = true }\n");
        assert_eq!(findings(PAGE, &[A, all]), [""; 0]);
    }

    #[test]
    fn a_dependency_that_the_table_does_not_name_is_reported() {
        let all =
            ("ostler", "[dependencies]\nostler-a.workspace = true\nostler-b.workspace = true\n");
        assert_eq!(
            findings(PAGE, &[A, all]),
            ["ostler may not use ostler-b, or the table has to say so"]
        );
    }

    #[test]
    fn a_row_too_many_and_one_too_few_are_reported() {
        let found = findings(PAGE, &[("ostler", "[dependencies]\n"), ("ostler-c", "")]);
        assert_eq!(
            found,
            [
                "ostler does not use ostler-a",
                "the table of crates has no row for ostler-c",
                "there is no crate ostler-a"
            ]
        );
    }
}

//! Advisories are found, ignored with a reason, and read from a copy of the database.

use std::fs;

use super::super::graph::tests::graph;
use super::super::policy::Policy;
use super::super::policy::tests::EXAMPLE;
use super::{Snapshot, check, gather, published};

const PUBLISHED: &str = r#"```toml
[advisory]
id = "RUSTSEC-2000-0002"
package = "leaky"
date = "2000-01-02"

[versions]
patched = [">= 1.2.0", "^1.1.5"]
unaffected = ["< 1.0.0"]
```

# It "leaks"

Much.
"#;

fn snapshot() -> Snapshot {
    let mut snapshot = Snapshot { date: "2000-01-03".to_owned(), ..Snapshot::default() };
    snapshot.covers.insert("leaky".to_owned());
    snapshot.advisories.extend(published(PUBLISHED).unwrap());
    snapshot
}

fn findings(packages: &[(&str, &str)], policy: &str) -> Vec<String> {
    let packages: Vec<_> = packages.iter().map(|(name, version)| (*name, *version, None)).collect();
    let found = check(&Policy::parse(policy).unwrap(), &graph(&packages), &snapshot());
    found.into_iter().map(|finding| finding.message).collect()
}

#[test]
fn a_version_with_a_known_vulnerability_is_reported() {
    let ignoring_nothing =
        EXAMPLE.replace("{ id = \"RUSTSEC-2000-0001\", reason = \"not reachable\" }", "");
    for version in ["0.9.0", "1.1.5", "1.1.9", "1.2.0", "2.0.0"] {
        assert_eq!(findings(&[("leaky", version), ("other", "1.0.0")], &ignoring_nothing), [""; 0]);
    }
    for version in ["1.0.0", "1.1.4"] {
        let found = findings(&[("leaky", version)], &ignoring_nothing);
        assert!(
            found.len() == 1 && found[0].contains("has RUSTSEC-2000-0002"),
            "{version}: {found:?}"
        );
        assert!(found[0].contains("fixed: >= 1.2.0 or ^1.1.5"), "{found:?}");
    }
}

#[test]
fn an_advisory_is_ignored_by_its_id_and_only_while_it_concerns_us() {
    let ignoring = EXAMPLE.replace("RUSTSEC-2000-0001", "RUSTSEC-2000-0002");
    assert_eq!(findings(&[("leaky", "1.0.0")], &ignoring), [""; 0]);
    let unneeded = ["RUSTSEC-2000-0002 concerns no package; remove it from `ignore`"];
    assert_eq!(findings(&[("leaky", "1.2.0")], &ignoring), unneeded);
}

#[test]
fn the_snapshot_is_read_as_it_was_written() {
    let written = snapshot().render();
    let read = Snapshot::parse(&written).unwrap();
    assert_eq!(
        (&read.advisories, &read.covers, read.render()),
        (&snapshot().advisories, &snapshot().covers, written)
    );
}

#[test]
fn a_range_that_cannot_be_read_is_an_error() {
    let odd = snapshot().render().replace("< 1.0.0", "before 1");
    assert!(format!("{:#}", Snapshot::parse(&odd).unwrap_err()).contains("RUSTSEC-2000-0002"));
}

#[test]
fn advisories_are_taken_from_the_database_for_the_packages_that_are_used() {
    let folder = std::env::temp_dir().join(format!("ostler-advisories-{}", std::process::id()));
    for (package, text) in [
        ("leaky", PUBLISHED.to_owned()),
        ("other", PUBLISHED.to_owned()),
        ("fine", PUBLISHED.replace("date =", "withdrawn = \"2000-01-03\"\ndate =")),
    ] {
        fs::create_dir_all(folder.join("crates").join(package)).unwrap();
        fs::write(folder.join("crates").join(package).join("RUSTSEC-2000-0002.md"), text).unwrap();
    }
    let used = ["leaky", "fine", "none"].map(str::to_owned);
    let gathered = gather(&folder, "2000-01-03".to_owned(), used.into());
    let elsewhere = gather(&folder.join("crates"), String::new(), [].into());
    fs::remove_dir_all(&folder).unwrap();
    let gathered = gathered.unwrap();
    assert_eq!((gathered.advisories, gathered.covers.len()), (snapshot().advisories, 3));
    assert!(elsewhere.unwrap_err().to_string().contains("no folder `crates`"));
}

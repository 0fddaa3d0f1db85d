//! Banned packages, several versions of one package, and packages from other registries.

use std::collections::BTreeMap;

use super::graph::{Graph, Package};
use super::policy::{Entry, Policy};
use super::{Finding, POLICY};

pub(super) fn check(policy: &Policy, graph: &Graph) -> Vec<Finding> {
    let mut findings = banned(policy, graph);
    findings.extend(several(policy, graph));
    findings.extend(from_elsewhere(policy, graph));
    findings
}

fn find<'a>(entries: &'a [Entry], package: &Package) -> Option<&'a Entry> {
    entries.iter().find(|entry| entry.fits(&package.name, &package.version))
}

fn banned(policy: &Policy, graph: &Graph) -> Vec<Finding> {
    let banned = graph.packages.iter().filter_map(|package| {
        let Entry { reason, .. } = find(&policy.banned, package)?;
        Some(graph.finding(package, &format!("is banned: {reason}")))
    });
    banned.collect()
}

/// Every package may have one version that `skip` does not name.
fn several(policy: &Policy, graph: &Graph) -> Vec<Finding> {
    let mut by_name: BTreeMap<&str, Vec<&Package>> = BTreeMap::new();
    for package in &graph.packages {
        by_name.entry(&package.name).or_default().push(package);
    }
    let mut findings = Vec::new();
    for packages in by_name.values().filter(|packages| packages.len() > 1) {
        let unnamed = packages.iter().filter(|package| find(&policy.several, package).is_none());
        for package in unnamed.skip(1) {
            let message = format!(
                "is one of several versions; unify them, or name the older in `skip` in {POLICY} \
                 (who needs it: cargo tree --target all --invert {}@{})",
                package.name, package.version
            );
            findings.push(graph.finding(package, &message));
        }
    }
    let is_needed = |entry: &Entry| {
        let packages = by_name.get(entry.package.as_str()).map_or(&[][..], Vec::as_slice);
        packages.len() > 1
            && packages.iter().any(|package| entry.fits(&package.name, &package.version))
    };
    for entry in policy.several.iter().filter(|entry| !is_needed(entry)) {
        let message = format!("{} has only one version; remove it from `skip`", entry.package);
        findings.push(Finding::new(POLICY, 1, message));
    }
    findings
}

fn from_elsewhere(policy: &Policy, graph: &Graph) -> Vec<Finding> {
    let is_known = |package: &&Package| {
        policy.registries.iter().any(|url| package.source == format!("registry+{url}"))
    };
    let unknown = graph.packages.iter().filter(|package| !is_known(package));
    unknown
        .map(|package| {
            graph.finding(
                package,
                &format!("comes from {}; see [sources] in {POLICY}", package.source),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::graph::tests::graph;
    use super::super::policy::Policy;
    use super::super::policy::tests::EXAMPLE;
    use super::check;

    fn findings(packages: &[(&str, &str)]) -> Vec<String> {
        let packages: Vec<_> =
            packages.iter().map(|(name, version)| (*name, *version, Some("MIT"))).collect();
        let policy = Policy::parse(EXAMPLE).unwrap();
        check(&policy, &graph(&packages)).iter().map(ToString::to_string).collect()
    }

    const TWICE: [(&str, &str); 2] = [("twice", "1.0.0"), ("twice", "2.0.0")];

    #[test]
    fn a_banned_package_is_reported() {
        let with = |extra: (&'static str, &'static str)| findings(&[TWICE[0], TWICE[1], extra]);
        assert_eq!(with(("old", "2.0.0")), [""; 0]);
        assert_eq!(with(("old", "1.9.0")), ["Cargo.lock:10: old 1.9.0 is banned: panics"]);
        assert_eq!(with(("openssl-sys", "0.9.0")).len(), 1);
    }

    #[test]
    fn a_second_version_is_reported_unless_it_is_on_the_list() {
        assert_eq!(findings(&TWICE), [""; 0]);
        let found = findings(&[TWICE[0], TWICE[1], ("a", "1.0.0"), ("a", "2.0.0")]);
        assert!(
            found.len() == 1 && found[0].starts_with("Cargo.lock:14: a 2.0.0 is one of"),
            "{found:?}"
        );
        let found = findings(&[("twice", "2.0.0"), ("twice", "3.0.0")]);
        assert_eq!(found.len(), 2, "another version, and an entry without use: {found:?}");
    }

    #[test]
    fn an_entry_for_a_package_that_is_there_once_is_reported() {
        let unneeded = ["deny.toml:1: twice has only one version; remove it from `skip`"];
        assert_eq!(findings(&[("twice", "1.0.0")]), unneeded);
        assert_eq!(findings(&[]), unneeded);
    }

    #[test]
    fn a_package_from_another_registry_is_reported() {
        let policy = Policy::parse(&EXAMPLE.replace("registry.example", "other.example")).unwrap();
        let packages = [("twice", "1.0.0", Some("MIT")), ("twice", "2.0.0", Some("MIT"))];
        let found = check(&policy, &graph(&packages));
        assert_eq!(found.len(), 2);
        assert!(found[0].message.contains("comes from registry+https://registry.example/index"));
    }
}

//! Every package must have an allowed licence.

use spdx::{Expression, Licensee, ParseMode};

use super::graph::{Graph, Package};
use super::policy::Policy;
use super::{Finding, POLICY};

pub(super) fn check(policy: &Policy, graph: &Graph) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &graph.packages {
        let mut allowed: Vec<&Licensee> = policy.allowed.iter().collect();
        let own = policy.exceptions.iter().filter(|(name, _)| *name == package.name);
        allowed.extend(own.flat_map(|(_, licensees)| licensees));
        if let Err(why) = judge(package.license.as_deref(), &allowed) {
            findings.push(graph.finding(package, &format!("{why}; see [licenses] in {POLICY}")));
        }
    }
    let is_used = |name: &str| graph.packages.iter().any(|package: &Package| package.name == name);
    for (name, _) in policy.exceptions.iter().filter(|(name, _)| !is_used(name)) {
        let message = format!("no package {name} is used; remove its exception");
        findings.push(Finding::new(POLICY, 1, message));
    }
    findings
}

/// Whether an SPDX expression can be fulfilled by these licences; if not, why.
pub(super) fn judge(license: Option<&str>, allowed: &[&Licensee]) -> Result<(), String> {
    let Some(license) = license else { return Err("names no licence".to_owned()) };
    // Old packages write `MIT/Apache-2.0`.
    let expression = Expression::parse_mode(license, ParseMode::LAX).map_err(|error| {
        format!("has the licence {license:?}, which is not SPDX: {}", error.reason)
    })?;
    let fulfilled =
        expression.evaluate(|wanted| allowed.iter().any(|licensee| licensee.satisfies(wanted)));
    if fulfilled { Ok(()) } else { Err(format!("has the licence {license}, which is not allowed")) }
}

#[cfg(test)]
mod tests {
    use super::super::graph::tests::graph;
    use super::super::policy::Policy;
    use super::super::policy::tests::EXAMPLE;
    use super::check;

    fn findings(license: Option<&str>) -> Vec<String> {
        let policy = Policy::parse(EXAMPLE).unwrap();
        let graph =
            graph(&[("a", "1.0.0", license), ("roots", "1.0.0", Some("CDLA-Permissive-2.0"))]);
        check(&policy, &graph).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn a_package_needs_a_licence_of_the_list() {
        for license in ["MIT", "MIT/Apache-2.0", "GPL-3.0-only OR MIT", "(MIT AND Apache-2.0)"] {
            assert_eq!(findings(Some(license)), [""; 0], "{license}");
        }
        for (license, why) in [
            (Some("GPL-3.0-only"), "has the licence GPL-3.0-only, which is not allowed"),
            (Some("MIT AND GPL-3.0-only"), "which is not allowed"),
            (Some("CDLA-Permissive-2.0"), "which is not allowed"),
            (Some("SEE LICENSE IN README.md"), "which is not SPDX"),
            (None, "names no licence"),
        ] {
            let findings = findings(license);
            assert!(findings.len() == 1 && findings[0].contains(why), "{license:?}: {findings:?}");
        }
    }

    #[test]
    fn an_exception_for_a_package_that_is_gone_is_reported() {
        let policy = Policy::parse(EXAMPLE).unwrap();
        let findings = check(&policy, &graph(&[]));
        assert_eq!(
            findings[0].to_string(),
            "deny.toml:1: no package roots is used; remove its exception"
        );
    }
}

//! Checks of third-party packages: licences, known vulnerabilities, several versions of one package, bans, and
//! sources.
//!
//! The rules are in `deny.toml`, in cargo-deny's format, so that both can be used. The checks are here because
//! compiling cargo-deny takes longer than everything else in `tidy` together.

pub(super) mod advisories;
mod bans;
mod graph;
mod licences;
mod npm;
mod policy;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

pub(crate) use self::npm::check_installed;

use self::advisories::Snapshot;
use self::graph::Graph;
use self::policy::Policy;
use super::Finding;

/// The rules for Rust packages.
pub(super) const POLICY: &str = "deny.toml";
/// The known vulnerabilities, see CONTRIBUTING.md.
pub(crate) const ADVISORIES: &str = "xtask/advisories.toml";
/// The rules for npm packages.
const NPM_POLICY: &str = "xtask/npm-licences.toml";
/// The packages of the web page.
const NPM_LOCK: &str = "web/package-lock.json";

/// All findings about third-party packages.
pub(super) fn check(root: &Path) -> Result<Vec<Finding>> {
    let read = |path: &str| {
        fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))
    };
    let policy = Policy::parse(&read(POLICY)?).context(POLICY)?;
    let graph = Graph::of_workspace(read("Cargo.lock")?)?;
    let snapshot = Snapshot::parse(&read(ADVISORIES)?).context(ADVISORIES)?;
    let mut findings = licences::check(&policy, &graph);
    findings.extend(bans::check(&policy, &graph));
    findings.extend(advisories::check(&policy, &graph, &snapshot));
    let rules = npm::Rules::parse(&read(NPM_POLICY)?, &policy).context(NPM_POLICY)?;
    findings.extend(npm::check(&rules, NPM_LOCK, &read(NPM_LOCK)?).context(NPM_LOCK)?);
    Ok(findings)
}

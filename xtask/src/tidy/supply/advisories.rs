//! Known vulnerabilities, from a snapshot of the RustSec database in this repository: a build must not depend on
//! another server, and must give the same result tomorrow.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use semver::{Version, VersionReq};
use toml::{Table, Value};

use super::graph::Graph;
use super::policy::{Policy, each, text, texts};
use super::{ADVISORIES, Finding, POLICY};
use crate::{Misuse, cargo};

const HEAD: &str = "\
# Vulnerabilities that are known of packages in Cargo.lock, from the database of RustSec (https://rustsec.org, CC0).
# Written by `cargo xtask advisories FOLDER`; see CONTRIBUTING.md. `covers` are the packages that were looked up.
";

/// An advisory about one package.
#[derive(Debug, PartialEq)]
struct Advisory {
    id: String,
    package: String,
    title: String,
    patched: Vec<String>,
    unaffected: Vec<String>,
}

impl Advisory {
    fn read(table: &Table) -> Result<Self> {
        Ok(Self {
            id: text(table, "id")?.to_owned(),
            package: text(table, "package")?.to_owned(),
            title: text(table, "title")?.to_owned(),
            patched: texts(table, "patched")?,
            unaffected: texts(table, "unaffected")?,
        })
    }

    fn concerns(&self, version: &Version) -> Result<bool> {
        for wanted in self.patched.iter().chain(&self.unaffected) {
            let wanted =
                VersionReq::parse(wanted).with_context(|| format!("versions of {}", self.id))?;
            if wanted.matches(version) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[derive(Debug, Default)]
pub(super) struct Snapshot {
    date: String,
    covers: BTreeSet<String>,
    advisories: Vec<Advisory>,
}

impl Snapshot {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let file: Table = text.parse()?;
        let advisories = each(&file, "advisory", Advisory::read)?;
        for advisory in &advisories {
            // Invalid ranges are reported here, not when a version meets them.
            advisory.concerns(&Version::new(0, 0, 0))?;
        }
        Ok(Self {
            date: self::text(&file, "date")?.to_owned(),
            covers: texts(&file, "covers")?.into_iter().collect(),
            advisories,
        })
    }

    fn render(&self) -> String {
        // Rust's string literals are valid in TOML, except for control characters, which titles do not have.
        let mut text = format!("{HEAD}date = {:?}\ncovers = [\n", self.date);
        for package in &self.covers {
            writeln!(text, "    {package:?},").expect("a String takes everything");
        }
        text.push_str("]\n");
        for Advisory { id, package, title, patched, unaffected } in &self.advisories {
            write!(
                text,
                "\n[[advisory]]\nid = {id:?}\npackage = {package:?}\ntitle = {title:?}\npatched = {patched:?}\nunaffected = {unaffected:?}\n"
            )
            .expect("a String takes everything");
        }
        text
    }
}

pub(super) fn check(policy: &Policy, graph: &Graph, snapshot: &Snapshot) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut met = BTreeSet::new();
    for package in &graph.packages {
        for advisory in snapshot.advisories.iter().filter(|it| it.package == package.name) {
            if !advisory.concerns(&package.version).unwrap_or(true) {
                continue;
            }
            met.insert(&advisory.id);
            if !policy.ignored.iter().any(|(id, _)| *id == advisory.id) {
                let Advisory { id, title, patched, .. } = advisory;
                let fix = if patched.is_empty() {
                    "no version is".to_owned()
                } else {
                    patched.join(" or ")
                };
                let message = format!(
                    "has {id}, {title:?}; fixed: {fix}; update it, or explain in `ignore` in {POLICY} why it is harmless here"
                );
                findings.push(graph.finding(package, &message));
            }
        }
    }
    for (id, _) in policy.ignored.iter().filter(|(id, _)| !met.contains(id)) {
        findings.push(Finding::new(
            POLICY,
            1,
            format!("{id} concerns no package; remove it from `ignore`"),
        ));
    }
    let names: BTreeSet<&str> =
        graph.packages.iter().map(|package| package.name.as_str()).collect();
    let unknown = names.iter().filter(|name| !snapshot.covers.contains(**name)).count();
    if unknown > 0 {
        eprintln!(
            "tidy: {unknown} of {} packages were not looked up for the snapshot of advisories of {}; renew it: see CONTRIBUTING.md",
            names.len(),
            snapshot.date
        );
    }
    findings
}

/// `advisories FOLDER`: renews the snapshot from a clone of the RustSec database.
pub(crate) fn command(args: &[OsString]) -> Result<ExitCode> {
    let [folder] = args else {
        return Err(Misuse(
            "advisories needs the folder of a clone of rustsec/advisory-db".to_owned(),
        )
        .into());
    };
    let here = std::env::current_dir()?.join(folder);
    let lock = cargo::root().join("Cargo.lock");
    let graph = Graph::of_workspace(fs::read_to_string(&lock).context("reading Cargo.lock")?)?;
    let names = graph.packages.iter().map(|package| package.name.clone()).collect();
    let snapshot = gather(&here, date(&here)?, names)?;
    fs::write(cargo::root().join(ADVISORIES), snapshot.render())
        .with_context(|| format!("writing {ADVISORIES}"))?;
    let (advisories, covers) = (snapshot.advisories.len(), snapshot.covers.len());
    eprintln!("wrote {ADVISORIES}: {advisories} advisories for {covers} packages");
    Ok(ExitCode::SUCCESS)
}

/// The day of the last change to the database.
fn date(folder: &Path) -> Result<String> {
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=%cs"]).current_dir(folder);
    let output = git.output().with_context(|| format!("starting git in {}", folder.display()))?;
    ensure!(output.status.success(), "git knows no history of {}", folder.display());
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn gather(database: &Path, date: String, covers: BTreeSet<String>) -> Result<Snapshot> {
    ensure!(
        database.join("crates").is_dir(),
        "{} has no folder `crates`; clone https://github.com/rustsec/advisory-db",
        database.display()
    );
    let mut advisories = Vec::new();
    for package in &covers {
        // Most packages have no advisory.
        let Ok(entries) = fs::read_dir(database.join("crates").join(package)) else { continue };
        let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
        paths.sort();
        for path in paths.iter().filter(|path| path.extension().is_some_and(|it| it == "md")) {
            let reading = || format!("reading {}", path.display());
            let text = fs::read_to_string(path).with_context(reading)?;
            advisories.extend(published(&text).with_context(reading)?);
        }
    }
    Ok(Snapshot { date, covers, advisories })
}

/// Parses an advisory of the database: a block of TOML, then Markdown that starts with the title. `None` if it was
/// withdrawn.
fn published(text: &str) -> Result<Option<Advisory>> {
    let block = text.split_once("```toml\n").and_then(|(_, rest)| rest.split_once("\n```"));
    let (block, rest) = block.context("the TOML block is missing")?;
    let file: Table = block.parse()?;
    let advisory = file.get("advisory").and_then(Value::as_table).context("no [advisory]")?;
    if advisory.contains_key("withdrawn") {
        return Ok(None);
    }
    let versions = file.get("versions").and_then(Value::as_table);
    let list = |key: &str| match versions.filter(|versions| versions.contains_key(key)) {
        Some(versions) => texts(versions, key),
        None => Ok(Vec::new()),
    };
    let title =
        rest.lines().find_map(|line| line.strip_prefix("# ")).context("the title is missing")?;
    Ok(Some(Advisory {
        id: self::text(advisory, "id")?.to_owned(),
        package: self::text(advisory, "package")?.to_owned(),
        title: title.trim().to_owned(),
        patched: list("patched")?,
        unaffected: list("unaffected")?,
    }))
}

#[cfg(test)]
#[path = "advisories_tests.rs"]
mod tests;

//! `tidy`: format, lints, documentation, and our own rules.
//!
//! The rules are pure functions over texts, in [`source`], [`manifest`], [`anywhere`], [`attacks`], [`crates`], [`cycles`],
//! [`growth`], [`opens`], [`option_example`], [`starts`] and [`words`], and in [`supply`] for other people's packages; this file only
//! runs them. A finding says where it is and what to do.

mod anywhere;
mod attacks;
mod crates;
mod cycles;
mod files;
mod growth;
mod manifest;
mod opens;
mod option_example;
mod source;
mod starts;
mod supply;
mod words;

use std::ffi::OsString;
use std::fmt;
use std::process::ExitCode;

use anyhow::Result;

use crate::{Misuse, cargo, setup};

pub(crate) use self::supply::advisories::command as advisories;
pub(crate) use self::supply::check_installed;

pub(crate) fn command(args: &[OsString]) -> Result<ExitCode> {
    let is_tidy = match args {
        [] => tidy(),
        [option] if option == "--quick" => quick(),
        [arg, ..] => Err(Misuse(format!("tidy knows no option {}", arg.display())).into()),
    };
    Ok(if is_tidy? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether everything is in order; findings are printed to standard error.
fn tidy() -> Result<bool> {
    let quick = quick()?;
    let mut clippy = cargo::cargo(&["clippy", "--workspace", "--all-targets", "--locked"]);
    let lints = cargo::status(clippy.args(["--quiet", "--", "-D", "warnings"]))?.success();
    // The protocol can be implemented from the documentation, so its links must work.
    let mut doc = cargo::cargo(&["doc", "--workspace", "--no-deps", "--locked", "--quiet"]);
    let documented = cargo::status(doc.env("RUSTDOCFLAGS", "-D warnings"))?.success();
    Ok(quick && lints && documented)
}

/// The part without compilation. `test` gets lints from the build of the tests, and documentation from its examples.
pub(crate) fn quick() -> Result<bool> {
    setup::components()?;
    let rules = house_rules()?;
    // Differences go to standard error like all findings: standard output is for results.
    let mut fmt = cargo::cargo(&["fmt", "--all", "--check"]);
    let format = cargo::status(fmt.stdout(std::io::stderr()))?.success();
    if !format {
        eprintln!("tidy: the format differs; run cargo fmt --all");
    }
    Ok(rules && format)
}

fn house_rules() -> Result<bool> {
    let root = cargo::root();
    let (mut findings, mut sources, mut manifests) = (Vec::new(), Vec::new(), Vec::new());
    let (mut attacks_page, mut architecture) = (String::new(), String::new());
    let mut contributing = String::new();
    let mut texts = Vec::new();
    for path in files::list(&root)? {
        let Some(file) = files::read(&root, &path)? else { continue };
        findings.extend(anywhere::check_size(&path, file.size));
        let Some(text) = file.text else { continue };
        findings.extend(anywhere::check_text(&path, &text));
        if [".rs", ".md", ".ts", ".tsx"].iter().any(|end| path.ends_with(end)) {
            texts.push((path.clone(), text.clone()));
        }
        if path.ends_with(".rs") {
            findings.extend(source::check(&path, &text));
            findings.extend(opens::check(&path, &text));
            findings.extend(starts::check(&path, &text));
            sources.push((path, text));
        } else if path.ends_with("Cargo.toml") {
            findings.extend(manifest::check(&path, &text));
            manifests.push((path, text));
        } else if path == attacks::PAGE {
            attacks_page = text;
        } else if path == crates::PAGE {
            architecture = text;
        } else if path == option_example::PAGE {
            contributing = text;
        }
    }
    findings.extend(attacks::check(&attacks_page, &sources));
    findings.extend(cycles::check(&sources));
    findings.extend(growth::check(&sources));
    findings.extend(crates::check(&architecture, &manifests));
    findings.extend(option_example::check(&contributing, &sources));
    findings.extend(words::check(&texts));
    findings.extend(supply::check(&root)?);
    for finding in &findings {
        eprintln!("{finding}");
    }
    Ok(findings.is_empty())
}

/// A problem to fix.
#[derive(Debug, PartialEq)]
struct Finding {
    path: String,
    /// From 1.
    line: usize,
    message: String,
}

impl Finding {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

//! `tidy`: format, lints, documentation, and the house rules that no lint knows.
//!
//! The rules are pure functions over texts, in [`source`], [`manifest`], [`anywhere`] and [`attacks`]; this file only
//! runs them. A finding says where it is and what to do.

mod anywhere;
mod attacks;
mod files;
mod manifest;
mod source;

use std::ffi::OsString;
use std::fmt;
use std::process::ExitCode;

use anyhow::Result;

use crate::{Misuse, cargo, setup};

pub(crate) fn command(args: &[OsString]) -> Result<ExitCode> {
    if let Some(arg) = args.first() {
        return Err(Misuse(format!("tidy knows no option {}", arg.display())).into());
    }
    Ok(if tidy()? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether everything is in order; if not, it has been told on standard error.
pub(crate) fn tidy() -> Result<bool> {
    setup::components()?;
    let rules = house_rules()?;
    // The differences go where all findings go: standard output is for results.
    let mut fmt = cargo::cargo(&["fmt", "--all", "--check"]);
    let format = cargo::status(fmt.stdout(std::io::stderr()))?.success();
    if !format {
        eprintln!("tidy: the format differs; run cargo fmt --all");
    }
    let mut clippy = cargo::cargo(&["clippy", "--workspace", "--all-targets", "--locked"]);
    let lints = cargo::status(clippy.args(["--quiet", "--", "-D", "warnings"]))?.success();
    // The protocol is to be implemented from the documentation: its links must lead somewhere.
    let mut doc = cargo::cargo(&["doc", "--workspace", "--no-deps", "--locked", "--quiet"]);
    let documented = cargo::status(doc.env("RUSTDOCFLAGS", "-D warnings"))?.success();
    Ok(rules && format && lints && documented)
}

fn house_rules() -> Result<bool> {
    let root = cargo::root();
    let (mut findings, mut sources, mut page) = (Vec::new(), Vec::new(), String::new());
    for path in files::list(&root)? {
        let Some(file) = files::read(&root, &path)? else { continue };
        findings.extend(anywhere::check_size(&path, file.size));
        let Some(text) = file.text else { continue };
        findings.extend(anywhere::check_text(&path, &text));
        if path.ends_with(".rs") {
            findings.extend(source::check(&path, &text));
            sources.push((path, text));
        } else if path.ends_with("Cargo.toml") {
            findings.extend(manifest::check(&path, &text));
        } else if path == attacks::PAGE {
            page = text;
        }
    }
    findings.extend(attacks::check(&page, &sources));
    for finding in &findings {
        eprintln!("{finding}");
    }
    Ok(findings.is_empty())
}

/// Something to put right.
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

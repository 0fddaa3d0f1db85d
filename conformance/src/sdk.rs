//! The drivers: the official SDKs at the supported levels, and plain lines without an SDK.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use serde::Deserialize;
use tokio::process::Command;

/// A driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Sdk {
    /// TypeScript 0.2.50.
    Ts050,
    /// TypeScript 0.3.325.
    Ts325,
    /// Python 0.2.182.
    Py182,
    /// No SDK: the scenario contains the lines for the program.
    Lines,
}

impl Sdk {
    pub(crate) const ALL: [Self; 4] = [Self::Ts050, Self::Ts325, Self::Py182, Self::Lines];

    pub(crate) fn official() -> Vec<Self> {
        vec![Self::Ts050, Self::Ts325, Self::Py182]
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ts050 => "ts050",
            Self::Ts325 => "ts325",
            Self::Py182 => "py182",
            Self::Lines => "lines",
        }
    }

    /// The driver program, not started yet.
    pub(crate) fn driver(self, drivers: &Path) -> Result<Command> {
        if self == Self::Py182 {
            let mut python = Command::new(folder("OSTLER_PYTHON")?.join("bin/python"));
            python.arg(drivers.join("python.py"));
            return Ok(python);
        }
        let mut node = Command::new("node");
        if self == Self::Lines {
            node.arg(drivers.join("lines.mjs"));
            return Ok(node);
        }
        let modules = folder(self.packages())?.join("node_modules");
        let sdk = modules.join("@anthropic-ai/claude-agent-sdk/sdk.mjs");
        ensure!(sdk.is_file(), "{} does not exist", sdk.display());
        node.arg(drivers.join("typescript.mjs"));
        node.env("SDK_MODULE", sdk).env("ZOD_MODULE", modules.join("zod/index.js"));
        Ok(node)
    }

    /// The vendor's own program at the level of this SDK.
    pub(crate) fn vendor(self) -> Result<PathBuf> {
        let vendor = folder(self.packages())?.join("node_modules/@anthropic-ai");
        let program = if self == Self::Ts050 {
            vendor.join("claude-agent-sdk/cli.js")
        } else {
            let machine =
                std::env::consts::ARCH.replace("x86_64", "x64").replace("aarch64", "arm64");
            vendor.join(format!("claude-agent-sdk-linux-{machine}/claude"))
        };
        program.canonicalize().with_context(|| format!("finding {}", program.display()))
    }

    fn packages(self) -> &'static str {
        if self == Self::Ts050 { "OSTLER_PEERS" } else { "OSTLER_NATIVE_PEERS" }
    }
}

impl fmt::Display for Sdk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A folder that `cargo xtask conformance` fills and names.
fn folder(variable: &str) -> Result<PathBuf> {
    let folder = std::env::var_os(variable).with_context(|| {
        format!("{variable} is not set: run this through `cargo xtask conformance`")
    })?;
    Ok(folder.into())
}

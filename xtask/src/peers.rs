//! npm packages that tests and benchmarks use, at pinned versions.
//!
//! They are in a cache outside the checkout, in a folder named after the list of versions. An installation gets that
//! name only when it is complete.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, bail, ensure};

use crate::checksum::checksum;
use crate::{cargo, setup, tidy};

/// A package and its version. It is installed under its own name in `$OSTLER_PEERS/node_modules`.
type Pin = (&'static str, &'static str);

/// What the tests need.
pub(crate) const FOR_TESTS: &[Pin] = &[
    ("@anthropic-ai/sdk", "1.8.0"),
    ("@anthropic-ai/claude-agent-sdk", "0.2.50"),
    ("@modelcontextprotocol/sdk", "1.32.2"),
    ("@modelcontextprotocol/server-everything", "2026.8.31"),
    // Checks the structured outputs of tools against the declarations of the SDK.
    ("typescript", "7.0.2"),
];

/// For the benchmarks, and the tests with the newer program. Separate, because it has a native program of some
/// hundred megabytes: npm chooses the one for this machine among its optional dependencies.
pub(crate) const NATIVE: &[Pin] = &[("@anthropic-ai/claude-agent-sdk", "0.3.325")];

/// The vendor's sandbox, for the benchmark of ours.
pub(crate) const SANDBOX: &[Pin] = &[("@anthropic-ai/sandbox-runtime", "0.0.83")];

/// Clients of AG-UI: the current one, the last before 1.0 under another name, and a headless frontend.
pub(crate) const AGUI: &[Pin] = &[
    ("@ag-ui/core", "1.0.0"),
    ("@ag-ui/client", "1.0.0"),
    ("ag-ui-client-old", "npm:@ag-ui/client@0.0.59"),
    ("@copilotkit/core", "1.75.0"),
];

/// The official conformance suite of MCP.
pub(crate) const MCP: &[Pin] = &[("@modelcontextprotocol/conformance", "0.2.0-alpha.12")];

/// MCP servers that people use, and an authorization server.
pub(crate) const MCP_SERVERS: &[Pin] = &[
    ("@modelcontextprotocol/server-everything", "2026.8.31"),
    ("@modelcontextprotocol/server-filesystem", "2026.8.31"),
    ("@modelcontextprotocol/server-memory", "2026.8.31"),
    ("@playwright/mcp", "0.0.83"),
    ("oidc-provider", "9.13.3"),
];

/// Installs what is missing; returns the folder for `OSTLER_PEERS`.
pub(crate) fn install(pins: &[Pin]) -> Result<PathBuf> {
    let folder = provide(pins)?;
    tidy::check_installed(&cargo::root(), &folder)?;
    Ok(folder)
}

fn provide(pins: &[Pin]) -> Result<PathBuf> {
    let cache = cache_folder()?;
    let folder = cache.join(folder_name(pins));
    if folder.is_dir() {
        return Ok(folder);
    }
    if !setup::works("npm", &["--version"]) {
        bail!(
            "npm is missing, which installs the vendor's programs; install Node.js 20 or later \
               (or leave out the tests against them with --no-peers)"
        );
    }
    let partial = cache.join(format!("{}.partial-{}", folder_name(pins), std::process::id()));
    let installed = install_into(&partial, pins);
    if installed.is_ok() && fs::rename(&partial, &folder).is_ok() {
        return Ok(folder);
    }
    // A folder that cannot be removed is ignored; the error is about the installation.
    fs::remove_dir_all(&partial).ok();
    installed?;
    // Another process was faster; its installation is equal.
    ensure!(folder.is_dir(), "could not rename {} to {}", partial.display(), folder.display());
    Ok(folder)
}

fn install_into(folder: &Path, pins: &[Pin]) -> Result<()> {
    let creating = || format!("creating {}", folder.display());
    fs::create_dir_all(folder).with_context(creating)?;
    fs::write(folder.join("package.json"), package_json(pins)).with_context(creating)?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=5"]);
    npm.args(["--loglevel=error"]).current_dir(folder);
    // Standard output is for results, not for npm's messages.
    npm.stdout(std::io::stderr());
    let status = cargo::status(&mut npm)?;
    ensure!(status.success(), "npm install ended with {status}");
    for (name, _) in pins {
        let package = folder.join("node_modules").join(name).join("package.json");
        ensure!(package.is_file(), "npm did not install {name}");
    }
    Ok(())
}

/// The folder for downloads.
pub(crate) fn cache_folder() -> Result<PathBuf> {
    cache(|name| env::var_os(name).map(PathBuf::from))
}

/// The same; `variable` reads the environment.
fn cache(variable: impl Fn(&str) -> Option<PathBuf>) -> Result<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.as_os_str().is_empty());
    set("OSTLER_CACHE")
        .or_else(|| Some(set("XDG_CACHE_HOME")?.join("ostler")))
        .or_else(|| Some(set("HOME")?.join(".cache/ostler")))
        .context("there is no HOME; set OSTLER_CACHE to a folder for downloads")
}

fn folder_name(pins: &[(&str, &str)]) -> String {
    format!("peers-{:016x}", checksum(&package_json(pins)))
}

fn package_json(pins: &[(&str, &str)]) -> String {
    let dependencies: Vec<_> =
        pins.iter().map(|(name, version)| format!("    \"{name}\": \"{version}\"")).collect();
    format!(
        "{{\n  \"private\": true,\n  \"dependencies\": {{\n{}\n  }}\n}}\n",
        dependencies.join(",\n")
    )
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{cache, folder_name, package_json};

    #[test]
    fn the_most_specific_variable_names_the_cache() {
        let all = [("OSTLER_CACHE", "/o"), ("XDG_CACHE_HOME", "/x"), ("HOME", "/h")];
        let found = |set: &[(&str, &str)]| {
            cache(|name| {
                set.iter().find(|(known, _)| *known == name).map(|(_, path)| PathBuf::from(path))
            })
        };
        assert_eq!(found(&all).unwrap(), Path::new("/o"));
        assert_eq!(found(&all[1..]).unwrap(), Path::new("/x/ostler"));
        assert_eq!(found(&all[2..]).unwrap(), Path::new("/h/.cache/ostler"));
        assert_eq!(found(&[("OSTLER_CACHE", ""), all[2]]).unwrap(), Path::new("/h/.cache/ostler"));
        assert!(found(&[]).is_err());
    }

    #[test]
    fn other_versions_get_another_folder() {
        assert_eq!(folder_name(&[("a", "1")]), folder_name(&[("a", "1")]));
        assert_ne!(folder_name(&[("a", "1")]), folder_name(&[("a", "2")]));
    }

    #[test]
    fn versions_are_exact() {
        let json = package_json(&[("@a/b", "1.2.3"), ("c", "4.5.6")]);
        assert!(json.contains("\"@a/b\": \"1.2.3\",\n    \"c\": \"4.5.6\"\n"), "{json}");
    }
}

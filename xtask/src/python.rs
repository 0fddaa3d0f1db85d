//! Python packages of the vendor and others, from PyPI, at pinned versions, in a virtual environment.
//!
//! It is in the same cache as the [`peers`], under a name made of the list of versions. A virtual environment cannot
//! be moved, so a file written last marks it as complete.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::checksum::checksum;
use crate::{cargo, peers, setup};

/// The official SDK, as pip names it.
pub(crate) const SDK: &[&str] = &["claude-agent-sdk==0.2.182"];

/// Tests of the server from outside: a WebSocket client, and a tester for OpenAPI documents.
pub(crate) const SERVER: &[&str] = &["websockets==17.4", "schemathesis==4.32.5"];

/// An MCP server that tests use.
pub(crate) const MCP: &[&str] = &["mcp-server-git==2026.10.19"];

/// Marks an environment as complete.
const COMPLETE: &str = "complete";

/// Installs what is missing; returns the environment's folder, with `bin/python` in it.
pub(crate) fn install(pins: &[&str]) -> Result<PathBuf> {
    let folder = peers::cache_folder()?.join(folder_name(pins));
    if folder.join(COMPLETE).is_file() {
        return Ok(folder);
    }
    if !setup::works("python3", &["-c", "import venv, ensurepip"]) {
        bail!(
            "python3 with venv is missing, which installs Python packages; \
             on Debian or Ubuntu: sudo apt-get install python3-venv"
        );
    }
    // Removes an incomplete installation.
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    let mut venv = Command::new("python3");
    run(venv.args(["-m", "venv"]).arg(&folder))?;
    let mut pip = Command::new(folder.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    run(pip.args(["--retries", "5", "--only-binary", ":all:"]).args(pins))?;
    fs::write(folder.join(COMPLETE), "")
        .with_context(|| format!("writing {}", folder.display()))?;
    Ok(folder)
}

fn run(command: &mut Command) -> Result<()> {
    // Standard output is for results.
    let status = cargo::status(command.stdout(std::io::stderr()))?;
    let program = Path::new(command.get_program()).display();
    ensure!(status.success(), "{program} ended with {status}");
    Ok(())
}

fn folder_name(pins: &[&str]) -> String {
    format!("python-{:016x}", checksum(&pins.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::{SDK, SERVER, folder_name};

    #[test]
    fn other_versions_get_another_folder() {
        assert_eq!(folder_name(&["a==1"]), folder_name(&["a==1"]));
        assert_ne!(folder_name(&["a==1"]), folder_name(&["a==2"]));
    }

    #[test]
    fn versions_are_exact() {
        assert!(SDK.iter().chain(SERVER).all(|pin| pin.contains("==")));
    }
}

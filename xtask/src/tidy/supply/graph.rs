//! All packages in `Cargo.lock`, for every platform, with their metadata.

use anyhow::{Context, Result, ensure};
use semver::Version;
use serde_json::Value;

use super::Finding;
use crate::cargo;

/// A third-party package.
#[derive(Debug)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: Version,
    pub(super) license: Option<String>,
    /// Where it comes from, as cargo writes it.
    pub(super) source: String,
}

#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) packages: Vec<Package>,
    /// The text of `Cargo.lock`, for line numbers.
    lock: String,
}

impl Graph {
    pub(super) fn of_workspace(lock: String) -> Result<Self> {
        let mut cargo = cargo::cargo(&["metadata", "--format-version", "1", "--locked"]);
        let output = cargo.stderr(std::process::Stdio::inherit()).output();
        let output = output.context("cannot start cargo metadata")?;
        ensure!(output.status.success(), "cargo metadata ended with {}", output.status);
        Self::parse(&output.stdout, lock)
    }

    pub(super) fn parse(metadata: &[u8], lock: String) -> Result<Self> {
        let metadata: Value = serde_json::from_slice(metadata).context("cargo metadata")?;
        let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
        // Our own packages have no source.
        let foreign = packages.iter().filter(|package| !package["source"].is_null());
        let package = |package: &Value| {
            let text = |key: &str| package[key].as_str().map(str::to_owned);
            let name = text("name").context("a package without a name")?;
            let version = text("version").and_then(|version| Version::parse(&version).ok());
            let version = version.with_context(|| format!("{name} has no version"))?;
            let source = text("source").unwrap_or_default();
            Ok(Package { name, version, license: text("license"), source })
        };
        Ok(Self { packages: foreign.map(package).collect::<Result<_>>()?, lock })
    }

    /// A finding about a package, at its line in `Cargo.lock`.
    pub(super) fn finding(&self, package: &Package, message: &str) -> Finding {
        let Package { name, version, .. } = package;
        let head = format!("name = \"{name}\"\nversion = \"{version}\"\n");
        let before = self.lock.find(&head).unwrap_or_default();
        let line = self.lock[..before].matches('\n').count() + 1;
        Finding::new("Cargo.lock", line, format!("{name} {version} {message}"))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::Graph;

    /// Packages by name, version and licence, from the registry of the example.
    pub(in crate::tidy::supply) fn graph(packages: &[(&str, &str, Option<&str>)]) -> Graph {
        let entries: Vec<_> = packages
            .iter()
            .map(|(name, version, license)| {
                let source = "registry+https://registry.example/index";
                serde_json::json!({"name": name, "version": version, "license": license, "source": source})
            })
            .collect();
        let lock = packages.iter().map(|(name, version, _)| {
            format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n\n")
        });
        let metadata = serde_json::json!({"packages": entries}).to_string();
        Graph::parse(metadata.as_bytes(), lock.collect()).unwrap()
    }

    #[test]
    fn a_finding_names_the_line_of_the_package_and_our_packages_are_left_out() {
        let graph = graph(&[("a", "1.0.0", None), ("a", "2.0.0", None)]);
        let finding = graph.finding(&graph.packages[1], "is odd");
        assert_eq!(finding.to_string(), "Cargo.lock:6: a 2.0.0 is odd");
        let ours = br#"{"packages":[{"name":"ours","version":"0.1.0","source":null}]}"#;
        assert!(Graph::parse(ours, String::new()).unwrap().packages.is_empty());
    }
}

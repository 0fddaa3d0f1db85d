//! Licences of npm packages, as lock files name them.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use spdx::Licensee;
use toml::Table;

use super::Finding;
use super::licences::judge;
use super::policy::{Policy, each, licensees, text};

/// The rules: `deny.toml`'s list, more licences for what is not shipped, and single packages.
#[derive(Debug)]
pub(super) struct Rules {
    /// For packages whose code is in the page.
    shipped: Vec<Licensee>,
    /// For packages that only build or test.
    tools: Vec<Licensee>,
    /// Packages that only build or test, under a licence that is not on any list: name and licence as written.
    exceptions: Vec<(String, String)>,
}

impl Rules {
    pub(super) fn parse(file: &str, policy: &Policy) -> Result<Self> {
        let file: Table = file.parse()?;
        let shipped = policy.allowed.clone();
        let tools = shipped.iter().cloned().chain(licensees(&file, "tools")?).collect();
        let exceptions = each(&file, "exceptions", |entry| {
            ensure!(!text(entry, "reason")?.trim().is_empty(), "a reason is empty");
            Ok((text(entry, "package")?.to_owned(), text(entry, "license")?.to_owned()))
        })?;
        Ok(Self { shipped, tools, exceptions })
    }

    fn judge(&self, name: &str, license: Option<&str>, is_tool: bool) -> Result<(), String> {
        let is_exception = |(package, text): &(String, String)| {
            let same =
                package.strip_suffix('*').map_or(package == name, |start| name.starts_with(start));
            same && license == Some(text)
        };
        if is_tool && self.exceptions.iter().any(is_exception) {
            return Ok(());
        }
        let allowed: Vec<&Licensee> =
            if is_tool { &self.tools } else { &self.shipped }.iter().collect();
        judge(license, &allowed)
    }
}

/// Checks all packages of a lock file.
pub(super) fn check(rules: &Rules, path: &str, lock: &str) -> Result<Vec<Finding>> {
    let found = check_lock(rules, lock, |package| package["dev"] == true)?;
    let finding = |(name, message): (String, String)| {
        let line = lock.lines().position(|line| line.contains(&format!("\"node_modules/{name}\"")));
        Finding::new(path, line.unwrap_or_default() + 1, message)
    };
    Ok(found.into_iter().map(finding).collect())
}

/// Checks packages installed into a folder for tests; they are not shipped.
pub(crate) fn check_installed(root: &Path, folder: &Path) -> Result<()> {
    let read = |path: &Path| {
        std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
    };
    let policy = Policy::parse(&read(&root.join(super::POLICY))?).context(super::POLICY)?;
    let rules =
        Rules::parse(&read(&root.join(super::NPM_POLICY))?, &policy).context(super::NPM_POLICY)?;
    let lock = read(&folder.join("node_modules/.package-lock.json"))?;
    let found = check_lock(&rules, &lock, |_| true)?;
    let messages: Vec<String> = found.into_iter().map(|(_, message)| message).collect();
    ensure!(messages.is_empty(), "{}; see {}", messages.join("; "), super::NPM_POLICY);
    Ok(())
}

/// The packages that break a rule, with the messages.
fn check_lock(
    rules: &Rules,
    lock: &str,
    is_tool: impl Fn(&Value) -> bool,
) -> Result<Vec<(String, String)>> {
    let lock: Value = serde_json::from_str(lock)?;
    let packages = lock["packages"].as_object().context("there are no packages in it")?;
    let mut found = Vec::new();
    // The entry without a name is the project itself.
    for (place, package) in packages.iter().filter(|(place, _)| !place.is_empty()) {
        let path = place.strip_prefix("node_modules/").unwrap_or(place);
        let name = path.rsplit_once("node_modules/").map_or(path, |(_, name)| name);
        if let Err(why) = rules.judge(name, package["license"].as_str(), is_tool(package)) {
            let version = package["version"].as_str().unwrap_or("without a version");
            found.push((path.to_owned(), format!("{name} {version} {why}")));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::policy::Policy;
    use super::super::policy::tests::EXAMPLE;
    use super::{Rules, check, check_installed};

    const RULES: &str = r#"
        tools = ["MPL-2.0"]
        exceptions = [{ package = "@vendor/sdk*", license = "SEE LICENSE IN README.md", reason = "examined" }]
    "#;

    fn findings(name: &str, license: &str, dev: bool) -> Vec<String> {
        let rules = Rules::parse(RULES, &Policy::parse(EXAMPLE).unwrap()).unwrap();
        let lock = format!(
            "{{\"packages\": {{\n\"\": {{}},\n\"node_modules/a/node_modules/{name}\": {{\"version\": \"1.0.0\", {license} \"dev\": {dev}}}}}}}"
        );
        let found = check(&rules, "web/package-lock.json", &lock).unwrap();
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_package_needs_a_licence_of_the_list() {
        assert_eq!(findings("b", "\"license\": \"MIT\",", false), [""; 0]);
        assert_eq!(findings("b", "\"license\": \"(MPL-2.0 OR Apache-2.0)\",", false), [""; 0]);
        let found = findings("b", "\"license\": \"GPL-3.0-only\",", true);
        assert_eq!(
            found,
            ["web/package-lock.json:3: b 1.0.0 has the licence GPL-3.0-only, which is not allowed"]
        );
        assert!(findings("b", "", true)[0].ends_with("b 1.0.0 names no licence"));
    }

    #[test]
    fn build_and_test_packages_may_have_other_licences_than_shipped_ones() {
        let tool = "\"license\": \"MPL-2.0\",";
        assert_eq!((findings("b", tool, true).len(), findings("b", tool, false).len()), (0, 1));
        let exception = "\"license\": \"SEE LICENSE IN README.md\",";
        for (name, dev, count) in [
            ("@vendor/sdk", true, 0),
            ("@vendor/sdk-linux", true, 0),
            ("@vendor/sdk", false, 1),
            ("b", true, 1),
        ] {
            assert_eq!(findings(name, exception, dev).len(), count, "{name} {dev}");
        }
    }

    #[test]
    fn an_installation_with_a_licence_that_is_not_allowed_is_refused() {
        let root = std::env::temp_dir().join(format!("ostler-npm-{}", std::process::id()));
        let modules = root.join("node_modules");
        std::fs::create_dir_all(&modules).unwrap();
        std::fs::create_dir_all(root.join("xtask")).unwrap();
        std::fs::write(root.join("deny.toml"), EXAMPLE).unwrap();
        std::fs::write(root.join("xtask/npm-licences.toml"), RULES).unwrap();
        let judged = ["MPL-2.0", "AGPL-3.0-only"].map(|license| {
            let lock = format!(r#"{{"packages": {{"node_modules/b": {{"version": "2.0.0", "license": "{license}"}}}}}}"#);
            std::fs::write(modules.join(".package-lock.json"), lock).unwrap();
            check_installed(&root, &root).map_err(|error| error.to_string())
        });
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(judged[0], Ok(()));
        let refused = judged[1].as_ref().unwrap_err();
        assert!(refused.starts_with("b 2.0.0 has the licence AGPL-3.0-only"), "{refused}");
    }
}

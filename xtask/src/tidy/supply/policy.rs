//! Reads `deny.toml`. An unknown key is an error: a rule that has no effect would be worse than no rule.

use anyhow::{Context, Result, bail, ensure};
use semver::{Version, VersionReq};
use spdx::Licensee;
use toml::{Table, Value};

/// A package that a rule is about, and why.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) package: String,
    /// `None` for all versions.
    pub(super) version: Option<VersionReq>,
    pub(super) reason: String,
}

impl Entry {
    pub(super) fn fits(&self, name: &str, version: &Version) -> bool {
        let fits = |wanted: &VersionReq| wanted.matches(version);
        self.package == name && self.version.as_ref().is_none_or(fits)
    }

    /// `{ crate = "name@1.2", reason = "…" }`.
    fn parse(table: &Table) -> Result<Self> {
        let text = text(table, "crate")?;
        let (package, version) = text.split_once('@').map_or((text, None), |(a, b)| (a, Some(b)));
        let version = version.map(|version| {
            let wanted = if version.starts_with(char::is_numeric) {
                // As in cargo-deny: exactly this version, not a compatible one.
                VersionReq::parse(&format!("={version}"))
            } else {
                VersionReq::parse(version)
            };
            wanted.with_context(|| format!("the version in {text}"))
        });
        Ok(Self {
            package: package.to_owned(),
            version: version.transpose()?,
            reason: reason(table)?,
        })
    }
}

#[derive(Debug, Default)]
pub(super) struct Policy {
    pub(super) allowed: Vec<Licensee>,
    /// Licences of single packages.
    pub(super) exceptions: Vec<(String, Vec<Licensee>)>,
    /// Ids of advisories that do not concern us, with reasons.
    pub(super) ignored: Vec<(String, String)>,
    pub(super) banned: Vec<Entry>,
    /// Packages of which there may be several versions.
    pub(super) several: Vec<Entry>,
    pub(super) registries: Vec<String>,
}

impl Policy {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let file: Table = text.parse()?;
        only(&file, &["advisories", "licenses", "bans", "sources"])?;
        let advisories = table(&file, "advisories")?;
        only(advisories, &["ignore"])?;
        let licenses = table(&file, "licenses")?;
        only(licenses, &["allow", "exceptions", "private"])?;
        let bans = table(&file, "bans")?;
        only(bans, &["multiple-versions", "deny", "skip"])?;
        ensure!(
            self::text(bans, "multiple-versions")? == "deny",
            "multiple-versions must be \"deny\""
        );
        let sources = table(&file, "sources")?;
        only(sources, &["unknown-registry", "unknown-git", "allow-registry"])?;
        Ok(Self {
            allowed: licensees(licenses, "allow")?,
            exceptions: each(licenses, "exceptions", |entry| {
                Ok((self::text(entry, "crate")?.to_owned(), licensees(entry, "allow")?))
            })?,
            ignored: each(advisories, "ignore", |entry| {
                Ok((self::text(entry, "id")?.to_owned(), reason(entry)?))
            })?,
            banned: each(bans, "deny", Entry::parse)?,
            several: each(bans, "skip", Entry::parse)?,
            registries: texts(sources, "allow-registry")?,
        })
    }
}

fn only(table: &Table, known: &[&str]) -> Result<()> {
    let unknown = table.keys().find(|key| !known.contains(&key.as_str()));
    match unknown {
        Some(key) => bail!("cargo xtask tidy does not know the key `{key}`; it knows {known:?}"),
        None => Ok(()),
    }
}

fn table<'a>(table: &'a Table, key: &str) -> Result<&'a Table> {
    table
        .get(key)
        .and_then(Value::as_table)
        .with_context(|| format!("the table [{key}] is missing"))
}

pub(super) fn text<'a>(table: &'a Table, key: &str) -> Result<&'a str> {
    table
        .get(key)
        .and_then(Value::as_str)
        .with_context(|| format!("`{key}` is missing or not a string"))
}

/// Every exception says why.
fn reason(table: &Table) -> Result<String> {
    let reason = text(table, "reason")?;
    ensure!(!reason.trim().is_empty(), "a reason is empty");
    Ok(reason.to_owned())
}

pub(super) fn texts(table: &Table, key: &str) -> Result<Vec<String>> {
    let list = table.get(key).and_then(Value::as_array);
    let list = list.with_context(|| format!("the list `{key}` is missing"))?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let texts: Option<Vec<String>> = list.iter().map(text).collect();
    texts.with_context(|| format!("`{key}` must be a list of strings"))
}

pub(super) fn licensees(table: &Table, key: &str) -> Result<Vec<Licensee>> {
    let parse = |name: String| {
        Licensee::parse(&name).with_context(|| format!("{name} is not a licence that SPDX knows"))
    };
    texts(table, key)?.into_iter().map(parse).collect()
}

/// The tables of a list; empty if there is no such list.
pub(super) fn each<T>(
    table: &Table,
    key: &str,
    read: impl Fn(&Table) -> Result<T>,
) -> Result<Vec<T>> {
    let Some(list) = table.get(key) else { return Ok(Vec::new()) };
    let list = list.as_array().with_context(|| format!("`{key}` must be a list"))?;
    let read = |value: &Value| {
        let entry =
            value.as_table().with_context(|| format!("`{key}` must be a list of tables"))?;
        read(entry).with_context(|| format!("in `{key}`"))
    };
    list.iter().map(read).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::Policy;

    pub(in crate::tidy::supply) const EXAMPLE: &str = r#"
        [advisories]
        ignore = [{ id = "RUSTSEC-2000-0001", reason = "not reachable" }]
        [licenses]
        allow = ["MIT", "Apache-2.0"]
        exceptions = [{ crate = "roots", allow = ["CDLA-Permissive-2.0"] }]
        [bans]
        multiple-versions = "deny"
        deny = [{ crate = "openssl-sys", reason = "rustls" }, { crate = "old@<2.0.0", reason = "panics" }]
        skip = [{ crate = "twice@1.0.0", reason = "another package wants it" }]
        [sources]
        unknown-registry = "deny"
        unknown-git = "deny"
        allow-registry = ["https://registry.example/index"]
    "#;

    #[test]
    fn an_unknown_or_incomplete_rule_is_an_error() {
        Policy::parse(EXAMPLE).unwrap();
        for (from, to, why) in [
            ("[sources]", "[graph]\n[sources]", "`graph`"),
            ("multiple-versions = \"deny\"", "multiple-versions = \"warn\"", "must be \"deny\""),
            ("\"MIT\"", "\"MIT-ish\"", "MIT-ish"),
            ("reason = \"panics\"", "reason = \" \"", "a reason is empty"),
            ("twice@1.0.0", "twice@one", "twice@one"),
            (", reason = \"rustls\"", "", "`reason` is missing"),
        ] {
            assert!(EXAMPLE.contains(from), "{from}");
            let error = Policy::parse(&EXAMPLE.replace(from, to)).expect_err(from);
            assert!(format!("{error:#}").contains(why), "{error:#}");
        }
    }
}

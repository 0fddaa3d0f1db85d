//! Reads the table in `DIFFERENCES.md`: the intended differences, each with its reason.

use std::cell::Cell;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::sdk::Sdk;

/// A difference that a row of the table names; a row may name several, with commas.
#[derive(Debug)]
pub(crate) struct Known {
    sdks: String,
    scenarios: String,
    pub(crate) what: String,
    occurs: Cell<bool>,
}

/// All rows of the table.
pub(crate) fn read(path: &Path) -> Result<Vec<Known>> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    rows(&text)
}

fn rows(text: &str) -> Result<Vec<Known>> {
    let mut known = Vec::new();
    for line in text.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        ensure!(cells.len() == 4, "a row has four cells: {line}");
        ensure!(!cells[3].is_empty(), "a difference has a reason: {line}");
        let [sdks, scenarios, what] = [0, 1, 2].map(|cell| cells[cell].replace('`', ""));
        known.extend(what.split(',').map(|what| Known {
            sdks: sdks.clone(),
            scenarios: scenarios.clone(),
            what: what.trim().to_owned(),
            occurs: Cell::new(false),
        }));
    }
    Ok(known)
}

impl Known {
    /// Whether this row explains the difference. If so, the row is marked as used.
    pub(crate) fn explains(&self, sdk: Sdk, scenario: &str, what: &str) -> bool {
        let one_of = |patterns: &str, text: &str| {
            patterns.split(',').any(|pattern| is_like(pattern.trim(), text))
        };
        let explains = one_of(&self.sdks, sdk.name())
            && one_of(&self.scenarios, scenario)
            && is_like(&self.what, what);
        self.occurs.set(self.occurs.get() || explains);
        explains
    }

    pub(crate) fn occurs(&self) -> bool {
        self.occurs.get()
    }
}

/// Whether a text matches a pattern in which `*` matches any text.
fn is_like(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(start) else { return false };
    (0..=text.len()).filter(|at| text.is_char_boundary(*at)).any(|at| is_like(rest, &text[at..]))
}

#[cfg(test)]
mod tests {
    use super::{is_like, rows};
    use crate::sdk::Sdk;

    #[test]
    fn a_star_matches_any_text() {
        assert!(is_like("*", "") && is_like("a*", "a") && is_like("a*c*", "abcd"));
        assert!(!is_like("a*c", "abcd") && !is_like("a", "ab"));
    }

    #[test]
    fn a_row_explains_only_the_differences_that_it_names() {
        let table = "\
| SDKs | scenarios | difference | why |
|---|---|---|---|
| `ts325,py182` | `hook-*` | `missing system/init.x`, `other y` | it is not read |
";
        let rows = rows(table).unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[1].what, "other y");
        assert!(!rows[0].explains(Sdk::Ts050, "hook-asks", "missing system/init.x"));
        assert!(!rows[0].explains(Sdk::Ts325, "text", "missing system/init.x"));
        assert!(!rows[0].explains(Sdk::Ts325, "hook-asks", "missing system/init.y"));
        assert!(!rows[0].occurs());
        assert!(rows[0].explains(Sdk::Py182, "hook-asks", "missing system/init.x"));
        assert!(rows[0].occurs());
    }

    #[test]
    fn a_difference_without_a_reason_is_refused() {
        assert!(rows("| `*` | `*` | `missing x` | |\n").is_err());
    }
}

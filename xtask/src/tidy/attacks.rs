//! The page about attacks: every row names the attack, the entry points it was tried at, what happens, an existing
//! test, and the mutant on which that test was seen to fail.

use super::Finding;

/// The page.
pub(super) const PAGE: &str = "docs/attacks.md";

/// The columns of every table on the page.
const COLUMNS: [&str; 5] = ["attack", "entry points", "what happens", "test", "mutant"];

/// Rows that do not prove what they claim. `sources` are all Rust files, by their paths.
pub(super) fn check(page: &str, sources: &[(String, String)]) -> Vec<Finding> {
    let rows = page.lines().enumerate().filter(|(_, line)| line.starts_with('|'));
    rows.flat_map(|(index, line)| {
        let problems = problems(line, sources);
        problems.into_iter().map(move |problem| Finding::new(PAGE, index + 1, problem))
    })
    .collect()
}

fn problems(line: &str, sources: &[(String, String)]) -> Vec<String> {
    let cells: Vec<&str> = line.trim().trim_matches('|').split(" | ").map(str::trim).collect();
    let is_rule = line.chars().all(|c| "|-: ".contains(c));
    if is_rule || cells == COLUMNS {
        return Vec::new();
    }
    let [_, _, _, tests, _] = cells.as_slice() else {
        let columns = COLUMNS.join(", ");
        return vec![format!("a row has five cells ({columns}), and this one has {}", cells.len())];
    };
    if let Some(empty) = cells.iter().position(|cell| cell.is_empty()) {
        return vec![format!("the cell {:?} is empty; claim only what was tried", COLUMNS[empty])];
    }
    if names(tests).next().is_none() {
        return vec!["the row names no test; write one, or remove the claim".to_owned()];
    }
    let missing = names(tests).filter_map(|name| match find(name, sources) {
        Some(before) if before.contains("Seen to ") || before.contains("Mutant") => None,
        Some(_) => Some(format!(
            "the comment above {name} does not name a mutant; try one, and write `// Mutant: …`"
        )),
        None => Some(format!("there is no test {name}; name the one that tries this, or write it")),
    });
    missing.collect()
}

/// Paths in backticks.
fn names(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2).filter(|name| name.contains("::") && !name.contains(' '))
}

/// The lines above a test of that name, in a file that its path names.
fn find<'a>(name: &str, sources: &'a [(String, String)]) -> Option<&'a str> {
    let mut parts: Vec<&str> = name.split("::").collect();
    let function = parts.pop()?;
    // Test modules may be inside the file that they test.
    parts.retain(|part| *part != "tests");
    let declared = format!("fn {function}(");
    sources.iter().find_map(|(path, text)| {
        let is_meant = parts.iter().all(|part| path.split(['/', '.']).any(|piece| piece == *part));
        let mut places = text.match_indices(&declared).filter(|_| is_meant);
        places.find_map(|(at, _)| Some(above(&text[..at])).filter(|above| is_test(above)))
    })
}

/// The lines right above a function, up to an empty one.
fn above(before: &str) -> &str {
    // Without the beginning of its own line.
    let before = &before[..before.rfind('\n').map_or(0, |at| at + 1)];
    before.rsplit("\n\n").next().unwrap_or_default()
}

fn is_test(above: &str) -> bool {
    above
        .lines()
        .map(str::trim)
        .any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
}

#[cfg(test)]
mod tests {
    use super::check;

    fn sources() -> Vec<(String, String)> {
        let text = "\n// Seen to fail without it.\n#[tokio::test(flavor = \"x\")]\n#[ignore = \"y\"]\nasync fn it_holds() {}\n\nfn helps() {}\n\n\
            // Mutant: no check.\n#[test]\nfn it_is_checked() {}\n\n#[test]\nfn nobody_tried() {}\n";
        vec![("crates/a/src/door/tests.rs".to_owned(), text.to_owned())]
    }

    #[test]
    fn a_row_without_a_tried_test_is_reported_with_its_line() {
        for (page, lines) in [
            (
                "| attack | entry points | what happens | test | mutant |\n|---|---|---|---|---|",
                vec![],
            ),
            ("| x | REST | 401 | `door::tests::it_holds` | m |", vec![]),
            ("| x | REST | 401 | `door::it_is_checked`, `0.0.0.0`, `a b::c` | m |", vec![]),
            ("text\n| x | REST | 401 | `door::tests::it_fails` | m |", vec![2]),
            ("| x | REST | 401 | `window::tests::it_holds` | m |", vec![1]),
            ("| x | REST | 401 | `door::tests::helps` | m |", vec![1]),
            ("| x | REST | 401 | `door::tests::nobody_tried` | m |", vec![1]),
            ("| x | REST | 401 | none | m |", vec![1]),
            ("| x | | 401 | `door::tests::it_holds` | m |", vec![1]),
            ("| x | 401 | `door::tests::it_holds` |", vec![1]),
        ] {
            let found: Vec<usize> =
                check(page, &sources()).into_iter().map(|finding| finding.line).collect();
            assert_eq!(found, lines, "{page}");
        }
    }
}

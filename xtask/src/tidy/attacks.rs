//! The page about attacks: every test that it names must be there, and say which mutant it was seen to fail on.

use super::Finding;

/// Where they stand.
pub(super) const PAGE: &str = "docs/attacks.md";

/// Tests that the page names and no file has. `sources` are all files of Rust, by their paths.
pub(super) fn check(page: &str, sources: &[(String, String)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in page.lines().enumerate() {
        for name in names(line) {
            let problem = match find(name, sources) {
                Some(before) if before.contains("Seen to ") => continue,
                Some(_) => format!(
                    "above {name} it is not said on which mutant it fails; try one, and write `// Seen to fail …`"
                ),
                None => {
                    format!("there is no test {name}; name the one that tries this, or write it")
                }
            };
            findings.push(Finding::new(PAGE, index + 1, problem));
        }
    }
    findings
}

/// Paths in backticks.
fn names(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2).filter(|name| name.contains("::") && !name.contains(' '))
}

/// What stands right above a test of that name, in a file that its path leads through.
fn find<'a>(name: &str, sources: &'a [(String, String)]) -> Option<&'a str> {
    let mut parts: Vec<&str> = name.split("::").collect();
    let function = parts.pop()?;
    // Modules of tests may stand inside of the file that they are about.
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
            #[test]\nfn nobody_tried() {}\n";
        vec![("crates/a/src/door/tests.rs".to_owned(), text.to_owned())]
    }

    #[test]
    fn a_test_that_is_not_there_or_was_not_tried_is_reported_with_its_line() {
        for (page, lines) in [
            ("| x | `door::tests::it_holds` |", vec![]),
            ("| x | `door::it_holds`, `0.0.0.0`, `a b::c` |", vec![]),
            ("first\n| x | `door::tests::it_fails` |", vec![2]),
            ("| x | `window::tests::it_holds` |", vec![1]),
            ("| x | `door::tests::helps` |", vec![1]),
            ("| x | `door::tests::nobody_tried` |", vec![1]),
        ] {
            let found: Vec<usize> =
                check(page, &sources()).into_iter().map(|finding| finding.line).collect();
            assert_eq!(found, lines, "{page}");
        }
    }
}

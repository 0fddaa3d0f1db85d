//! The page about attacks: every test that it names must be there.

use super::Finding;

/// Where they stand.
pub(super) const PAGE: &str = "docs/attacks.md";

/// Tests that the page names and no file has. `sources` are all files of Rust, by their paths.
pub(super) fn check(page: &str, sources: &[(String, String)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in page.lines().enumerate() {
        for name in names(line).filter(|name| !is_there(name, sources)) {
            let problem =
                format!("there is no test {name}; name the one that tries this, or write it");
            findings.push(Finding::new(PAGE, index + 1, problem));
        }
    }
    findings
}

/// Paths in backticks.
fn names(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2).filter(|name| name.contains("::") && !name.contains(' '))
}

/// Whether a function of that name is a test, in a file that its path leads through.
fn is_there(name: &str, sources: &[(String, String)]) -> bool {
    let mut parts: Vec<&str> = name.split("::").collect();
    let Some(function) = parts.pop() else { return false };
    // Modules of tests may stand inside of the file that they are about.
    parts.retain(|part| *part != "tests");
    let declared = format!("fn {function}(");
    sources.iter().any(|(path, text)| {
        parts.iter().all(|part| path.split(['/', '.']).any(|piece| piece == *part))
            && text.match_indices(&declared).any(|(at, _)| is_test(&text[..at]))
    })
}

/// Whether what stands right before a function makes it a test.
fn is_test(before: &str) -> bool {
    // Without the beginning of its own line.
    let before = before.rsplit_once('\n').map_or("", |(before, _)| before);
    let lines = before.rsplit('\n').take_while(|line| !line.trim().is_empty());
    lines.take(4).any(|line| {
        let line = line.trim();
        line.starts_with("#[test]") || line.starts_with("#[tokio::test")
    })
}

#[cfg(test)]
mod tests {
    use super::check;

    fn sources() -> Vec<(String, String)> {
        let text = "\n#[tokio::test(flavor = \"x\")]\n#[ignore = \"y\"]\nasync fn it_holds() {}\n\nfn helps() {}\n";
        vec![("crates/a/src/door/tests.rs".to_owned(), text.to_owned())]
    }

    #[test]
    fn a_test_that_is_not_there_is_reported_with_its_line() {
        for (page, lines) in [
            ("| x | `door::tests::it_holds` |", vec![]),
            ("| x | `door::it_holds`, `0.0.0.0`, `a b::c` |", vec![]),
            ("first\n| x | `door::tests::it_fails` |", vec![2]),
            ("| x | `window::tests::it_holds` |", vec![1]),
            ("| x | `door::tests::helps` |", vec![1]),
        ] {
            let found: Vec<usize> =
                check(page, &sources()).into_iter().map(|finding| finding.line).collect();
            assert_eq!(found, lines, "{page}");
        }
    }
}

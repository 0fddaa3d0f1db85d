//! The worked example of CONTRIBUTING.md: an option touches as many production files as the page says, and these.

use std::collections::BTreeSet;

use super::Finding;

/// The page, the section with the example, and the text before the option's name.
pub(super) const PAGE: &str = "CONTRIBUTING.md";
const SECTION: &str = "## How to add an option";
const BEFORE_NAME: &str = "As an example, those of `";

/// An option that touches more is copied from one representation to the next.
const MOST_FILES: usize = 3;

/// Compares the example with all Rust files, which are given with their paths.
pub(super) fn check(page: &str, sources: &[(String, String)]) -> Vec<Finding> {
    let lines = page.lines().enumerate().skip_while(|(_, line)| *line != SECTION);
    let lines: Vec<_> = lines
        .enumerate()
        .take_while(|(n, (_, line))| *n == 0 || !line.starts_with("## "))
        .map(|(_, it)| it)
        .collect();
    let example = lines.iter().find_map(|(index, line)| {
        let name = line.split_once(BEFORE_NAME)?.1.split('`').next()?;
        Some((index + 1, name))
    });
    let Some((line, option)) = example else {
        let message =
            format!("the section {SECTION:?} has no line with {BEFORE_NAME:?} and a name");
        return vec![Finding::new(PAGE, 1, message)];
    };
    let listed: BTreeSet<&str> = lines.iter().filter_map(|(_, line)| listed_file(line)).collect();
    let touched: BTreeSet<&str> = sources
        .iter()
        .filter(|(path, text)| mentions(path, text, option))
        .map(|(path, _)| path.as_str())
        .collect();
    let mut findings = Vec::new();
    if touched.len() > MOST_FILES {
        let files = touched.iter().copied().collect::<Vec<_>>().join(", ");
        let message = format!(
            "{option} touches {} production files ({files}); an option touches at most {MOST_FILES}",
            touched.len()
        );
        findings.push(Finding::new(PAGE, line, message));
    }
    for file in touched.difference(&listed) {
        findings.push(Finding::new(
            file,
            1,
            format!("names {option}, and the example in {PAGE} does not list it"),
        ));
    }
    for file in listed.difference(&touched) {
        findings.push(Finding::new(PAGE, line, format!("{file} does not name {option}")));
    }
    findings
}

/// The file of a numbered step: `1. `crates/a/src/b.rs`: …`.
fn listed_file(line: &str) -> Option<&str> {
    let (number, rest) = line.split_once(". `")?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then_some(rest.split('`').next()?)
}

/// Whether production code of the file names the option, as a field or as an argument.
fn mentions(path: &str, text: &str, option: &str) -> bool {
    let is_production =
        path.starts_with("crates/") && path.contains("/src/") && !path.ends_with("tests.rs");
    let argument = option.replace('_', "-");
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    is_production && lines.any(|line| [option, &argument].iter().any(|name| names(line, name)))
}

/// Whether the line has the name as a whole.
fn names(line: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    line.match_indices(name).any(|(at, _)| {
        let before = line[..at].trim_end_matches("--");
        !before.ends_with(is_part) && !line[at + name.len()..].starts_with(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::check;

    const PAGE: &str = "# Contributing\n\n## How to add an option\n\nAs an example, those of `use_it`:\n\n\
        1. `crates/a/src/a.rs`: the field.\n2. `crates/b/src/b.rs`, which uses it.\n\n## Other\n\n1. `crates/z/src/z.rs`\n";

    fn found(page: &str, files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<_> = files
            .iter()
            .map(|(path, text)| (format!("crates/{path}"), (*text).to_owned()))
            .collect();
        let findings = check(page, &sources).into_iter();
        findings.map(|it| format!("{}:{}: {}", it.path, it.line, it.message)).collect()
    }

    const A: (&str, &str) = ("a/src/a.rs", "row!(\"use-it\")");
    const B: (&str, &str) = ("b/src/b.rs", "launch.use_it");

    #[test]
    fn an_example_that_agrees_with_the_code_has_no_findings() {
        let others = [
            ("c/src/tests.rs", "use_it"),
            ("c/tests/it/main.rs", "use_it"),
            ("c/src/c.rs", "// use_it\nuse_items\n#[cfg(test)]\nmod tests {\nuse_it"),
        ];
        assert_eq!(found(PAGE, &[&[A, B][..], &others].concat()), [""; 0]);
    }

    #[test]
    fn a_file_that_the_page_does_not_list_is_reported_and_one_too_many() {
        let one_more = [A, B, ("c/src/c.rs", "use_it")];
        assert_eq!(
            found(PAGE, &one_more),
            [
                "crates/c/src/c.rs:1: names use_it, and the example in CONTRIBUTING.md does not list it"
            ]
        );
        let two_more = found(PAGE, &[&one_more[..], &[("d/src/d.rs", "--use-it")]].concat());
        assert_eq!(two_more.len(), 3);
        assert!(two_more[0].starts_with("CONTRIBUTING.md:5: use_it touches 4 production files"));
    }

    #[test]
    fn a_listed_file_without_the_option_and_a_page_without_the_example_are_reported() {
        assert_eq!(
            found(PAGE, &[A]),
            ["CONTRIBUTING.md:5: crates/b/src/b.rs does not name use_it"]
        );
        assert_eq!(found("# Contributing\n", &[A, B]).len(), 1);
    }
}

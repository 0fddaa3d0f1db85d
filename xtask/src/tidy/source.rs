//! Rules for Rust files.

use super::Finding;

const MOST_LINES: usize = 800;

/// Files that may be longer, with the reason.
const MAY_BE_LONG: &[(&str, &str)] = &[];

/// Where printing is allowed, with the reason. Elsewhere it could end up between the frames on stdout.
const MAY_PRINT: &[(&str, &str)] = &[
    ("xtask/", "prints for people"),
    ("bench/", "prints for people"),
    ("conformance/", "prints for people"),
    ("fuzz/", "prints for people"),
    ("/tests/", "captured by the test runner"),
    ("/examples/", "shows its result"),
    ("/benches/", "prints for people"),
    ("/build.rs", "prints for cargo"),
];

/// Split, so that this file passes its own check.
const UNFINISHED: [&str; 3] =
    [concat!("to", "do!"), concat!("unimple", "mented!"), concat!("d", "bg!")];
const PRINTING: [&str; 4] = [
    concat!("print", "ln!"),
    concat!("pri", "nt!"),
    concat!("eprint", "ln!"),
    concat!("epri", "nt!"),
];

pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !text.starts_with("//!") {
        findings.push(Finding::new(path, 1, "begin the file with a //! that says what it owns"));
    }
    let n_lines = text.lines().count();
    if n_lines > MOST_LINES && !MAY_BE_LONG.iter().any(|(long, _)| *long == path) {
        let message = format!(
            "{n_lines} lines, more than {MOST_LINES}; split the file by what its parts own"
        );
        findings.push(Finding::new(path, MOST_LINES + 1, message));
    }
    let may_print = MAY_PRINT.iter().any(|(place, _)| path_has(path, place));
    for (index, line) in text.lines().enumerate() {
        // Comments may name forbidden macros.
        if line.trim_start().starts_with("//") {
            continue;
        }
        for name in UNFINISHED.iter().filter(|name| calls(line, name)) {
            findings.push(Finding::new(
                path,
                index + 1,
                format!("{name} is left over; finish or remove it"),
            ));
        }
        for name in PRINTING.iter().filter(|name| !may_print && calls(line, name)) {
            let message = format!(
                "{name} can end up between frames; return the text, or write to a given output"
            );
            findings.push(Finding::new(path, index + 1, message));
        }
    }
    findings
}

/// A place is a folder at the top (`xtask/`) or anywhere (`/tests/`).
fn path_has(path: &str, place: &str) -> bool {
    if place.starts_with('/') {
        format!("/{path}").contains(place)
    } else {
        path.starts_with(place)
    }
}

/// Whether the line calls that macro, and not one whose name has it as a suffix.
fn calls(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        !line[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::{MOST_LINES, PRINTING, UNFINISHED, check};

    const SOME: &str = "crates/ostler-engine/src/turn.rs";

    #[test]
    fn a_good_file_has_no_findings() {
        assert_eq!(check(SOME, "//! Good.\nfn good() {}\n"), []);
    }

    #[test]
    fn a_file_without_a_header_is_reported() {
        assert_eq!(check(SOME, "fn bad() {}\n")[0].line, 1);
        assert_eq!(check(SOME, "// Not a header.\n").len(), 1);
    }

    #[test]
    fn unfinished_code_is_reported_everywhere() {
        for name in UNFINISHED {
            for path in [SOME, "xtask/src/main.rs", "crates/ostler-sdk/tests/it/main.rs"] {
                let findings = check(path, &format!("//! X.\nfn f() {{\n    {name}(1)\n}}\n"));
                assert_eq!(findings.len(), 1, "{name} in {path}");
                assert_eq!(findings[0].line, 3);
            }
        }
    }

    #[test]
    fn printing_is_reported_outside_the_places_for_it() {
        for name in PRINTING {
            let text = format!("//! X.\nfn f() {{ std::{name}(\"x\"); }}\n");
            for (path, count) in [
                (SOME, 1),
                ("crates/ostler-cli/src/main.rs", 1),
                ("crates/ostler-cli/src/xtask/main.rs", 1),
                ("xtask/src/main.rs", 0),
                ("crates/ostler-cli/tests/it/main.rs", 0),
                ("crates/ostler-sdk/examples/hello.rs", 0),
                ("crates/ostler-cli/build.rs", 0),
            ] {
                assert_eq!(check(path, &text).len(), count, "{name} in {path}");
            }
        }
    }

    #[test]
    fn comments_and_longer_names_are_not_calls() {
        let [line, plain, ..] = PRINTING;
        let text = format!("//! X.\n/// Not {line}(…).\nmy_{plain}(1);\n");
        assert_eq!(check(SOME, &text), []);
    }

    #[test]
    fn a_long_file_is_reported() {
        let long = |lines: usize| format!("//! X.\n{}", "fn f() {}\n".repeat(lines - 1));
        assert_eq!(check(SOME, &long(MOST_LINES)), []);
        assert_eq!(check(SOME, &long(MOST_LINES + 1)).len(), 1);
    }
}

//! Rules for all files.

use super::Finding;

/// Larger files belong into a release or are generated.
const LARGEST: u64 = 1_000_000;

/// Recorded traffic contains folders of the machine it was recorded on.
const MAY_NAME_HOMES: &[&str] = &["fixtures/", "fuzz/regressions/"];

pub(super) fn check_size(path: &str, size: u64) -> Option<Finding> {
    (size > LARGEST).then(|| {
        Finding::new(
            path,
            1,
            format!("{size} bytes; keep files above {LARGEST} out of the repository"),
        )
    })
}

pub(super) fn check_text(path: &str, text: &str) -> Vec<Finding> {
    if MAY_NAME_HOMES.iter().any(|place| path.starts_with(place)) {
        return Vec::new();
    }
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, line)| names_a_home(line))
        .map(|(index, _)| {
            Finding::new(
                path,
                index + 1,
                "a path into a user's home; make it relative or invent one",
            )
        })
        .collect()
}

/// Whether there is an absolute path into a user's home folder.
fn names_a_home(line: &str) -> bool {
    // Split, so that this file passes its own check.
    let root = concat!("/ro", "ot/");
    let homes = concat!("/ho", "me/");
    occurrences(line, root).next().is_some()
        || occurrences(line, homes).any(|rest| {
            let user = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"._-".contains(c));
            user.is_some_and(|end| end > 0 && rest[end..].starts_with('/'))
        })
}

/// The text after each absolute path that starts with `start`.
fn occurrences<'a>(line: &'a str, start: &'a str) -> impl Iterator<Item = &'a str> {
    line.match_indices(start).filter_map(move |(at, _)| {
        // After one of these it is a folder of that name inside another path.
        let inside = line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-}>)~".contains(c));
        (!inside).then(|| &line[at + start.len()..])
    })
}

#[cfg(test)]
mod tests {
    use super::{check_size, check_text};

    #[test]
    fn a_home_folder_is_reported_with_its_line() {
        for (line, bad) in [
            (concat!("let p = \"/ho", "me/ann/src\";"), true),
            (concat!("cd /ro", "ot/project"), true),
            (concat!("https://example.org/ho", "me/ann/x"), false),
            (concat!("{base}/ro", "ot/x"), false),
            (concat!("/ho", "me/<user>/x and /ho", "me/"), false),
            ("/tmp/x", false),
        ] {
            let findings = check_text("a.md", &format!("fine\n{line}\n"));
            let lines: Vec<_> = findings.iter().map(|finding| finding.line).collect();
            assert_eq!(lines, if bad { vec![2] } else { vec![] }, "{line}");
        }
        assert_eq!(check_text("fixtures/wire/a.jsonl", concat!("/ho", "me/ann/src")), []);
    }

    #[test]
    fn a_large_file_is_reported() {
        assert!(check_size("a.png", 1_000_001).is_some());
        assert!(check_size("a.png", 1_000_000).is_none());
    }
}

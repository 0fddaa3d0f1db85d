//! Files are opened through `ostler-files`: a pipe or device in place of a file blocks a plain reader or writer for ever,
//! and a command of the agent can put one anywhere.

use super::Finding;

/// Where files are opened in other ways, with the reason.
const ALLOWED: &[(&str, &str)] = &[
    ("crates/ostler-files/", "it is the place for this"),
    ("crates/ostler-testkit/", "runs in tests only"),
    (
        "crates/ostler-base/src/private.rs",
        "new files, a folder, and a file without following links",
    ),
    ("crates/ostler-cli/src/args/table.rs", "runs in tests only"),
    (
        "crates/ostler-cli/src/debug.rs",
        "refuses pipes itself; a terminal or device is the user's choice",
    ),
    ("crates/ostler-client/src/token.rs", "opens without waiting and without following links"),
    ("crates/ostler-core/src/memory.rs", "a file of the kernel"),
    (
        "crates/ostler-model/src/record/recorder.rs",
        "opens for reading too, which waits for no reader",
    ),
    (
        "crates/ostler-process/src/",
        "files of the kernel, new files, and a lock whose kind is checked",
    ),
    ("crates/ostler-sandbox/src/control_group/", "files of the kernel"),
    ("crates/ostler-sandbox/src/helper/network.rs", "files of the kernel"),
    ("crates/ostler-sandbox/src/bubblewrap/network.rs", "files of the kernel"),
    ("crates/ostler-sandbox/src/helper/outer.rs", "a file of the kernel, and new files"),
    ("crates/ostler-sandbox/src/bubblewrap/id_map.rs", "files of the kernel"),
    ("crates/ostler-sandbox/src/limits.rs", "a file of the kernel"),
    ("crates/ostler-sandbox/src/owner.rs", "files of the kernel"),
    (
        "crates/ostler-sandbox/src/mask.rs",
        "new files, and one opened without waiting or following links",
    ),
    (
        "crates/ostler-sdk/src/session_store/config_folder.rs",
        "new files, and one whose kind is checked",
    ),
    ("crates/ostler-skills/src/materialise.rs", "new files"),
    (
        "crates/ostler-store/src/sqlite/",
        "the server's data folder, where SQLite itself opens files",
    ),
    (
        "crates/ostler-transcript/src/file.rs",
        "new files, and one opened for reading too, which waits for no reader",
    ),
    ("crates/ostler/src/sessions/stored.rs", "new files"),
];

const OPENING: [&str; 8] = [
    "fs::read(",
    "fs::read_to_string(",
    "fs::write(",
    "fs::copy(",
    "File::open(",
    "File::create",
    "File::options(",
    "OpenOptions::new(",
];

/// Findings in the production code of a file.
pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let is_production = path.starts_with("crates/")
        && path.contains("/src/")
        && !path.contains("/tests/")
        && !path.ends_with("tests.rs");
    if !is_production || ALLOWED.iter().any(|(place, _)| path.starts_with(place)) {
        return Vec::new();
    }
    let production = text.split("#[cfg(test)]").next().unwrap_or(text);
    let lines = production.lines().enumerate();
    let code = lines.filter(|(_, line)| !line.trim_start().starts_with("//"));
    let opening = code.filter(|(_, line)| OPENING.iter().any(|call| calls(line, call)));
    let message = "open files with ostler-files, which waits for no pipe; or add the file to the list in \
                   xtask/src/tidy/opens.rs, with the reason";
    opening.map(|(index, _)| Finding::new(path, index + 1, message)).collect()
}

/// Whether a line contains the call, and not one whose name ends alike (`TokenFile::open`).
fn calls(line: &str, call: &str) -> bool {
    line.match_indices(call).any(|(at, _)| !line[..at].ends_with(char::is_alphanumeric))
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn production_code_that_opens_a_file_is_found() {
        let lines = |path: &str, text: &str| -> Vec<usize> {
            check(path, text).iter().map(|finding| finding.line).collect()
        };
        let text = "// fs::read(a)\nlet a = std::fs::read(path);\nTokenFile::open(b);\nFile::open(c);\n\
                    #[cfg(test)]\nmod tests { fs::write(d); }";
        assert_eq!(lines("crates/ostler-core/src/a.rs", text), [2, 4]);
        assert_eq!(lines("crates/ostler-core/tests/it/a.rs", text), [0; 0]);
        assert_eq!(lines("crates/ostler-core/src/runs/tests.rs", text), [0; 0]);
        assert_eq!(lines("crates/ostler-skills/src/materialise.rs", text), [0; 0]);
    }
}

//! Where production code starts programs. In a session with a sandbox, programs run inside it; docs/sandbox.md ("Other programs") lists
//! those that do not, so a new place is a finding until it is in both lists.

use super::Finding;

/// Where programs are started, with what they are.
const ALLOWED: &[(&str, &str)] = &[
    ("crates/ostler-process/src/", "it is the place for this"),
    ("crates/ostler-sandbox/src/", "what builds a sandbox, and the helper inside"),
    ("crates/ostler-testkit/", "runs in tests only"),
    ("crates/ostler-tools/src/process.rs", "commands, inside"),
    ("crates/ostler-engine/src/hooks/command.rs", "command hooks, inside"),
    ("crates/ostler-mcp/src/client/stdio.rs", "MCP servers, inside"),
    ("crates/ostler-core/src/schedules/check.rs", "checks of schedules, inside"),
    (
        "crates/ostler/src/engine/helper_command.rs",
        "`apiKeyHelper` and `headersHelper`, outside for a reason",
    ),
    ("crates/ostler-tools/src/pdf/child.rs", "reads PDF documents without any rights"),
    ("crates/ostler-sdk/src/process/child.rs", "the engine"),
    ("crates/ostler-prompt/src/workspace/reaper.rs", "a fixed script that removes folders"),
];

const STARTING: [&str; 7] = [
    "Command::new(",
    "Group::spawn(",
    "Group::spawn_piped(",
    "ostler_process::command(",
    "ostler_process::shell(",
    "posix_spawn",
    "execve(",
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
    // Clap has a type of the same name.
    let starts = |line: &str| {
        let is_of_clap = line.contains("clap::Command::new(") || production.contains("use clap::");
        STARTING.iter().any(|call| line.contains(call))
            && !(is_of_clap && line.contains("Command::new("))
    };
    let message = "start programs in the sandbox of the session, and list the place in xtask/src/tidy/starts.rs and in \
                   docs/sandbox.md (\"Other programs\")";
    code.filter(|(_, line)| starts(line))
        .map(|(index, _)| Finding::new(path, index + 1, message))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::check;

    // Mutant: every file may start programs.
    #[test]
    fn a_new_place_that_starts_a_program_is_found() {
        let lines = |path: &str, text: &str| -> Vec<usize> {
            check(path, text).iter().map(|finding| finding.line).collect()
        };
        let text = "// Command::new(a)\nstd::process::Command::new(\"git\");\nGroup::spawn(b);\n\
                    #[cfg(test)]\nmod tests { Command::new(c); }";
        assert_eq!(lines("crates/ostler-core/src/a.rs", text), [2, 3]);
        assert_eq!(lines("crates/ostler-core/tests/it/a.rs", text), [0; 0]);
        assert_eq!(lines("crates/ostler-tools/src/process.rs", text), [0; 0]);
        let clap = "use clap::{Arg, Command};\nCommand::new(\"serve\");\n";
        assert_eq!(lines("crates/ostler-cli/src/args.rs", clap), [0; 0]);
    }
}

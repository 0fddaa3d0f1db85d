//! A comparison with bash: every command that bash tries to run must be among the parts, or the command is unclear.
//!
//! The search path of that bash has no programs, so nothing runs; bash reports the names instead.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use ostler_shell::parts;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const TOKENS: &[&str] = &[
    "a",
    "b",
    "c",
    " ",
    " ",
    "a ",
    "b c",
    "$(",
    ")",
    "`",
    "'",
    "\"",
    "\\",
    "\n",
    "; ",
    " && ",
    " || ",
    " | ",
    "{ ",
    "; }",
    "(",
    "<<E\n",
    "\nE\n",
    "<<'E'\n",
    "<<-E\n",
    "\t",
    "E",
    "#",
    "$",
    "=",
    "${a",
    "${a:-",
    "}",
    "<(",
    "[[ ",
    " ]]",
    "[ ",
    " ]",
    "$'",
    "if ",
    "; then ",
    "; fi",
    "; do ",
    "; done",
    "case a in ",
    "a) ",
    " ;; ",
    "esac",
    "for a in b",
    "! ",
    "& ",
    " >f ",
    " <<< ",
    "~",
    "*",
    "eval ",
    "bash -c ",
    "command ",
    "\\\n",
    "a=",
    "-",
    "$((",
    "))",
    "1",
    "{a,b}",
    "time ",
    "function ",
    "()",
    "@",
    "?",
    "[",
    "]",
    ":",
];

/// The names that bash tries to run.
fn tried(command: &str, folder: &Path) -> Option<Vec<String>> {
    let log = folder.join("log");
    let script = folder.join("script");
    let prelude = "PATH=/nowhere; ulimit -t 2; exec 9>>log; command_not_found_handle() { printf '%s\\0' \"$1\" >&9; }\n";
    fs::write(&script, format!("{prelude}{command}\n")).ok()?;
    fs::write(&log, "").ok()?;
    Command::new("/bin/bash")
        .args(["--norc", "--noprofile", "script"])
        .current_dir(folder)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .ok()?;
    Some(
        String::from_utf8_lossy(&fs::read(log).ok()?)
            .split_terminator('\0')
            .map(str::to_owned)
            .collect(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), rng_seed: seed(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bash_runs_nothing_that_is_not_listed(tokens in prop::collection::vec(prop::sample::select(TOKENS), 1..14)) {
        let command = tokens.concat();
        let Ok(judged) = parts(&command) else { return Ok(()) };
        // A background command may still write when the next one starts.
        let folder = tempfile::tempdir()?;
        for name in tried(&command, folder.path()).unwrap_or_default() {
            let listed = judged.parts.iter().any(|part| part.name() == name);
            prop_assert!(listed, "{command:?} runs {name:?}, which is not listed: {judged:#?}");
        }
    }
}

/// A fixed seed, or a random one if `PROPTEST_CASES` is set.
fn seed() -> RngSeed {
    if std::env::var_os("PROPTEST_CASES").is_some() { RngSeed::Random } else { RngSeed::Fixed(7) }
}

/// The number of commands, which `PROPTEST_CASES` can set.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(1500)
}

//! The kit itself: its scenarios are valid, and a program that does not conform fails.

use std::process::Command;

const RUNNER: &str = env!("CARGO_BIN_EXE_ostler-conformance");

#[test]
fn every_scenario_is_valid_and_has_a_description() {
    let output = Command::new(RUNNER).arg("--list").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let listed = String::from_utf8(output.stdout).unwrap();
    assert!(listed.lines().any(|line| line.starts_with("text ")), "{listed}");
    assert!(listed.lines().all(|line| line.ends_with('.')), "{listed}");
}

#[test]
#[ignore = "needs the official SDKs: OSTLER_PEERS, OSTLER_NATIVE_PEERS, OSTLER_PYTHON"]
fn a_program_without_output_passes_no_scenario() {
    // Not Python: it waits a minute for an answer to its first request, also of a program that is gone.
    let chosen = ["--only", "text", "--sdk", "ts050", "--sdk", "ts325"];
    let runner = &mut Command::new(RUNNER);
    let output = runner.args(["--cli", "/bin/true", "--as-tests"]).args(chosen).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success(), "{text}");
    for sdk in ["ts050", "ts325"] {
        assert!(text.contains(&format!("test conformance::text::{sdk} ... FAILED")), "{text}");
    }
}

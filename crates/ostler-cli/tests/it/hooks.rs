//! Hooks of settings files, seen from outside.

use std::fs;

use crate::run::Ostler;

const SETTINGS: &str = r#"{"hooks": {
    "SessionStart": [{"hooks": [{"type": "command", "command": "echo start >> events"}]}],
    "SessionEnd": [{"hooks": [{"type": "command", "command": "echo end >> events"}]}]
}}"#;

#[test]
fn a_session_has_its_first_and_its_last_hook_whichever_way_it_is_run() {
    let typed = Ostler::new().args(&["--settings", SETTINGS]);
    typed.type_lines(&["hello"]);
    let one_prompt = Ostler::new().args(&["--settings", SETTINGS]);
    one_prompt.run(&["hello"]);
    let printed = Ostler::new().args(&["--settings", SETTINGS]);
    printed.run(&["-p", "hello"]);
    for ostler in [typed, one_prompt, printed] {
        assert_eq!(fs::read_to_string(ostler.path("events")).unwrap(), "start\nend\n");
    }
}

#[test]
fn hooks_are_shown_to_programs_that_ask() {
    let settings = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}"#;
    let ostler =
        Ostler::new().args(&["--settings", settings, "-p", "--output-format", "stream-json"]);
    let ran = ostler.run(&["--include-hook-events", "hello"]);
    ran.shows(&[r#""subtype":"hook_started""#, r#""subtype":"hook_response""#]);
    assert!(!ostler.run(&["hello"]).stdout.contains("hook_started"));
}

//! Hooks of settings files, seen from outside.

use std::fs;

use serde_json::Value;

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
fn the_last_hook_learns_whether_a_person_left_at_the_prompt() {
    let settings = r#"{"hooks": {"SessionEnd": [{"hooks": [{"type": "command", "command": "cat >> events"}]}]}}"#;
    let told = |ostler: &Ostler| {
        let told: Value =
            serde_json::from_str(&fs::read_to_string(ostler.path("events")).unwrap()).unwrap();
        told["reason"].as_str().unwrap().to_owned()
    };
    let typed = Ostler::new().args(&["--settings", settings]);
    typed.type_lines(&["hello"]);
    assert_eq!(told(&typed), "prompt_input_exit");
    let printed = Ostler::new().args(&["--settings", settings]);
    printed.run(&["-p", "hello"]);
    assert_eq!(told(&printed), "other");
    let one_prompt = Ostler::new().args(&["--settings", settings]);
    one_prompt.run(&["hello"]);
    assert_eq!(told(&one_prompt), "other");
}

#[test]
fn setup_hooks_run_first_and_alone_if_that_is_all() {
    let settings = r#"{"hooks": {
        "Setup": [{"matcher": "init", "hooks": [{"type": "command", "command": "echo init >> events"}]},
            {"matcher": "maintenance", "hooks": [{"type": "command", "command": "echo tend >> events"}]}],
        "SessionStart": [{"hooks": [{"type": "command", "command": "echo start >> events"}]}],
        "Stop": [{"hooks": [{"type": "command", "command": "echo stop >> events"}]}]
    }}"#;
    for (args, events) in [
        (&["--init-only"][..], "init\nstart\n"),
        (&["--init", "-p", "hello"], "init\nstart\nstop\n"),
        (&["--maintenance", "-p", "hello"], "tend\nstart\nstop\n"),
        (&["-p", "hello"], "start\nstop\n"),
    ] {
        let ostler = Ostler::new().args(&["--settings", settings]);
        ostler.run(args);
        assert_eq!(fs::read_to_string(ostler.path("events")).unwrap(), events, "{args:?}");
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

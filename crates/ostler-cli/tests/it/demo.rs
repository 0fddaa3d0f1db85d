//! The offline demo: everything the README promises a newcomer.

use std::fs;

use crate::run::Ostler;

#[test]
fn it_says_what_it_is_and_how_to_get_a_real_model() {
    let ran = Ostler::new().type_lines(&["hello"]);
    ran.shows(&["offline-demo", "the offline demo answers", "set ANTHROPIC_API_KEY"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
}

#[test]
fn it_lists_and_reads_without_asking() {
    let ran = Ostler::new().type_lines(&["list the files", "read README.md"]);
    ran.shows(&["Glob", "README.md", "Read README.md", "# A readme"]);
    assert!(!ran.stdout.contains("Allow"), "{}", ran.stdout);
}

#[test]
fn it_writes_and_edits_once_allowed() {
    let ostler = Ostler::new();
    let ran = ostler.type_lines(&[
        "write \"hello\" to notes.txt",
        "y",
        "replace hello with good morning in notes.txt",
        "y",
    ]);
    ran.shows(&["Allow Write notes.txt?", "Allow Edit notes.txt?", "good morning"]);
    assert_eq!(fs::read_to_string(ostler.path("notes.txt")).unwrap().trim_end(), "good morning");
}

#[test]
fn only_a_clear_yes_allows_a_call() {
    for answers in [&["n"][..], &["perhaps"], &[""], &[]] {
        let ostler = Ostler::new();
        let ran = ostler.type_lines(&[&["write \"x\" to new.txt"][..], answers].concat());
        assert!(!ostler.path("new.txt").exists(), "{}", ran.stdout);
        ran.shows(&["Allow Write new.txt?", "allow it"]);
    }
}

#[test]
fn it_runs_a_command_after_approval_and_a_harmless_one_without() {
    let ostler = Ostler::new();
    ostler.type_lines(&["run `touch made.txt`", "y"]).shows(&["Allow Bash touch made.txt?"]);
    assert!(ostler.path("made.txt").exists());
    let ran = ostler.type_lines(&["run `echo one two | wc -w`"]);
    ran.shows(&["2"]);
    assert!(!ran.stdout.contains("Allow"), "{}", ran.stdout);
    // One part that is not harmless makes the whole command require approval.
    let ran = ostler.type_lines(&["run `echo $(rm made.txt)`", "n"]);
    ran.shows(&["Allow Bash"]);
    assert!(ostler.path("made.txt").exists());
}

#[test]
fn it_asks_a_question_and_repeats_the_answer() {
    let ran = Ostler::new().type_lines(&["ask me which colour I like: red, green or blue", "2"]);
    ran.shows(&["1. red", "2. green", "3. blue", "You chose green"]);
    let ran =
        Ostler::new().type_lines(&["ask me which colour I like: red, green or blue", "mauve"]);
    ran.shows(&["mauve", "mauve"]);
}

#[test]
fn it_delegates_to_a_subagent_that_asks_as_well() {
    let ostler = Ostler::new();
    let ran = ostler.type_lines(&["ask a subagent to write \"sub\" to sub.txt", "y"]);
    ran.shows(&["• Agent", "  • Write sub.txt", "Allow Write sub.txt?", "The subagent reports"]);
    assert_eq!(fs::read_to_string(ostler.path("sub.txt")).unwrap().trim_end(), "sub");
}

#[test]
fn one_prompt_on_the_command_line_is_answered_without_asking() {
    let ran = Ostler::new().args(&["read README.md"]).type_lines(&[]);
    ran.shows(&["# A readme"]);
    assert_eq!(ran.code, Some(0));

    let ostler = Ostler::new().args(&["write \"x\" to new.txt"]);
    ostler.type_lines(&[]).shows(&["No user can be asked here", "--permission-mode"]);
    assert!(!ostler.path("new.txt").exists());

    let ostler =
        Ostler::new().args(&["--permission-mode", "acceptEdits", "write \"x\" to new.txt"]);
    ostler.type_lines(&[]);
    assert!(ostler.path("new.txt").exists());
}

#[test]
fn plan_mode_changes_nothing() {
    let ostler = Ostler::new().args(&["--permission-mode", "plan"]);
    ostler.type_lines(&["write \"x\" to new.txt", "y"]).shows(&["plan mode changes nothing"]);
    assert!(!ostler.path("new.txt").exists());
}

#[test]
fn output_to_a_pipe_has_no_colours() {
    let ran = Ostler::new().type_lines(&["list the files"]);
    assert!(!ran.stdout.contains('\u{1b}'), "{}", ran.stdout);
}

#[test]
fn mistakes_on_the_command_line_are_explained() {
    for (arguments, expected) in [
        (&["--cwd", "nowhere", "hi"][..], "cannot work in nowhere"),
        (&["--cwd", "README.md", "hi"], "not a folder"),
        (&["--permission-mode", "yolo"], "acceptEdits"),
        (&["--max-turns", "0", "hi"], "max-turns"),
        (&["--frobnicate"], "--frobnicate"),
    ] {
        let ran = Ostler::new().args(arguments).type_lines(&[]);
        assert!(ran.stderr.contains(expected), "{arguments:?}: {}", ran.stderr);
        assert!(matches!(ran.code, Some(1 | 2)), "{arguments:?}: {:?}", ran.code);
    }
}

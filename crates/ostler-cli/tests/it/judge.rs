//! Commands that once ran code without approval, run through `ostler -p`: none may leave its mark.

use ostler_testkit::hostile;

use crate::run::Ostler;

// Mutant: the judge of commit 345b17e, with which fifteen of these left the mark. Seen to fail with an engine that allows
// commands that require approval.
#[test]
fn commands_that_once_ran_code_without_approval_now_require_it() {
    let outside = tempfile::tempdir().unwrap();
    let mark = outside.path().join("pwned");
    for mode in ["default", "acceptEdits"] {
        let ostler = Ostler::new();
        hostile::repositories(ostler.folder.path(), &mark).unwrap();
        for command in hostile::commands(&mark) {
            let prompt = format!("$ {command}");
            let ran = ostler.run(&["--trust-project", "--permission-mode", mode, "-p", &prompt]);
            assert!(!mark.exists(), "{mode}: {command} ran: {}", ran.stdout);
        }
        // The project still works.
        let ran = ostler.run(&["-p", "$ cat README.md | head -5"]);
        assert!(ran.stdout.contains("A readme"), "{}{}", ran.stdout, ran.stderr);
    }
}

// Seen to fail with `Policy::decide` without the rules that deny.
#[test]
fn no_spelling_of_a_denied_command_runs_in_bypass_mode() {
    let outside = tempfile::tempdir().unwrap();
    let mark = outside.path().join("pwned");
    let settings = hostile::deny_settings();
    let ostler = Ostler::new();
    hostile::repositories(ostler.folder.path(), &mark).unwrap();
    let bypass = ["--settings", &settings, "--dangerously-skip-permissions"];
    for (rule, command) in hostile::denied(&mark) {
        let ran = ostler.run(&[&bypass[..], &["-p", &format!("$ {command}")]].concat());
        assert!(!mark.exists(), "{rule}: {command} ran: {}", ran.stdout);
    }
    let allowed = format!("$ mkdir {}", mark.display());
    let ran = ostler.run(&[&bypass[..], &["-p", &allowed]].concat());
    assert!(mark.exists(), "a command that is not denied runs: {}{}", ran.stdout, ran.stderr);
}

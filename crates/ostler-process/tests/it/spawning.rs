//! Children start in their own session, without a fork of this process, and report the system's own errors.

use std::io::ErrorKind;
use std::process::Stdio;

use ostler_process::Group;
use tokio::io::AsyncReadExt as _;

async fn output(mut command: tokio::process::Command) -> String {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut group = Group::spawn(command).unwrap();
    let mut text = String::new();
    group.stdout().unwrap().read_to_string(&mut text).await.unwrap();
    text.trim().to_owned()
}

/// Mutant: `Command::new` in `command`, spawned without the wrapper.
#[tokio::test]
async fn a_child_leads_a_session_of_its_own() {
    for start in [ostler_process::command, tokio::process::Command::new::<&str>] {
        let mut command = start("/bin/sh");
        command.args(["-c", "read -r line </proc/self/stat; echo $$ $line"]);
        let stat = output(command).await;
        let fields: Vec<_> = stat.split(' ').collect();
        // `/proc/self/stat`: id, name, state, parent, group, session.
        assert_eq!((fields[0], fields[0]), (fields[5], fields[6]), "{stat}");
    }
}

/// Mutant: `is_there` left out of `spawn`: the utility starts and reports the error itself.
#[tokio::test]
async fn a_program_that_cannot_be_started_fails_spawn() {
    let folder = std::env::temp_dir();
    let file = folder.join(format!("not-a-program-{}", std::process::id()));
    std::fs::write(&file, "text").unwrap();
    let missing = folder.join("no-such-program");
    let cases = [
        ("no-such-program-anywhere".as_ref(), ErrorKind::NotFound),
        (missing.as_path(), ErrorKind::NotFound),
        (file.as_path(), ErrorKind::PermissionDenied),
    ];
    for (program, kind) in cases {
        let error = Group::spawn(ostler_process::command(program)).unwrap_err();
        assert_eq!(error.kind(), kind, "{}", program.display());
    }
    let mut elsewhere = ostler_process::command("/bin/sh");
    elsewhere.current_dir(&missing);
    assert_eq!(Group::spawn(elsewhere).unwrap_err().kind(), ErrorKind::NotFound);
    std::fs::remove_file(file).unwrap();
}

#[tokio::test]
async fn arguments_environment_and_folder_arrive_unchanged() {
    let mut command = ostler_process::command("sh");
    command.args(["-c", "printf '%s|' \"$0\" \"$@\" \"$GREETING\" \"$PWD\"", "--", "-x", "a b"]);
    command.env("GREETING", "hello").current_dir("/");
    assert_eq!(output(command).await, "--|-x|a b|hello|/|");
}

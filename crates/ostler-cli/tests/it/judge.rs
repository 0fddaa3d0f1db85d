//! Commands that once ran code without a question, really run through `ostler -p`: none may leave its mark.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::run::Ostler;

/// Each touches `PWNED` where the shell computes, replaces or reads configuration. `PWNED` stands for a path outside.
const COMMANDS: &[&str] = &[
    "RANDOM='a[$(touch PWNED)]'; ls",
    "OPTIND='a[$(touch PWNED)]'; ls",
    "for RANDOM in 'a[$(touch PWNED)]'; do ls; done",
    "read RANDOM <<< 'a[$(touch PWNED)]'",
    "x='b[$(touch PWNED)]'; a=([x]=1)",
    "a=(['b[$(touch PWNED)]']=1)",
    "echo \"${x:-'$(touch PWNED)'}\"",
    "echo \"${x:-'`touch PWNED`'}\"",
    "echo 'touch PWNED' | xargs -I ls bash -c ls",
    "git config core.fsmonitor 'touch PWNED' --get; git status",
    "BASH_CMDS=([nproc]=/bin/sh); nproc -c 'touch PWNED'",
    "x='b[$(touch PWNED)]'; printf x {a[x]}</dev/null",
    "printf '%n' PATH; ls",
    "cd evil && git show",
    "cd hostile && git status",
];

fn git(folder: &Path, words: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(words).current_dir(folder);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A project with a program that `printf %n` finds, a folder that is a repository by itself, and a hostile `.git`.
fn hostile_project(mark: &str) -> Ostler {
    let ostler = Ostler::new();
    git(ostler.folder.path(), &["init", "-q"]);
    fs::create_dir(ostler.path("0")).unwrap();
    fs::write(ostler.path("0/ls"), format!("#!/bin/sh\n/bin/touch {mark}\n")).unwrap();
    let evil = ostler.path("evil");
    git(ostler.folder.path(), &["init", "-q", "evil"]);
    for text in ["a", "b"] {
        fs::write(evil.join("file"), text).unwrap();
        git(&evil, &["add", "."]);
        git(&evil, &["commit", "-q", "-m", text]);
    }
    let config = format!("[core]\n\tbare = false\n[diff \"x\"]\n\ttextconv = touch {mark};\n");
    fs::rename(evil.join(".git"), evil.join("real")).unwrap();
    fs::write(evil.join("real/config"), config).unwrap();
    fs::create_dir_all(evil.join("real/info")).unwrap();
    fs::write(evil.join("real/info/attributes"), "* diff=x\n").unwrap();
    fs::copy(evil.join("real/HEAD"), evil.join("HEAD")).unwrap();
    fs::write(evil.join("commondir"), "real\n").unwrap();
    git(ostler.folder.path(), &["init", "-q", "hostile"]);
    git(&ostler.path("hostile"), &["config", "core.fsmonitor", &format!("touch {mark}; :")]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(ostler.path("0/ls"), executable).unwrap();
    }
    ostler
}

// Mutant: the judge of commit 345b17e, with which each of these left the mark.
#[test]
fn no_command_that_ran_code_unasked_does_so_again() {
    let outside = tempfile::tempdir().unwrap();
    let mark = outside.path().join("pwned");
    let text = mark.display().to_string();
    for mode in ["default", "acceptEdits"] {
        let ostler = hostile_project(&text);
        for command in COMMANDS {
            let prompt = format!("$ {}", command.replace("PWNED", &text));
            let ran = ostler.run(&["--trust-project", "--permission-mode", mode, "-p", &prompt]);
            assert!(!mark.exists(), "{mode}: {command} ran: {}", ran.stdout);
        }
        // The same project is not unusable.
        let ran = ostler.run(&["-p", "$ cat README.md | head -5"]);
        assert!(ran.stdout.contains("A readme"), "{}{}", ran.stdout, ran.stderr);
    }
}

//! Tries given commands instead of generated ones.

use std::path::PathBuf;

use anyhow::{Result, ensure};

use super::run::Runner;
use super::worker::Worker;
use super::{ask, names};

/// Runs harmful commands and checks that each is noticed, to prove that the fuzzer can find something.
pub(super) fn notices_harm() -> Result<()> {
    let mut runner = Runner::new(&PathBuf::from("/worlds/harm"))?;
    let denied = ask::SETTINGS.iter().filter(|setting| setting.denies).copied().collect::<Vec<_>>();
    for (command, harm) in [
        ("touch canary", "created /worlds/harm/plain/canary"),
        ("touch ../canary", "created /worlds/harm/canary"),
        ("touch README.md", "changed /worlds/harm/plain/README.md"),
        ("echo x >> log.txt", "changed /worlds/harm/plain/log.txt"),
        ("rm notes.txt", "removed /worlds/harm/plain/notes.txt"),
        ("git branch -D victim", "removed /worlds/harm/plain/.git/refs/heads/victim"),
        ("touch ~/.profile", "created /worlds/harm/home/.profile"),
        ("touch x; rm x", "a folder was changed for a moment"),
        ("cat link", "printed a file outside"),
        ("rev < ../outside/secret.txt | od -c", "printed a file outside"),
        ("cat .env", "printed a denied file"),
        ("env", "printed the environment"),
        ("ls ../outside", "listed a folder outside"),
    ] {
        let noticed = runner.run("plain", command, &denied)?;
        ensure!(noticed.iter().any(|it| it == harm), "{command:?} was not noticed: {noticed:?}");
    }
    let edits = ask::EDIT_SETTINGS;
    for (command, harm) in [
        ("touch ../canary", Some("created /worlds/harm/canary")),
        ("echo 'touch canary' | bash -c 'touch canary'", Some("created /worlds/harm/plain/canary")),
        ("touch .git/x", Some("created /worlds/harm/plain/.git/x")),
        ("touch ~/.profile", Some("created /worlds/harm/home/.profile")),
        ("cat link", Some("printed a file outside")),
        ("touch new; rm notes.txt; echo x > log.txt", None),
        ("touch canary", None),
        ("mkdir ' /canary' -p", None),
    ] {
        let noticed = runner.run("plain", command, edits)?;
        let is_noticed = noticed.iter().any(|it| Some(it.as_str()) == harm);
        ensure!(is_noticed == harm.is_some(), "{command:?} with edits: {noticed:?}");
        ensure!(harm.is_some() || noticed.is_empty(), "{command:?} is an edit: {noticed:?}");
    }
    for command in ["ls -la", "git status", "cat README.md src/*.rs"] {
        let noticed = runner.run("plain", command, &denied)?;
        ensure!(noticed.is_empty(), "{command:?} is harmless: {noticed:?}");
    }
    Ok(())
}

/// Judges given commands in every project, and runs those that are called harmless.
pub(super) fn check(commands: &[String]) -> Result<bool> {
    let mut worker = Worker::new(0)?;
    let mut is_clean = true;
    for command in commands {
        for at in 0..worker.judges.len() {
            let project = worker.judges[at].0;
            let settings = worker.judges[at].1.allowing(command);
            if settings.is_empty() {
                println!("asked in {project}: {command:?}");
                continue;
            }
            let harm = worker.runner.run(project, command, &settings)?;
            is_clean &= harm.is_empty();
            println!(
                "allowed in {project} ({}): {command:?}: {}",
                names(&settings),
                harm.join(", ")
            );
        }
    }
    Ok(is_clean)
}

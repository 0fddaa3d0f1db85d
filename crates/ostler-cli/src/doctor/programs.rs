//! The programs that tools run.

use std::path::{Path, PathBuf};

use super::Finding;

pub(super) fn check(path: Option<&str>) -> Vec<Finding> {
    vec![shell(), git(path)]
}

/// The shell that Bash runs, looked for where that tool looks.
fn shell() -> Finding {
    let found = |shells: &[&'static str]| shells.iter().copied().find(|it| Path::new(it).exists());
    match (found(&["/bin/bash", "/usr/bin/bash"]), found(&["/bin/sh"])) {
        (Some(bash), _) => Finding::good(format!("shell: {bash}")),
        (None, Some(sh)) => {
            Finding::odd(format!("shell: only {sh}; models write for bash"), "install bash")
        }
        (None, None) => Finding::bad("shell: there is none, so no command can run", "install bash"),
    }
}

fn git(path: Option<&str>) -> Finding {
    let folders = path.unwrap_or_default().split(':').filter(|folder| !folder.is_empty());
    let mut programs = folders.map(|folder| PathBuf::from(folder).join("git"));
    match programs.find(|program| program.is_file()) {
        Some(git) => Finding::good(format!("git: {}", git.display())),
        None => Finding::odd("git: not found; the agent works without it", "install git"),
    }
}

//! What agents need of a machine, looked at for whoever asks: the check-up of a server and `ostler doctor`.

use std::path::Path;

use rustix::fs::statvfs;

/// What was found about one thing.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    /// How it is, in a word.
    pub health: Health,
    /// How it is.
    pub text: String,
    /// What to do about it.
    pub fix: Option<String>,
}

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// As it should be.
    Good,
    /// It works, but perhaps not as meant.
    Odd,
    /// It does not work.
    Bad,
}

impl Finding {
    /// As it should be.
    pub fn good(text: impl Into<String>) -> Self {
        Self { health: Health::Good, text: text.into(), fix: None }
    }

    /// It works, but perhaps not as meant.
    pub fn odd(text: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { health: Health::Odd, text: text.into(), fix: Some(fix.into()) }
    }

    /// It does not work.
    pub fn bad(text: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { health: Health::Bad, text: text.into(), fix: Some(fix.into()) }
    }

    /// With what it is about before it.
    #[must_use]
    pub fn about(self, what: &str) -> Self {
        Self { text: format!("{what}: {}", self.text), ..self }
    }
}

/// The shell that Bash runs, looked for where that tool looks.
pub fn shell() -> Finding {
    let found = |shells: &[&'static str]| shells.iter().copied().find(|it| Path::new(it).exists());
    match (found(&["/bin/bash", "/usr/bin/bash"]), found(&["/bin/sh"])) {
        (Some(bash), _) => Finding::good(bash),
        (None, Some(sh)) => {
            Finding::odd(format!("only {sh}; models write for bash"), "install bash")
        }
        (None, None) => Finding::bad("there is none, so no command can run", "install bash"),
    }
}

/// Git, in the folders of a `PATH`.
pub fn git(path: Option<&str>) -> Finding {
    let folders = path.unwrap_or_default().split(':').filter(|folder| !folder.is_empty());
    let mut programs = folders.map(|folder| Path::new(folder).join("git"));
    match programs.find(|program| program.is_file()) {
        Some(git) => Finding::good(git.display().to_string()),
        None => Finding::odd("not found; the agent works without it", "install git"),
    }
}

/// How much room is left on the disk of a folder that is there; less than `little` bytes is odd, than `too_little` bad.
pub fn room(folder: &Path, little: u64, too_little: u64, fix: &str) -> Finding {
    let Ok(disk) = statvfs(folder) else {
        return Finding::odd("it does not say how much room is left", fix);
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let text = match free / 1_000_000 {
        megabytes @ ..10_000 => format!("{megabytes} MB free"),
        megabytes => format!("{} GB free", megabytes / 1_000),
    };
    match free {
        free if free < too_little => Finding::bad(text, fix),
        free if free < little => Finding::odd(text, fix),
        _ => Finding::good(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_judged_by_what_is_needed() {
        let place = tempfile::tempdir().unwrap();
        let room = |little, too_little| room(place.path(), little, too_little, "make room").health;
        assert_eq!(room(0, 0), Health::Good);
        assert_eq!(room(u64::MAX, 0), Health::Odd);
        assert_eq!(room(u64::MAX, u64::MAX), Health::Bad);
    }

    #[test]
    fn git_is_looked_for_in_the_path_that_is_given() {
        let place = tempfile::tempdir().unwrap();
        let path = format!("/no/such/folder::{}", place.path().display());
        assert_eq!(git(Some(&path)).health, Health::Odd);
        std::fs::write(place.path().join("git"), "").unwrap();
        let found = git(Some(&path)).about("git");
        assert_eq!(found.text, format!("git: {}", place.path().join("git").display()));
    }
}

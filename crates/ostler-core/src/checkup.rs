//! Checks of what agents need on a machine, for the server's check-up and `ostler doctor`.

use std::path::Path;

use rustix::fs::statvfs;

/// The result of one check.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    /// The health in one word.
    pub health: Health,
    /// What the check found.
    pub text: String,
    /// What the operator can do about it.
    pub fix: Option<String>,
}

/// The health of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// Works as it should.
    Good,
    /// Works, but perhaps not as intended.
    Odd,
    /// Does not work.
    Bad,
}

impl Finding {
    pub fn good(text: impl Into<String>) -> Self {
        Self { health: Health::Good, text: text.into(), fix: None }
    }

    pub fn odd(text: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { health: Health::Odd, text: text.into(), fix: Some(fix.into()) }
    }

    pub fn bad(text: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { health: Health::Bad, text: text.into(), fix: Some(fix.into()) }
    }

    /// Adds the name of the part in front of the text.
    #[must_use]
    pub fn about(self, what: &str) -> Self {
        Self { text: format!("{what}: {}", self.text), ..self }
    }
}

/// Finds the shell for the Bash tool, in the same places as that tool.
pub fn shell() -> Finding {
    let found = |shells: &[&'static str]| shells.iter().copied().find(|it| Path::new(it).exists());
    match (found(&["/bin/bash", "/usr/bin/bash"]), found(&["/bin/sh"])) {
        (Some(bash), _) => Finding::good(bash),
        (None, Some(sh)) => {
            Finding::odd(format!("only {sh} was found; models write for bash"), "install bash")
        }
        (None, None) => Finding::bad("no shell was found, so no command can run", "install bash"),
    }
}

/// Finds git in the folders of a `PATH`.
pub fn git(path: Option<&str>) -> Finding {
    let folders = path.unwrap_or_default().split(':').filter(|folder| !folder.is_empty());
    let mut programs = folders.map(|folder| Path::new(folder).join("git"));
    match programs.find(|program| program.is_file()) {
        Some(git) => Finding::good(git.display().to_string()),
        None => Finding::odd("not found; the agent works without it", "install git"),
    }
}

/// Checks the free space on the disk of an existing folder; less than `little` bytes is odd, less than `too_little` is
/// bad.
pub fn room(folder: &Path, little: u64, too_little: u64, fix: &str) -> Finding {
    let Ok(disk) = statvfs(folder) else {
        return Finding::odd("the free space is unknown", fix);
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
    fn free_space_is_compared_with_what_is_needed() {
        let place = tempfile::tempdir().unwrap();
        let room = |little, too_little| room(place.path(), little, too_little, "make room").health;
        assert_eq!(room(0, 0), Health::Good);
        assert_eq!(room(u64::MAX, 0), Health::Odd);
        assert_eq!(room(u64::MAX, u64::MAX), Health::Bad);
    }

    #[test]
    fn git_is_searched_in_the_given_path() {
        let place = tempfile::tempdir().unwrap();
        let path = format!("/no/such/folder::{}", place.path().display());
        assert_eq!(git(Some(&path)).health, Health::Odd);
        std::fs::write(place.path().join("git"), "").unwrap();
        let found = git(Some(&path)).about("git");
        assert_eq!(found.text, format!("git: {}", place.path().join("git").display()));
    }
}

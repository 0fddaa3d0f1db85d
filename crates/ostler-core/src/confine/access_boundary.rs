//! What an agent can reach on this machine, as one value that is computed in one place.
//!
//! The engine enforces it with rules and directories. They restrict its tools and every command that the engine can
//! parse, but not a program that a command starts. A sandbox of the operating system could use the same value to
//! restrict those, too.

use std::path::PathBuf;

use ostler::Options;
use ostler_base::protected_paths::{deny_rules, escaped, pattern};

/// What an agent can reach. If two entries cover a path, the stricter one counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AccessBoundary {
    /// The working directories, which may be read and written.
    pub work: Vec<PathBuf>,
    /// Other places that it can see.
    pub(crate) openings: Vec<Opening>,
    /// Paths that it must neither read nor write.
    pub(crate) hidden: Vec<PathBuf>,
    /// Names of files and folders that it must not see in openings: `.ssh`, `*.pem`.
    pub(crate) hidden_names: Vec<String>,
}

/// A place outside the working directories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Opening {
    /// Its path, with links resolved.
    pub place: PathBuf,
    pub(crate) writable: bool,
}

impl AccessBoundary {
    /// Adds the boundary to an engine's options. These rules apply in every mode.
    pub(crate) fn put_up(&self, options: &mut Options) {
        let cwd = options.context.cwd.clone();
        let openings = self.openings.iter().map(|opening| &opening.place);
        for place in self.work.iter().chain(openings) {
            if cwd.as_ref() != Some(place) {
                options.context.additional_directories.push(place.clone());
            }
        }
        let denied = &mut options.permissions.disallowed;
        let read_only = self.openings.iter().filter(|opening| !opening.writable);
        // Rules about editing apply to everything that writes.
        for opening in read_only {
            let place = pattern(&opening.place);
            denied.extend([format!("Edit({place})"), format!("Edit({place}/**)")]);
        }
        for opening in &self.openings {
            let place = pattern(&opening.place);
            for name in &self.hidden_names {
                let hidden = format!("{place}/**/{}", escaped(name, ""));
                for rule in ["Read", "Edit"] {
                    denied.extend([format!("{rule}({hidden})"), format!("{rule}({hidden}/**)")]);
                }
            }
        }
        denied.extend(deny_rules(&self.hidden));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boundary_becomes_directories_and_rules() {
        let mut options = Options::new().cwd("/w");
        let opening = |place: &str, writable| Opening { place: place.into(), writable };
        let access_boundary = AccessBoundary {
            work: vec!["/w".into(), "/w2".into()],
            openings: vec![opening("/r", false), opening("/rw", true)],
            hidden: vec!["/no/such".into()],
            hidden_names: vec!["*.pem".to_owned()],
        };
        access_boundary.put_up(&mut options);
        let places: Vec<PathBuf> = ["/w2", "/r", "/rw"].map(PathBuf::from).into();
        assert_eq!(options.context.additional_directories, places);
        let expected = [
            "Edit(//r)",
            "Edit(//r/**)",
            "Read(//r/**/*.pem)",
            "Read(//r/**/*.pem/**)",
            "Edit(//r/**/*.pem)",
            "Edit(//r/**/*.pem/**)",
            "Read(//rw/**/*.pem)",
            "Read(//rw/**/*.pem/**)",
            "Edit(//rw/**/*.pem)",
            "Edit(//rw/**/*.pem/**)",
            "Read(//no/such)",
            "Read(//no/such/**)",
            "Edit(//no/such)",
            "Edit(//no/such/**)",
        ];
        assert_eq!(options.permissions.disallowed, expected);
    }
}

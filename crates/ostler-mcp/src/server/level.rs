//! How important a log message is.

use std::str::FromStr;

/// The severity of a log message, from the least to the most severe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Level {
    /// Details for finding errors.
    Debug,
    /// What happens in normal use.
    Info,
    /// Normal but significant.
    Notice,
    /// Something may be wrong.
    Warning,
    /// An operation failed.
    Error,
    /// A part of the server failed.
    Critical,
    /// Someone must act at once.
    Alert,
    /// The server cannot be used.
    Emergency,
}

const LEVELS: [(Level, &str); 8] = [
    (Level::Debug, "debug"),
    (Level::Info, "info"),
    (Level::Notice, "notice"),
    (Level::Warning, "warning"),
    (Level::Error, "error"),
    (Level::Critical, "critical"),
    (Level::Alert, "alert"),
    (Level::Emergency, "emergency"),
];

impl Level {
    /// Its name on the wire.
    pub fn as_str(self) -> &'static str {
        LEVELS.iter().find(|(level, _)| *level == self).map_or("info", |(_, name)| name)
    }
}

impl FromStr for Level {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = LEVELS.iter().find(|(_, known)| *known == name).map(|(level, _)| *level);
        found.ok_or_else(|| {
            let names: Vec<_> = LEVELS.iter().map(|(_, name)| *name).collect();
            format!("`{name}` is not a log level; there are: {}", names.join(", "))
        })
    }
}

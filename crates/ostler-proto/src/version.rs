//! The versions of the other side with which this crate was tested.

use std::fmt;

/// The oldest supported level: that of the TypeScript SDK 0.2.50.
pub const OLDEST: Version = Version([2, 1, 50]);
/// The newest tested level: that of the TypeScript SDK 0.3.325.
pub const NEWEST: Version = Version([2, 1, 325]);

/// The version of an engine, as `claude_code_version` of `init` gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version([u32; 3]);

/// Whether an engine can be worked with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Support {
    /// It lacks features that every host needs: refuse to start.
    TooOld,
    /// It was tried.
    Tried,
    /// It is newer than the tested versions: warn, and continue. The protocol has only ever grown.
    Newer,
}

impl Version {
    /// Reads `2.1.50`; text after the third number (`-beta`, ` (Claude Code)`) is ignored.
    ///
    /// ```
    /// use ostler_proto::version::{NEWEST, OLDEST, Support, Version};
    ///
    /// assert_eq!(Version::parse("2.1.325 (Claude Code)"), Some(NEWEST));
    /// assert_eq!(Version::parse("2.0.9").unwrap().support(), Support::TooOld);
    /// assert_eq!(OLDEST.support(), Support::Tried);
    /// assert_eq!(Version::parse("3.0.0-beta").unwrap().support(), Support::Newer);
    /// assert_eq!(Version::parse("latest"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let end = text
            .find(|character: char| character != '.' && !character.is_ascii_digit())
            .unwrap_or(text.len());
        let mut numbers = text[..end].split('.').map(str::parse);
        let mut next = || numbers.next()?.ok();
        Some(Self([next()?, next()?, next()?]))
    }

    /// Whether an engine of this version is supported.
    pub fn support(self) -> Support {
        if self < OLDEST {
            Support::TooOld
        } else if self <= NEWEST {
            Support::Tried
        } else {
            Support::Newer
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.0;
        write!(f, "{major}.{minor}.{patch}")
    }
}

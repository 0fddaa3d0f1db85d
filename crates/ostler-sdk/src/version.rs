//! [`EngineVersion`]: which engine a session uses, and whether this SDK supports it.

use ostler_proto::control::InitializeReply;
use ostler_proto::message::system::Init;
use ostler_proto::version::{NEWEST, OLDEST, Support, Version};

use crate::error::Error;

/// The tag of the warning about an engine that is newer than the tested versions.
pub(crate) const NEWER_ENGINE: &str = "engine_version_untested";

/// The engine and its version, from its answer to `initialize` or, for older engines, from the first `init`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EngineVersion {
    /// `ostler`, with the version of its package. It is not compared with versions of Claude Code.
    Ostler(String),
    /// Claude Code.
    ClaudeCode(Version),
    /// A version that this SDK cannot parse, as the engine sent it.
    Unknown(String),
}

impl EngineVersion {
    pub(crate) fn of_reply(reply: &InitializeReply) -> Option<Self> {
        Self::read(reply.ostler_version.as_deref(), reply.claude_code_version.as_deref())
    }

    pub(crate) fn of_init(init: &Init) -> Option<Self> {
        Self::read(init.ostler_version.as_deref(), init.claude_code_version.as_deref())
    }

    fn read(ostler: Option<&str>, claude_code: Option<&str>) -> Option<Self> {
        let ostler = ostler.map(|version| Self::Ostler(version.to_owned()));
        ostler.or_else(|| claude_code.map(Self::parse))
    }

    /// Reads what `--version` prints: `2.1.325 (Claude Code)`, `ostler 0.1.0`.
    pub(crate) fn parse(text: &str) -> Self {
        let text = text.trim();
        if let Some(version) = text.strip_prefix("ostler ") {
            return Self::Ostler(version.to_owned());
        }
        Version::parse(text).map_or_else(|| Self::Unknown(text.to_owned()), Self::ClaudeCode)
    }

    /// Refuses an engine that is too old. Returns a warning for one that is newer than the tested versions: new
    /// versions have only ever added to the protocol.
    pub(crate) fn judge(&self) -> Result<Option<String>, Error> {
        let Self::ClaudeCode(found) = self else { return Ok(None) };
        match found.support() {
            Support::TooOld => Err(Error::TooOld { found: *found, oldest: OLDEST }),
            Support::Newer => Ok(Some(format!(
                "the engine is Claude Code {found}; this SDK was tested with versions up to {NEWEST}. The session continues; \
                 if something does not work, install Claude Code {NEWEST} or a newer version of this SDK"
            ))),
            _ => Ok(None),
        }
    }
}

impl std::fmt::Display for EngineVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ostler(version) => write!(f, "ostler {version}"),
            Self::ClaudeCode(version) => write!(f, "Claude Code {version}"),
            Self::Unknown(version) => f.write_str(version),
        }
    }
}

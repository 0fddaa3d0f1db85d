//! Record and replay: a run kept in a file, and answered from it, without any network.
//!
//! A [`Recorder`] stands around a model and notes every request and every event of the answer; a [`Player`] is a model
//! that reads them back. To read it, begin with `line` (the format), then `asked` (what of a request is kept and
//! compared) and `library` (which exchange answers a request); `edit`, `veil`, `normal` and `difference` are pure.

mod asked;
mod difference;
mod edit;
mod library;
mod line;
mod normal;
mod player;
mod reader;
mod recorder;
mod veil;

pub use ostler_proto::launch::{ReplayMatch, ReplayTiming, ReplayTools};

pub use self::line::Outcome;
pub use self::player::{Player, ReplayOptions};
pub use self::recorder::Recorder;
pub use self::veil::Veil;

/// What a session is recorded on, or replayed from.
#[derive(Clone, Debug)]
pub enum Tape {
    /// It is recorded.
    Record(Recorder),
    /// It is replayed.
    Replay(Player),
}

/// Why a recording cannot be written or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TapeError(String);

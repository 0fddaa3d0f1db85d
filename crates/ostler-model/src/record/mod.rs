//! Record and replay: a run is written to a file and answered from it, without any network.
//!
//! A [`Recorder`] wraps a model and writes every request and every event of the answer; a [`Player`] is a model that
//! reads them back. To read it, begin with `line` (the format), then `recorded_request` (which parts of a request are
//! written and compared) and `loaded` (which exchange answers a request); `edit`, `redactor`, `normalize` and
//! `difference` are pure.

mod difference;
mod edit;
mod line;
mod loaded;
mod normalize;
mod player;
mod reader;
mod recorded_request;
mod recorder;
mod redactor;

pub use ostler_proto::launch::{ReplayMatch, ReplayTiming, ReplayTools};

pub use self::line::CallOutcome;
pub use self::player::{Player, ReplayOptions};
pub use self::recorder::Recorder;
pub use self::redactor::RecordingRedactor;

/// The recording of a session, to write or to replay.
#[derive(Clone, Debug)]
pub enum Recording {
    /// It is recorded.
    Record(Recorder),
    /// It is replayed.
    Replay(Player),
}

/// Why a recording cannot be written or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RecordingError(String);

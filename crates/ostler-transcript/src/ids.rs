//! New ids and the current time, in the format of frames and session files.

use ostler_proto::Uuid;

/// The current time in the format of frames.
pub fn timestamp() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

/// A new identifier for a frame.
pub fn fresh_uuid() -> Uuid {
    uuid::Uuid::new_v4().to_string().into()
}

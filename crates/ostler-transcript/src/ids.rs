//! New identifiers and the present time, as frames and session files carry them.

use ostler_proto::Uuid;

/// Now, as frames tell it.
pub fn timestamp() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

/// A new identifier for a frame.
pub fn fresh_uuid() -> Uuid {
    uuid::Uuid::new_v4().to_string().into()
}

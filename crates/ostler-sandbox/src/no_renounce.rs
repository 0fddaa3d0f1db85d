//! Systems on which a process cannot give up its rights in this way.

/// Does nothing: this system cannot restrict a process in this way.
///
/// # Errors
/// Never.
pub fn renounce() -> Result<(), String> {
    Ok(())
}

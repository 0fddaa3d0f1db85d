//! What the crates of Ostler's server share.
//!
//! [`error`] is the one format in which the server refuses a request, and [`ids`] makes ids that cannot be guessed.
//! [`paths`] opens files that must lie in a folder, [`private`] keeps files that only the server's user can read, and
//! [`protected_paths`] writes the rules that keep agents out of files and folders.

pub mod error;
pub mod ids;
pub mod paths;
pub mod private;
pub mod protected_paths;

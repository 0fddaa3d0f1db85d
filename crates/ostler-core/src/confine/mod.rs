//! What agents can reach, and what others can read: the environment that commands get (`environment`), places that no tool
//! touches (`access_boundary`, `own_files`), and secrets that are taken out of texts (`redact`).

pub(crate) mod access_boundary;
pub(crate) mod environment;
pub mod own_files;
pub mod redact;

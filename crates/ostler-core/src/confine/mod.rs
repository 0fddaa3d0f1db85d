//! What agents can reach, and what others can read: the environment of commands (`environment`), paths that no tool
//! touches (`access_boundary`, `own_files`), the sandbox of members (`sandbox`), and the redaction of secrets (`redact`).

pub(crate) mod access_boundary;
pub(crate) mod environment;
pub mod own_files;
pub mod redact;
pub mod sandbox;

//! What agents can reach, and what others can read: the environment that commands get ([`environment`]), places that no tool
//! touches ([`protected_paths`], [`access_boundary`]), files that stay below a folder ([`paths`]) or belong to the server alone ([`private`]), and
//! secrets that are taken out of texts ([`redact`]).

pub(crate) mod access_boundary;
pub(crate) mod environment;
pub(crate) mod own_files;
pub(crate) mod paths;
pub(crate) mod private;
pub(crate) mod protected_paths;
pub(crate) mod redact;

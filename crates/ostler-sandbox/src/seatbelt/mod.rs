//! The backend for macOS: `sandbox-exec` with a generated profile (Seatbelt). It has no view of files of its own, so private
//! folders are found by variables instead of by their usual path, and missing paths need no placeholder.

mod backend;
mod profile;
mod quote;
#[cfg(test)]
mod tests;

pub(crate) use self::backend::SeatbeltBackend;

//! Official clients.

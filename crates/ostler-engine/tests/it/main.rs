//! The engine against the scripted Messages API, over real HTTP.

mod host;
mod session;
mod tools;

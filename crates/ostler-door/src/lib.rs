//! Who may talk to Ostler's server, and how much: every request passes this crate first.
//!
//! [`edge::protect`] puts the guards around an application in their order: headers of the response, the caller, the
//! size of the body. [`serve`] limits connections.
//!
//! Refusals have one format ([`ostler_base::error`]), and a route never sees a refused request. [`guard`] identifies
//! the caller: [`users`] with their [`token`]s, and browsers with a cookie ([`code`]). [`site`] has the server's host
//! names and its open paths. [`revocation`] ends open connections when their caller is signed out.

pub mod bind;
pub mod browsers;
mod changes;
pub mod code;
pub mod edge;
mod enter;
pub mod guard;
mod headers;
pub mod limits;
pub mod permits;
pub mod public_url;
pub mod rate;
pub mod revocation;
pub mod routes;
pub mod serve;
pub mod site;
pub mod token;
mod user_file;
pub mod users;
mod write_timeout;

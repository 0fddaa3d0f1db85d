//! Who may talk to Ostler's server, and how much: every request passes here before anything else looks at it.
//!
//! [`edge::protect`] puts the guards around an application in their order: headers of the answer, who it is, how much he
//! sends. [`serve`] bounds connections.
//!
//! What is refused is refused in one shape ([`ostler_base::error`]), before a route sees anything of it. [`guard`] decides who comes
//! in, on behalf of [`users`] with their [`token`]s and of browsers with a cookie ([`code`]); [`site`] says what the
//! server is called and what of it is open. [`revocation`] ends what is still open when its caller is signed out.

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

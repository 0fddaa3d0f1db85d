//! Who may talk to the server, and how much: every request passes here before anything else looks at it.
//!
//! [`edge::protect`] puts the guards around an application in their order: headers of the answer, who it is, how much he
//! sends. [`serve`] bounds connections.
//!
//! What is refused is refused in one shape ([`ostler_base::error`]), before a route sees anything of it. [`guard`] decides who comes
//! in, on behalf of [`users`] with their [`token`]s and of browsers with a cookie ([`code`]); [`site`] says what the
//! server is called and what of it is open. [`revocation`] ends what is still open when its caller is signed out.

pub(crate) mod bind;
pub(crate) mod browsers;
pub(crate) mod code;
pub(crate) mod edge;
pub(crate) mod guard;
pub(crate) mod headers;
pub(crate) mod limits;
pub(crate) mod permits;
pub(crate) mod public_url;
pub(crate) mod rate;
pub(crate) mod revocation;
pub(crate) mod routes;
pub(crate) mod serve;
pub(crate) mod site;
pub(crate) mod token;
pub(crate) mod user_file;
pub(crate) mod users;
pub(crate) mod write_timeout;

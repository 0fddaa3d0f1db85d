//! The interfaces of Ostler's server: REST, events, WebSocket and the page in [`http`], AG-UI in [`agui`].
//!
//! Nothing here has state of its own: it reads what `ostler-core` stores, and asks it to act. The caller was checked before,
//! by `ostler-door`. `http/openapi.rs` describes every route.

pub mod agui;
pub mod http;

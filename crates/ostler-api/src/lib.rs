//! The interfaces of Ostler's server: REST, events, WebSocket and the page in [`http`], AG-UI in [`agui`].
//!
//! Nothing here has its own state: it reads what `ostler-core` stores, and asks it to act. `ostler-door` has checked
//! the caller before. `http/openapi.rs` describes every route.

pub mod agui;
pub mod http;

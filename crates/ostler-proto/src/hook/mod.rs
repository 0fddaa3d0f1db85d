//! Hooks: events of a session at which the host may observe, object or add context.
//!
//! The host registers callbacks per [`HookEvent`] in `initialize` (as [`HookMatcher`]s); the agent calls them with a
//! [`HookInput`] and waits for a [`HookOutput`]. This module does not run hooks.
//!
//! Two generations of the protocol share these types. Events and fields that only the newer one has are optional or
//! simply never seen from an older peer.

mod agent;
mod base;
mod event;
mod input;
mod output;
mod place;
mod prompt;
mod session;
mod specific;
#[cfg(test)]
mod tests;
mod tool;

pub use self::agent::*;
pub use self::base::{Effort, HookBase};
pub use self::event::{HookEvent, HookMatcher, OnFailure};
pub use self::input::HookInput;
pub use self::output::{HookDecision, HookOutput};
pub use self::place::*;
pub use self::prompt::*;
pub use self::session::*;
pub use self::specific::*;
pub use self::tool::*;

//! Messages of an engine to its host: one module per family.
//!
//! The order inside a turn: `system`/`init`, then `assistant` (one per finished block) and `user` (one per tool
//! result) in alternation, then exactly one `result`. Everything else may come in between.

mod assistant;
pub(crate) mod delta;
mod other;
mod result;
pub mod system;
mod user;

pub use self::assistant::*;
pub use self::other::*;
pub use self::result::*;
pub use self::system::System;
pub use self::user::*;

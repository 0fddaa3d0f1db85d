//! Decides whether a call may run, on its effect, the rules and the mode. Every decision includes its steps.
//!
//! [`Policy::decide`] is the entry point. `decide.rs` has the order of the checks, `matching.rs` matches rules against
//! calls, `command.rs` decides on shell commands part by part (`ostler-shell` parses them), `path_forms.rs` follows
//! links. [`Policy::apply`] applies changes, [`explain`] describes a decision for people.

mod command;
mod covers;
mod decide;
mod decision;
mod disk;
mod effect;
mod environment;
mod explain;
mod folders;
mod git_config;
mod git_includes;
mod git_index;
mod matching;
mod narrow;
mod narrows;
mod path_forms;
mod policy;
mod read_guard;
mod repository;
mod rule;
mod sandbox;
mod search_path;
mod shell;
mod suggest;
#[cfg(test)]
mod tests;
mod update;

pub use self::decision::{CallFacts, Decision, Outcome, Step};
pub use self::effect::{Effect, ServerToolPolicy};
pub use self::environment::reduced as reduced_environment;
pub use self::explain::explain;
pub use self::matching::{Match, ResolvedCall, matches, names_server_tool};
pub use self::narrow::Narrowing;
pub use self::policy::{ActiveRule, Policy};
pub use self::read_guard::ReadGuard;
pub use self::rule::{Behavior, Rule, RuleError, Source};
pub use self::sandbox::{DeniedPaths, RuleDomains, SandboxPolicy};
pub use self::update::UpdateError;
pub(crate) use self::update::source_of;

//! Skills as tasks: from a skill and a request to everything the SDK needs for one run.
//!
//! Pure parts first: [`definition`] reads a skill, [`inputs`] checks what a task gives it, [`prompt`] writes the system
//! prompt, [`tools`] and [`mode`] say what may run. [`folder`] and [`cms`] find skills, afresh for every run;
//! [`materialise`] puts those that a run may see into a folder of its own; [`run`] puts it all together.

pub(crate) mod cms;
pub(crate) mod definition;
pub(crate) mod folder;
pub(crate) mod inputs;
pub(crate) mod library;
pub(crate) mod materialise;
pub(crate) mod mcp;
pub(crate) mod metadata;
pub(crate) mod mode;
pub(crate) mod prompt;
pub(crate) mod run;
pub(crate) mod tools;

#[cfg(test)]
mod tests;

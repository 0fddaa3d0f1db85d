//! Skills as tasks: from a skill and a request to everything the SDK needs for one run.
//!
//! Pure parts first: `definition` reads a skill, `inputs` checks what a task gives it, `prompt` writes the system
//! prompt, `tools` and `mode` say what may run. `folder` and `cms` find skills, afresh for every run;
//! `materialise` puts those that a run may see into a folder of its own; `run` puts it all together.

pub mod cms;
pub mod definition;
mod field;
pub mod folder;
pub mod inputs;
pub mod library;
mod listing;
pub mod materialise;
pub mod mcp;
pub mod metadata;
pub mod mode;
mod prompt;
pub mod run;
mod tools;

#[cfg(test)]
mod tests;

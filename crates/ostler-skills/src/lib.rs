//! Skills as tasks: turns a skill and a request into the options of one run.
//!
//! Pure parts first: `definition` reads a skill, `inputs` checks the parameters of a task, `prompt` writes the system
//! prompt, `tools` and `mode` say what may run. `folder` and `cms` find skills, again for every run; `materialise`
//! copies those that a run may see into its own folder; `run` puts it all together.

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

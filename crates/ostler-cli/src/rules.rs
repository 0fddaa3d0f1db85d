//! A policy explained.

use anyhow::Context;
use ostler::engine::rules::{self, Rules};
use ostler_engine::permission::{self, CallFacts};

use crate::args::Args;
use crate::scene;
use crate::screen::Screen;
use crate::text::clean;

/// Tells what would become of a call.
pub(crate) fn explain(
    args: &Args,
    tool: &str,
    words: &[String],
    screen: &mut Screen,
) -> anyhow::Result<()> {
    let cwd = std::env::current_dir().context("cannot tell where we are")?;
    let Rules { policy, .. } = rules::load(&scene::at(args, cwd.clone()))?;
    let input = permission::input_of(tool, &words.join(" "));
    let effect = permission::effect_of(tool, &input, &cwd);
    let text = permission::explain(&policy, &CallFacts { tool, input: &input, effect: &effect });
    Ok(screen.line(clean(&text).trim_end())?)
}

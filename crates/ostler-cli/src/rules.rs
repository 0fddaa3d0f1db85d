//! A policy explained.

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
    let scene = scene::of(args)?;
    let Rules { policy, .. } = rules::load(&scene)?;
    let input = permission::input_of(tool, &words.join(" "));
    let effect = permission::effect_of(tool, &input, &scene.cwd);
    let text = permission::explain(&policy, &CallFacts { tool, input: &input, effect: &effect });
    Ok(screen.line(clean(&text).trim_end())?)
}

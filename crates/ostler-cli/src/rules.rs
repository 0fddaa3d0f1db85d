//! `ostler explain`.

use ostler::engine::judge;
use ostler::engine::rules::{self, Rules};
use ostler_engine::permission::{self, CallFacts};

use crate::args::Args;
use crate::scene;
use crate::screen::Screen;
use crate::text::clean;

/// Prints whether the policy allows a call, and why.
pub(crate) fn explain(
    args: &Args,
    tool: &str,
    words: &[String],
    screen: &mut Screen,
) -> anyhow::Result<()> {
    if let Some(why) = odd_tool(tool) {
        anyhow::bail!(why);
    }
    if tool == "Bash" && words.is_empty() {
        anyhow::bail!("which command? write for example: ostler explain Bash git push");
    }
    let scene = scene::of(args)?;
    let Rules { policy, .. } = rules::load(&scene)?;
    let input = judge::input_of(tool, &words.join(" "));
    let effect = judge::effect_of(tool, &input, &scene.cwd);
    let text = permission::explain(&policy, &CallFacts { tool, input: &input, effect: &effect });
    Ok(screen.line(clean(&text).trim_end())?)
}

/// Tools that rules may name although they are not built in.
const OTHERS: &[&str] =
    &["Agent", "Task", "Skill", "ExitPlanMode", "EnterPlanMode", "MultiEdit", "LS"];

/// An error text if the tool does not exist.
fn odd_tool(tool: &str) -> Option<String> {
    let mut built_in = ostler_tools::session_tools();
    built_in.extend(ostler_tools::task_tools());
    let names = built_in.iter().map(|tool| tool.spec().name);
    let mut known: Vec<String> =
        names.chain(OTHERS.iter().map(|name| (*name).to_owned())).collect();
    if tool.starts_with("mcp__") || known.iter().any(|name| name == tool) {
        return None;
    }
    let meant = known.iter().find(|name| name.eq_ignore_ascii_case(tool));
    if let Some(name) = meant {
        return Some(format!("there is no tool {tool}; did you mean {name}?"));
    }
    known.truncate(built_in.len());
    known.sort();
    Some(format!(
        "there is no tool {tool}; there are {}, and those of MCP servers (mcp__server__tool)",
        known.join(", ")
    ))
}

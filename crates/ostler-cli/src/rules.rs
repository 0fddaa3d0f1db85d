//! `ostler explain`.

use std::path::PathBuf;

use ostler::engine::judge;
use ostler::engine::rules::{self, Rules};
use ostler::engine::sandbox::{self, Attestation};
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
    let Rules { mut policy, settings, .. } = rules::load(&scene)?;
    let sandbox = sandbox::preview(&scene, &settings, &mut policy);
    let line = words.join(" ");
    let input = judge::input_of(tool, &line);
    let effect = judge::effect_of(tool, &input, &scene.cwd);
    let mut text =
        permission::explain(&policy, &CallFacts { tool, input: &input, effect: &effect });
    if tool == "Bash" {
        text.push_str(&match sandbox {
            Ok(None) => String::new(),
            Ok(Some(_)) if policy.runs_outside_sandbox(&scene.cwd, &line) => {
                "\nIt would run outside the sandbox (sandbox.excludedCommands).\n".to_owned()
            }
            Ok(Some(attestation)) => inside(&attestation),
            Err(reason) => {
                format!("\nIt would not run, because the sandbox cannot be started: {reason}\n")
            }
        });
    }
    Ok(screen.line(clean(&text).trim_end())?)
}

/// What the sandbox would enforce for a command.
fn inside(sandbox: &Attestation) -> String {
    let Attestation { backend, landlock_abi, user, .. } = sandbox;
    let mut text =
        format!("\nIt would run in a sandbox ({backend}, Landlock {landlock_abi}, user {user}):\n");
    let mut row = |name: &str, value: String| {
        if !value.is_empty() {
            text.push_str(&format!("  {name}: {value}\n"));
        }
    };
    let list = |paths: &[PathBuf]| {
        let texts: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        texts.join(", ")
    };
    row("can write", list(&sandbox.writable));
    row("cannot change or create", list(&sandbox.protected));
    row("looks empty", list(&sandbox.hidden));
    let network = match sandbox.network {
        "none" => "its own loopback addresses",
        "allow-list" => "allowed hosts, and its own loopback addresses",
        "own-proxy" => "what your own proxy allows, and its own loopback addresses",
        _ => "all hosts",
    };
    row("network", network.to_owned());
    row("Unix sockets", sandbox.unix_sockets.to_owned());
    row("limits", serde_json::to_string(&sandbox.limits).unwrap_or_default());
    row("limits are enforced by", serde_json::to_string(&sandbox.limits_by).unwrap_or_default());
    row("not possible here", sandbox.missing.join("; "));
    text
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

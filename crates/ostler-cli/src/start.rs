//! Starting a session from what the command line says.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use ostler_engine::context::memory::{self, MemoryFile, Sources};
use ostler_engine::session::{self, Connection, Limits, SessionOptions};
use ostler_engine::store::Opened;
use ostler_proto::SessionId;

use crate::args::Args;
use crate::pick::Picked;
use crate::rules::Rules;

/// How long a prompt is awaited before hooks hear of it.
const IDLE_NOTICE: Duration = Duration::from_secs(60);

/// The folder to work in.
pub(crate) fn folder(args: &Args) -> anyhow::Result<PathBuf> {
    let folder = args.cwd.clone().unwrap_or_else(|| ".".into());
    let cwd =
        folder.canonicalize().with_context(|| format!("cannot work in {}", folder.display()))?;
    anyhow::ensure!(cwd.is_dir(), "cannot work in {}: it is not a folder", cwd.display());
    Ok(cwd)
}

/// Starts the engine.
pub(crate) fn engine(
    args: &Args,
    picked: Picked,
    cwd: &Path,
    rules: Rules,
    opened: Option<Opened>,
) -> anyhow::Result<Connection> {
    session::start(SessionOptions {
        tools: ostler_tools::session_tools(),
        folders: rules.folders,
        limits: Limits {
            max_turns: args.max_turns,
            max_budget_usd: args.max_budget_usd,
            ..Limits::default()
        },
        system_prompt: args.system_prompt.clone(),
        append_system_prompt: args.append_system_prompt.clone(),
        memory: memory(cwd),
        opened,
        session_id: args.session_id.clone().map(SessionId::from),
        json_schema: args.json_schema.clone(),
        env: rules.settings.env,
        hooks: rules.settings.hooks.into_iter().map(|(_, hooks)| hooks).collect(),
        hook_events: args.include_hook_events,
        idle_notice: Some(IDLE_NOTICE),
        partial_messages: !args.is_for_programs() || args.include_partial_messages,
        ..SessionOptions::new(picked.model, rules.policy)
    })
    .map_err(anyhow::Error::msg)
}

/// The user's and the project's standing instructions.
fn memory(cwd: &Path) -> Vec<MemoryFile> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let config = std::env::var_os("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    let config = config.or_else(|| Some(home.as_ref()?.join(".claude")));
    memory::load(cwd, config.as_deref(), home.as_deref(), Sources::ALL)
}

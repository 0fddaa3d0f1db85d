//! `ostler mcp list` and `ostler mcp get`.

use std::process::ExitCode;

use ostler::engine::StartContext;
use ostler::engine::server_files::{Approval, Configured, ConfiguredServer, Scope};
use ostler_proto::mcp::McpServerStatus;
use serde_json::Value;

use super::{configured, described, effective, find, health};
use crate::args::Args;
use crate::screen::Screen;
use crate::text::{clean, clipped};

/// The most characters of a program with its arguments in a list.
const WIDEST: usize = 100;

/// Lists all servers, each with its state.
pub(super) async fn all(
    args: &Args,
    scene: &StartContext,
    screen: &mut Screen,
) -> anyhow::Result<ExitCode> {
    let all = configured(scene)?;
    warn(&all, screen);
    if all.servers.is_empty() {
        screen.line("No MCP servers. Add one: ostler mcp add --help")?;
        return Ok(ExitCode::SUCCESS);
    }
    screen.hint("Connecting to the MCP servers…")?;
    let states = health::check(args, scene).await?;
    for server in effective(&all) {
        let (target, kind) = described(&server.entry);
        // Some people write whole scripts there.
        let target = clipped(&target.replace('\n', " "), WIDEST);
        let kind = if kind == "stdio" { String::new() } else { format!(" ({kind})") };
        let (mark, state) = state(server, &states);
        screen.line(&clean(&format!("{}: {target}{kind} - {mark} {state}", server.name)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows one server. Values of variables and headers may be secret and are not shown.
pub(super) async fn one(
    args: &Args,
    scene: &StartContext,
    name: &str,
    screen: &mut Screen,
) -> anyhow::Result<ExitCode> {
    let all = configured(scene)?;
    warn(&all, screen);
    let server = find(&all, name)?;
    let states = health::check(args, scene).await?;
    let (mark, state) = state(server, &states);
    let scope = server.scope.word();
    let mut lines = vec![
        format!("{name}:"),
        format!("  Scope: {scope} ({})", about(server.scope)),
        format!("  File: {}", server.file.display()),
        format!("  State: {mark} {state}"),
    ];
    let entry = &server.entry;
    lines.push(format!("  Type: {}", described(entry).1));
    for (key, title) in
        [("command", "Command"), ("url", "URL"), ("headersHelper", "Headers helper")]
    {
        lines.extend(entry[key].as_str().map(|text| format!("  {title}: {text}")));
    }
    if let Some(args) = entry["args"].as_array() {
        let words: Vec<&str> = args.iter().filter_map(Value::as_str).collect();
        lines.push(format!("  Arguments: {}", words.join(" ").replace('\n', " ")));
    }
    for (key, title) in [("env", "Variables"), ("headers", "Headers")] {
        let names = entry[key].as_object().into_iter().flatten().map(|(name, _)| name.as_str());
        let names: Vec<&str> = names.collect();
        if !names.is_empty() {
            lines.push(format!("  {title} (values hidden): {}", names.join(", ")));
        }
    }
    lines.iter().try_for_each(|line| screen.line(&clean(line)))?;
    if !matches!(server.scope, Scope::Managed | Scope::Dynamic) {
        screen.hint(&format!("To remove it: ostler mcp remove {name} -s {scope}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn warn(all: &Configured, screen: &mut Screen) {
    for warning in &all.warnings {
        screen.complain(&warning.to_string());
    }
}

fn state(server: &ConfiguredServer, states: &[McpServerStatus]) -> (char, String) {
    match server.approval {
        Approval::Pending => (
            '!',
            "waits for your approval: put its name into enabledMcpjsonServers of your own settings"
                .to_owned(),
        ),
        Approval::Rejected => ('-', "rejected by disabledMcpjsonServers".to_owned()),
        _ => match states.iter().find(|state| state.name == server.name) {
            Some(state) => health::state_text(state),
            None => ('✗', "failed: a session does not use it".to_owned()),
        },
    }
}

fn about(scope: Scope) -> &'static str {
    match scope {
        Scope::Local => "for you, in this project",
        Scope::User => "for you, in all projects",
        Scope::Project => "for all users of this project",
        Scope::Managed => "from the administrator",
        _ => "from the command line",
    }
}

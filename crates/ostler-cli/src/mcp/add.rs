//! `ostler mcp add` and `ostler mcp add-json`.

use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use ostler::engine::server_files::write::{self, Place};
use ostler::engine::server_files::{self, Scope};
use ostler::engine::{StartContext, rules};
use serde_json::{Map, Value, json};

use super::described;
use crate::args::mcp::{Add, Transport};
use crate::screen::Screen;
use crate::text::clean;

pub(super) fn run(
    scene: &StartContext,
    add: &Add,
    screen: &mut Screen,
) -> anyhow::Result<ExitCode> {
    let entry = entry(add)?;
    put(scene, &add.name, entry, add.scope.into(), screen)
}

pub(super) fn run_json(
    scene: &StartContext,
    name: &str,
    text: &str,
    scope: Scope,
    screen: &mut Screen,
) -> anyhow::Result<ExitCode> {
    let entry: Value = serde_json::from_str(text).context("the configuration is not valid JSON")?;
    put(scene, name, entry, scope, screen)
}

/// Checks and writes an entry, and says where it is.
fn put(
    scene: &StartContext,
    name: &str,
    entry: Value,
    scope: Scope,
    screen: &mut Screen,
) -> anyhow::Result<ExitCode> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    ensure!(
        !name.is_empty() && name.chars().all(is_of_name),
        "{name:?} is not a valid name for an MCP server: use letters, digits, - and _"
    );
    let rules = rules::load(scene)?;
    server_files::check(scene, &rules.folders, &rules.settings, scope, (name, &entry))
        .map_err(anyhow::Error::msg)?;
    let (target, kind) = described(&entry);
    let (target, kind) = (target, kind.to_owned());
    let place = write::add(scene, scope, name, entry).map_err(anyhow::Error::msg)?;
    screen.line(&clean(&format!(
        "Added the MCP server {name} ({kind}: {target}) to the {} scope",
        scope.word()
    )))?;
    tell_place(&place, screen)?;
    if scope == Scope::Project {
        // The user has just written it, so it is not a stranger's.
        write::approve(scene, name).map_err(anyhow::Error::msg)?;
        screen.line(
            "It is approved for you. Others who use this project approve it for themselves.",
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Says which file was changed.
pub(super) fn tell_place(place: &Place, screen: &mut Screen) -> std::io::Result<()> {
    let file = place.file.display();
    let text = match &place.project {
        Some(project) => format!("File changed: {file} (project {})", project.display()),
        None => format!("File changed: {file}"),
    };
    screen.line(&clean(&text))
}

/// The entry in the format of `.mcp.json`.
fn entry(add: &Add) -> anyhow::Result<Value> {
    let transport = add.transport.unwrap_or(Transport::Stdio);
    let (name, target) = (&add.name, &add.target);
    let schemes: &[&str] = match transport {
        Transport::Stdio => return program(add),
        Transport::Http | Transport::Sse => &["http://", "https://"],
        Transport::Ws => &["ws://", "wss://"],
    };
    let kind = transport.word();
    let has_place = |scheme: &&str| {
        let rest = target.strip_prefix(*scheme);
        rest.is_some_and(|rest| !rest.is_empty())
    };
    // A variable may stand for the beginning of the address.
    ensure!(
        schemes.iter().any(has_place) || target.starts_with("${"),
        "{target} is not an address for {kind}: it begins with {}",
        schemes.join(" or ")
    );
    ensure!(
        add.args.is_empty(),
        "a server behind an address has no arguments: {}",
        add.args.join(" ")
    );
    ensure!(
        add.env.is_empty(),
        "--env has no effect on a server behind an address; for a header write -H \"NAME: VALUE\""
    );
    let has_oauth = add.client_id.is_some() || add.callback_port.is_some();
    ensure!(
        transport != Transport::Ws || !has_oauth,
        "a server behind a WebSocket has no sign-in: give {name} a header with -H"
    );
    let mut entry = json!({"type": kind, "url": target});
    if !add.header.is_empty() {
        entry["headers"] = Value::Object(texts(&add.header));
    }
    if let Some(id) = &add.client_id {
        entry["oauth"]["clientId"] = json!(id);
    }
    if let Some(port) = add.callback_port {
        entry["oauth"]["callbackPort"] = json!(port);
    }
    Ok(entry)
}

fn program(add: &Add) -> anyhow::Result<Value> {
    let (name, target) = (&add.name, &add.target);
    if target.contains("://") && add.transport.is_none() {
        let kind = if target.starts_with("ws") { "ws" } else { "http" };
        bail!(
            "{target} is an address, so say how it is reached: ostler mcp add -t {kind} {name} {target}"
        );
    }
    let is_remote =
        !add.header.is_empty() || add.client_id.is_some() || add.callback_port.is_some();
    ensure!(
        !is_remote,
        "--header, --client-id and --callback-port are for servers behind an address: add -t http"
    );
    let env = texts(&add.env);
    Ok(json!({"type": "stdio", "command": target, "args": add.args, "env": env}))
}

fn texts(pairs: &[(String, String)]) -> Map<String, Value> {
    pairs.iter().map(|(name, value)| (name.clone(), json!(value))).collect()
}

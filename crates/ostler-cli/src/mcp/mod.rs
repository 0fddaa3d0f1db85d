//! `ostler mcp …`: adds, lists and removes MCP servers, signs the user in to them, and is one itself.

mod add;
pub(crate) mod approval;
pub(crate) mod health;
mod list;
mod login;
pub(crate) mod menu;
mod remove;
mod serve;

use std::process::ExitCode;

use clap::CommandFactory as _;
use ostler::engine::server_files::{self, Configured, ConfiguredServer};
use ostler::engine::{StartContext, rules};
use serde_json::Value;

use crate::args::Args;
use crate::args::mcp::{Mcp, McpCommand};
use crate::scene;
use crate::screen::Screen;

/// Runs the command; without one, shows the help.
pub(crate) async fn run(args: &Args, mcp: &Mcp, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    let Some(command) = &mcp.command else {
        let mut all = Args::command();
        all.build();
        let help = all.find_subcommand_mut("mcp").map(|mcp| mcp.render_long_help().to_string());
        screen.lines(help.unwrap_or_default().trim_end())?;
        return Ok(ExitCode::SUCCESS);
    };
    let scene = scene::of(args)?;
    match command {
        McpCommand::Add(add) => add::run(&scene, add, screen),
        McpCommand::AddJson { name, json, scope } => {
            add::run_json(&scene, name, json, (*scope).into(), screen)
        }
        McpCommand::List => list::all(args, &scene, screen).await,
        McpCommand::Get { name } => list::one(args, &scene, name, screen).await,
        McpCommand::Remove { name, scope } => {
            remove::run(&scene, name, scope.map(Into::into), screen)
        }
        McpCommand::Login { name } => login::run(&scene, name, screen).await,
        McpCommand::Logout { name } => login::out(&scene, name, screen).await,
        McpCommand::Serve { http } => serve::run(&scene, *http, screen).await,
        McpCommand::ResetProjectChoices => remove::reset(&scene, screen),
    }
}

/// Everything that configures servers, for this folder.
fn configured(scene: &StartContext) -> anyhow::Result<Configured> {
    let rules = rules::load(scene)?;
    Ok(server_files::configured(scene, &rules.folders, &rules.settings)?)
}

/// The entry that counts for a name.
///
/// # Errors
/// When there is none.
fn find<'c>(all: &'c Configured, name: &str) -> anyhow::Result<&'c ConfiguredServer> {
    effective(all).into_iter().find(|server| server.name == name).ok_or_else(|| unknown(all, name))
}

fn unknown(all: &Configured, name: &str) -> anyhow::Error {
    let mut known: Vec<&str> = all.servers.iter().map(|server| server.name.as_str()).collect();
    known.sort_unstable();
    known.dedup();
    match known.is_empty() {
        true => anyhow::anyhow!(
            "there is no MCP server {name}, and no other one is configured; add one: ostler mcp add --help"
        ),
        false => {
            anyhow::anyhow!("there is no MCP server {name}; there are: {}", known.join(", "))
        }
    }
}

/// One entry for each name: the one that a session uses, or else the nearest.
fn effective(all: &Configured) -> Vec<&ConfiguredServer> {
    use ostler::engine::server_files::Approval::{Approved, Disabled};
    let mut found: Vec<&ConfiguredServer> = Vec::new();
    for server in &all.servers {
        let usable = |it: &ConfiguredServer| matches!(it.approval, Approved | Disabled);
        match found.iter_mut().find(|it| it.name == server.name) {
            Some(before) if !usable(before) && usable(server) => *before = server,
            Some(_) => {}
            None => found.push(server),
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found
}

/// A server's program or address as it is written, and its type.
fn described(entry: &Value) -> (String, &str) {
    let text = |key: &str| entry[key].as_str().unwrap_or_default();
    let kind = entry["type"].as_str().unwrap_or("stdio");
    if kind != "stdio" {
        return (text("url").to_owned(), kind);
    }
    let args = entry["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let words: Vec<&str> = std::iter::once(text("command")).chain(args).collect();
    (words.join(" "), kind)
}

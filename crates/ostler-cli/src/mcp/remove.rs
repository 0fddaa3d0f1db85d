//! `ostler mcp remove` and `ostler mcp reset-project-choices`.

use std::process::ExitCode;

use anyhow::bail;
use ostler::engine::StartContext;
use ostler::engine::server_files::{Scope, write};

use super::{add, configured, unknown};
use crate::screen::Screen;
use crate::text::clean;

/// The scopes in files that may be changed.
const SCOPES: [Scope; 3] = [Scope::Local, Scope::Project, Scope::User];

pub(super) fn run(
    scene: &StartContext,
    name: &str,
    scope: Option<Scope>,
    screen: &mut Screen,
) -> anyhow::Result<ExitCode> {
    let all = configured(scene)?;
    let is_in = |scope: &Scope| {
        // A file above the project belongs to another project, where the server can be removed.
        let file = write::place(scene, *scope).map(|place| place.file).unwrap_or_default();
        let mut entries = all.servers.iter().filter(|it| it.scope == *scope && it.name == name);
        entries.any(|it| it.file == file)
    };
    let found: Vec<Scope> = SCOPES.into_iter().filter(is_in).collect();
    let scope = match (scope, &found[..]) {
        (Some(scope), _) if found.contains(&scope) => scope,
        (Some(scope), _) => bail!("there is no MCP server {name} in the {} scope", scope.word()),
        (None, [scope]) => *scope,
        (None, []) => return Err(elsewhere(&all, name)),
        (None, several) => {
            let words: Vec<String> = several
                .iter()
                .map(|it| format!("ostler mcp remove {name} -s {}", it.word()))
                .collect();
            bail!("there are several MCP servers {name}; say which: {}", words.join(", or "));
        }
    };
    write::remove(scene, scope, name).map_err(anyhow::Error::msg)?;
    screen
        .line(&clean(&format!("Removed the MCP server {name} from the {} scope", scope.word())))?;
    add::tell_place(&write::place(scene, scope).map_err(anyhow::Error::msg)?, screen)?;
    Ok(ExitCode::SUCCESS)
}

fn elsewhere(all: &super::Configured, name: &str) -> anyhow::Error {
    match all.servers.iter().find(|server| server.name == name) {
        Some(server) => anyhow::anyhow!(
            "the MCP server {name} is in {}, which belongs to another folder: remove it there",
            server.file.display()
        ),
        None => unknown(all, name),
    }
}

pub(super) fn reset(scene: &StartContext, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    match write::reset_choices(scene).map_err(anyhow::Error::msg)? {
        true => screen.line(
            "The choices about servers of this project's .mcp.json are forgotten. They start when you approve them again.",
        )?,
        false => screen.line("There are no choices about servers of this project in ~/.claude.json.")?,
    }
    screen.hint("Choices in settings files (enabledMcpjsonServers, disabledMcpjsonServers) are still in force.")?;
    Ok(ExitCode::SUCCESS)
}

//! Which session options can be used with which command.
//!
//! Options may come before or after a command, so clap accepts all of them with every command. This module refuses an
//! option that the command does not use; ignoring it would mislead the user.

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory as _};

use super::Args;

/// The session options that a command uses, by their names in [`Args`].
fn used_by(command: &str) -> &'static [&'static str] {
    match command {
        "sessions" => &["cwd"],
        "doctor" => {
            &["cwd", "model", "settings", "trust_project", "mcp_config", "strict_mcp_config"]
        }
        "auth" => &["cwd", "settings", "trust_project", "setting_sources"],
        "mcp" => &[
            "cwd",
            "settings",
            "trust_project",
            "mcp_config",
            "strict_mcp_config",
            "setting_sources",
            "managed_settings",
            "plugin_dir",
        ],
        // The settings of a session, without what only a conversation needs.
        "mcp serve" => &[
            "cwd",
            "permission_mode",
            "settings",
            "trust_project",
            "tools",
            "allowed_tools",
            "disallowed_tools",
            "add_dir",
            "setting_sources",
            "managed_settings",
            "plugin_dir",
            "dangerously_skip_permissions",
            "allow_dangerously_skip_permissions",
        ],
        "explain" => &[
            "cwd",
            "permission_mode",
            "settings",
            "trust_project",
            "allowed_tools",
            "disallowed_tools",
            "add_dir",
            "setting_sources",
            "managed_settings",
            "dangerously_skip_permissions",
        ],
        "serve" => &[
            "cwd",
            "model",
            "permission_mode",
            "settings",
            "trust_project",
            "max_turns",
            "max_budget_usd",
        ],
        _ => &[],
    }
}

/// An error text if the command line has an option that its command does not use.
pub(super) fn misplaced(matches: &ArgMatches) -> Option<String> {
    let (name, of_command) = matches.subcommand()?;
    let name = match of_command.subcommand_name() {
        Some("serve") if name == "mcp" => "mcp serve",
        _ => name,
    };
    let command = Args::command();
    let is_given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    let unused = command.get_arguments().find(|arg| {
        let id = arg.get_id().as_str();
        arg.get_long().is_some() && is_given(id) && !used_by(name).contains(&id)
    })?;
    let option = unused.get_long().unwrap_or_default();
    Some(format!("`--{option}` has no effect on `ostler {name}`: leave it out"))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn read(line: &str) -> Result<Args, String> {
        let words = std::iter::once("ostler").chain(line.split(' ')).map(OsString::from);
        Args::read(words.collect()).map(|(args, _)| args).map_err(|error| error.to_string())
    }

    // Mutant: `misplaced` returns `None`.
    #[test]
    fn an_option_that_the_command_does_not_use_is_refused_before_and_after_it() {
        for line in [
            "--settings {} sessions",
            "sessions --settings {}",
            "task --permission-mode plan list",
            "task list --cwd /",
            "--trust-project schedule list",
            "--max-turns 3 doctor",
            "--system-prompt x serve",
            "--dangerously-skip-permissions serve",
            "--fallback-model x serve",
            "--max-tokens 5 explain Bash ls",
            "--resume x sessions",
            "--model x explain Bash ls",
            "--allowed-tools=Bash mcp list",
            "--max-turns 3 mcp serve",
            "--mcp-config={} mcp serve",
        ] {
            let error = read(line).unwrap_err();
            assert!(
                error.contains("has no effect on") || error.contains("unexpected"),
                "{line}: {error}"
            );
        }
        for line in [
            "serve --model x --settings {} --permission-mode plan --max-turns 3 --max-budget-usd 1",
            "--cwd / --model x serve",
            "--allowed-tools Bash --disallowed-tools Read explain Bash ls",
            "--model offline-demo doctor --settings {}",
            "sessions --cwd /",
            "--allowed-tools=Bash --permission-mode plan mcp serve",
            "-p --max-turns 3 doctor",
        ] {
            assert!(read(line).is_ok(), "{line}: {:?}", read(line).err());
        }
    }

    /// Every option in the table of used options exists.
    #[test]
    fn the_options_in_the_table_exist() {
        let command = Args::command();
        let options: Vec<&str> = command.get_arguments().map(|arg| arg.get_id().as_str()).collect();
        for command in ["sessions", "doctor", "mcp", "explain", "serve", "task", "schedule"] {
            for option in used_by(command) {
                assert!(options.contains(option), "{command}: {option}");
            }
        }
    }
}

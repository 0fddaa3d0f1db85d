//! Prompts of MCP servers: commands that a server fills in.

use std::collections::BTreeMap;

use ostler_proto::api::ContentBlock;

use super::tool::{plain, tools_of};
use super::{ServerPrompt, Servers};
use crate::library::Command;

impl Servers {
    /// The prompts of the servers that are connected, as commands.
    pub(crate) fn commands(&self) -> Vec<Command> {
        let mut commands = Vec::new();
        for (server, connected) in self.connected() {
            let prompts = connected.prompts().into_iter();
            commands.extend(prompts.map(|prompt| {
                let name = command_name(&server, &prompt.name);
                let alias = format!("{server}:{}", prompt.name);
                Command::of_server(&server, (name, alias), &prompt.description, hint(&prompt))
            }));
        }
        commands
    }

    /// The content of a prompt that is called as a command.
    ///
    /// # Errors
    /// When its server is not connected or arguments are missing.
    pub(crate) async fn fill_in(
        &self,
        server: &str,
        command: &str,
        words: &[String],
    ) -> Result<Vec<ContentBlock>, String> {
        let connected = self.find(server)?;
        let prompts = connected.prompts().into_iter();
        let mut named = prompts.filter(|prompt| command_name(server, &prompt.name) == command);
        let prompt = named.next().ok_or_else(|| format!("there is no prompt /{command}"))?;
        let arguments = arguments(&prompt, words).map_err(|why| format!("/{command} {why}"))?;
        connected.prompt(&prompt.name, arguments).await
    }
}

fn command_name(server: &str, prompt: &str) -> String {
    format!("{}{}", tools_of(server), plain(prompt))
}

/// The arguments as a hint for users.
fn hint(prompt: &ServerPrompt) -> Option<String> {
    let of = |(name, required): &(String, bool)| match required {
        true => format!("<{name}>"),
        false => format!("[{name}]"),
    };
    let words: Vec<String> = prompt.arguments.iter().map(of).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// Assigns words to arguments in the order in which the server lists them.
fn arguments(prompt: &ServerPrompt, words: &[String]) -> Result<BTreeMap<String, String>, String> {
    let missing: Vec<&str> = prompt
        .arguments
        .iter()
        .skip(words.len())
        .filter(|(_, required)| *required)
        .map(|(name, _)| name.as_str())
        .collect();
    if !missing.is_empty() {
        return Err(format!("needs more arguments: {}", missing.join(", ")));
    }
    let names = prompt.arguments.iter().map(|(name, _)| name.clone());
    Ok(names.zip(words.iter().cloned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_arguments_in_the_order_of_the_prompt() {
        let prompt = ServerPrompt {
            name: "greet".to_owned(),
            arguments: vec![("who".to_owned(), true), ("how".to_owned(), false)],
            ..ServerPrompt::default()
        };
        assert_eq!(hint(&prompt).as_deref(), Some("<who> [how]"));
        let given = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            arguments(&prompt, &words).map(|found| found.into_values().collect::<Vec<_>>())
        };
        assert_eq!(given(&["Bob"]).unwrap(), ["Bob"]);
        assert_eq!(given(&["Bob", "well", "more"]).unwrap(), ["well", "Bob"]);
        assert!(given(&[]).unwrap_err().contains("who"));
    }
}

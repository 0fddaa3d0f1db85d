//! Slash commands: prompts that begin with `/` and a known name.
//!
//! Built-in commands answer in the model's place; the others are files (`library/`) and become prompts (`expand.rs`).
//! A prompt that begins with a slash but names no command is a prompt like any other.

mod built_in;
mod expand;
pub(crate) mod mention;
mod skill;

use ostler_proto::api::{Content, ContentBlock};
use ostler_proto::control::SlashCommand;
use ostler_proto::message::User;

pub(crate) use self::built_in::{BuiltIn, obey};
pub(crate) use self::expand::{ExpandedCommand, expand};
pub(crate) use self::skill::{Skill, skill_text};
use crate::library::{Command, Library, Sort};

/// A command in a prompt.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CommandCall {
    /// A built-in command and its arguments.
    BuiltIn(BuiltIn, String),
    /// A command from a file and its arguments.
    File(Box<Command>, String),
}

/// The command that a prompt calls, if any.
pub(crate) fn read(library: &Library, prompt: &User) -> Option<CommandCall> {
    let is_typed = prompt.is_synthetic != Some(true) && prompt.client_composed != Some(true);
    let text = match prompt.message.content.as_ref().filter(|_| is_typed)? {
        Content::Text(text) => text,
        Content::Blocks(blocks) => match &blocks[..] {
            [ContentBlock::Text(block)] => &block.text,
            _ => return None,
        },
    };
    let line = text.trim_start().strip_prefix('/')?;
    let (name, arguments) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let arguments = arguments.trim().to_owned();
    // A file cannot replace a command of the engine.
    if let Some(own) = BuiltIn::named(name) {
        return Some(CommandCall::BuiltIn(own, arguments));
    }
    let command = library.command(name).filter(|command| command.is_for_people)?;
    Some(CommandCall::File(Box::new(command.clone()), arguments))
}

/// Whether a prompt calls a command, as far as that is known before MCP servers are connected.
pub(crate) fn is_call(library: &Library, prompt: &User) -> bool {
    let of_server = |content: &Content| {
        let text = content.text();
        let name = text.split_whitespace().next().unwrap_or_default();
        // `/mcp__server__prompt`, or its alias `/server:prompt`.
        name.starts_with("/mcp__") || (name.starts_with('/') && name.contains(':'))
    };
    read(library, prompt).is_some()
        || (prompt.client_composed != Some(true)
            && prompt.message.content.as_ref().is_some_and(of_server))
}

/// All commands as hosts see them.
pub(crate) fn listed(library: &Library) -> Vec<SlashCommand> {
    let of_files = library.commands.iter().filter(|command| command.is_for_people);
    of_files.map(Command::listed).chain(BuiltIn::ALL.iter().map(|own| own.listed())).collect()
}

/// The names of all commands.
pub(crate) fn names(library: &Library) -> Vec<String> {
    listed(library).into_iter().map(|command| command.name).collect()
}

/// The names of all skills.
pub(crate) fn skill_names(library: &Library) -> Vec<String> {
    let skills = library.commands.iter().filter(|command| command.sort == Sort::Skill);
    skills.map(|skill| skill.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_known_name_after_a_slash_is_a_command() {
        let called = |text: &str| read(&Library::default(), &User::prompt(text));
        let compact =
            |arguments: &str| Some(CommandCall::BuiltIn(BuiltIn::Compact, arguments.into()));
        assert_eq!(called("/compact"), compact(""));
        assert_eq!(called(" /compact \n keep the names "), compact("keep the names"));
        assert_eq!(called("/reset"), Some(CommandCall::BuiltIn(BuiltIn::Clear, String::new())));
        for text in ["/compacted", "compact", "please /compact", "", "/COMPACT", "/usr/bin/x", "/"]
        {
            assert_eq!(called(text), None, "{text}");
        }
    }

    #[test]
    fn texts_of_the_engine_and_composed_prompts_never_call_a_command() {
        let library = Library::default();
        let synthetic = User { is_synthetic: Some(true), ..User::prompt("/compact") };
        assert_eq!(read(&library, &synthetic), None);
        let composed = User { client_composed: Some(true), ..User::prompt("/compact") };
        assert_eq!(read(&library, &composed), None);
        let two = vec![ContentBlock::text("/compact"), ContentBlock::text("b")];
        assert_eq!(read(&library, &User::new(two.into(), None)), None);
    }
}

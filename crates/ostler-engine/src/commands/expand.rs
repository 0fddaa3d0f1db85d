//! A command becomes a prompt: its text with arguments filled in, the output of its command lines, and the files it
//! mentions. Command lines and files go through the same permissions as calls of the model.

use std::borrow::Cow;

use ostler_proto::api::{Content, ContentBlock, ToolUseBlock};
use ostler_proto::build;
use serde_json::{Value, json};

use super::mention;
use crate::call;
use crate::disk::on_disk;
use crate::drive::TurnContext;
use crate::hooks::verdict::Verdict;
use crate::ids::fresh_uuid;
use crate::interpolate;
use crate::library::{Command, Origin, Sort};
use crate::permission::Rule;

/// A command that has become a prompt.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ExpandedCommand {
    /// What the model reads.
    pub(crate) blocks: Vec<ContentBlock>,
    /// The model the command wants.
    pub(crate) model: Option<String>,
}

/// Turns a command into a prompt, after its hooks ran.
///
/// # Errors
/// The reason, when a hook objects or the text cannot be read or filled in.
pub(crate) async fn expand(
    context: &TurnContext,
    command: &Command,
    arguments: &str,
    prompt: &str,
) -> Result<ExpandedCommand, String> {
    let Verdict { context: added_context, hides_prompt, .. } =
        hear(context, command, arguments, prompt).await?;
    if hides_prompt {
        // The model reads the hook's text in place of the command, and nothing runs for it.
        let blocks = added_context.into_iter().map(ContentBlock::text).collect();
        return Ok(ExpandedCommand { blocks, model: None });
    }
    grant(context, command).await;
    let name = &command.name;
    let call = format!(
        "<command-message>{name}</command-message>\n<command-name>/{name}</command-name>\n<command-args>{arguments}</command-args>"
    );
    if let Origin::Server(server) = &command.origin {
        let filled = context.servers.fill_in(server, name, &words(arguments)).await?;
        let added_context = added_context.into_iter().map(ContentBlock::text);
        let blocks =
            [ContentBlock::text(call)].into_iter().chain(filled).chain(added_context).collect();
        return Ok(ExpandedCommand { blocks, model: None });
    }
    let text = text(context, command, arguments).await?;
    let files = mention::files(context, &text).await;
    let texts = [call, text].into_iter().chain(files).chain(added_context);
    let blocks = texts.filter(|text| !text.is_empty()).map(ContentBlock::text).collect();
    Ok(ExpandedCommand { blocks, model: command.model.clone() })
}

/// Runs the hooks for a command that is about to become a prompt, and returns their verdict.
async fn hear(
    context: &TurnContext,
    command: &Command,
    arguments: &str,
    prompt: &str,
) -> Result<Verdict, String> {
    let fields = json!({
        "expansion_type": if command.sort == Sort::Prompt { "mcp_prompt" } else { "slash_command" },
        "command_name": command.name,
        "command_args": arguments,
        "command_source": source(&command.origin),
        "prompt": prompt,
    });
    context.hooks.expanding(fields).await
}

/// Where a command comes from, with the names of the wire protocol.
fn source(origin: &Origin) -> &'static str {
    match origin {
        Origin::User => "userSettings",
        Origin::Project { .. } => "projectSettings",
        other => other.word(),
    }
}

/// Grants the command's rules for this turn. Files of an untrusted project have no rules here.
pub(super) async fn grant(context: &TurnContext, command: &Command) {
    for text in &command.allowed_tools {
        match text.parse::<Rule>() {
            Ok(rule) => context.permissions.grant(rule),
            Err(error) => {
                let words = format!("/{}: {error}", command.name);
                context.outbox.inform(words, "warning", Some("command_rule")).await;
            }
        }
    }
}

/// The text of a command, with everything filled in.
pub(super) async fn text(
    context: &TurnContext,
    command: &Command,
    arguments: &str,
) -> Result<String, String> {
    let file = command.clone();
    let body = on_disk(move || file.body()).await?;
    let takes_arguments = takes_arguments(&body);
    let mut text = String::new();
    for piece in pieces(&body) {
        match piece {
            TextPart::Text(words) => text.push_str(&filled(words, arguments)),
            // Filled in before permissions are decided, so that the decision is about the line that runs.
            TextPart::Line(line) => {
                text.push_str(&output(context, &filled(line, arguments)).await?)
            }
        }
    }
    if !takes_arguments && !arguments.is_empty() {
        text.push_str(&format!("\n\nARGUMENTS: {arguments}"));
    }
    Ok(match (command.sort, command.folder()) {
        (Sort::Skill, Some(folder)) => {
            format!("Base directory for this skill: {}\n\n{text}", folder.display())
        }
        _ => text,
    })
}

/// A part of a command's text.
#[derive(Debug, PartialEq, Eq)]
enum TextPart<'a> {
    Text(&'a str),
    /// A command line, which its output replaces.
    Line(&'a str),
}

/// Splits a text at its command lines: an exclamation mark and a line between backquotes.
fn pieces(text: &str) -> Vec<TextPart<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("!`") {
        let Some(length) = rest[at + 2..].find('`') else { break };
        let line = &rest[at + 2..at + 2 + length];
        // `x!` is not a call: it begins a line or follows a space.
        let begins = rest[..at].chars().next_back().is_none_or(char::is_whitespace);
        if line.trim().is_empty() || !begins {
            pieces.push(TextPart::Text(&rest[..at + 2]));
            rest = &rest[at + 2..];
            continue;
        }
        pieces.push(TextPart::Text(&rest[..at]));
        pieces.push(TextPart::Line(line));
        rest = &rest[at + 3 + length..];
    }
    pieces.push(TextPart::Text(rest));
    pieces
}

fn takes_arguments(text: &str) -> bool {
    const PROBE: &str = "\u{1}";
    text.contains("$ARGUMENTS") || filled(text, PROBE) != text
}

/// The text with its placeholders filled in: `$ARGUMENTS` for all arguments, `$0`, `$1`… or `$ARGUMENTS[0]`… for one
/// of them. A placeholder without an argument stays as it is.
fn filled(text: &str, arguments: &str) -> String {
    let words = words(arguments);
    interpolate::fill_places(text, |rest| place(rest, arguments, &words))
}

/// The value of the placeholder at the beginning of a text, and the length of the placeholder.
fn place<'a>(text: &str, all: &'a str, words: &'a [String]) -> Option<(Cow<'a, str>, usize)> {
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).count();
    let word = |number: &str| words.get(number.parse::<usize>().ok()?).map(Cow::from);
    if let Some(rest) = text.strip_prefix("$ARGUMENTS") {
        let number = rest.strip_prefix('[').map(|rest| &rest[..digits(rest)]);
        return match number.filter(|number| rest[1 + number.len()..].starts_with(']')) {
            Some(number) if !number.is_empty() => {
                word(number).map(|word| (word, "$ARGUMENTS[]".len() + number.len()))
            }
            _ => Some((all.into(), "$ARGUMENTS".len())),
        };
    }
    let number = &text[1..1 + digits(&text[1..])];
    word(number).map(|word| (word, 1 + number.len()))
}

/// Splits arguments at spaces, except between quotes.
fn words(arguments: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in arguments.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if matches!(c, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The output of a command line.
async fn output(context: &TurnContext, line: &str) -> Result<String, String> {
    let input = json!({"command": line, "description": "Part of a slash command"});
    let (text, denied) = run(context, "Bash", input).await;
    match denied {
        true => Err(format!("the command line `{line}` was not permitted: {text}")),
        false => Ok(text),
    }
}

/// Runs a tool as if the model had called it; its text, and whether it was denied.
pub(super) async fn run(context: &TurnContext, tool: &str, input: Value) -> (String, bool) {
    let id = format!("command_{}", fresh_uuid());
    let call = build!(ToolUseBlock { id: id.into(), name: tool.to_owned(), input });
    let result = call::run(&context.for_call(&call), call).await;
    let text = result.block.content.as_ref().map(Content::text).unwrap_or_default();
    (text, result.denied)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_filled_in_counted_from_zero() {
        for (text, arguments, expected) in [
            ("Look at $ARGUMENTS.", "a b", "Look at a b."),
            ("$0 and $1, not $2", "a 'b c'", "a and b c, not $2"),
            ("$ARGUMENTS[1] $ARGUMENTS[x] $ARGUMENTS[]", "a b", "b a b[x] a b[]"),
            ("costs $5 or $", "", "costs $5 or $"),
            ("$10", "a b", "$10"),
            ("$ARGUMENTS", "$0 \"x\"", "$0 \"x\""),
            ("ä$0ö", "ü", "äüö"),
        ] {
            assert_eq!(filled(text, arguments), expected, "{text} with {arguments}");
        }
        assert!(takes_arguments("x $0") && takes_arguments("$ARGUMENTS") && !takes_arguments("$7"));
    }

    #[test]
    fn command_lines_are_found_where_the_author_put_them() {
        let line = |text| TextPart::Line(text);
        assert_eq!(pieces("a !`ls` b"), [TextPart::Text("a "), line("ls"), TextPart::Text(" b")]);
        assert_eq!(pieces("!`a`"), [TextPart::Text(""), line("a"), TextPart::Text("")]);
        for none in ["wow!`ls`", "!``", "!`open", "`code`!"] {
            assert!(pieces(none).iter().all(|piece| matches!(piece, TextPart::Text(_))), "{none}");
            let again: String = pieces(none)
                .iter()
                .map(|piece| match piece {
                    TextPart::Text(text) | TextPart::Line(text) => *text,
                })
                .collect();
            assert_eq!(again, none);
        }
        // Arguments are filled in afterwards, so they cannot add command lines.
        assert_eq!(pieces("say $ARGUMENTS").len(), 1);
    }
}

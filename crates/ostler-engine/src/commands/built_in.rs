//! The engine's own commands. They answer in the model's place.

use ostler_proto::api::{ContentBlock, Message, Role, SYNTHETIC_MODEL, StopReason};
use ostler_proto::build;
use ostler_proto::control::SlashCommand;
use ostler_proto::frame::ToHost;
use ostler_proto::message::Assistant;
use serde_json::json;

use super::listed;
use crate::compact::manual;
use crate::drive::{TurnContext, TurnOutcome};
use crate::ids::fresh_uuid;
use crate::model::ChatMessage;
use crate::rescue::LentConversation;
use crate::session::report;
use crate::turn::Ending;

/// A built-in command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BuiltIn {
    Clear,
    Compact,
    Context,
    Cost,
    Help,
}

impl BuiltIn {
    pub(crate) const ALL: &[Self] =
        &[Self::Clear, Self::Compact, Self::Context, Self::Cost, Self::Help];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Clear => "clear",
            Self::Compact => "compact",
            Self::Context => "context",
            Self::Cost => "cost",
            Self::Help => "help",
        }
    }

    fn aliases(self) -> &'static [&'static str] {
        match self {
            Self::Clear => &["reset", "new"],
            Self::Cost => &["usage"],
            _ => &[],
        }
    }

    /// The one of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        let is_meant = |own: &&Self| own.name() == name || own.aliases().contains(&name);
        Self::ALL.iter().find(is_meant).copied()
    }

    pub(super) fn listed(self) -> SlashCommand {
        let (description, hint) = match self {
            Self::Clear => ("Forget the conversation and begin another; background tasks end", ""),
            Self::Compact => (
                "Replace the conversation so far by a summary of it",
                "[what the summary should keep]",
            ),
            Self::Context => ("Show how full the context window is", ""),
            Self::Cost => ("Show what the session has cost so far", ""),
            Self::Help => ("List all commands", ""),
        };
        let aliases: Vec<String> = self.aliases().iter().map(|it| (*it).to_owned()).collect();
        build!(SlashCommand {
            name: self.name().to_owned(),
            description: description.to_owned(),
            argument_hint: Some(hint.to_owned()),
            aliases: Some(aliases).filter(|aliases| !aliases.is_empty()),
            builtin: Some(true)
        })
    }
}

/// Runs a command.
pub(crate) async fn obey(
    context: &TurnContext,
    conversation: LentConversation,
    command: BuiltIn,
    arguments: &str,
) -> TurnOutcome {
    let text = match command {
        BuiltIn::Compact => return manual::run(context, conversation, arguments).await,
        // The session does it once the turn is over: nothing of the old conversation may run then.
        BuiltIn::Clear => {
            drop(conversation.take());
            return finished(command, String::new(), Vec::new());
        }
        BuiltIn::Context => context_report(context, &conversation),
        BuiltIn::Cost => cost(context),
        BuiltIn::Help => help(context),
    };
    context.outbox.send(report::init(context)).await;
    show(context, command, arguments, &text).await;
    finished(command, text, conversation.take())
}

fn finished(command: BuiltIn, text: String, conversation: Vec<ChatMessage>) -> TurnOutcome {
    TurnOutcome::new(
        Ending::Command { name: command.name().to_owned(), outcome: Ok(text) },
        conversation,
    )
}

/// Shows the output of a command. It is not part of the conversation and is not stored.
async fn show(context: &TurnContext, command: BuiltIn, arguments: &str, text: &str) {
    let message = build!(Message {
        id: Some(fresh_uuid().to_string()),
        r#type: Some("message".to_owned()),
        role: Role::Assistant,
        model: SYNTHETIC_MODEL.to_owned(),
        content: vec![ContentBlock::text(text)],
        stop_reason: Some(StopReason::EndTurn)
    });
    let source = format!("<local-command-stdout>{text}</local-command-stdout>");
    let said = build!(Assistant {
        message,
        session_id: context.outbox.session_id.clone(),
        uuid: fresh_uuid(),
        local_command_source: Some(json!(source)),
        local_command_run: Some(json!({"command": command.name(), "args": arguments}))
    });
    // A host that is gone misses nothing it could use.
    let _ = context.outbox.frames.send(ToHost::Assistant(Box::new(said))).await;
}

fn context_report(context: &TurnContext, conversation: &[ChatMessage]) -> String {
    let used = context.context_usage.tokens(context, conversation);
    let full = context.compaction.threshold(&context.asked_model());
    let percent = used.saturating_mul(100) / full.max(1);
    format!(
        "## Context\n\n- Model: {}\n- Tokens: about {used} ({percent} % of the {full} at which the conversation is compacted)\n- Messages: {}\n- Tools: {}",
        context.model_name,
        conversation.len(),
        context.specs.len()
    )
}

fn cost(context: &TurnContext) -> String {
    let ledger = &context.records.ledger;
    let mut text = format!(
        "Cost so far: ${:.4}, {:.1} s of waiting for models",
        ledger.dollars(),
        ledger.time().as_secs_f64()
    );
    for (model, usage) in ledger.models() {
        text.push_str(&format!(
            "\n- {model}: {} tokens in, {} out, {} read from the cache, {} written to it",
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_input_tokens,
            usage.cache_creation_input_tokens
        ));
    }
    text
}

fn help(context: &TurnContext) -> String {
    let line = |command: SlashCommand| {
        let hint = command.argument_hint.unwrap_or_default();
        let hint = if hint.is_empty() { hint } else { format!(" {hint}") };
        format!("- `/{}{hint}`: {}", command.name, command.description)
    };
    listed(&context.library).into_iter().map(line).collect::<Vec<_>>().join("\n")
}

//! Fields that all types of lines in a session file have in common.

use ostler_proto::ToolUseId;
use ostler_proto::api::{Content, ContentBlock, Message};
use ostler_proto::message::UserContent;
use ostler_proto::transcript::{Entry, TranscriptLine};
use ostler_proto::wire::Extra;
use serde_json::Value;

/// The position of a line in the tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Links<'a> {
    pub(super) uuid: &'a str,
    pub(super) parent: Option<&'a str>,
    /// Written by a subagent.
    pub(super) sidechain: bool,
    /// Only for the model, not a message of the user.
    pub(super) meta: bool,
    /// Belongs to a teammate's conversation.
    pub(super) team: bool,
}

/// The links of a line; `None` for lines that are not part of the tree.
pub(super) fn links(line: &TranscriptLine) -> Option<Links<'_>> {
    let place = match line {
        TranscriptLine::User(entry) => &entry.place,
        TranscriptLine::Assistant(entry) => &entry.place,
        TranscriptLine::System(entry) => {
            return Some(Links {
                uuid: entry.uuid.as_str(),
                parent: entry.parent_uuid.as_ref().map(|uuid| uuid.as_str()),
                sidechain: entry.is_sidechain == Some(true),
                meta: entry.is_meta == Some(true),
                team: has_team(&entry.extra),
            });
        }
        TranscriptLine::Progress(entry) => {
            return Some(Links {
                uuid: entry.uuid.as_str(),
                parent: entry.parent_uuid.as_ref().map(|uuid| uuid.as_str()),
                sidechain: entry.is_sidechain == Some(true),
                meta: false,
                team: has_team(&entry.extra),
            });
        }
        TranscriptLine::Unknown(object) => {
            let text = |name| object.get(name).and_then(Value::as_str);
            let flag = |name| object.get(name).and_then(Value::as_bool).unwrap_or(false);
            (text("type") == Some("attachment")).then_some(())?;
            return Some(Links {
                uuid: text("uuid")?,
                parent: text("parentUuid"),
                sidechain: flag("isSidechain"),
                meta: flag("isMeta"),
                team: text("teamName").is_some_and(|name| !name.is_empty()),
            });
        }
        _ => return None,
    };
    Some(Links {
        uuid: place.uuid.as_str(),
        parent: place.parent_uuid.as_ref().map(|uuid| uuid.as_str()),
        sidechain: place.is_sidechain == Some(true),
        meta: place.is_meta == Some(true),
        team: has_team(&place.extra),
    })
}

fn has_team(extra: &Extra) -> bool {
    extra.get("teamName").and_then(Value::as_str).is_some_and(|name| !name.is_empty())
}

pub(super) fn as_user(line: &TranscriptLine) -> Option<&Entry<UserContent>> {
    match line {
        TranscriptLine::User(entry) => Some(entry),
        _ => None,
    }
}

pub(super) fn as_assistant(line: &TranscriptLine) -> Option<&Entry<Message>> {
    match line {
        TranscriptLine::Assistant(entry) => Some(entry),
        _ => None,
    }
}

/// The API's id of the response a line belongs to.
pub(super) fn message_id(line: &TranscriptLine) -> Option<&str> {
    as_assistant(line)?.message.id.as_deref().filter(|id| !id.is_empty())
}

/// The calls a line makes.
pub(super) fn calls(line: &TranscriptLine) -> impl Iterator<Item = &ToolUseId> {
    let blocks = as_assistant(line).map(|entry| entry.message.content.as_slice());
    blocks.unwrap_or_default().iter().filter_map(|block| Some(&block.as_tool_use()?.id))
}

/// The calls a line answers, and whether with an error.
pub(super) fn answers(line: &TranscriptLine) -> impl Iterator<Item = (&ToolUseId, bool)> {
    user_blocks(line).iter().filter_map(|block| match block {
        ContentBlock::ToolResult(result) => {
            Some((&result.tool_use_id, result.is_error == Some(true)))
        }
        _ => None,
    })
}

/// The calls that a user message answers.
pub(super) fn results(message: &UserContent) -> impl Iterator<Item = &ToolUseId> {
    let blocks = match &message.content {
        Some(Content::Blocks(blocks)) => blocks.as_slice(),
        _ => &[],
    };
    blocks.iter().filter_map(|block| match block {
        ContentBlock::ToolResult(result) => Some(&result.tool_use_id),
        _ => None,
    })
}

/// The blocks of a user line; empty when it is a plain string.
pub(super) fn user_blocks(line: &TranscriptLine) -> &[ContentBlock] {
    match as_user(line).and_then(|entry| entry.message.content.as_ref()) {
        Some(Content::Blocks(blocks)) => blocks,
        _ => &[],
    }
}

/// When a line was written.
pub(super) fn written_at(line: &TranscriptLine) -> &str {
    match line {
        TranscriptLine::User(entry) => &entry.place.timestamp,
        TranscriptLine::Assistant(entry) => &entry.place.timestamp,
        _ => "",
    }
}

//! Small lines next to the conversation (queue, titles, tags), and changes of a session from outside.

use ostler_proto::SessionId;
use ostler_proto::build;
use ostler_proto::transcript::{
    CustomTitle, LastPrompt, QueueOperation, Summary, TagLine, TranscriptLine,
};

use super::scan::short;
use super::{Projects, StoreError, TranscriptWriter};

impl TranscriptWriter {
    /// Writes that a prompt was queued (`enqueue`), started (`dequeue`) or withdrawn (`remove`).
    ///
    /// # Errors
    /// When the write fails; the session can continue.
    pub fn queue(&mut self, operation: &str, prompt: Option<&str>) -> Result<(), StoreError> {
        let line = build!(QueueOperation {
            operation: operation.to_owned(),
            timestamp: self.clock.tick(),
            session_id: self.session_id.clone(),
            content: prompt.map(str::to_owned),
        });
        self.append(&TranscriptLine::QueueOperation(line))
    }

    /// Writes at the end of a turn which prompt it answered, for listings.
    ///
    /// # Errors
    /// When the write fails; the session can continue.
    pub fn turn_ended(&mut self) -> Result<(), StoreError> {
        let Some(prompt) = self.last_prompt.take().map(|prompt| short(&prompt)) else {
            return Ok(());
        };
        if prompt.is_empty() {
            return Ok(());
        }
        self.append(&TranscriptLine::LastPrompt(build!(LastPrompt {
            last_prompt: prompt,
            leaf_uuid: self.leaf().cloned(),
            session_id: self.session_id.clone(),
        })))
    }

    /// Gives the session a title.
    ///
    /// # Errors
    /// When it is empty, or the write fails.
    pub fn title(&mut self, title: &str) -> Result<(), StoreError> {
        self.append(&TranscriptLine::CustomTitle(build!(CustomTitle {
            custom_title: not_empty("title", title)?,
            session_id: self.session_id.clone(),
        })))
    }

    /// Sets or removes the session's tag.
    ///
    /// # Errors
    /// When it is empty, or the write fails.
    pub fn tag(&mut self, tag: Option<&str>) -> Result<(), StoreError> {
        let tag = tag.map(|tag| not_empty("tag", tag)).transpose()?.unwrap_or_default();
        let session_id = self.session_id.clone();
        self.append(&TranscriptLine::Tag(build!(TagLine { tag, session_id })))
    }

    /// Writes a summary of the session, for listings.
    ///
    /// # Errors
    /// When it is empty, or the write fails.
    pub fn summary(&mut self, summary: &str) -> Result<(), StoreError> {
        self.append(&TranscriptLine::Summary(build!(Summary {
            summary: not_empty("summary", summary)?,
            leaf_uuid: self.leaf().cloned(),
        })))
    }
}

impl Projects {
    /// Gives a session a title.
    ///
    /// # Errors
    /// When there is no such session, the title is empty, or the write fails.
    pub fn rename(&self, id: &SessionId, title: &str) -> Result<(), StoreError> {
        self.session(None, id)?.rename(title)
    }

    /// Sets or removes a session's tag.
    ///
    /// # Errors
    /// When there is no such session, the tag is empty, or the write fails.
    pub fn tag(&self, id: &SessionId, tag: Option<&str>) -> Result<(), StoreError> {
        self.session(None, id)?.tag(tag)
    }

    /// Removes a session, and its subagents with it.
    ///
    /// # Errors
    /// When there is no such session, or its files cannot be removed.
    pub fn delete(&self, id: &SessionId) -> Result<(), StoreError> {
        self.session(None, id)?.delete()
    }
}

/// Makes a title or tag a single line without invisible characters.
pub(super) fn not_empty(what: &'static str, text: &str) -> Result<String, StoreError> {
    let visible = |c: &char| {
        !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{e000}'..='\u{f8ff}')
    };
    let text: String = text.chars().filter(visible).collect();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.is_empty() { Err(StoreError::Empty(what)) } else { Ok(text) }
}

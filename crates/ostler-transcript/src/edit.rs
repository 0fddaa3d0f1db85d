//! Small lines beside the conversation (queue, titles, tags), and what can be done to a session from outside.

use std::fs;
use std::path::Path;

use ostler_proto::transcript::{
    CustomTitle, LastPrompt, QueueOperation, Summary, TagLine, TranscriptLine,
};
use ostler_proto::{Extra, SessionId};

use super::scan::short;
use super::{Clock, Projects, Scene, StoreError, TranscriptWriter, io_error};

impl TranscriptWriter {
    /// Notes that a prompt was queued (`enqueue`), taken up (`dequeue`) or withdrawn (`remove`).
    ///
    /// # Errors
    /// When the disk says no; the session can go on.
    pub fn queue(&mut self, operation: &str, prompt: Option<&str>) -> Result<(), StoreError> {
        let line = QueueOperation {
            operation: operation.to_owned(),
            timestamp: self.clock.tick(),
            session_id: self.session_id.clone(),
            content: prompt.map(str::to_owned),
            extra: Extra::default(),
        };
        self.append(&TranscriptLine::QueueOperation(line))
    }

    /// Notes at the end of a turn which prompt it answered, for listings.
    ///
    /// # Errors
    /// When the disk says no; the session can go on.
    pub fn turn_ended(&mut self) -> Result<(), StoreError> {
        let Some(prompt) = self.last_prompt.take().map(|prompt| short(&prompt)) else {
            return Ok(());
        };
        if prompt.is_empty() {
            return Ok(());
        }
        self.append(&TranscriptLine::LastPrompt(LastPrompt {
            last_prompt: prompt,
            leaf_uuid: self.leaf().cloned(),
            session_id: self.session_id.clone(),
            extra: Extra::default(),
        }))
    }

    /// Gives the session a title.
    ///
    /// # Errors
    /// When it is empty, or the disk says no.
    pub fn title(&mut self, title: &str) -> Result<(), StoreError> {
        self.append(&TranscriptLine::CustomTitle(CustomTitle {
            custom_title: not_empty("title", title)?,
            session_id: self.session_id.clone(),
            extra: Extra::default(),
        }))
    }

    /// Gives the session a tag, or takes it away.
    ///
    /// # Errors
    /// When it is empty, or the disk says no.
    pub fn tag(&mut self, tag: Option<&str>) -> Result<(), StoreError> {
        let tag = tag.map(|tag| not_empty("tag", tag)).transpose()?.unwrap_or_default();
        let session_id = self.session_id.clone();
        self.append(&TranscriptLine::Tag(TagLine { tag, session_id, extra: Extra::default() }))
    }

    /// Sums the session up, for listings.
    ///
    /// # Errors
    /// When it is empty, or the disk says no.
    pub fn summary(&mut self, summary: &str) -> Result<(), StoreError> {
        self.append(&TranscriptLine::Summary(Summary {
            summary: not_empty("summary", summary)?,
            leaf_uuid: self.leaf().cloned(),
            extra: Extra::default(),
        }))
    }
}

impl Projects {
    /// Gives a session a title.
    ///
    /// # Errors
    /// When there is no such session, the title is empty, or the disk says no.
    pub fn rename(&self, id: &SessionId, title: &str) -> Result<(), StoreError> {
        self.appender(id)?.title(title)
    }

    /// Gives a session a tag, or takes it away.
    ///
    /// # Errors
    /// When there is no such session, the tag is empty, or the disk says no.
    pub fn tag(&self, id: &SessionId, tag: Option<&str>) -> Result<(), StoreError> {
        self.appender(id)?.tag(tag)
    }

    /// Removes a session, and its subagents with it.
    ///
    /// # Errors
    /// When there is no such session, or the disk says no.
    pub fn delete(&self, id: &SessionId) -> Result<(), StoreError> {
        let file = self.file(None, id).ok_or_else(|| StoreError::NotFound(id.to_string()))?;
        fs::remove_file(&file).map_err(io_error("delete", &file))?;
        let folder = file.with_extension("");
        match fs::remove_dir_all(&folder) {
            Err(error) if folder.exists() => Err(io_error("delete", &folder)(error)),
            _ => Ok(()),
        }
    }

    /// Writes small lines only: these do not say where they were written.
    fn appender(&self, id: &SessionId) -> Result<TranscriptWriter, StoreError> {
        let file = self.file(None, id).ok_or_else(|| StoreError::NotFound(id.to_string()))?;
        let nowhere =
            Scene { cwd: Path::new("/").to_owned(), version: String::new(), entrypoint: None };
        Ok(TranscriptWriter::go_on(file, id.clone(), nowhere, None, Clock::default()))
    }
}

/// Titles and tags are single lines without what nobody can see.
fn not_empty(what: &'static str, text: &str) -> Result<String, StoreError> {
    let visible = |c: &char| {
        !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{e000}'..='\u{f8ff}')
    };
    let text: String = text.chars().filter(visible).collect();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.is_empty() { Err(StoreError::Empty(what)) } else { Ok(text) }
}

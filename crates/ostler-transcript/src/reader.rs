//! [`Transcript`]: reads the lines of a session file and tolerates damage.
//!
//! A line that is not JSON, or not valid for its type, is counted and skipped; the conversation continues without it.
//! An incomplete line at the end, which a crash leaves behind, is not even counted.

use std::io::{self, BufRead, BufReader};
use std::path::Path;

use ostler_proto::Uuid;
use ostler_proto::transcript::TranscriptLine;
use serde_json::{Value, json};

use super::chain::Tree;
use super::conversation::conversation;
use super::{StoreError, io_error};
use ostler_model::ChatMessage;

/// The longest line that is read. The longest that an engine writes has a response or a tool result with images, and is
/// far shorter; a longer one is damage or an attack, and counts as a line that cannot be read.
const MAX_LINE_BYTES: usize = 32 * 1024 * 1024;

/// The contents of a session file.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    lines: Vec<TranscriptLine>,
    n_skipped: usize,
    sidechain: bool,
}

impl Transcript {
    /// Reads the file of a session.
    ///
    /// # Errors
    /// When the file cannot be read. Malformed contents are never an error.
    pub fn read(path: &Path) -> Result<Self, StoreError> {
        let file = ostler_files::open(path).map_err(io_error("read", path))?;
        Self::from_reader(BufReader::new(file)).map_err(io_error("read", path))
    }

    /// Reads the file of a subagent, in which all lines are side chain.
    ///
    /// # Errors
    /// As for [`Transcript::read`].
    pub fn read_subagent(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { sidechain: true, ..Self::read(path)? })
    }

    /// Reads lines from anywhere.
    ///
    /// # Errors
    /// Those of the reader.
    pub fn from_reader(mut reader: impl BufRead) -> io::Result<Self> {
        let mut transcript = Self::default();
        let mut line = Vec::new();
        while let Some(LineRead { is_whole, .. }) = read_line(&mut reader, &mut line)? {
            let torn = is_whole && !line.ends_with(b"\n");
            let text = if is_whole { line.trim_ascii() } else { &b"too long"[..] };
            match serde_json::from_slice(text).ok().or_else(|| completed(text)) {
                Some(read) => transcript.lines.push(read),
                None if torn || text.is_empty() => {}
                None => transcript.n_skipped += 1,
            }
        }
        Ok(transcript)
    }

    /// The transcript with lines before it.
    pub(super) fn after(mut self, mut before: Vec<TranscriptLine>) -> Self {
        before.append(&mut self.lines);
        Self { lines: before, ..self }
    }

    /// All lines that could be read, in the order of the file.
    pub fn lines(&self) -> &[TranscriptLine] {
        &self.lines
    }

    /// How many lines could not be read.
    pub fn n_skipped(&self) -> usize {
        self.n_skipped
    }

    /// The parent of the next line of a continued conversation.
    pub fn leaf(&self) -> Option<Uuid> {
        let tree = self.tree();
        let last = tree.end(tree.leaf()?);
        super::line::links(&self.lines[last]).map(|links| links.uuid.into())
    }

    /// The messages for display: `user` and `assistant` lines.
    pub fn messages(&self) -> Vec<&TranscriptLine> {
        let tree = self.tree();
        let chain = tree.leaf().map(|leaf| tree.chain(leaf)).unwrap_or_default();
        let shown = chain.into_iter().filter(|at| tree.is_ours(*at) && !tree.is_meta(*at));
        shown.map(|at| &self.lines[at]).filter(|line| is_spoken(line)).collect()
    }

    /// The conversation in a form that the API accepts. Unlike [`Transcript::messages`] it includes messages for the
    /// model alone (`isMeta`), and nothing that the API would refuse.
    pub fn conversation(&self) -> Vec<ChatMessage> {
        let tree = self.tree();
        tree.leaf().map(|leaf| self.conversation_to(&tree, leaf)).unwrap_or_default()
    }

    pub(super) fn conversation_to(&self, tree: &Tree<'_>, leaf: usize) -> Vec<ChatMessage> {
        let chain = tree.chain(leaf);
        conversation(chain.into_iter().filter(|at| tree.is_ours(*at)).map(|at| &self.lines[at]))
    }

    pub(super) fn tree(&self) -> Tree<'_> {
        Tree::new(&self.lines, self.sidechain)
    }
}

/// A line that was read.
pub(super) struct LineRead {
    /// Whether it is within the length limit.
    pub(super) is_whole: bool,
    /// Its length including the line end.
    pub(super) n_bytes: u64,
}

/// Reads the next line into `line`. `None` at the end. The rest of a line that is too long is skipped without being
/// stored.
pub(super) fn read_line(
    reader: &mut impl BufRead,
    line: &mut Vec<u8>,
) -> io::Result<Option<LineRead>> {
    line.clear();
    let mut read = LineRead { is_whole: true, n_bytes: 0 };
    loop {
        let bytes = reader.fill_buf()?;
        if bytes.is_empty() {
            return Ok((read.n_bytes > 0).then_some(read));
        }
        let end = memchr::memchr(b'\n', bytes);
        let n_bytes = end.map_or(bytes.len(), |end| end + 1);
        read.n_bytes += n_bytes as u64;
        read.is_whole &= line.len() + n_bytes <= MAX_LINE_BYTES;
        match read.is_whole {
            true => line.extend_from_slice(&bytes[..n_bytes]),
            false => *line = Vec::new(),
        }
        reader.consume(n_bytes);
        if end.is_some() {
            return Ok(Some(read));
        }
    }
}

/// Fills in missing fields of a message line that this engine always writes.
fn completed(text: &[u8]) -> Option<TranscriptLine> {
    let mut line: Value = serde_json::from_slice(text).ok()?;
    let fields = line.as_object_mut().filter(|fields| fields.contains_key("uuid"))?;
    for name in ["sessionId", "timestamp"] {
        fields.entry(name).or_insert_with(|| "".into());
    }
    let is_assistant = fields.get("type")? == "assistant";
    if let Some(message) = fields.get_mut("message").and_then(Value::as_object_mut)
        && is_assistant
    {
        message.entry("model").or_insert_with(|| "".into());
        let content = message.get_mut("content")?;
        if content.is_string() {
            *content = json!([{"type": "text", "text": content}]);
        }
    }
    serde_json::from_value(line).ok()
}

fn is_spoken(line: &TranscriptLine) -> bool {
    matches!(line, TranscriptLine::User(_) | TranscriptLine::Assistant(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Mutant: lines are read with `read_until`, whatever their length.
    #[test]
    fn a_line_that_is_too_long_is_skipped_and_not_stored() {
        let title = r#"{"type":"summary","summary":"s","leafUuid":"u"}"#;
        let long = format!("{{\"type\":\"{}\"}}", "x".repeat(MAX_LINE_BYTES));
        for (text, n_lines, n_skipped) in [
            (format!("{title}\n{long}\n{title}\n"), 2, 1),
            (format!("{title}\n{long}"), 1, 1),
            (format!("{long}\n"), 0, 1),
            (format!("{title}\n\n{title}"), 2, 0),
            (format!("{title}\n{{\"torn"), 1, 0),
        ] {
            let read = Transcript::from_reader(BufReader::new(text.as_bytes())).unwrap();
            assert_eq!((read.lines().len(), read.n_skipped()), (n_lines, n_skipped), "{text:.60}");
        }
    }
}

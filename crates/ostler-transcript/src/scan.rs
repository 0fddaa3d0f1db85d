//! Extracts the fields of a listing from the first and last part of a session file, as text: such parts begin and end
//! anywhere.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::time::SystemTime;

use ostler_proto::api::Content;
use serde_json::Value;

/// The bytes that are read of each end.
const PART: u64 = 64 * 1024;
/// The longest prompt in a listing, in characters.
const SHORT: usize = 200;

/// Both ends of a file.
#[derive(Debug)]
pub(super) struct FileEnds {
    pub(super) head: String,
    pub(super) tail: String,
    pub(super) size: u64,
    pub(super) modified: SystemTime,
}

impl FileEnds {
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        let mut file = ostler_files::open(path)?;
        let meta = file.metadata()?;
        let head = read_part(&mut file)?;
        let tail = if meta.len() > PART {
            file.seek(SeekFrom::Start(meta.len() - PART))?;
            read_part(&mut file)?
        } else {
            head.clone()
        };
        Ok(Self { head, tail, size: meta.len(), modified: meta.modified()? })
    }

    /// The last value of a field, preferably near the end.
    pub(super) fn last(&self, key: &str) -> Option<String> {
        let filled = |value: &String| !value.is_empty();
        last_field(&self.tail, key)
            .filter(filled)
            .or_else(|| last_field(&self.head, key).filter(filled))
    }

    /// The first value of a field.
    pub(super) fn first(&self, key: &str) -> Option<String> {
        fields(&self.head, key).next().filter(|value| !value.is_empty())
    }

    /// The tag: only from lines that begin like tag lines, because tools have fields of that name too.
    pub(super) fn tag(&self) -> Option<String> {
        let line = self.tail.lines().rev().find(|line| line.starts_with(r#"{"type":"tag""#))?;
        last_field(line, "tag").filter(|tag| !tag.is_empty())
    }

    /// Whether the file is a subagent's.
    pub(super) fn is_sidechain(&self) -> bool {
        let first = self.head.lines().next().unwrap_or_default();
        has_flag(first, "isSidechain")
    }

    /// The first prompt, or the first command.
    pub(super) fn first_prompt(&self) -> Option<String> {
        let mut command = None;
        for line in self.head.lines().filter(|line| may_be_prompt(line)) {
            let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
            if line["type"] != "user" {
                continue;
            }
            let Ok(content) = serde_json::from_value::<Content>(line["message"]["content"].clone())
            else {
                continue;
            };
            for text in texts(content) {
                let text = text.replace('\n', " ").trim().to_owned();
                if let Some(name) = between(&text, "<command-name>", "</command-name>") {
                    command.get_or_insert_with(|| name.to_owned());
                } else if !text.is_empty() && !is_automatic(&text) {
                    return Some(short(&text));
                }
            }
        }
        command.filter(|command| !command.is_empty())
    }
}

/// The beginning of a text, on one line.
pub(super) fn short(text: &str) -> String {
    let text = text.replace('\n', " ");
    let text = text.trim();
    match text.char_indices().nth(SHORT) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

fn read_part(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(PART).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn may_be_prompt(line: &str) -> bool {
    (line.contains(r#""type":"user""#) || line.contains(r#""type": "user""#))
        && !line.contains(r#""tool_result""#)
        && !has_flag(line, "isMeta")
        && !has_flag(line, "isCompactSummary")
}

fn has_flag(line: &str, name: &str) -> bool {
    line.contains(&format!(r#""{name}":true"#)) || line.contains(&format!(r#""{name}": true"#))
}

fn texts(content: Content) -> Vec<String> {
    match content {
        Content::Text(text) => vec![text],
        Content::Blocks(blocks) => {
            blocks.iter().filter_map(|block| block.as_text().map(str::to_owned)).collect()
        }
    }
}

/// Whether a program wrote it in the user's name.
fn is_automatic(text: &str) -> bool {
    const BEGINNINGS: [&str; 5] = [
        "<local-command-stdout>",
        "<session-start-hook>",
        "<tick>",
        "<goal>",
        "[Request interrupted by user",
    ];
    let wrapped =
        |tag: &str| text.starts_with(&format!("<{tag}>")) && text.ends_with(&format!("</{tag}>"));
    BEGINNINGS.iter().any(|beginning| text.starts_with(beginning))
        || wrapped("ide_opened_file")
        || wrapped("ide_selection")
}

fn between<'a>(text: &'a str, from: &str, to: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(from)?;
    rest.split_once(to).map(|(inner, _)| inner)
}

fn last_field(text: &str, key: &str) -> Option<String> {
    fields(text, key).last()
}

/// The string values of a field anywhere in the text. Quotes inside strings are escaped, so no string looks like a
/// field.
fn fields<'a>(text: &'a str, key: &str) -> impl Iterator<Item = String> + 'a {
    let name = format!(r#""{key}":"#);
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let (_, after) = rest.split_once(&name)?;
            rest = after;
            let value = after.strip_prefix(' ').unwrap_or(after);
            if let Some(value) = value.strip_prefix('"')
                && let Some(end) = string_end(value)
            {
                rest = &value[end..];
                return Some(unescape(&value[..end]));
            }
        }
    })
}

fn string_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let end = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        end
    })
}

fn unescape(raw: &str) -> String {
    serde_json::from_str(&format!("\"{raw}\"")).unwrap_or_else(|_| raw.to_owned())
}

//! A fast decoder for stream deltas.
//!
//! With partial messages nearly every line is a delta, and engines write them all in one format. A line of exactly
//! that format is decoded here, several times faster; any other line is left to the general decoder. Both must agree:
//! the tests change lines at every position and compare.

use super::StreamEventMessage;
use crate::Extra;
use crate::api::{ContentBlockDelta, Delta, InputJsonDelta, StreamEvent, TextDelta, ThinkingDelta};

/// Decodes a delta in the usual format; `None` means that the general decoder must try.
pub(crate) fn read(line: &str) -> Option<Box<StreamEventMessage>> {
    let mut line = Line(line);
    line.skip(r#"{"type":"stream_event","event":{"type":"content_block_delta","index":"#)?;
    let index = line.number()?;
    line.skip(r#","delta":{"type":""#)?;
    let extra = Extra::default();
    let delta = if line.skip(r#"text_delta","text":"#).is_some() {
        Delta::TextDelta(TextDelta { text: line.text()?, extra })
    } else if line.skip(r#"input_json_delta","partial_json":"#).is_some() {
        Delta::InputJsonDelta(InputJsonDelta { partial_json: line.text()?, extra })
    } else {
        line.skip(r#"thinking_delta","thinking":"#)?;
        Delta::ThinkingDelta(ThinkingDelta {
            thinking: line.text()?,
            estimated_tokens: None,
            extra,
        })
    };
    line.skip("}}")?;
    let Around { session_id, uuid, parent, message, display } = line.around()?;
    let event = ContentBlockDelta { index, delta, extra: Extra::default() };
    let event = StreamEvent::ContentBlockDelta(event);
    let frame = StreamEventMessage::new(event, session_id?.into(), uuid?.into());
    // Boxed early, because the value is large.
    let mut frame = Box::new(frame);
    frame.parent_tool_use_id = parent?.map(Into::into);
    frame.api_message_id = message.map(str::to_owned);
    frame.thinking_display = display.map(str::to_owned);
    Some(frame)
}

/// The fields next to an event.
#[derive(Default)]
struct Around<'a> {
    session_id: Option<&'a str>,
    uuid: Option<&'a str>,
    parent: Option<Option<&'a str>>,
    message: Option<&'a str>,
    display: Option<&'a str>,
}

/// The rest of a line.
struct Line<'a>(&'a str);

impl<'a> Line<'a> {
    fn skip(&mut self, text: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(text)?;
        Some(())
    }

    /// A small whole number.
    fn number(&mut self) -> Option<u64> {
        let digits = self.0.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = self.0.split_at(digits);
        let is_plain = digits == 1 || (digits < 10 && !number.starts_with('0'));
        self.0 = rest;
        number.parse().ok().filter(|_| is_plain)
    }

    /// A string without escapes.
    fn word(&mut self) -> Option<&'a str> {
        self.skip("\"")?;
        let (word, rest) = self.0.split_at(memchr::memchr2(b'"', b'\\', self.0.as_bytes())?);
        self.0 = rest.strip_prefix('"')?;
        is_plain(word).then_some(word)
    }

    /// Any string.
    fn text(&mut self) -> Option<String> {
        let all = self.0;
        if let Some(word) = self.word() {
            return Some(word.to_owned());
        }
        // Escapes are left to the general decoder.
        let mut end = 1;
        loop {
            let rest = all.as_bytes().get(end..)?;
            end += memchr::memchr2(b'"', b'\\', rest)? + 1;
            if all.as_bytes()[end - 1] == b'"' {
                break;
            }
            // An escaped quote does not end the string.
            end += 1;
        }
        self.0 = all.get(end..)?;
        serde_json::from_str(all.get(..end)?).ok()
    }

    /// The rest of the line: the fields next to the event, in any order, each once.
    fn around(&mut self) -> Option<Around<'a>> {
        let mut around = Around::default();
        while self.skip(",\"").is_some() {
            let place = if self.skip("session_id\":").is_some() {
                &mut around.session_id
            } else if self.skip("uuid\":").is_some() {
                &mut around.uuid
            } else if self.skip("api_message_id\":").is_some() {
                &mut around.message
            } else if self.skip("thinking_display\":").is_some() {
                &mut around.display
            } else {
                self.skip("parent_tool_use_id\":")?;
                let parent = if self.skip("null").is_some() { None } else { Some(self.word()?) };
                if around.parent.replace(parent).is_some() {
                    return None;
                }
                continue;
            };
            let value = self.word()?;
            if place.replace(value).is_some() {
                return None;
            }
        }
        self.skip("}")?;
        self.0.trim_ascii().is_empty().then_some(around)
    }
}

/// Whether a string contains no other character that JSON must escape.
fn is_plain(text: &str) -> bool {
    // Checks the whole string without an early exit, which is faster.
    !text.bytes().fold(false, |found, byte| found | (byte < 0x20))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::frame::ToHost;

    fn read_generally(line: &str) -> Result<ToHost, String> {
        serde_json::from_str(line).map_err(|error| error.to_string())
    }

    /// Whether the fast decoder accepts the line, with the same result as the general one.
    fn check(line: &str) -> bool {
        let Some(frame) = read(line) else { return false };
        assert_eq!(read_generally(line), Ok(ToHost::StreamEvent(frame)), "{line}");
        true
    }

    /// All recorded lines, and some more.
    fn lines() -> Vec<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/wire");
        let mut lines = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.to_string_lossy().ends_with(".stdout.jsonl") {
                lines.extend(fs::read_to_string(path).unwrap().lines().map(str::to_owned));
            }
        }
        for text in
            ["", r#"a\"b\\"#, r"\\", r"\n\t\u00e9 \ud83d\ude00", "é😀", r"\ud83d", r"\x", "\u{1}"]
        {
            lines.push(format!(
                r#"{{"type":"stream_event","event":{{"type":"content_block_delta","index":12,"delta":{{"type":"text_delta","text":"{text}"}}}},"uuid":"u","session_id":"s","parent_tool_use_id":"toolu_1"}}"#
            ));
        }
        lines
    }

    #[test]
    fn both_decoders_agree_on_recorded_deltas() {
        let of_text =
            |kind: &str| lines().iter().filter(|line| line.contains(kind) && check(line)).count();
        assert!(of_text(r#""type":"text_delta""#) > 30);
        assert!(of_text(r#""type":"input_json_delta""#) > 10);
        assert!(of_text(r#""type":"thinking_delta""#) > 1);
        assert!(lines().iter().filter(|line| check(line)).all(|line| line.contains("_delta")));
    }

    #[test]
    fn the_fast_decoder_accepts_what_engines_write() {
        for line in lines() {
            let Some(frame) = read(&line) else { continue };
            let written = crate::frame::Frame::to_line(&ToHost::StreamEvent(frame));
            assert!(check(&written), "{written}");
        }
    }

    #[test]
    fn both_decoders_agree_on_changed_lines() {
        let mut seen = std::collections::BTreeSet::new();
        let odd = [
            "\"",
            "\\",
            ",",
            "}",
            "{",
            ":",
            "0",
            "1",
            "n",
            " ",
            "\n",
            "\u{1}",
            "é",
            "null",
            ",\"uuid\":\"u\"",
        ];
        for line in lines() {
            let Some(frame) = read(&line) else { continue };
            // One of each format.
            if !seen.insert((line.len(), frame.api_message_id.is_some())) {
                continue;
            }
            for (at, character) in line.char_indices() {
                let (before, after) = (&line[..at], &line[at + character.len_utf8()..]);
                check(&format!("{before}{after}"));
                check(before);
                for odd in odd {
                    check(&format!("{before}{odd}{after}"));
                    check(&format!("{before}{odd}{character}{after}"));
                }
            }
        }
        assert!(seen.len() > 5, "{seen:?}");
    }
}

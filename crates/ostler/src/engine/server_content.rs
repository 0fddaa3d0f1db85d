//! Content of MCP servers as blocks that the Messages API accepts. The API refuses a whole request because of one block.

use std::borrow::Cow;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ostler_engine::scratch::Scratch;
use ostler_mcp::{Content, ResourceContents};
use ostler_proto::api::ContentBlock;

/// The content as the model reads it, if it is text.
pub(super) fn text_of(content: &Content) -> Option<Cow<'_, str>> {
    match content {
        Content::Text(text) => Some(text.into()),
        Content::Resource(ResourceContents { uri, text: Some(text), .. }) => {
            Some(format!("[{uri}]\n{text}").into())
        }
        Content::Image(_) | Content::Audio(_) | Content::Resource(_) => None,
        other => Some(other.to_value().to_string().into()),
    }
}

/// The content as blocks. Bytes that the model cannot read are written into a file of the session, if there is a folder
/// for that, and the model gets a line about them. Decodes images and touches the disk.
pub(super) fn blocks(content: &Content, scratch: Option<&Scratch>) -> Vec<ContentBlock> {
    if let Some(text) = text_of(content) {
        // The API refuses blank texts.
        let is_blank = text.trim().is_empty();
        return if is_blank { Vec::new() } else { vec![ContentBlock::text(text)] };
    }
    let (what, kind, data) = match content {
        Content::Image(media) => ("image", media.mime_type.as_str(), media.data.as_str()),
        Content::Audio(media) => ("sound", media.mime_type.as_str(), media.data.as_str()),
        Content::Resource(resource) => (
            resource.uri.as_str(),
            resource.mime_type.as_deref().unwrap_or("application/octet-stream"),
            resource.blob.as_deref().unwrap_or_default(),
        ),
        _ => return Vec::new(),
    };
    let Some(bytes) = decoded(data) else {
        return vec![ContentBlock::text(format!("[{what}: {kind}, but not valid base64]"))];
    };
    let mut reason = String::new();
    if kind.starts_with("image/") {
        match ostler_tools::picture::fit(&bytes) {
            Ok((image, note)) => {
                return std::iter::once(image).chain(note.map(ContentBlock::text)).collect();
            }
            Err(why) => reason = format!("; it {why}"),
        }
    }
    vec![ContentBlock::text(stored(what, kind, &bytes, scratch) + &reason + "]")]
}

/// The bytes of base64, also of base64 with line breaks.
fn decoded(data: &str) -> Option<Vec<u8>> {
    let plain = |data: &str| BASE64_STANDARD.decode(data).ok();
    plain(data).or_else(|| plain(&data.split_ascii_whitespace().collect::<String>()))
}

/// Writes bytes into a file. Returns the beginning of a line about them.
fn stored(what: &str, kind: &str, bytes: &[u8], scratch: Option<&Scratch>) -> String {
    let n = bytes.len();
    let ending = ending(kind);
    match scratch.map(|scratch| scratch.keep_new("content", &ending, bytes)) {
        Some(Ok(path)) => format!("[{what}: {n} bytes of {kind}, in the file {}", path.display()),
        Some(Err(error)) => {
            format!("[{what}: {n} bytes of {kind}, which could not be stored: {error}")
        }
        None => format!("[{what}: {n} bytes of {kind}, which were left out"),
    }
}

/// The ending of a file, by its type: `.wav` for `audio/wav`.
fn ending(kind: &str) -> String {
    let name = kind.split([';', '+']).next().unwrap_or_default();
    let name = name.rsplit('/').next().unwrap_or_default().trim_start_matches("x-");
    let is_plain =
        (1..=8).contains(&name.len()) && name.bytes().all(|it| it.is_ascii_alphanumeric());
    if is_plain { format!(".{name}") } else { ".bin".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A valid image of one pixel.
    const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

    fn shown(content: &Content) -> String {
        let scratch = Scratch::default();
        let blocks = blocks(content, Some(&scratch));
        serde_json::to_string(&blocks).expect("blocks are JSON")
    }

    #[test]
    fn images_that_the_api_accepts_are_shown() {
        let image = shown(&Content::image(PNG, "image/png"));
        assert!(image.contains(r#""type":"image""#) && image.contains(PNG), "{image}");
        // The type that the server names may be wrong.
        assert!(shown(&Content::image(PNG, "image/jpeg")).contains("image/png"));
        let blob = ResourceContents::blob("file:///a.png", PNG).mime_type("image/png");
        assert!(shown(&Content::Resource(blob)).contains(r#""type":"image""#));
    }

    #[test]
    fn bytes_that_the_model_cannot_read_are_in_a_file() {
        let svg = BASE64_STANDARD.encode("<svg/>");
        for (content, part) in [
            (Content::image(&svg, "image/svg+xml"), "6 bytes of image/svg+xml, in the file"),
            (Content::image(BASE64_STANDARD.encode("no"), "image/png"), "is not a PNG"),
            (Content::audio(&svg, "audio/wav"), "sound: 6 bytes of audio/wav, in the file"),
            (Content::Resource(ResourceContents::blob("x://y", &svg)), "[x://y: 6 bytes of"),
            (Content::image("?", "image/png"), "not valid base64"),
        ] {
            let text = shown(&content);
            assert!(text.contains(part) && !text.contains(r#""type":"image""#), "{text}");
            assert!(!text.contains(&svg), "the bytes are not in the text: {text}");
        }
        let scratch = Scratch::default();
        let line = blocks(&Content::audio(&svg, "audio/x-wav; rate=8"), Some(&scratch));
        let line = serde_json::to_value(&line).expect("JSON")[0]["text"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let path = line.split("in the file ").nth(1).and_then(|rest| rest.strip_suffix(']'));
        let path = path.expect("a path");
        assert!(path.ends_with(".wav"), "{path}");
        assert_eq!(std::fs::read_to_string(path).expect("the file"), "<svg/>");
    }

    #[test]
    fn blank_texts_are_left_out_and_resources_are_text() {
        assert_eq!(shown(&Content::text(" \n")), "[]");
        let resource = Content::Resource(ResourceContents::text("x://y", "Hello"));
        assert_eq!(text_of(&resource).as_deref(), Some("[x://y]\nHello"));
        assert_eq!(
            text_of(&Content::Unknown(json!({"type": "new"}))).as_deref(),
            Some(r#"{"type":"new"}"#)
        );
    }
}

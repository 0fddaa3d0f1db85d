//! Turns a client's messages into input for the agent: prompts, results of client tools, and context.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ostler_proto::Extra;
use ostler_proto::api::{
    Base64Source, ContentBlock, DocumentBlock, ImageBlock, Source as ApiSource, TextSource,
    UrlSource,
};

use crate::input::RunAgentInput;
use crate::message::{Content, Message, MessageBody, Part, PartBody, Source};

/// Content for the model, and reasons for parts that were left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Blocks {
    /// The content.
    pub blocks: Vec<ContentBlock>,
    /// Why parts were left out, for the log.
    pub left_out: Vec<String>,
}

impl Blocks {
    fn add(&mut self, content: &Content) {
        match content {
            Content::Text(text) => self.add_text(text),
            Content::Parts(parts) => parts.iter().for_each(|part| self.add_part(part)),
        }
    }

    fn add_text(&mut self, text: &str) {
        if !text.is_empty() {
            self.blocks.push(ContentBlock::text(text));
        }
    }

    fn add_part(&mut self, part: &Part) {
        let block = match &part.body {
            PartBody::Text { text } => return self.add_text(text),
            PartBody::Image { source } => image(source),
            PartBody::Document { source } => document(source, part.filename()),
            PartBody::Audio { .. } => Err("the model does not support audio".to_owned()),
            PartBody::Video { .. } => Err("the model does not support video".to_owned()),
        };
        match block {
            Ok(block) => self.blocks.push(block),
            Err(reason) => self.left_out.push(reason),
        }
    }
}

/// Converts the content of a user or tool message.
pub fn blocks(content: &Content) -> Blocks {
    let mut blocks = Blocks::default();
    blocks.add(content);
    blocks
}

fn image(source: &Source) -> Result<ContentBlock, String> {
    let known =
        |mime: &str| matches!(mime, "image/jpeg" | "image/png" | "image/gif" | "image/webp");
    let source = match source {
        Source::Data { value, mime_type } if known(mime_type) => data(value, mime_type),
        Source::Data { mime_type, .. } => {
            return Err(format!("images of type {mime_type} are not supported"));
        }
        Source::Url { value, .. } => url(value),
        Source::File { .. } => return Err(FOREIGN_FILE.to_owned()),
    };
    Ok(ContentBlock::Image(ImageBlock { source, cache_control: None, extra: Extra::default() }))
}

fn document(source: &Source, title: Option<&str>) -> Result<ContentBlock, String> {
    let source = match source {
        Source::Data { value, mime_type } if mime_type == "application/pdf" => {
            data(value, mime_type)
        }
        Source::Data { value, mime_type } if mime_type.starts_with("text/") => {
            let bytes =
                STANDARD.decode(value).map_err(|error| format!("not valid base64: {error}"))?;
            let data = String::from_utf8_lossy(&bytes).into_owned();
            ApiSource::Text(TextSource {
                media_type: "text/plain".to_owned(),
                data,
                extra: Extra::default(),
            })
        }
        Source::Data { mime_type, .. } => {
            return Err(format!("documents of type {mime_type} are not supported"));
        }
        Source::Url { value, .. } => url(value),
        Source::File { .. } => return Err(FOREIGN_FILE.to_owned()),
    };
    Ok(ContentBlock::Document(DocumentBlock {
        source,
        title: title.map(str::to_owned),
        context: None,
        citations: None,
        cache_control: None,
        extra: Extra::default(),
    }))
}

const FOREIGN_FILE: &str = "files that were uploaded to a provider are not supported";

fn data(value: &str, mime_type: &str) -> ApiSource {
    let (media_type, data) = (mime_type.to_owned(), value.to_owned());
    ApiSource::Base64(Base64Source { media_type, data, extra: Extra::default() })
}

fn url(value: &str) -> ApiSource {
    ApiSource::Url(UrlSource { url: value.to_owned(), extra: Extra::default() })
}

/// The client's part of the system prompt: system messages, context and shared state.
pub fn surroundings(input: &RunAgentInput) -> Option<String> {
    let mut parts = Vec::new();
    for message in &input.messages {
        if let MessageBody::System { content } | MessageBody::Developer { content } = &message.body
        {
            parts.push(content.clone());
        }
    }
    if !input.context.is_empty() {
        let items = input.context.iter();
        let items = items.map(|item| format!("- {}: {}", item.description, item.value));
        let items = items.collect::<Vec<_>>().join("\n");
        parts.push(format!("What the application says about the situation:\n{items}"));
    }
    if let Some(state) = &input.state {
        let empty = state.is_null() || state.as_object().is_some_and(serde_json::Map::is_empty);
        if !empty {
            parts.push(format!("The state shared with the application, as JSON:\n{state}"));
        }
    }
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// Renders a conversation that the agent does not know as text. Images and documents stay blocks.
pub fn retold(messages: &[Message]) -> Blocks {
    let mut rendered = Blocks::default();
    let mut lines = String::new();
    for message in messages {
        match &message.body {
            MessageBody::User { content } => {
                line(&mut lines, "User", &content.text());
                let mut media = blocks(content);
                media.blocks.retain(|block| !matches!(block, ContentBlock::Text(_)));
                rendered.blocks.append(&mut media.blocks);
                rendered.left_out.append(&mut media.left_out);
            }
            MessageBody::Assistant { content, tool_calls } => {
                line(&mut lines, "Assistant", content.as_deref().unwrap_or_default());
                for call in tool_calls.iter().flatten() {
                    let function = &call.function;
                    let text = format!("{} {}", function.name, function.arguments);
                    line(&mut lines, "Assistant called", &text);
                }
            }
            MessageBody::Tool { content, error, .. } => {
                let text = error.clone().unwrap_or_else(|| content.text());
                line(&mut lines, "The tool answered", &text);
            }
            _ => {}
        }
    }
    if !lines.is_empty() {
        let text = format!("<earlier_conversation>\n{lines}</earlier_conversation>");
        rendered.blocks.insert(0, ContentBlock::text(text));
    }
    rendered
}

fn line(lines: &mut String, who: &str, text: &str) {
    if !text.is_empty() {
        lines.push_str(who);
        lines.push_str(": ");
        lines.push_str(text);
        lines.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(part: Value, expected: Result<Value, &str>) {
        let content: Content = serde_json::from_value(json!([part])).unwrap();
        let made = blocks(&content);
        match expected {
            Ok(block) => {
                assert_eq!(serde_json::to_value(&made.blocks).unwrap(), json!([block]));
                assert_eq!(made.left_out, Vec::<String>::new());
            }
            Err(reason) => {
                assert_eq!(made.blocks, []);
                assert!(made.left_out[0].contains(reason), "{:?}", made.left_out);
            }
        }
    }

    #[test]
    fn parts_become_content_blocks() {
        check(json!({"type": "text", "text": "hi"}), Ok(json!({"type": "text", "text": "hi"})));
        let source = json!({"type": "data", "value": "aGk=", "mimeType": "image/png"});
        check(
            json!({"type": "image", "source": source}),
            Ok(
                json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}),
            ),
        );
        let source = json!({"type": "url", "value": "https://example.com/a.png"});
        check(
            json!({"type": "image", "source": source}),
            Ok(
                json!({"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}),
            ),
        );
        let source = json!({"type": "data", "value": "aGk=", "mimeType": "application/pdf"});
        check(
            json!({"type": "document", "source": source, "metadata": {"filename": "a.pdf"}}),
            Ok(
                json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "aGk="}, "title": "a.pdf"}),
            ),
        );
        let source = json!({"type": "data", "value": "aGk=", "mimeType": "text/csv"});
        check(
            json!({"type": "document", "source": source}),
            Ok(
                json!({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "hi"}}),
            ),
        );
        // Attachments of clients before 1.0.
        check(
            json!({"type": "binary", "mimeType": "image/png", "data": "aGk="}),
            Ok(
                json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}),
            ),
        );
    }

    #[test]
    fn unsupported_parts_are_left_out_and_reported() {
        let data = |mime: &str| json!({"type": "data", "value": "aGk=", "mimeType": mime});
        check(json!({"type": "audio", "source": data("audio/wav")}), Err("support audio"));
        check(json!({"type": "video", "source": data("video/mp4")}), Err("support video"));
        check(json!({"type": "image", "source": data("image/tiff")}), Err("image/tiff"));
        check(
            json!({"type": "document", "source": data("application/zip")}),
            Err("application/zip"),
        );
        let file = json!({"type": "file", "value": "file_1", "provider": "other"});
        check(json!({"type": "image", "source": file}), Err("uploaded to a provider"));
        let bad = json!({"type": "data", "value": "?", "mimeType": "text/plain"});
        check(json!({"type": "document", "source": bad}), Err("base64"));
    }

    fn input(more: Value) -> RunAgentInput {
        let mut body = json!({"threadId": "t", "runId": "r", "messages": []});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        RunAgentInput::from_value(&body).unwrap()
    }

    #[test]
    fn the_system_prompt_gets_system_messages_context_and_state() {
        let text = surroundings(&input(json!({
            "messages": [{"id": "1", "role": "system", "content": "Be brief."}, {"id": "2", "role": "user", "content": "hi"}],
            "context": [{"description": "page", "value": "/cart"}, {"description": "user", "value": "Ada"}],
            "state": {"items": 3},
        })));
        let text = text.unwrap();
        for part in ["Be brief.", "- page: /cart", "- user: Ada", r#"{"items":3}"#] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains("hi"), "{text}");
        assert_eq!(surroundings(&input(json!({"state": {}}))), None);
    }

    #[test]
    fn an_unknown_conversation_is_rendered_with_its_calls_and_images() {
        let input = input(json!({"messages": [
            {"id": "1", "role": "user", "content": [{"type": "text", "text": "look"},
                {"type": "image", "source": {"type": "data", "value": "aGk=", "mimeType": "image/png"}}]},
            {"id": "2", "role": "assistant", "content": "I will", "toolCalls": [
                {"id": "c", "type": "function", "function": {"name": "paint", "arguments": "{\"a\":1}"}}]},
            {"id": "3", "role": "tool", "toolCallId": "c", "content": "done"},
        ]}));
        let rendered = retold(&input.messages);
        assert_eq!(
            rendered.blocks[0].as_text().unwrap(),
            "<earlier_conversation>\nUser: look\nAssistant: I will\nAssistant called: paint {\"a\":1}\nThe tool answered: done\n</earlier_conversation>"
        );
        assert!(matches!(rendered.blocks[1], ContentBlock::Image(_)));
        assert_eq!(retold(&[]), Blocks::default());
    }
}

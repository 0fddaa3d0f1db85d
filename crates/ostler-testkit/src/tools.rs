//! Refuses definitions and results of tools that the real Messages API would refuse.
//!
//! The API refuses the whole request because of one tool or one block, so an engine must check what servers send.

use serde_json::Value;

/// The API accepts 5 MB of base64 per image.
const MOST_IMAGE: usize = 5 * 1024 * 1024;

/// Checks the definitions of tools. Those of the API itself have a type and no schema.
pub(crate) fn check_definitions(body: &Value) -> Result<(), String> {
    let tools = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (number, tool) in tools.iter().enumerate() {
        let is_custom = tool.get("type").is_none_or(|kind| kind == "custom");
        if is_custom && tool.get("input_schema").is_some() {
            check_definition(tool).map_err(|error| format!("tools.{number}.custom.{error}"))?;
        }
    }
    Ok(())
}

fn check_definition(tool: &Value) -> Result<(), String> {
    let name = tool["name"].as_str().unwrap_or_default();
    if !is_plain(name, 128, "_-") {
        return Err(format!("name: '{name}' should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"));
    }
    let schema = &tool["input_schema"];
    if schema["type"] != "object" {
        return Err(format!("input_schema.type: '{}' should be 'object'", schema["type"]));
    }
    if ["oneOf", "allOf", "anyOf"].iter().any(|key| schema.get(key).is_some()) {
        return Err("input_schema: oneOf, allOf, or anyOf at the top level is not supported".into());
    }
    let properties = schema["properties"].as_object();
    match properties.and_then(|all| all.keys().find(|key| !is_plain(key, 64, "_.-"))) {
        Some(key) => Err(format!(
            "input_schema.properties: '{key}' should match pattern '^[a-zA-Z0-9_.-]{{1,64}}$'"
        )),
        None => Ok(()),
    }
}

fn is_plain(text: &str, most: usize, others: &str) -> bool {
    let fits = |character: char| character.is_ascii_alphanumeric() || others.contains(character);
    (1..=most).contains(&text.len()) && text.chars().all(fits)
}

/// Checks the content of a tool's result.
pub(crate) fn check_result(at: &str, block: &Value) -> Result<(), String> {
    let content = &block["content"];
    let is_empty = content.is_null()
        || content.as_str().is_some_and(str::is_empty)
        || content.as_array().is_some_and(Vec::is_empty);
    if is_empty && block["is_error"] == true {
        return Err(format!("{at}: content cannot be empty if `is_error` is true"));
    }
    for (number, block) in content.as_array().into_iter().flatten().enumerate() {
        let at = format!("{at}.tool_result.content.{number}");
        match block["type"].as_str() {
            Some("text") if block["text"].as_str().is_none_or(str::is_empty) => {
                return Err(format!("{at}.text.text: text content blocks must be non-empty"));
            }
            Some("image") => check_image(&at, block)?,
            Some("text" | "document" | "search_result" | "tool_reference") => {}
            kind => {
                return Err(format!("{at}: a tool_result cannot have a block of type {kind:?}"));
            }
        }
    }
    Ok(())
}

/// Checks an image that is in the request itself.
pub(crate) fn check_image(at: &str, block: &Value) -> Result<(), String> {
    let source = &block["source"];
    if source["type"] != "base64" {
        return Ok(());
    }
    let kind = source["media_type"].as_str().unwrap_or_default();
    if !matches!(kind, "image/png" | "image/jpeg" | "image/gif" | "image/webp") {
        return Err(format!("{at}.image.source.base64.media_type: '{kind}' is not supported"));
    }
    let data = source["data"].as_str().unwrap_or_default();
    if !is_base64(data) {
        return Err(format!("{at}.image.source.base64: invalid base64 data"));
    }
    if data.len() > MOST_IMAGE {
        return Err(format!("{at}.image.source.base64: image exceeds 5 MB maximum"));
    }
    Ok(())
}

fn is_base64(data: &str) -> bool {
    let text = data.trim_end_matches('=');
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !text.is_empty()
        && data.len().is_multiple_of(4)
        && data.len() - text.len() <= 2
        && text.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn definitions_that_the_api_refuses_are_refused() {
        let check = |name: &str, schema: Value| {
            let tool = json!({"name": name, "input_schema": schema});
            check_definitions(&json!({"tools": [tool]})).err().unwrap_or_default()
        };
        let object = json!({"type": "object", "properties": {"a.b-c_1": {}}});
        assert_eq!(check("A", object.clone()), "");
        assert_eq!(
            check_definitions(&json!({"tools": [{"type": "web_search", "name": "?"}]})),
            Ok(())
        );
        for (name, schema, error) in [
            ("a b", object.clone(), "should match"),
            (&"a".repeat(129), object, "should match"),
            ("A", json!({}), "should be 'object'"),
            ("A", json!({"type": ["object", "null"]}), "should be 'object'"),
            ("A", json!({"type": "object", "anyOf": []}), "top level"),
            ("A", json!({"type": "object", "properties": {"a b": {}}}), "'a b' should match"),
        ] {
            assert!(check(name, schema).contains(error), "{name}: {error}");
        }
    }

    #[test]
    fn results_that_the_api_refuses_are_refused() {
        let check = |block: Value| check_result("m", &block).err().unwrap_or_default();
        let image = |kind: &str, data: &str| json!({"content": [{"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}]});
        assert_eq!(check(image("image/png", "aGk=")), "");
        assert_eq!(check(json!({"content": []})), "");
        assert_eq!(check(json!({"content": [{"type": "text", "text": "x"}]})), "");
        for (block, error) in [
            (image("image/svg+xml", "aGk="), "not supported"),
            (image("image/png", "a?=="), "invalid base64"),
            (image("image/png", ""), "invalid base64"),
            (image("image/png", &"aaaa".repeat(1_400_000)), "5 MB"),
            (json!({"content": [{"type": "text", "text": ""}]}), "non-empty"),
            (json!({"content": [{"type": "audio"}]}), "audio"),
            (json!({"content": "", "is_error": true}), "cannot be empty"),
        ] {
            assert!(check(block).contains(error), "{error}");
        }
    }
}

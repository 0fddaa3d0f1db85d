//! Typed answers: the schema of a type, and the value parsed from the model's answer.

use ostler_proto::api::{Content, ContentBlock};
use ostler_proto::message::{TurnResult, User};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::Error;

/// How often a model is asked to correct an answer that does not match, in a session that was connected without a
/// schema.
pub(crate) const CORRECTIONS: usize = 2;

/// The schema of an answer in the form that engines accept: an object, without references where possible, and only with
/// formats that JSON Schema defines. For a schema with Rust's `uint8`, Claude Code 2.1.50 returns no structured answer
/// and no error.
///
/// Engines accept only objects. Every other type (an enum, a list, a string) becomes the field `value` of an object,
/// and [`read_answer`] unwraps it.
///
/// ```
/// use ostler_sdk::{answer_schema, read_answer};
/// use serde_json::json;
///
/// #[derive(Debug, PartialEq, serde::Deserialize, schemars::JsonSchema)]
/// enum Colour { Red, Green }
///
/// assert_eq!(answer_schema::<Colour>()["properties"]["value"]["enum"], json!(["Red", "Green"]));
/// assert_eq!(read_answer::<Colour>(json!({"value": "Green"})), Ok(Colour::Green));
/// ```
pub fn answer_schema<T: JsonSchema>() -> Value {
    let plain = schema::<T>();
    if is_object(&plain) { plain } else { schema::<Wrapped<T>>() }
}

/// Parses an answer that was requested with [`answer_schema`].
///
/// # Errors
/// When the answer does not have the type. The error names the field.
pub fn read_answer<T: DeserializeOwned + JsonSchema>(answer: Value) -> Result<T, AnswerError> {
    match is_object(&schema::<T>()) {
        true => read(answer),
        false => read::<Wrapped<T>>(answer).map(|wrapped| wrapped.value),
    }
}

/// Why an answer does not have the requested type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{reason}", .field.as_ref().map(|field| format!("{field}: ")).unwrap_or_default())]
#[non_exhaustive]
pub struct AnswerError {
    /// The field that is wrong, such as `remarks[0].line`; `None` for the answer as a whole.
    pub field: Option<String>,
    /// Why it is wrong.
    pub reason: String,
}

/// The object around an answer that is not an object.
#[derive(Deserialize, JsonSchema)]
struct Wrapped<T> {
    value: T,
}

/// The answer in a result, which the engine checked against the schema.
pub(crate) fn of_result<T>(result: TurnResult) -> Result<T, Error>
where
    T: DeserializeOwned + JsonSchema,
{
    let Some(answer) = result.structured_output.clone() else {
        let message = "the result has no structured output".to_owned();
        return Err(Error::Answer { message, result: Box::new(result) });
    };
    read_answer(answer)
        .map_err(|error| Error::Answer { message: error.to_string(), result: Box::new(result) })
}

/// The answer in a text that should be only JSON. Other text around the JSON object is ignored.
pub(crate) fn of_text<T>(text: &str) -> Result<T, AnswerError>
where
    T: DeserializeOwned + JsonSchema,
{
    let json = text.find('{').zip(text.rfind('}')).and_then(|(from, to)| text.get(from..=to));
    let missing = || AnswerError {
        field: None,
        reason: "the answer does not contain a JSON object".to_owned(),
    };
    let answer = serde_json::from_str(json.ok_or_else(missing)?);
    let malformed =
        |error| AnswerError { field: None, reason: format!("the answer is not JSON: {error}") };
    read_answer(answer.map_err(malformed)?)
}

/// Adds to a prompt that the answer must be JSON of this schema.
pub(crate) fn with_schema(mut prompt: User, schema: &Value) -> User {
    let wanted = format!(
        "Work on this as usual. Your last message must be one JSON object and nothing else: no other text and no code \
         fence. It must match this JSON schema:\n{schema}"
    );
    let wanted = ContentBlock::text(wanted);
    let blocks = match prompt.message.content.take() {
        None => vec![wanted],
        Some(Content::Text(text)) => vec![ContentBlock::text(text), wanted],
        Some(Content::Blocks(blocks)) => blocks.into_iter().chain([wanted]).collect(),
    };
    prompt.message.content = Some(Content::Blocks(blocks));
    prompt
}

/// The prompt that asks the model to correct an answer that does not match.
pub(crate) fn correction(error: &AnswerError) -> String {
    format!(
        "Your answer does not match the JSON schema: {error}. Send the corrected JSON object and nothing else."
    )
}

fn schema<T: JsonSchema>() -> Value {
    let settings = schemars::generate::SchemaSettings::draft07().with(|settings| {
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    remove_number_formats(&mut schema);
    schema
}

fn read<T: DeserializeOwned>(answer: Value) -> Result<T, AnswerError> {
    serde_path_to_error::deserialize(answer).map_err(|error| {
        let path = error.path().to_string();
        AnswerError { field: (path != ".").then_some(path), reason: error.into_inner().to_string() }
    })
}

fn is_object(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object")
}

/// Removes formats like `uint8` that describe Rust's number types.
fn remove_number_formats(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            let is_number = |format: &str| {
                matches!(format.trim_start_matches('u'), "int" | "int8" | "int16" | "int32")
                    || matches!(format.trim_start_matches('u'), "int64" | "int128")
                    || matches!(format, "float" | "double")
            };
            // A property with the name `format` is an object, not a string.
            if object.get("format").and_then(Value::as_str).is_some_and(is_number) {
                object.remove("format");
            }
            object.values_mut().for_each(remove_number_formats);
        }
        Value::Array(all) => all.iter_mut().for_each(remove_number_formats),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(tag = "kind")]
    enum Verdict {
        Fine,
        Broken { line: u32 },
    }

    #[test]
    fn an_enum_is_wrapped_in_an_object_and_unwrapped() {
        assert_eq!(answer_schema::<Verdict>()["type"], "object");
        let broken = read_answer(json!({"value": {"kind": "Broken", "line": 3}}));
        assert_eq!(broken, Ok(Verdict::Broken { line: 3 }));
        let error = read_answer::<Verdict>(json!({"value": {"kind": "Broken"}})).unwrap_err();
        assert_eq!(error.to_string(), "value: missing field `line`");
    }

    #[test]
    fn json_is_found_in_a_code_fence_and_between_sentences() {
        for text in [
            r#"{"value": {"kind": "Fine"}}"#,
            "```json\n{\"value\": {\"kind\": \"Fine\"}}\n```",
            "Here it is: {\"value\": {\"kind\": \"Fine\"}}. Anything else?",
        ] {
            assert_eq!(of_text(text), Ok(Verdict::Fine), "{text}");
        }
        for (text, reason) in [
            ("no", "the answer does not contain a JSON object"),
            ("} {", "the answer does not contain a JSON object"),
            ("{x}", "the answer is not JSON: key must be a string at line 1 column 2"),
            ("{}", "missing field `value`"),
        ] {
            assert_eq!(of_text::<Verdict>(text).unwrap_err().to_string(), reason, "{text}");
        }
    }
}

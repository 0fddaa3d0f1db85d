//! Types of answers: any deserializable type with a schema; `()` for none.

use std::any::TypeId;

use ostler_sdk::{answer_schema, read_answer};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A type of answers. Every deserializable type with a schema implements it.
///
/// Engines accept only objects as answers. A value of another type (a list, a string, an enum) is requested as the
/// field `value` of an object and unwrapped; your type does not notice that.
pub trait Output: DeserializeOwned + JsonSchema + Send + 'static {
    /// The schema of the answer; `None` for `()`.
    #[doc(hidden)]
    fn schema() -> Option<Value> {
        if is_unit::<Self>() {
            return None;
        }
        Some(answer_schema::<Self>())
    }

    /// Decodes an answer.
    ///
    /// # Errors
    /// When the answer does not have the type. The error names the invalid field.
    #[doc(hidden)]
    fn read(answer: Value) -> Result<Self, AnswerError> {
        match is_unit::<Self>() {
            true => serde_json::from_value(answer)
                .map_err(|error| AnswerError { field: None, reason: error.to_string() }),
            false => read_answer(answer)
                .map_err(|error| AnswerError { field: error.field, reason: error.reason }),
        }
    }

    /// Checks that answers of this type can be requested.
    ///
    /// # Errors
    /// The reason why they cannot.
    #[doc(hidden)]
    fn check() -> Result<(), String> {
        match Self::schema() {
            Some(schema) if !is_object(&schema) => Err(format!(
                "the schema of {} is not an object and cannot be wrapped in one",
                std::any::type_name::<Self>()
            )),
            _ => Ok(()),
        }
    }
}

impl<T: DeserializeOwned + JsonSchema + Send + 'static> Output for T {}

/// Why an answer does not have the requested type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerError {
    pub(crate) field: Option<String>,
    pub(crate) reason: String,
}

fn is_unit<T: 'static>() -> bool {
    TypeId::of::<T>() == TypeId::of::<()>()
}

fn is_object(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object")
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Review {
        score: u8,
        remarks: Vec<Remark>,
    }

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Remark {
        line: u32,
    }

    #[test]
    fn unit_has_no_schema() {
        assert_eq!(<()>::schema(), None);
        assert_eq!(<()>::read(Value::Null), Ok(()));
    }

    #[test]
    fn a_struct_is_requested_unchanged() {
        let schema = Review::schema().unwrap();
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["properties"]["score"]["format"], Value::Null);
        assert_eq!(schema["required"], json!(["score", "remarks"]));
        let read = Review::read(json!({"score": 3, "remarks": [{"line": 7}]}));
        assert_eq!(read, Ok(Review { score: 3, remarks: vec![Remark { line: 7 }] }));
    }

    #[test]
    fn a_type_that_is_not_an_object_is_wrapped() {
        let schema = Vec::<Remark>::schema().unwrap();
        assert_eq!(
            (&schema["type"], &schema["properties"]["value"]["type"]),
            (&json!("object"), &json!("array"))
        );
        assert_eq!(
            Vec::<Remark>::read(json!({"value": [{"line": 1}]})),
            Ok(vec![Remark { line: 1 }])
        );
        assert_eq!(String::read(json!({"value": "hello"})), Ok("hello".to_owned()));
        assert_eq!(Option::<u8>::read(json!({"value": null})), Ok(None));
        assert!(String::check().is_ok());
    }

    #[test]
    fn the_invalid_field_is_named() {
        let error = Review::read(json!({"score": 3, "remarks": [{"line": "seven"}]})).unwrap_err();
        assert_eq!(error.field.as_deref(), Some("remarks[0].line"));
        assert!(error.reason.contains("expected u32"), "{}", error.reason);
        let error = Review::read(json!({"score": 3})).unwrap_err();
        assert_eq!((error.field, error.reason.contains("remarks")), (None, true));
    }
}

//! What an answer may be: any type that can be read and has a schema; `()` for none.

use std::any::TypeId;

use ostler_sdk::{answer_schema, read_answer};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A type that answers can have. There is nothing to implement: every type that can be read and has a schema is one.
///
/// Engines take only objects for answers. Everything else (a list, a text, an enum) is asked for as the one field `value`
/// of an object, and taken out of it again; your type does not notice.
pub trait Output: DeserializeOwned + JsonSchema + Send + 'static {
    /// The schema the answer must have; `None` for `()`.
    #[doc(hidden)]
    fn schema() -> Option<Value> {
        if is_unit::<Self>() {
            return None;
        }
        Some(answer_schema::<Self>())
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// Names the field that is wrong.
    #[doc(hidden)]
    fn read(answer: Value) -> Result<Self, AnswerError> {
        match is_unit::<Self>() {
            true => serde_json::from_value(answer)
                .map_err(|error| AnswerError { field: None, reason: error.to_string() }),
            false => read_answer(answer)
                .map_err(|error| AnswerError { field: error.field, reason: error.reason }),
        }
    }

    /// Whether answers of this type can be asked for.
    ///
    /// # Errors
    /// In words.
    #[doc(hidden)]
    fn check() -> Result<(), String> {
        match Self::schema() {
            Some(schema) if !is_object(&schema) => Err(format!(
                "{} has no schema of an object, and cannot be put into one",
                std::any::type_name::<Self>()
            )),
            _ => Ok(()),
        }
    }
}

impl<T: DeserializeOwned + JsonSchema + Send + 'static> Output for T {}

/// An answer that is not of the type.
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
    fn nothing_asks_for_nothing() {
        assert_eq!(<()>::schema(), None);
        assert_eq!(<()>::read(Value::Null), Ok(()));
    }

    #[test]
    fn a_struct_is_asked_for_as_it_is() {
        let schema = Review::schema().unwrap();
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["properties"]["score"]["format"], Value::Null);
        assert_eq!(schema["required"], json!(["score", "remarks"]));
        let read = Review::read(json!({"score": 3, "remarks": [{"line": 7}]}));
        assert_eq!(read, Ok(Review { score: 3, remarks: vec![Remark { line: 7 }] }));
    }

    #[test]
    fn what_is_no_object_is_put_into_one() {
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
    fn the_field_that_is_wrong_is_named() {
        let error = Review::read(json!({"score": 3, "remarks": [{"line": "seven"}]})).unwrap_err();
        assert_eq!(error.field.as_deref(), Some("remarks[0].line"));
        assert!(error.reason.contains("expected u32"), "{}", error.reason);
        let error = Review::read(json!({"score": 3})).unwrap_err();
        assert_eq!((error.field, error.reason.contains("remarks")), (None, true));
    }
}

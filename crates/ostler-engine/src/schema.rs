//! JSON Schema validation, with errors a model can act on.

use serde_json::Value;

/// The most errors that are reported at once; the first few are what matters.
const MAX_ERRORS: usize = 10;

/// A schema, ready to check values against.
#[derive(Clone, Debug)]
pub(crate) struct Schema(std::sync::Arc<jsonschema::Validator>);

impl Schema {
    /// Reads a schema. An error says why it is not one.
    pub(crate) fn new(schema: &Value) -> Result<Self, String> {
        jsonschema::validator_for(schema)
            .map(|validator| Self(std::sync::Arc::new(validator)))
            .map_err(|error| format!("not a JSON schema: {error}"))
    }

    /// What is wrong with a value, one sentence each: `root: "score" is a required property`. Empty when it fits.
    pub(crate) fn errors(&self, value: &Value) -> Vec<String> {
        let errors = self.0.iter_errors(value).take(MAX_ERRORS).map(|error| {
            let place = error.instance_path().to_string();
            let place = if place.is_empty() { "root" } else { &place };
            format!("{place}: {error}")
        });
        errors.collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Schema;

    #[test]
    fn errors_say_where_and_what() {
        let schema = Schema::new(&json!({"type": "object", "properties":
            {"answer": {"type": "string"}, "list": {"type": "array", "items": {"type": "integer"}}}}));
        let errors = schema.unwrap().errors(&json!({"answer": 7, "list": [1, "two"]}));
        assert_eq!(errors.len(), 2);
        assert!(errors[0].starts_with("/answer: 7 is not of type"), "{errors:?}");
        assert!(errors[1].starts_with("/list/1: "), "{errors:?}");
    }

    #[test]
    fn a_missing_field_is_an_error_of_the_root() {
        let schema = Schema::new(&json!({"type": "object", "required": ["score"]})).unwrap();
        assert_eq!(schema.errors(&json!({})), ["root: \"score\" is a required property"]);
        assert_eq!(schema.errors(&json!({"score": 1})), [""; 0]);
    }

    #[test]
    fn an_invalid_schema_is_refused() {
        assert!(
            Schema::new(&json!({"type": "no such type"}))
                .unwrap_err()
                .contains("not a JSON schema")
        );
    }

    #[test]
    fn a_flood_of_errors_is_bounded() {
        let schema = Schema::new(&json!({"items": {"type": "string"}})).unwrap();
        let many: Vec<u32> = (0..1000).collect();
        assert_eq!(schema.errors(&json!(many)).len(), super::MAX_ERRORS);
    }
}

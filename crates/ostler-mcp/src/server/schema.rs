//! Arguments: the schema for the model, and decoding.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The JSON Schema (2020-12) of a tool's arguments: an object, with references inlined where possible.
///
/// # Panics
/// If the type is neither a struct, a map nor `()`: MCP passes arguments by name.
pub(super) fn of<A: JsonSchema>() -> Map<String, Value> {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<A>().to_value();
    let Value::Object(mut schema) = schema else { return empty() };
    // This dialect is MCP's default, and the type's name means nothing to the model.
    schema.remove("$schema");
    schema.remove("title");
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => schema,
        Some("null") => empty(),
        Some(other) => panic!(
            "the arguments of a tool are a struct, a map or `()`, and {} is written as {other}",
            std::any::type_name::<A>()
        ),
        None => {
            // An enum of structs: every variant is an object, and MCP requires that at the top level.
            let mut object = Map::from_iter([("type".to_owned(), "object".into())]);
            object.extend(schema);
            object
        }
    }
}

/// The schema for no arguments.
pub(super) fn empty() -> Map<String, Value> {
    Map::from_iter([
        ("type".to_owned(), "object".into()),
        ("properties".to_owned(), Map::new().into()),
    ])
}

/// Decodes arguments. The error names the wrong argument and what is expected, for the model.
pub(super) fn read<A: DeserializeOwned>(arguments: Value) -> Result<A, String> {
    let none = match &arguments {
        Value::Null => true,
        Value::Object(object) => object.is_empty(),
        _ => return Err(format!("the arguments must be a JSON object, not {arguments}")),
    };
    let arguments = if none { Value::Object(Map::new()) } else { arguments };
    let error = match serde_path_to_error::deserialize(arguments) {
        Ok(arguments) => return Ok(arguments),
        Err(error) => error,
    };
    // `()` and unit structs deserialize from null.
    if none && let Ok(arguments) = serde_json::from_value(Value::Null) {
        return Ok(arguments);
    }
    let path = error.path().to_string();
    let reason = error.into_inner();
    Err(if path == "." { reason.to_string() } else { format!("`{path}`: {reason}") })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Search {
        /// What to look for.
        text: String,
        #[serde(default)]
        limits: Vec<Limit>,
    }

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Limit {
        most: u8,
    }

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(tag = "kind", rename_all = "snake_case")]
    enum Shape {
        Circle { radius: f64 },
        Square { side: f64 },
    }

    #[test]
    fn a_struct_becomes_a_schema_with_its_comments_and_without_references() {
        let schema = Value::Object(of::<Search>());
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["required"], json!(["text"]));
        assert_eq!(schema["properties"]["text"]["description"], "What to look for.");
        let limit = &schema["properties"]["limits"]["items"]["properties"]["most"];
        assert_eq!(limit["type"], "integer");
        assert!(!schema.to_string().contains("$ref") && !schema.to_string().contains("$schema"));
    }

    #[test]
    fn an_enum_of_structs_and_unit_become_object_schemas() {
        let schema = Value::Object(of::<Shape>());
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["oneOf"].as_array().map(Vec::len), Some(2));
        assert_eq!(Value::Object(of::<()>()), json!({"type": "object", "properties": {}}));
        assert_eq!(of::<Map<String, Value>>()["type"], "object");
    }

    #[test]
    #[should_panic(expected = "a struct, a map or `()`, and i64 is written as integer")]
    fn a_bare_number_is_refused_as_arguments() {
        of::<i64>();
    }

    #[test]
    fn arguments_are_decoded() {
        let search = Search { text: "x".into(), limits: vec![Limit { most: 3 }] };
        assert_eq!(read(json!({"text": "x", "limits": [{"most": 3}]})), Ok(search));
        assert_eq!(read(json!({"kind": "square", "side": 2.0})), Ok(Shape::Square { side: 2.0 }));
        assert_eq!(read::<()>(json!({})), Ok(()));
        assert_eq!(read::<()>(Value::Null), Ok(()));
    }

    #[test]
    fn a_decoding_error_names_the_place_and_the_expected_type() {
        let error = |arguments| read::<Search>(arguments).unwrap_err();
        assert_eq!(
            error(json!({"text": "x", "limits": [{"most": 1}, {"most": "all"}]})),
            "`limits[1].most`: invalid type: string \"all\", expected u8"
        );
        assert_eq!(error(json!({})), "missing field `text`");
        assert_eq!(error(Value::Null), "missing field `text`");
        assert!(error(json!({"text": "x", "txt": 1})).contains("unknown field `txt`"));
        assert_eq!(error(json!([1])), "the arguments must be a JSON object, not [1]");
    }
}

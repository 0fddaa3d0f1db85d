//! Makes the schema of a server's tool acceptable to the Messages API.
//!
//! The API refuses a whole request because of one schema that it does not accept, so one odd tool would break every
//! prompt of the session. A schema is changed only as far as needed: the server checks the input anyway.

use serde_json::{Map, Value, json};

/// Keywords that combine schemas. The API accepts them below the top level only.
const COMBINATORS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// The most characters of a property's name.
const MOST_KEY: usize = 64;

/// A schema that the API accepts.
#[derive(Debug, PartialEq)]
pub(super) struct FittedSchema {
    pub(super) schema: Value,
    /// What was changed, in sentences that follow "the tool X: ".
    pub(super) changes: Vec<String>,
}

/// Adapts a schema. The error says why no input of the model could fit.
pub(super) fn fit(schema: Value) -> Result<FittedSchema, String> {
    // A server may leave the schema out.
    let Value::Object(mut fields) = schema else {
        return Ok(FittedSchema { schema: json!({"type": "object"}), changes: Vec::new() });
    };
    let mut changes = Vec::new();
    fit_type(&mut fields, &mut changes)?;
    merge_combinators(&mut fields, &mut changes);
    drop_malformed(&mut fields, &mut changes);
    fit_keys(&mut fields, &mut changes)?;
    Ok(FittedSchema { schema: Value::Object(fields), changes })
}

/// The type must be `object`; a server may leave it out.
fn fit_type(fields: &mut Map<String, Value>, changes: &mut Vec<String>) -> Result<(), String> {
    let is_object = |kind: &Value| kind == "object";
    match fields.get("type") {
        Some(kind) if is_object(kind) => return Ok(()),
        None => {}
        Some(Value::Array(kinds)) if kinds.iter().any(is_object) => {
            changes
                .push("its input is an object, and nothing else that its schema allows".to_owned());
        }
        Some(kind) => {
            return Err(format!(
                "its input is of type {kind}, and the Messages API accepts objects only"
            ));
        }
    }
    fields.insert("type".to_owned(), json!("object"));
    Ok(())
}

/// Replaces combined schemas by one with the properties of all. Only what every alternative requires stays required.
fn merge_combinators(fields: &mut Map<String, Value>, changes: &mut Vec<String>) {
    for keyword in COMBINATORS {
        let Some(combined) = fields.remove(keyword) else { continue };
        let parts: Vec<Value> = combined.as_array().cloned().unwrap_or_default();
        let parts: Vec<Value> = parts.into_iter().map(|part| resolved(fields, part)).collect();
        for part in &parts {
            let more = part["properties"].as_object().into_iter().flatten();
            let known = fields.entry("properties").or_insert_with(|| json!({}));
            for (key, value) in more {
                if let Some(known) = known.as_object_mut() {
                    known.entry(key.clone()).or_insert_with(|| value.clone());
                }
            }
        }
        let of_all =
            |name: &String| parts.iter().all(|part| names(&part["required"]).contains(name));
        let more = parts.iter().flat_map(|part| names(&part["required"]));
        let more: Vec<String> = more.filter(|name| keyword == "allOf" || of_all(name)).collect();
        let mut required = names(fields.get("required").unwrap_or(&Value::Null));
        required.extend(more);
        required.sort();
        required.dedup();
        if !required.is_empty() {
            fields.insert("required".to_owned(), json!(required));
        }
        changes.push(format!(
            "`{keyword}` at the top level of its schema is replaced by one list of properties"
        ));
    }
}

/// A part of the schema; a reference to one of its definitions is replaced by it.
fn resolved(fields: &Map<String, Value>, part: Value) -> Value {
    let definition = part["$ref"].as_str().and_then(|reference| {
        let (folder, name) = reference.strip_prefix("#/")?.split_once('/')?;
        fields.get(folder)?.get(name).cloned()
    });
    definition.unwrap_or(part)
}

fn names(list: &Value) -> Vec<String> {
    let names = list.as_array().into_iter().flatten();
    names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

/// Removes keywords whose values are not what JSON Schema wants.
fn drop_malformed(fields: &mut Map<String, Value>, changes: &mut Vec<String>) {
    let is_wrong = |key: &str, is_right: fn(&Value) -> bool| {
        fields.get(key).is_some_and(|value| !is_right(value))
    };
    let is_list =
        |value: &Value| value.as_array().is_some_and(|all| all.iter().all(Value::is_string));
    for (key, is_wrong) in [
        ("properties", is_wrong("properties", Value::is_object)),
        ("required", is_wrong("required", is_list)),
    ] {
        if is_wrong {
            fields.remove(key);
            changes.push(format!("`{key}` of its schema is malformed and left out"));
        }
    }
}

/// Removes properties whose names the API does not accept.
fn fit_keys(fields: &mut Map<String, Value>, changes: &mut Vec<String>) -> Result<(), String> {
    let required = names(fields.get("required").unwrap_or(&Value::Null));
    let Some(properties) = fields.get_mut("properties").and_then(Value::as_object_mut) else {
        return Ok(());
    };
    let odd: Vec<String> = properties.keys().filter(|key| !is_accepted(key)).cloned().collect();
    for key in odd {
        if required.contains(&key) {
            return Err(format!(
                "its required property {key:?} has a name that the Messages API does not accept"
            ));
        }
        properties.remove(&key);
        changes.push(format!(
            "its property {key:?} is left out, because the Messages API does not accept the name"
        ));
    }
    Ok(())
}

fn is_accepted(key: &str) -> bool {
    let fits = |character: char| character.is_ascii_alphanumeric() || "_.-".contains(character);
    (1..=MOST_KEY).contains(&key.len()) && key.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: Value, expected: Value, n_changes: usize) {
        let fitted = fit(schema).expect("a schema that can be adapted");
        assert_eq!(fitted.schema, expected);
        assert_eq!(fitted.changes.len(), n_changes, "{:?}", fitted.changes);
    }

    #[test]
    fn a_schema_that_the_api_accepts_stays_as_it_is() {
        let whole = json!({
            "type": "object",
            "properties": {"a.b-c_1": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
            "required": ["a.b-c_1"],
            "$defs": {"x": {}},
            "additionalProperties": false,
        });
        check(whole.clone(), whole, 0);
        check(json!({"properties": {}}), json!({"properties": {}, "type": "object"}), 0);
        for missing in [json!(null), json!(true), json!([])] {
            check(missing, json!({"type": "object"}), 0);
        }
    }

    #[test]
    fn alternatives_at_the_top_become_one_list_of_properties() {
        check(
            json!({"anyOf": [
                {"properties": {"id": {"type": "string"}}, "required": ["id", "all"]},
                {"$ref": "#/$defs/byName"},
            ], "$defs": {"byName": {"properties": {"name": {}}, "required": ["name", "all"]}}}),
            json!({"$defs": {"byName": {"properties": {"name": {}}, "required": ["name", "all"]}},
                "type": "object", "properties": {"id": {"type": "string"}, "name": {}}, "required": ["all"]}),
            1,
        );
        check(
            json!({"type": "object", "properties": {"a": {"const": 1}}, "allOf": [
                {"properties": {"a": {}, "b": {}}, "required": ["b"]}, {"required": ["a"]},
            ]}),
            json!({"type": "object", "properties": {"a": {"const": 1}, "b": {}}, "required": ["a", "b"]}),
            1,
        );
        check(json!({"oneOf": "x"}), json!({"type": "object"}), 1);
    }

    #[test]
    fn what_the_api_refuses_is_left_out_and_reported() {
        check(json!({"type": ["object", "null"]}), json!({"type": "object"}), 1);
        check(
            json!({"type": "object", "properties": {"a b": {}, "c": {}}}),
            json!({"type": "object", "properties": {"c": {}}}),
            1,
        );
        let long = "k".repeat(65);
        check(
            json!({"type": "object", "properties": {long: {}}, "required": 3}),
            json!({"type": "object", "properties": {}}),
            2,
        );
    }

    #[test]
    fn a_tool_that_no_input_could_fit_is_refused() {
        for (schema, part) in [
            (json!({"type": "string"}), "of type \"string\""),
            (json!({"type": ["string", "null"]}), "accepts objects only"),
            (json!({"properties": {"ü": {}}, "required": ["ü"]}), "required property \"ü\""),
        ] {
            let error = fit(schema).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}

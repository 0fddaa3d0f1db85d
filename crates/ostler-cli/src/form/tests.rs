//! Which fields a form has, and which answers it accepts.

use ostler_proto::build;
use serde_json::json;

use super::*;

fn question(properties: Value, required: Value) -> Elicitation {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    build!(Elicitation { requested_schema: Some(schema) })
}

fn field(property: Value) -> Field {
    fields(&question(json!({"it": property}), json!(["it"]))).unwrap().remove(0)
}

/// Checks the rules shown for a field, and the value of each typed text.
fn check(property: Value, rules: &str, typed: &[(&str, Option<Value>)]) {
    let field = field(property);
    assert_eq!(field.rules(), rules);
    for (typed, expected) in typed {
        assert_eq!(field.read(typed).ok().flatten(), *expected, "{rules}: {typed:?}");
    }
}

#[test]
fn each_kind_of_field_takes_its_own_values() {
    check(
        json!({"type": "string", "minLength": 2, "maxLength": 3}),
        "text, 2 to 3 characters, required",
        &[("äö", Some(json!("äö"))), ("a", None), ("abcd", None), ("", None)],
    );
    check(
        json!({"type": "string", "format": "email"}),
        "email, required",
        &[(" a@b ", Some(json!("a@b")))],
    );
    check(
        json!({"type": "integer", "minimum": 1, "maximum": 9}),
        "integer, 1 to 9, required",
        &[("9", Some(json!(9))), ("0", None), ("10", None), ("1.5", None), ("x", None)],
    );
    check(
        json!({"type": "number", "minimum": 0}),
        "number, at least 0, required",
        &[("1.5", Some(json!(1.5))), ("-1", None), ("NaN", None)],
    );
    check(
        json!({"type": "boolean"}),
        "yes or no, required",
        &[("Y", Some(json!(true))), ("no", Some(json!(false))), ("maybe", None)],
    );
}

#[test]
fn an_enumeration_accepts_numbers_and_labels_and_sends_values() {
    for property in [
        json!({"type": "string", "enum": ["r", "g"], "enumNames": ["red", "green"]}),
        json!({"type": "string", "oneOf": [{"const": "r", "title": "red"}, {"const": "g", "title": "green"}]}),
    ] {
        let typed = [("2", Some(json!("g"))), ("red", Some(json!("r"))), ("0", None), ("3", None)];
        check(property, "one of these, required", &typed);
    }
    let items =
        json!({"anyOf": [{"const": "r", "title": "red"}, {"const": "g", "title": "green"}]});
    check(
        json!({"type": "array", "items": items, "minItems": 2}),
        "any of these, at least 2, required",
        &[("1, green", Some(json!(["r", "g"]))), ("1", None), ("1,3", None)],
    );
    let plain = field(json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}));
    assert_eq!(plain.labels().collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn empty_text_means_the_default_and_only_optional_fields_can_be_left_out() {
    let properties = json!({
        "b": {"type": "string", "enum": ["x", "y"], "enumNames": ["ex", "why"], "default": "y"},
        "a": {"type": "string"},
    });
    let mut question = question(properties, json!([]));
    let of = |question: &Elicitation| fields(question).unwrap();
    let (default, optional) = {
        let mut fields = of(&question);
        (fields.remove(0), fields.remove(0))
    };
    assert_eq!(default.rules(), "one of these, optional, default why");
    assert_eq!(default.read(" ").unwrap(), Some(json!("y")));
    assert_eq!(optional.read("").unwrap(), None);
    question.property_order = Some(vec!["a".to_owned()]);
    let names: Vec<_> = of(&question).into_iter().map(|field| field.name).collect();
    assert_eq!(names, ["a", "b"], "fields missing from the order come last");
}

#[test]
fn the_error_for_an_unknown_type_names_the_field() {
    for property in [json!({"type": "object"}), json!({"type": "array", "items": {}}), json!({})] {
        let error = fields(&question(json!({"odd": property}), json!([]))).unwrap_err();
        assert!(error.starts_with("odd: it"), "{error}");
    }
    assert_eq!(fields(&Elicitation::default()).unwrap(), [], "a missing form is an empty one");
}

//! The parameters that a skill declares, and the check of a task's parameters against them.
//!
//! Declared in the head as a map by name, as a list of fields, or as a JSON Schema of an object. A skill without
//! declarations accepts everything. A skill with declarations accepts nothing else, unless it has
//! `additionalProperties: true`.

use ostler_base::error::{ApiError, shown};
use serde_json::{Map, Value};

use super::field::field;
use super::prompt::text;

/// The maximum number of parameters of a task.
const MOST: usize = 1_000;
const LONGEST_NAME: usize = 200;
/// The field with the parameters in a task's request.
const PLACE: &str = "inputValues";

/// The parameters that a skill declares.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inputs {
    /// In the order of declaration.
    pub declared: Vec<Input>,
    /// Whether undeclared parameters are accepted too.
    pub is_open: bool,
}

/// One declared parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    pub name: String,
    /// `None` accepts every type.
    pub kind: Option<Kind>,
    pub is_required: bool,
    /// The allowed values; empty accepts all.
    pub allowed: Vec<Value>,
    pub default: Option<Value>,
    pub description: Option<String>,
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Number,
    Integer,
    Boolean,
    List,
    Object,
}

impl Kind {
    fn of(word: &str) -> Option<Self> {
        Some(match word {
            "string" | "text" | "textarea" | "url" | "email" | "select" | "file" | "date" => {
                Self::Text
            }
            "number" | "float" => Self::Number,
            "integer" | "int" => Self::Integer,
            "boolean" | "bool" | "checkbox" => Self::Boolean,
            "array" | "list" | "multiselect" => Self::List,
            "object" | "json" => Self::Object,
            _ => return None,
        })
    }

    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Number => value.is_number(),
            Self::Integer => {
                value.is_i64()
                    || value.is_u64()
                    || value.as_f64().is_some_and(|it| it.fract() == 0.0)
            }
            Self::Boolean => value.is_boolean(),
            Self::List => value.is_array(),
            Self::Object => value.is_object(),
        }
    }

    /// Its name in JSON Schema.
    pub fn word(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Number => "number",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
            Self::List => "array",
            Self::Object => "object",
        }
    }
}

impl Inputs {
    /// Reads the declarations in the head of a skill.
    ///
    /// # Errors
    /// A message, if the declarations are invalid: nothing runs on a guess.
    pub(crate) fn of_head(head: &Map<String, Value>) -> Result<Self, String> {
        let names = [
            "inputs",
            "input-fields",
            "inputFields",
            "input_fields",
            "inputSchema",
            "input-schema",
        ];
        match field(head, &names) {
            None => Ok(Self { declared: Vec::new(), is_open: true }),
            Some(declared) => Self::of(declared),
        }
    }

    fn of(declared: &Value) -> Result<Self, String> {
        let open =
            |map: &Map<String, Value>| map.get("additionalProperties") == Some(&Value::Bool(true));
        let (fields, is_open): (Vec<(String, Value)>, bool) = match declared {
            Value::Array(list) => (list.iter().map(named).collect::<Result<_, _>>()?, false),
            Value::Object(map) => match map.get("properties").and_then(Value::as_object) {
                Some(properties) => (of_schema(map, properties), open(map)),
                None => {
                    let fields = map.iter().filter(|(name, _)| *name != "additionalProperties");
                    (fields.map(|(name, value)| (name.clone(), value.clone())).collect(), open(map))
                }
            },
            _ => return Err("inputs must be a map by name, a list, or a schema".to_owned()),
        };
        let declared = fields.iter().map(|(name, value)| Input::of(name, value));
        Ok(Self { declared: declared.collect::<Result<_, _>>()?, is_open })
    }

    /// Checks the parameters of a task. Returns them in the order they were given, with defaults for those left out.
    ///
    /// # Errors
    /// A refusal that names the invalid field.
    pub fn check(&self, mut given: Map<String, Value>) -> Result<Map<String, Value>, ApiError> {
        if given.len() > MOST {
            let message =
                format!("there are {} parameters; at most {MOST} are allowed", given.len());
            return Err(ApiError::invalid(PLACE, message));
        }
        if let Some(name) = given.keys().find(|name| name.len() > LONGEST_NAME) {
            let message = format!("the name {} is longer than {LONGEST_NAME} bytes", shown(name));
            return Err(ApiError::invalid(PLACE, message));
        }
        if !self.is_open {
            self.check_names(&given)?;
        }
        for input in &self.declared {
            // Forms send empty fields as `null`.
            let value = given.get(&input.name).filter(|value| !value.is_null());
            match (value, &input.default) {
                (Some(value), _) => input.check(value)?,
                (None, Some(default)) => _ = given.insert(input.name.clone(), default.clone()),
                (None, None) if input.is_required => {
                    let error = ApiError::invalid(
                        place(&input.name),
                        format!("{} is required", input.name),
                    );
                    return Err(match &input.description {
                        Some(description) => error.hint(description.clone()),
                        None => error,
                    });
                }
                (None, None) => _ = given.shift_remove(&input.name),
            }
        }
        Ok(given)
    }

    fn check_names(&self, given: &Map<String, Value>) -> Result<(), ApiError> {
        let is_known = |name: &String| self.declared.iter().any(|input| input.name == *name);
        let Some(odd) = given.keys().find(|name| !is_known(name)) else { return Ok(()) };
        let known: Vec<&str> = self.declared.iter().map(|input| input.name.as_str()).collect();
        let message = format!("the skill has no parameter {}", shown(odd));
        let hint = if known.is_empty() {
            "it has no parameters".to_owned()
        } else {
            format!("it has: {}", known.join(", "))
        };
        Err(ApiError::invalid(place(&shown(odd)), message).hint(hint))
    }
}

impl Input {
    fn of(name: &str, declared: &Value) -> Result<Self, String> {
        let wrong = |what: String| Err(format!("the input {name}: {what}"));
        let declared = match declared {
            // `url: string`
            Value::String(kind) => {
                Map::from_iter([("type".to_owned(), Value::from(kind.as_str()))])
            }
            Value::Null => Map::new(),
            Value::Object(map) => map.clone(),
            other => return wrong(format!("expected its type, or a map, found {other}")),
        };
        let kind = match declared.get("type") {
            None | Some(Value::Null) => None,
            Some(Value::String(word)) => match Kind::of(word) {
                Some(kind) => Some(kind),
                None => {
                    return wrong(format!(
                        "there is no type {word}; use string, number, integer, boolean, array or object"
                    ));
                }
            },
            Some(other) => return wrong(format!("its type must be one word, found {other}")),
        };
        let is_required = match declared.get("required") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(flag)) => *flag,
            Some(other) => return wrong(format!("required must be true or false, found {other}")),
        };
        let allowed = match field(&declared, &["enum", "options"]) {
            None => Vec::new(),
            Some(Value::Array(list)) => list.iter().map(option).collect(),
            Some(other) => return wrong(format!("enum must be a list, found {other}")),
        };
        let input = Self {
            name: name.to_owned(),
            kind,
            is_required,
            allowed,
            default: declared.get("default").filter(|value| !value.is_null()).cloned(),
            description: declared.get("description").and_then(Value::as_str).map(str::to_owned),
        };
        if let Some(default) = &input.default
            && let Err(error) = input.check(default)
        {
            return wrong(format!("its default does not fit: {}", error.detail().message));
        }
        Ok(input)
    }

    fn check(&self, value: &Value) -> Result<(), ApiError> {
        let name = &self.name;
        if let Some(kind) = self.kind
            && !kind.fits(value)
        {
            let message = format!("{name} must be of type {}, and is {}", kind.word(), sort(value));
            return Err(ApiError::invalid(place(name), message));
        }
        let candidates = match (self.kind, value) {
            // A list of allowed values.
            (Some(Kind::List), Value::Array(items)) => items.as_slice(),
            _ => std::slice::from_ref(value),
        };
        let odd =
            candidates.iter().find(|it| !self.allowed.is_empty() && !self.allowed.contains(it));
        let Some(odd) = odd else { return Ok(()) };
        let allowed: Vec<String> = self.allowed.iter().map(text).collect();
        let message = format!("{name} cannot be {}", shown(&text(odd)));
        Err(ApiError::invalid(place(name), message)
            .hint(format!("use one of: {}", allowed.join(", "))))
    }
}

fn place(name: &str) -> String {
    format!("{PLACE}.{name}")
}

/// A field of a list of declarations, with its name.
fn named(declared: &Value) -> Result<(String, Value), String> {
    let name = declared.as_str().or_else(|| declared.get("name")?.as_str());
    let name = name.ok_or_else(|| format!("an input needs a name: {declared}"))?;
    let is_bare = declared.is_string();
    Ok((name.to_owned(), if is_bare { Value::Null } else { declared.clone() }))
}

/// The fields of a JSON Schema, whose required fields are listed separately.
fn of_schema(schema: &Map<String, Value>, properties: &Map<String, Value>) -> Vec<(String, Value)> {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|list| list.iter().any(|it| it == name));
    let with = |(name, value): (&String, &Value)| {
        let mut value = value.clone();
        if let (Value::Object(map), true) = (&mut value, is_required(name)) {
            map.insert("required".to_owned(), Value::Bool(true));
        }
        (name.clone(), value)
    };
    properties.iter().map(with).collect()
}

/// The value of an allowed option: the option itself, or the value in an object with a label.
fn option(option: &Value) -> Value {
    option.get("value").unwrap_or(option).clone()
}

fn sort(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn inputs(declared: Value) -> Inputs {
        Inputs::of_head(json!({"inputs": declared}).as_object().unwrap()).unwrap()
    }

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    fn declared() -> Inputs {
        inputs(json!({
            "url": {"type": "string", "required": true, "description": "the page"},
            "format": {"type": "string", "enum": ["markdown", "html"], "default": "markdown"},
            "depth": "integer",
        }))
    }

    #[track_caller]
    fn refused(inputs: &Inputs, given: Value, field: &str, part: &str) {
        let error = inputs.check(map(given)).unwrap_err();
        assert_eq!((error.status().as_u16(), error.detail().field.as_deref()), (422, Some(field)));
        assert!(error.detail().message.contains(part), "{error}");
    }

    // Seen to fail when `check` looks at required inputs only, and when it does not look at them.
    #[test]
    fn an_invalid_parameter_is_refused_by_its_name() {
        let inputs = declared();
        refused(&inputs, json!({}), "inputValues.url", "url is required");
        refused(&inputs, json!({"url": null}), "inputValues.url", "url is required");
        refused(
            &inputs,
            json!({"url": 3}),
            "inputValues.url",
            "must be of type string, and is a number",
        );
        refused(&inputs, json!({"url": "x", "depth": 1.5}), "inputValues.depth", "integer");
        refused(&inputs, json!({"url": "x", "depth": "1"}), "inputValues.depth", "is a string");
        refused(
            &inputs,
            json!({"url": "x", "format": "pdf"}),
            "inputValues.format",
            "cannot be pdf",
        );
        refused(
            &inputs,
            json!({"url": "x", "u r l": "y"}),
            "inputValues.u r l",
            "has no parameter",
        );
        let hint = inputs.check(map(json!({"url": "x", "format": "pdf"}))).unwrap_err();
        assert_eq!(hint.detail().hint.as_deref(), Some("use one of: markdown, html"));
    }

    #[test]
    fn valid_parameters_keep_their_order_and_defaults_are_added() {
        let given = map(json!({"depth": 2, "url": "x"}));
        let used = declared().check(given).unwrap();
        let used: Vec<_> =
            used.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        assert_eq!(used, [("depth", json!(2)), ("url", json!("x")), ("format", json!("markdown"))]);
        let used =
            declared().check(map(json!({"url": "x", "depth": null, "format": "html"}))).unwrap();
        assert_eq!(Value::Object(used), json!({"url": "x", "format": "html"}));
    }

    #[test]
    fn without_declarations_every_parameter_is_accepted() {
        let open = Inputs::of_head(&Map::new()).unwrap();
        let given = map(json!({"__proto__": 1, "a.b": [1], "c": null}));
        assert_eq!(open.check(given.clone()).unwrap(), given);
        let many: Map<_, _> = (0..=MOST).map(|it| (it.to_string(), json!(1))).collect();
        assert_eq!(open.check(many).unwrap_err().status(), 422);
        assert!(open.check(map(json!({"x".repeat(201): 1}))).is_err());
    }

    #[test]
    fn all_notations_declare_the_same_parameters() {
        let by_list = inputs(json!([
            {"name": "url", "type": "text", "required": true},
            {"name": "format", "type": "select", "options": [{"label": "M", "value": "markdown"}, "html"]},
            "note",
        ]));
        let schema = Inputs::of_head(&map(json!({"inputSchema": {
            "type": "object",
            "properties": {"url": {"type": "string"}, "format": {"type": "string", "enum": ["markdown", "html"]}, "note": {}},
            "required": ["url"],
        }})));
        assert_eq!(by_list, schema.unwrap());
        let open = inputs(json!({"a": "string", "additionalProperties": true}));
        assert!(open.is_open && open.check(map(json!({"b": 1}))).is_ok());
        let several = inputs(json!({"a": {"type": "array", "enum": ["x", "y"]}}));
        assert!(several.check(map(json!({"a": ["y", "x"]}))).is_ok());
        refused(&several, json!({"a": ["y", "z"]}), "inputValues.a", "cannot be z");
    }

    #[test]
    fn an_invalid_declaration_is_an_error() {
        for odd in [
            json!("url"),
            json!({"a": 3}),
            json!({"a": "sting"}),
            json!({"a": {"type": ["string"]}}),
            json!({"a": {"required": "yes"}}),
            json!({"a": {"enum": "x"}}),
            json!({"a": {"type": "integer", "default": "x"}}),
            json!([{"type": "string"}]),
        ] {
            let error = Inputs::of_head(&map(json!({"inputs": odd}))).unwrap_err();
            assert!(!error.is_empty());
        }
    }
}

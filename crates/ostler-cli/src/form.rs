//! The form of an MCP server's question: its fields, and parsing what the user types into them.
//!
//! Pure. The protocol allows an object of strings, numbers, booleans and choices, and nothing nested.

use ostler_proto::control::Elicitation;
use serde_json::{Map, Number, Value};

#[derive(Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    kind: Kind,
    is_required: bool,
    default: Option<Value>,
}

/// The type of a field, with its limits.
#[derive(Debug, PartialEq)]
enum Kind {
    Text { format: Option<String>, least: Option<u64>, most: Option<u64> },
    Number { is_whole: bool, least: Option<f64>, most: Option<f64> },
    Boolean,
    Choice(Vec<Choice>),
    Choices { all: Vec<Choice>, least: Option<u64>, most: Option<u64> },
}

/// One of several values, and its label for people.
#[derive(Debug, PartialEq)]
struct Choice {
    value: Value,
    label: String,
}

/// The fields of the server's form, in the server's order.
///
/// # Errors
/// When a field has a type that the protocol does not allow. The text names the field.
pub(crate) fn fields(question: &Elicitation) -> Result<Vec<Field>, String> {
    let nothing = Map::new();
    let schema = question.requested_schema.as_ref().unwrap_or(&Value::Null);
    let properties = schema["properties"].as_object().unwrap_or(&nothing);
    let required: Vec<_> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let order = question.property_order.iter().flatten();
    let first = order.filter_map(|name| properties.get_key_value(name));
    let is_ordered = |name: &String| question.property_order.iter().flatten().any(|it| it == name);
    let rest = properties.iter().filter(|(name, _)| !is_ordered(name));
    let field = |(name, property): (&String, &Value)| {
        let text = |key: &str| property[key].as_str().map(str::to_owned);
        Ok(Field {
            name: name.clone(),
            title: text("title"),
            description: text("description"),
            kind: kind(property).map_err(|reason| format!("{name}: {reason}"))?,
            is_required: required.contains(&name.as_str()),
            default: property.get("default").filter(|default| !default.is_null()).cloned(),
        })
    };
    first.chain(rest).map(field).collect()
}

fn kind(property: &Value) -> Result<Kind, String> {
    let bound = |key: &str| property[key].as_u64();
    if let Some(all) = choices(property) {
        return Ok(Kind::Choice(all));
    }
    match property["type"].as_str() {
        Some("string") => Ok(Kind::Text {
            format: property["format"].as_str().map(str::to_owned),
            least: bound("minLength"),
            most: bound("maxLength"),
        }),
        Some(number @ ("number" | "integer")) => Ok(Kind::Number {
            is_whole: number == "integer",
            least: property["minimum"].as_f64(),
            most: property["maximum"].as_f64(),
        }),
        Some("boolean") => Ok(Kind::Boolean),
        Some("array") => match choices(&property["items"]) {
            Some(all) => {
                Ok(Kind::Choices { all, least: bound("minItems"), most: bound("maxItems") })
            }
            None => Err("it is a list without choices".to_owned()),
        },
        Some(other) => Err(format!("it is of type {other}")),
        None => Err("its type is missing".to_owned()),
    }
}

/// The values of an enumeration, in each of the three forms that servers use.
fn choices(schema: &Value) -> Option<Vec<Choice>> {
    let label = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let titled = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array());
    if let Some(titled) = titled {
        let choice = |one: &Value| {
            let value = one.get("const")?.clone();
            let title = one["title"].as_str().map(str::to_owned);
            Some(Choice { label: title.unwrap_or_else(|| label(&value)), value })
        };
        return titled.iter().map(choice).collect();
    }
    let values = schema["enum"].as_array()?;
    let choice = |(at, value): (usize, &Value)| {
        let name = schema["enumNames"][at].as_str().map(str::to_owned);
        Choice { label: name.unwrap_or_else(|| label(value)), value: value.clone() }
    };
    Some(values.iter().enumerate().map(choice).collect())
}

impl Field {
    /// The field's rules for people: `integer, 1 to 9, required, default 3`.
    pub(crate) fn rules(&self) -> String {
        let mut rules = Vec::new();
        match &self.kind {
            Kind::Text { format, least, most } => {
                rules.push(format.clone().unwrap_or_else(|| "text".to_owned()));
                rules.extend(range(*least, *most).map(|range| format!("{range} characters")));
            }
            Kind::Number { is_whole, least, most } => {
                rules.push(if *is_whole { "integer" } else { "number" }.to_owned());
                rules.extend(range(*least, *most));
            }
            Kind::Boolean => rules.push("yes or no".to_owned()),
            Kind::Choice(_) => rules.push("one of these".to_owned()),
            Kind::Choices { least, most, .. } => {
                rules.push("any of these".to_owned());
                rules.extend(range(*least, *most));
            }
        }
        rules.push(if self.is_required { "required" } else { "optional" }.to_owned());
        rules.extend(self.default.as_ref().map(|value| format!("default {}", self.shown(value))));
        rules.join(", ")
    }

    /// The labels to choose from.
    pub(crate) fn labels(&self) -> impl Iterator<Item = &str> {
        self.choices().iter().map(|choice| choice.label.as_str())
    }

    fn choices(&self) -> &[Choice] {
        match &self.kind {
            Kind::Choice(all) | Kind::Choices { all, .. } => all,
            _ => &[],
        }
    }

    /// A value as text for people.
    pub(crate) fn shown(&self, value: &Value) -> String {
        if let Some(choice) = self.choices().iter().find(|choice| choice.value == *value) {
            return choice.label.clone();
        }
        match value {
            Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
            Value::String(text) => text.clone(),
            Value::Array(all) => {
                all.iter().map(|one| self.shown(one)).collect::<Vec<_>>().join(", ")
            }
            other => other.to_string(),
        }
    }

    /// Parses the typed text; `None` for an optional field that is left out. Empty text stands for the default.
    ///
    /// # Errors
    /// When the value is not valid. The text says what is.
    pub(crate) fn read(&self, typed: &str) -> Result<Option<Value>, String> {
        let typed = typed.trim();
        if typed.is_empty() {
            return match (&self.default, self.is_required) {
                (Some(default), _) => Ok(Some(default.clone())),
                (None, false) => Ok(None),
                (None, true) => Err(format!("{} is required", self.name)),
            };
        }
        let value = match &self.kind {
            Kind::Text { least, most, .. } => {
                within(typed.chars().count() as u64, *least, *most, " characters")?;
                Value::from(typed)
            }
            Kind::Number { is_whole, least, most } => number(typed, *is_whole, *least, *most)?,
            Kind::Boolean => match typed.to_lowercase().as_str() {
                "y" | "yes" | "true" | "1" => Value::Bool(true),
                "n" | "no" | "false" | "0" => Value::Bool(false),
                _ => return Err("answer yes or no".to_owned()),
            },
            Kind::Choice(all) => pick(all, typed)?,
            Kind::Choices { all, least, most } => {
                let one = |part: &str| pick(all, part.trim());
                let picked = typed.split(',').map(one).collect::<Result<Vec<_>, _>>()?;
                within(picked.len() as u64, *least, *most, " of them")?;
                Value::Array(picked)
            }
        };
        Ok(Some(value))
    }
}

fn number(
    typed: &str,
    is_whole: bool,
    least: Option<f64>,
    most: Option<f64>,
) -> Result<Value, String> {
    let number: Option<Number> = typed.parse().ok();
    let is_fit = |number: &Number| !is_whole || number.is_i64() || number.is_u64();
    let number = number.filter(is_fit).ok_or_else(|| match is_whole {
        true => format!("{typed} is not an integer"),
        false => format!("{typed} is not a number"),
    })?;
    within(number.as_f64().unwrap_or(f64::NAN), least, most, "")?;
    Ok(Value::Number(number))
}

/// The value with this number or label.
fn pick(all: &[Choice], typed: &str) -> Result<Value, String> {
    let by_label = all.iter().find(|choice| choice.label == typed);
    let by_number =
        || typed.parse::<usize>().ok().and_then(|number| all.get(number.checked_sub(1)?));
    let choice = by_label.or_else(by_number);
    choice.map(|choice| choice.value.clone()).ok_or_else(|| {
        format!("{typed} is not one of the choices: type a number from 1 to {}", all.len())
    })
}

fn within<N: PartialOrd + std::fmt::Display + Copy>(
    value: N,
    least: Option<N>,
    most: Option<N>,
    unit: &str,
) -> Result<(), String> {
    let is_inside =
        least.is_none_or(|least| value >= least) && most.is_none_or(|most| value <= most);
    match (is_inside, range(least, most)) {
        (false, Some(range)) => Err(format!("it must be {range}{unit}")),
        _ => Ok(()),
    }
}

fn range<N: std::fmt::Display>(least: Option<N>, most: Option<N>) -> Option<String> {
    match (least, most) {
        (Some(least), Some(most)) => Some(format!("{least} to {most}")),
        (Some(least), None) => Some(format!("at least {least}")),
        (None, Some(most)) => Some(format!("at most {most}")),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests;

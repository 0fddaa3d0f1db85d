//! A structured answer: the last result, filled into the host's schema.
//!
//! Lists get the lines of the last result, numbers their count, texts the text of the answer. It is a demo: the answer
//! fits the schema, but may mean nothing.

use serde_json::{Map, Value, json};

use super::progress::TurnProgress;
use crate::Request;

/// The tool that receives it.
pub(super) const TOOL: &str = crate::STRUCTURED_OUTPUT;

/// The most items of a list, unless the schema requires more.
const MOST_ITEMS: usize = 100;
/// How deep a schema is followed: it may refer to itself.
const DEEPEST: usize = 16;

/// The structured answer, if the host wants one and it was not tried yet.
pub(super) fn due(request: &Request, turn: &TurnProgress, text: &str) -> Option<Value> {
    let spec = request.tools.iter().find(|spec| spec.name == TOOL)?;
    let last = turn.rounds.last();
    // A second attempt would be the same.
    let is_tried = last.is_some_and(|round| {
        round.iter().any(|outcome| outcome.failed && outcome.text.contains("required schema"))
    });
    if is_tried {
        return None;
    }
    let result = last.and_then(|round| round.last()).map_or("", |outcome| outcome.text.as_str());
    let lines: Vec<&str> = result.lines().filter(|line| !line.trim().is_empty()).collect();
    Some(Material { root: &spec.input_schema, text, lines }.fill(&spec.input_schema, None, 0))
}

struct Material<'a> {
    root: &'a Value,
    text: &'a str,
    lines: Vec<&'a str>,
}

impl Material<'_> {
    /// A value for a schema; `line` for an item of a list.
    fn fill(&self, schema: &Value, line: Option<&str>, depth: usize) -> Value {
        if depth > DEEPEST {
            return Value::Null;
        }
        if let Some(path) = schema["$ref"].as_str().and_then(|path| path.strip_prefix('#')) {
            let target = self.root.pointer(path).unwrap_or(&Value::Null);
            return self.fill(target, line, depth + 1);
        }
        if let Some(fixed) = schema.get("const").or_else(|| schema["enum"].get(0)) {
            return fixed.clone();
        }
        if let Some(first) = ["anyOf", "oneOf", "allOf"].iter().find_map(|of| schema[*of].get(0)) {
            return self.fill(first, line, depth + 1);
        }
        let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str());
        match kind {
            Some("object") => self.object(schema, line, depth),
            None if schema["properties"].is_object() => self.object(schema, line, depth),
            Some("array") => self.array(schema, depth),
            Some("integer" | "number") => self.number(schema),
            Some("boolean") => json!(!self.lines.is_empty()),
            Some("null") => Value::Null,
            _ => json!(line.unwrap_or(self.text)),
        }
    }

    fn object(&self, schema: &Value, line: Option<&str>, depth: usize) -> Value {
        let properties = schema["properties"].as_object();
        let filled = properties.into_iter().flatten().map(|(name, schema)| {
            // A property may have a description next to its `$ref`.
            (name.clone(), self.fill(schema, line, depth + 1))
        });
        Value::Object(filled.collect::<Map<_, _>>())
    }

    fn array(&self, schema: &Value, depth: usize) -> Value {
        let bound = |name: &str| schema[name].as_u64().and_then(|n| usize::try_from(n).ok());
        let most = bound("maxItems").unwrap_or(MOST_ITEMS);
        let mut lines = self.lines.clone();
        lines.truncate(most.min(MOST_ITEMS));
        let least = bound("minItems").unwrap_or(0).min(most);
        while lines.len() < least.min(MOST_ITEMS) {
            lines.push("");
        }
        lines.iter().map(|line| self.fill(&schema["items"], Some(line), depth + 1)).collect()
    }

    fn number(&self, schema: &Value) -> Value {
        let count = i64::try_from(self.lines.len()).unwrap_or(i64::MAX);
        let least = schema["minimum"].as_f64().unwrap_or(f64::MIN).ceil();
        let most = schema["maximum"].as_f64().unwrap_or(f64::MAX).floor();
        // Saturates, which is as good a guess as any.
        json!((count as f64).max(least).min(most) as i64)
    }
}

//! JSON Patch (RFC 6902): [`diff`] makes patches, [`apply`] applies them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One operation of a patch. Paths are JSON Pointers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
#[expect(missing_docs, reason = "the fields are those of RFC 6902")]
pub enum Operation {
    /// Adds a value; in a list, later elements move up.
    Add { path: String, value: Value },
    /// Removes a value.
    Remove { path: String },
    /// Replaces an existing value.
    Replace { path: String, value: Value },
    /// Moves a value.
    Move { from: String, path: String },
    /// Copies a value.
    Copy { from: String, path: String },
    /// Fails unless the value is equal.
    Test { path: String, value: Value },
}

/// An operation that cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("step {step} of the patch cannot be applied: {reason}")]
pub struct PatchError {
    step: usize,
    reason: String,
}

/// The operations that turn `old` into `new`; empty if they are equal.
///
/// ```
/// use ostler_agui::patch::{apply, diff};
/// use serde_json::json;
///
/// let (old, new) = (json!({"a": 1, "list": [1, 2]}), json!({"a": 2, "list": [1, 2, 3]}));
/// let patch = diff(&old, &new);
/// assert_eq!(serde_json::to_value(&patch).unwrap(), json!([
///     {"op": "replace", "path": "/a", "value": 2},
///     {"op": "add", "path": "/list/-", "value": 3},
/// ]));
/// assert_eq!(apply(&old, &patch), Ok(new));
/// ```
pub fn diff(old: &Value, new: &Value) -> Vec<Operation> {
    let mut steps = Vec::new();
    compare(old, new, "", &mut steps);
    steps
}

fn compare(old: &Value, new: &Value, path: &str, steps: &mut Vec<Operation>) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for name in old.keys().filter(|name| !new.contains_key(*name)) {
                steps.push(Operation::Remove { path: below(path, name) });
            }
            for (name, value) in new {
                let path = below(path, name);
                match old.get(name) {
                    Some(before) => compare(before, value, &path, steps),
                    None => steps.push(Operation::Add { path, value: value.clone() }),
                }
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            for (index, (before, value)) in old.iter().zip(new).enumerate() {
                compare(before, value, &format!("{path}/{index}"), steps);
            }
            // From the end, so that earlier indices stay valid.
            for index in (new.len()..old.len()).rev() {
                steps.push(Operation::Remove { path: format!("{path}/{index}") });
            }
            for value in new.iter().skip(old.len()) {
                steps.push(Operation::Add { path: format!("{path}/-"), value: value.clone() });
            }
        }
        _ if old == new => {}
        _ => steps.push(Operation::Replace { path: path.to_owned(), value: new.clone() }),
    }
}

fn below(path: &str, name: &str) -> String {
    format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// Applies all operations, or none.
///
/// # Errors
/// If an operation names a path that does not exist, or a test fails.
pub fn apply(value: &Value, patch: &[Operation]) -> Result<Value, PatchError> {
    let mut value = value.clone();
    for (step, operation) in patch.iter().enumerate() {
        apply_one(&mut value, operation).map_err(|reason| PatchError { step, reason })?;
    }
    Ok(value)
}

fn apply_one(root: &mut Value, operation: &Operation) -> Result<(), String> {
    match operation {
        Operation::Add { path, value } => add(root, path, value.clone()),
        Operation::Remove { path } => remove(root, path).map(drop),
        Operation::Replace { path, value } => {
            *place(root, path)? = value.clone();
            Ok(())
        }
        Operation::Move { from, path } => {
            if path.starts_with(&format!("{from}/")) {
                return Err(format!("{from} cannot be moved into itself"));
            }
            let value = remove(root, from)?;
            add(root, path, value)
        }
        Operation::Copy { from, path } => {
            let value = place(root, from)?.clone();
            add(root, path, value)
        }
        Operation::Test { path, value } => {
            let actual = place(root, path)?;
            if *actual == *value { Ok(()) } else { Err(format!("{path} is {actual}, not {value}")) }
        }
    }
}

fn place<'a>(root: &'a mut Value, path: &str) -> Result<&'a mut Value, String> {
    root.pointer_mut(path).ok_or_else(|| format!("there is nothing at {path:?}"))
}

/// The parent of the value at a path, and the last segment of the path.
fn parent<'a>(root: &'a mut Value, path: &str) -> Result<(&'a mut Value, String), String> {
    let (parent, last) =
        path.rsplit_once('/').ok_or_else(|| format!("{path:?} is not a JSON Pointer"))?;
    let last = last.replace("~1", "/").replace("~0", "~");
    Ok((place(root, parent)?, last))
}

fn add(root: &mut Value, path: &str, value: Value) -> Result<(), String> {
    if path.is_empty() {
        *root = value;
        return Ok(());
    }
    match parent(root, path)? {
        (Value::Object(object), name) => {
            object.insert(name, value);
        }
        (Value::Array(list), last) if last == "-" => list.push(value),
        (Value::Array(list), last) => {
            let index = index(&last).filter(|index| *index <= list.len());
            list.insert(index.ok_or_else(|| format!("{path:?} is not in the list"))?, value);
        }
        _ => return Err(format!("the parent of {path:?} is neither an object nor a list")),
    }
    Ok(())
}

fn remove(root: &mut Value, path: &str) -> Result<Value, String> {
    if path.is_empty() {
        return Ok(root.take());
    }
    let missing = || format!("there is nothing at {path:?}");
    match parent(root, path)? {
        (Value::Object(object), name) => object.shift_remove(&name).ok_or_else(missing),
        (Value::Array(list), last) => {
            let index = index(&last).filter(|index| *index < list.len()).ok_or_else(missing)?;
            Ok(list.remove(index))
        }
        _ => Err(missing()),
    }
}

/// A list index, as the RFC writes it: without signs or leading zeros.
fn index(text: &str) -> Option<usize> {
    let plain = text == "0" || !text.starts_with('0');
    (plain && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (0..5i64).prop_map(Value::from),
            "[a-c/~-]{0,2}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map("[a-c/~0-]{0,2}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn applying_a_diff_to_the_old_value_gives_the_new_one(old in value(), new in value()) {
            let patch = diff(&old, &new);
            prop_assert_eq!(apply(&old, &patch).unwrap(), new.clone());
            prop_assert_eq!(patch.is_empty(), old == new);
        }
    }

    fn steps(patch: Value) -> Vec<Operation> {
        serde_json::from_value(patch).unwrap()
    }

    #[test]
    fn every_operation_is_applied() {
        let patch = steps(json!([
            {"op": "test", "path": "/a/0", "value": 1},
            {"op": "add", "path": "/a/1", "value": 9},
            {"op": "move", "from": "/b", "path": "/c"},
            {"op": "copy", "from": "/a/1", "path": "/a/-"},
            {"op": "remove", "path": "/a/0"},
            {"op": "replace", "path": "/c", "value": null},
        ]));
        let value = json!({"a": [1, 2], "b": true});
        assert_eq!(apply(&value, &patch), Ok(json!({"a": [9, 2, 9], "c": null})));
    }

    #[test]
    fn an_operation_that_cannot_be_applied_is_named_with_a_reason() {
        let value = json!({"a": [1]});
        for (step, reason) in [
            (json!({"op": "remove", "path": "/b"}), "nothing at \"/b\""),
            (json!({"op": "add", "path": "/a/2", "value": 1}), "\"/a/2\" is not in the list"),
            (json!({"op": "add", "path": "/a/01", "value": 1}), "is not in the list"),
            (json!({"op": "add", "path": "a", "value": 1}), "\"a\" is not a JSON Pointer"),
            (json!({"op": "add", "path": "/a/0/x", "value": 1}), "neither an object nor a list"),
            (json!({"op": "test", "path": "/a", "value": 1}), "is [1], not 1"),
            (json!({"op": "move", "from": "/a", "path": "/a/b"}), "into itself"),
        ] {
            let first = json!({"op": "test", "path": "", "value": {"a": [1]}});
            let error = apply(&value, &steps(json!([first, step]))).unwrap_err().to_string();
            assert!(error.starts_with("step 1") && error.contains(reason), "{error}");
        }
    }
}

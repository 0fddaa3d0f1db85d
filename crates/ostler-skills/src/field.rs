//! Fields of a skill's head, which may be spelled in several ways.

use serde_json::{Map, Value};

/// The field under any of its spellings. A field without a value counts as missing.
pub(super) fn field<'a>(head: &'a Map<String, Value>, names: &[&str]) -> Option<&'a Value> {
    let values = names.iter().filter_map(|name| head.get(*name));
    values.into_iter().find(|value| !value.is_null() && *value != "")
}

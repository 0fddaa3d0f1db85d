//! Fields of a skill's head, which has several spellings for one thing.

use serde_json::{Map, Value};

/// A field under any of its spellings; one without a value is not there.
pub(super) fn field<'a>(head: &'a Map<String, Value>, names: &[&str]) -> Option<&'a Value> {
    let values = names.iter().filter_map(|name| head.get(*name));
    values.into_iter().find(|value| !value.is_null() && *value != "")
}

//! Objects that are read by way of a JSON tree, for types with `#[wire(tree)]`.
//!
//! Code that reads entries as they come is compiled once for every source of entries: text, bytes, a value, and each of
//! them after a tag. For large types that are read seldom this is too much: hook inputs alone took 170 kB per source, and
//! a fifth of that by way of a tree.

use std::vec;

use serde::de::{DeserializeOwned, DeserializeSeed, Error as _, MapAccess};
use serde_json::{Error, Value};

use super::{Extra, located};

/// The entries of an object that are not read yet, in their order.
pub(crate) struct Tree {
    entries: vec::IntoIter<(String, Value)>,
    /// The value of the key that was read last.
    pending: Option<Value>,
    extra: Extra,
}

impl Tree {
    pub(crate) fn read<'de, A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Self { entries: entries.into_iter(), pending: None, extra: Extra::default() })
    }

    /// A field that must be there; [`present`] refuses `None` when all fields have been looked at.
    pub(crate) fn required<T: DeserializeOwned>(
        &mut self,
        name: &'static str,
    ) -> Result<Option<T>, Error> {
        self.take(name).map(|value| typed(name, value)).transpose()
    }

    /// A field that is normally absent if it has no value, so only `null` is recorded.
    pub(crate) fn optional<T: DeserializeOwned>(
        &mut self,
        name: &'static str,
    ) -> Result<Option<T>, Error> {
        let Some(value) = self.take(name) else { return Ok(None) };
        self.typed_or_null(name, value)
    }

    /// A field that is normally `null` if it has no value, so only its absence is recorded.
    pub(crate) fn nullable<T: DeserializeOwned>(
        &mut self,
        name: &'static str,
    ) -> Result<Option<T>, Error> {
        match self.take(name) {
            Some(value) => typed(name, value),
            None => {
                self.extra.written_otherwise(name, true);
                Ok(None)
            }
        }
    }

    /// What is left: the fields that the type does not know.
    pub(crate) fn rest(&mut self, object: &'static str) -> Extra {
        let mut extra = std::mem::take(&mut self.extra);
        for (name, value) in self.entries.by_ref() {
            extra.keep_value(object, name, value);
        }
        extra
    }

    fn typed_or_null<T: DeserializeOwned>(
        &mut self,
        name: &'static str,
        value: Value,
    ) -> Result<Option<T>, Error> {
        let value = typed::<Option<T>>(name, value)?;
        self.extra.written_otherwise(name, value.is_none());
        Ok(value)
    }

    /// Takes all entries of this name out. The last one counts.
    fn take(&mut self, name: &str) -> Option<Value> {
        let mut last = None;
        if self.entries.as_slice().iter().any(|(key, _)| key == name) {
            let mut others = std::mem::take(&mut self.entries).collect::<Vec<_>>();
            others.retain_mut(|(key, value)| {
                let other = key != name;
                if !other {
                    last = Some(value.take());
                }
                other
            });
            self.entries = others.into_iter();
        }
        last
    }
}

pub(crate) fn present<T>(value: Option<T>, name: &'static str) -> Result<T, Error> {
    value.ok_or_else(|| Error::missing_field(name))
}

fn typed<T: DeserializeOwned>(name: &'static str, value: Value) -> Result<T, Error> {
    T::deserialize(value).map_err(|error| located(name, error))
}

/// For enums: the variant reads the entries.
impl<'de> MapAccess<'de> for Tree {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let Some((name, value)) = self.entries.next() else { return Ok(None) };
        self.pending = Some(value);
        seed.deserialize(Value::String(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let value = self.pending.take().ok_or_else(|| Error::custom("a value without its key"))?;
        seed.deserialize(value)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::hook::HookInput;

    /// The same text as text, as bytes, as a tree and with its tag at the end.
    fn read(first: Value, tag: &str) -> Vec<Result<HookInput, String>> {
        let mut last = first.as_object().expect("an object").clone();
        last.insert("hook_event_name".into(), tag.into());
        let mut tagged = serde_json::Map::from_iter([("hook_event_name".into(), tag.into())]);
        tagged.extend(first.as_object().expect("an object").clone());
        let without_place = |error: serde_json::Error| {
            error.to_string().split(" at line ").next().unwrap_or_default().to_owned()
        };
        [tagged, last]
            .into_iter()
            .flat_map(|object| {
                let text = Value::Object(object.clone()).to_string();
                [
                    serde_json::from_str(&text).map_err(without_place),
                    serde_json::from_slice(text.as_bytes()).map_err(without_place),
                    serde_json::from_value(Value::Object(object)).map_err(without_place),
                ]
            })
            .collect()
    }

    #[test]
    fn every_source_and_every_place_of_the_tag_gives_the_same_value_or_the_same_error() {
        let common = json!({"session_id": "s", "transcript_path": "/t", "cwd": "/"});
        let with = |name: &str, value: Value| {
            let mut object = common.clone();
            object[name] = value;
            object
        };
        let all = read(with("prompt", "hello".into()), "UserPromptSubmit");
        assert!(all[0].is_ok(), "{all:?}");
        assert!(all.iter().all(|one| one == &all[0]), "{all:?}");
        let all = read(with("prompt", 7.into()), "UserPromptSubmit");
        let error = all[0].as_ref().expect_err("a prompt is a string");
        assert!(error.starts_with("at UserPromptSubmit.prompt: "), "{error}");
        assert!(all.iter().all(|one| one == &all[0]), "{all:?}");
    }

    #[test]
    fn a_second_tag_is_refused_and_the_last_of_two_equal_fields_counts() {
        let twice = r#"{"hook_event_name": "Stop", "hook_event_name": "Setup"}"#;
        let error = serde_json::from_str::<HookInput>(twice).expect_err("two tags");
        assert!(error.to_string().contains("is given twice"), "{error}");
        let text = r#"{"hook_event_name": "UserPromptSubmit", "session_id": "a", "session_id": "b",
            "transcript_path": "/t", "cwd": "/", "prompt": "p"}"#;
        let input: HookInput = serde_json::from_str(text).expect("it reads");
        assert_eq!(serde_json::to_value(&input).expect("it writes")["session_id"], "b");
    }
}

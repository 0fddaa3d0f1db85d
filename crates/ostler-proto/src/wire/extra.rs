//! The fields of an object that this version does not know.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::de::MapAccess;
use serde::ser::SerializeMap;
use serde_json::{Map, Value};

use crate::drift;

/// Unknown fields, which are written back unchanged, and the known fields that were written in an unusual way.
///
/// Costs one pointer while it is empty. Two objects are equal only if their unknown fields are equal too.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extra(Option<Box<Kept>>);

#[derive(Clone, Debug, Default, PartialEq)]
struct Kept {
    fields: Map<String, Value>,
    /// Optional fields that came as `null`, nullable fields that did not come at all.
    written_otherwise: BTreeSet<&'static str>,
}

impl Extra {
    /// The value of an unknown field.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.as_ref()?.fields.get(name)
    }

    /// All unknown fields in the order they came.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.0.iter().flat_map(|kept| kept.fields.iter())
    }

    /// Adds a field this version has no name for. A known field set this way is written twice; do not.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        self.kept().fields.insert(name.into(), value.into());
    }

    pub(crate) fn keep<'de, A: MapAccess<'de>>(
        &mut self,
        object: &'static str,
        name: Cow<'de, str>,
        map: &mut A,
    ) -> Result<(), A::Error> {
        let value = map.next_value()?;
        self.keep_value(object, name.into_owned(), value);
        Ok(())
    }

    pub(crate) fn keep_value(&mut self, object: &'static str, name: String, value: Value) {
        drift::note_field(object, &name);
        self.kept().fields.insert(name, value);
    }

    /// Notes whether a field was written in the unusual way. If a field comes twice, the last one counts.
    pub(crate) fn written_otherwise(&mut self, name: &'static str, otherwise: bool) {
        if otherwise {
            self.kept().written_otherwise.insert(name);
        } else if let Some(kept) = &mut self.0
            && kept.written_otherwise.remove(name)
            && *kept == Box::default()
        {
            // So that an object equals itself after writing and reading.
            self.0 = None;
        }
    }

    /// Whether a field without a value must be written as `null`.
    pub(crate) fn writes_null(&self, name: &str, null_by_default: bool) -> bool {
        let otherwise = self.0.as_ref().is_some_and(|kept| kept.written_otherwise.contains(&name));
        null_by_default != otherwise
    }

    pub(crate) fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        self.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))
    }

    fn kept(&mut self) -> &mut Kept {
        self.0.get_or_insert_default()
    }
}

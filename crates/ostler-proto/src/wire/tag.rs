//! Tagged objects: find the tag anywhere in the object, then read the rest as the struct that it names.

use std::borrow::Cow;
use std::{fmt, vec};

use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{
    self, Deserialize, DeserializeSeed, Deserializer, IntoDeserializer as _, MapAccess, SeqAccess,
};
use serde::ser::SerializeMap;
use serde_json::{Map, Value};

use super::next_key;
use crate::drift;

/// An object whose tag this version does not know, kept whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UnknownObject(Map<String, Value>);

impl UnknownObject {
    /// The value of a field, the tag included.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// All fields, the tag first.
    pub fn fields(&self) -> &Map<String, Value> {
        &self.0
    }

    pub(crate) fn read<'de, A: MapAccess<'de>>(
        of: &'static str,
        tag_name: &'static str,
        tag: Tag<'de>,
        mut rest: A,
    ) -> Result<Self, A::Error> {
        if let Some(word) = tag.as_str() {
            drift::note_word(of, word);
        }
        let mut fields = Map::new();
        if let Some(value) = tag.into_value() {
            fields.insert(tag_name.to_owned(), value);
        }
        while let Some((name, value)) = rest.next_entry()? {
            fields.insert(name, value);
        }
        Ok(Self(fields))
    }

    pub(crate) fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        self.0.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))
    }
}

impl From<Map<String, Value>> for UnknownObject {
    fn from(fields: Map<String, Value>) -> Self {
        Self(fields)
    }
}

/// Reads up to the tag. Peers nearly always write it first; entries before it are stored and returned with the second
/// value, so that the struct sees every entry but the tag.
pub(crate) fn split_tag<'de, A: MapAccess<'de>>(
    mut map: A,
    tag_name: &'static str,
) -> Result<(Tag<'de>, AfterTag<A>), A::Error> {
    let mut before = Vec::new();
    let mut tag = Tag::Missing;
    while let Some(name) = next_key(&mut map)? {
        if name == tag_name {
            tag = map.next_value()?;
            break;
        }
        before.push((name.into_owned(), map.next_value()?));
    }
    Ok((tag, AfterTag { tag_name, before: before.into_iter(), pending: None, map }))
}

/// The value of a tag field. Anything but a string is not a tag, and is kept.
pub(crate) enum Tag<'de> {
    Missing,
    Word(Cow<'de, str>),
    Other(Value),
}

impl<'de> Tag<'de> {
    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Self::Word(word) => Some(word),
            Self::Missing | Self::Other(_) => None,
        }
    }

    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Missing)
    }

    pub(crate) fn require<E: de::Error>(&self, tag_name: &'static str) -> Result<(), E> {
        match self {
            Self::Missing => Err(E::missing_field(tag_name)),
            Self::Word(_) | Self::Other(_) => Ok(()),
        }
    }

    fn into_value(self) -> Option<Value> {
        match self {
            Self::Missing => None,
            Self::Word(word) => Some(Value::String(word.into_owned())),
            Self::Other(value) => Some(value),
        }
    }
}

impl<'de> Deserialize<'de> for Tag<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TagVisitor)
    }
}

struct TagVisitor;

impl<'de> de::Visitor<'de> for TagVisitor {
    type Value = Tag<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a tag")
    }

    fn visit_borrowed_str<E: de::Error>(self, word: &'de str) -> Result<Tag<'de>, E> {
        Ok(Tag::Word(Cow::Borrowed(word)))
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<Tag<'de>, E> {
        Ok(Tag::Word(Cow::Owned(word.to_owned())))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Tag<'de>, E> {
        Ok(Tag::Other(Value::Null))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Tag<'de>, E> {
        Ok(Tag::Other(value.into()))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Tag<'de>, E> {
        Ok(Tag::Other(value.into()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Tag<'de>, E> {
        Ok(Tag::Other(value.into()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Tag<'de>, E> {
        Ok(Tag::Other(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Tag<'de>, A::Error> {
        Value::deserialize(SeqAccessDeserializer::new(seq)).map(Tag::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Tag<'de>, A::Error> {
        Value::deserialize(MapAccessDeserializer::new(map)).map(Tag::Other)
    }
}

/// The entries of a tagged object without its tag.
pub(crate) struct AfterTag<A> {
    tag_name: &'static str,
    before: vec::IntoIter<(String, Value)>,
    pending: Option<Value>,
    map: A,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for AfterTag<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        match self.before.next() {
            Some((name, value)) => {
                self.pending = Some(value);
                seed.deserialize(Value::String(name)).map(Some).map_err(de::Error::custom)
            }
            None => match next_key(&mut self.map)? {
                None => Ok(None),
                // Some readers take the first of two tags, some the last. An object that readers understand
                // differently must not pass.
                Some(name) if name == self.tag_name => {
                    Err(de::Error::custom(format_args!("field `{}` is given twice", self.tag_name)))
                }
                Some(Cow::Borrowed(name)) => {
                    seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some)
                }
                Some(Cow::Owned(name)) => seed.deserialize(name.into_deserializer()).map(Some),
            },
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        match self.pending.take() {
            Some(value) => seed.deserialize(value).map_err(de::Error::custom),
            None => self.map.next_value_seed(seed),
        }
    }
}

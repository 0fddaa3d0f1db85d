//! How a wire type reads itself from a JSON object and writes itself back without loss.
//!
//! The types of this crate do not use serde's derive but [`Wire`](ostler_proto_derive::Wire), which generates calls
//! to what is in this module. The promise: whatever decodes is written back as equal JSON. Unknown fields go to
//! [`Extra`], unknown objects to [`UnknownObject`], and a field written in an unusual way (`null` where others
//! leave it out, or the reverse) is remembered.

mod extra;
mod key;
mod tag;
mod tree;

use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, MapAccess};
use serde::ser::SerializeMap;

pub use self::extra::Extra;
pub(crate) use self::key::next_key;
pub use self::tag::UnknownObject;
pub(crate) use self::tag::{Tag, split_tag};
pub(crate) use self::tree::{Tree, present};

/// A type that is a JSON object on the wire. Implemented by `#[derive(Wire)]`.
pub trait WireObject: Sized {
    /// The Rust name, used in error messages and drift reports.
    const NAME: &'static str;

    /// Reads the object from its entries, in any order. The last of two equal keys wins; a tag may come only once.
    ///
    /// # Errors
    /// When a required field is missing or a known field has another type; the message names the field.
    fn read<'de, A: MapAccess<'de>>(map: A) -> Result<Self, A::Error>;

    /// Writes all entries of the object.
    ///
    /// # Errors
    /// Whatever the serializer reports.
    fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error>;
}

impl<T: WireObject> WireObject for Box<T> {
    const NAME: &'static str = T::NAME;

    fn read<'de, A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        T::read(map).map(Self::new)
    }

    fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        (**self).write(map)
    }
}

/// Serde's entry to [`WireObject::read`].
pub(crate) struct ObjectVisitor<T>(pub(crate) PhantomData<T>);

impl<'de, T: WireObject> de::Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object ({})", T::NAME)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::read(map)
    }
}

/// Reads the value of a known field, so that an error names the field.
pub(crate) fn field<'de, A: MapAccess<'de>, T: de::Deserialize<'de>>(
    map: &mut A,
    name: &'static str,
) -> Result<T, A::Error> {
    map.next_value().map_err(|error| located(name, error))
}

/// Names the variant in an error that came out of it.
#[cold]
pub(crate) fn in_variant<E: de::Error>(name: &str, error: E) -> E {
    located(name, error)
}

/// Adds one more step to the beginning of the path that an error message starts with: `at assistant.message: …`.
#[cold]
fn located<E: de::Error>(step: &str, error: E) -> E {
    let text = error.to_string();
    match text.strip_prefix("at ") {
        Some(rest) => E::custom(format_args!("at {step}.{rest}")),
        None => E::custom(format_args!("at {step}: {text}")),
    }
}

/// Implements serde's traits for a [`WireObject`].
macro_rules! serde_through_object {
    ($ident:ident) => {
        impl<'de> ::serde::Deserialize<'de> for $ident {
            fn deserialize<D: ::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Self, D::Error> {
                deserializer.deserialize_map(crate::wire::ObjectVisitor(::std::marker::PhantomData))
            }
        }
        impl ::serde::Serialize for $ident {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                crate::wire::WireObject::write(self, &mut map)?;
                ::serde::ser::SerializeMap::end(map)
            }
        }
    };
}

/// Implements serde's traits for a type that is a string on the wire (`From<&str>` and `as_str`).
macro_rules! serde_through_str {
    ($ident:ident) => {
        impl<'de> ::serde::Deserialize<'de> for $ident {
            fn deserialize<D: ::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Self, D::Error> {
                crate::wire::Key::deserialize(deserializer).map(|key| Self::from(&*key.0))
            }
        }
        impl ::serde::Serialize for $ident {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

pub(crate) use self::key::Key;
pub(crate) use {serde_through_object, serde_through_str};

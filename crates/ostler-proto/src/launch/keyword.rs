//! Options whose value is one of a few keywords: enums that are read from a keyword and written as one.

/// A keyword that is not one of those an option takes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{word:?} is not valid: use {known}")]
#[non_exhaustive]
pub struct UnknownKeyword {
    /// The keyword.
    pub word: String,
    /// Those that the option takes, as they are listed in a sentence: `low, medium or high`.
    pub known: String,
}

impl UnknownKeyword {
    pub(super) fn new(word: &str, known: &[&str]) -> Self {
        let known = match known {
            [others @ .., one, last] => {
                let others: String = others.iter().map(|word| format!("{word}, ")).collect();
                format!("{others}{one} or {last}")
            }
            known => known.concat(),
        };
        Self { word: word.to_owned(), known }
    }
}

/// Declares an enum and the keyword of each variant.
macro_rules! keywords {
    (
        $(#[$of_enum:meta])*
        pub enum $name:ident { $($(#[$of_variant:meta])* $variant:ident = $word:literal,)+ }
    ) => {
        $(#[$of_enum])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $($(#[$of_variant])* $variant,)+ }

        impl $name {
            /// All keywords, in the order of the variants.
            pub const KEYWORDS: &'static [&'static str] = &[$($word,)+];

            /// The keyword, on a command line and on the wire.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::launch::UnknownKeyword;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => Err($crate::launch::UnknownKeyword::new(word, Self::KEYWORDS)),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl $crate::launch::table::Text for $name {
            fn read(text: &str) -> Result<Self, String> {
                text.parse::<Self>().map_err(|$crate::launch::UnknownKeyword { word, known }| {
                    format!("is {word:?}, but must be {known}")
                })
            }
        }
    };
}

pub(super) use keywords;

//! `WebFetch` and `WebSearch`.

use std::fmt;

use ostler_proto_derive::Wire;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use super::ReadArtifact;
use crate::wire::WireObject;
use crate::{Extra, Num};

/// A page, and what to find out from it.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct WebFetchInput {
    /// Its address.
    pub url: String,
    /// The question.
    pub prompt: String,
    /// Where to start in a long page. Newer peers only.
    pub offset: Option<u64>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A page was fetched.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct WebFetchOutput {
    /// Its size.
    pub bytes: u64,
    /// The HTTP status.
    pub code: u64,
    /// The HTTP status text.
    pub code_text: String,
    /// The answer to the question.
    pub result: String,
    /// How long it took.
    pub duration_ms: Num,
    /// The page's address.
    pub url: String,
    /// The artifact it shows. Newer peers only.
    pub artifact_read: Option<ReadArtifact>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Something to look for on the web.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct WebSearchInput {
    /// The query.
    pub query: String,
    /// Only these sites.
    pub allowed_domains: Option<Vec<String>>,
    /// Not these sites.
    pub blocked_domains: Option<Vec<String>>,
    /// Unknown fields.
    pub extra: Extra,
}

/// The results of a web search.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct WebSearchOutput {
    /// The query.
    pub query: String,
    /// Hits and text, in order.
    pub results: Vec<WebSearchResult>,
    /// How long it took.
    pub duration_seconds: Num,
    /// How many searches it took. Newer peers only.
    pub search_count: Option<u64>,
    /// Unknown fields.
    pub extra: Extra,
}

/// One part of a search's result.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum WebSearchResult {
    /// What one search found.
    Hits(WebSearchHits),
    /// Text of the searching model.
    Text(String),
}

impl Serialize for WebSearchResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Hits(hits) => hits.serialize(serializer),
            Self::Text(text) => text.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for WebSearchResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WebSearchResultVisitor)
    }
}

struct WebSearchResultVisitor;

impl<'de> Visitor<'de> for WebSearchResultVisitor {
    type Value = WebSearchResult;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("search hits or a string")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(WebSearchResult::Text(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        WebSearchHits::read(map).map(WebSearchResult::Hits)
    }
}

/// What one search found.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct WebSearchHits {
    /// The search.
    pub tool_use_id: String,
    /// The pages.
    pub content: Vec<WebSearchHit>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A page that was found.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct WebSearchHit {
    /// Its title.
    pub title: String,
    /// Its address.
    pub url: String,
    /// A piece of its text. Newer peers only.
    pub snippet: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

//! Skills in a content management system, over HTTP: records in the format of Strapi 4 or 5.
//!
//! The system is not trusted: its responses are limited in size and time, redirects are not followed, and a record
//! counts as a skill only if it is valid.

use std::time::Duration;

use futures::StreamExt as _;
use ostler_http::Certificates;
use ostler_skill::{Document, Head};
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode, Url};
use serde_json::{Map, Value};

use super::definition::{Skill, Source, is_name};
use super::field::field;
use super::listing::{Listed, SkillError};

const LONGEST: usize = 16 * 1024 * 1024;
const PAGE: usize = 100;
const MOST_PAGES: usize = 50;

/// A client of the system.
#[derive(Clone)]
pub struct Cms {
    client: Client,
    /// The URL of the records: `https://cms.example/api/skills`.
    records: Url,
    token: Option<String>,
    time: Duration,
}

impl std::fmt::Debug for Cms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cms").field("records", &self.records.as_str()).finish_non_exhaustive()
    }
}

impl Cms {
    /// A client for the system at this address, with its token. Without a path, the path is Strapi's usual one.
    ///
    /// # Errors
    /// A message, if the address is invalid.
    pub fn new(records: &str, token: Option<String>, time: Duration) -> Result<Self, String> {
        let mut address = Url::parse(records)
            .map_err(|error| format!("{records} is not a valid address: {error}"))?;
        if !matches!(address.scheme(), "http" | "https") || address.cannot_be_a_base() {
            return Err(format!("{records} is not the address of a web server"));
        }
        if address.scheme() == "http" && !ostler_http::is_this_machine(&address) {
            return Err(format!(
                "{records} is not encrypted: others on the network could change skills, and skills say what agents do; \
                 use https, or an address of this machine"
            ));
        }
        if address.path() == "/" {
            address.set_path("/api/skills");
        }
        let client = ostler_http::client(Certificates::System);
        let client = client
            .map_err(|error| format!("cannot create an HTTP client for {records}: {error}"))?;
        // A redirect could send the token to another host.
        let client = client.redirect(Policy::none()).timeout(time).build();
        let client = client
            .map_err(|error| format!("cannot create an HTTP client for {records}: {error}"))?;
        Ok(Self { client, records: address, token, time })
    }

    /// Fetches the skill with this id or name.
    ///
    /// # Errors
    /// When the skill exists and cannot be used, or the system does not answer.
    pub async fn find(&self, id: &str) -> Result<Option<Skill>, SkillError> {
        // An invalid name could lead to another path of the system.
        if !is_name(id) {
            return Ok(None);
        }
        let mut address = self.records.clone();
        if let Ok(mut segments) = address.path_segments_mut() {
            segments.pop_if_empty().push(id);
        }
        if let Some(answer) = self.get(address).await? {
            let record = answer.get("data").unwrap_or(&answer);
            return skill(record).map(Some);
        }
        Ok(self.list().await?.skills.into_iter().find(|skill| skill.name == id))
    }

    /// All skills, and which were left out.
    ///
    /// # Errors
    /// When the system does not answer.
    pub async fn list(&self) -> Result<Listed, SkillError> {
        let mut listed = Listed::default();
        for page in 1..=MOST_PAGES {
            let mut address = self.records.clone();
            address
                .query_pairs_mut()
                .append_pair("pagination[page]", &page.to_string())
                .append_pair("pagination[pageSize]", &PAGE.to_string());
            let none = || SkillError::Unreachable(format!("there is nothing at {}", self.records));
            let answer = self.get(address).await?.ok_or_else(none)?;
            let records = answer.get("data").and_then(Value::as_array);
            let records = records.ok_or_else(|| unreadable("its answer has no list `data`"))?;
            for record in records {
                match skill(record) {
                    Ok(skill) => listed.skills.push(skill),
                    Err(error) => listed.problems.push(error.to_string()),
                }
            }
            let n_pages = answer.pointer("/meta/pagination/pageCount").and_then(Value::as_u64);
            if n_pages.is_none_or(|n_pages| page as u64 >= n_pages) {
                return Ok(listed);
            }
        }
        listed.problems.push(format!("there are more skills than {}", PAGE * MOST_PAGES));
        Ok(listed)
    }

    /// Fetches an address; `None` when there is nothing.
    async fn get(&self, address: Url) -> Result<Option<Value>, SkillError> {
        let mut request = self.client.get(address).header("accept", "application/json");
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        let response = request.send().await.map_err(|error| self.failed(&error))?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND => return Ok(None),
            status => return Err(unreadable(&format!("it answered {status}"))),
        }
        let mut bytes = Vec::new();
        let mut pieces = response.bytes_stream();
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|error| self.failed(&error))?;
            if bytes.len() + piece.len() > LONGEST {
                return Err(unreadable(&format!("its answer is longer than {LONGEST} bytes")));
            }
            bytes.extend_from_slice(&piece);
        }
        let answer = serde_json::from_slice(&bytes);
        answer.map(Some).map_err(|error| unreadable(&format!("its answer is not JSON: {error}")))
    }

    fn failed(&self, error: &reqwest::Error) -> SkillError {
        if error.is_timeout() {
            return SkillError::TooSlow(self.time);
        }
        let what = if error.is_connect() { "it does not answer" } else { "the connection broke" };
        unreadable(what)
    }
}

fn unreadable(what: &str) -> SkillError {
    SkillError::Unreachable(what.to_owned())
}

/// Makes a skill of a record. Its text may be a whole `SKILL.md`; fields of the record override its head.
fn skill(record: &Value) -> Result<Skill, SkillError> {
    let id = match record.get("documentId").or_else(|| record.get("id")) {
        Some(Value::String(id)) => id.clone(),
        Some(Value::Number(id)) => id.to_string(),
        _ => return Err(unreadable("a record has no id")),
    };
    let broken = |reason: String| SkillError::Broken { id: id.clone(), reason };
    // Version 4 of Strapi nests the fields.
    let fields = record.get("attributes").unwrap_or(record);
    let fields = fields.as_object().ok_or_else(|| broken("it is not an object".to_owned()))?;
    let content = field(fields, &["content", "skillmd", "body"]).and_then(Value::as_str);
    let content = content.ok_or_else(|| broken("it has no content".to_owned()))?;
    let Document { head: Head(mut head), body } =
        ostler_skill::document(content).map_err(&broken)?;
    head.extend(described(fields));
    if !is_name(&id) {
        return Err(broken("its id cannot be used".to_owned()));
    }
    Skill::new(&id, Document { head: Head(head), body }, Source::Cms).map_err(broken)
}

/// The fields of a record that describe its skill, under the names of the head of a file.
fn described(fields: &Map<String, Value>) -> Map<String, Value> {
    const NAMES: [(&str, &[&str]); 6] = [
        ("name", &["name"]),
        ("description", &["description"]),
        ("model", &["model"]),
        ("allowed-tools", &["allowed-tools", "allowedTools", "allowed_tools"]),
        ("mcp-tools", &["mcp-tools", "mcpTools", "mcp_tools"]),
        ("inputs", &["inputs", "inputFields", "input_fields", "inputSchema"]),
    ];
    let metadata = fields.get("metadata").and_then(Value::as_object);
    let found = NAMES.iter().filter_map(|(name, spellings)| {
        let value = field(fields, spellings).or_else(|| field(metadata?, spellings))?;
        Some(((*name).to_owned(), value.clone()))
    });
    found.collect()
}

#[cfg(test)]
mod stub;
#[cfg(test)]
mod tests;

//! The file with the tokens of a login. Other programs keep more in it, which stays as it is.

use std::io::{ErrorKind, Write as _};
use std::time::Duration;

use ostler_files::RealPath;
use serde_json::{Map, Value, json};

/// The largest file, in bytes.
const LONGEST: u64 = 1024 * 1024;
/// The entry of the file with the login.
const ENTRY: &str = "claudeAiOauth";

/// The tokens of a login.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tokens {
    /// The token for requests.
    pub access: String,
    /// The token with which another one is requested. A long-lived login has none.
    pub refresh: Option<String>,
    /// When the first one expires, since 1970; `None` for never.
    pub expires: Option<Duration>,
    /// What the token may be used for.
    pub scopes: Vec<String>,
    /// The user's plan.
    pub plan: Option<String>,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens").field("expires", &self.expires).finish_non_exhaustive()
    }
}

impl Tokens {
    /// Whether the token expires in less than `margin`.
    pub(super) fn expires_within(&self, margin: Duration, now: Duration) -> bool {
        self.expires.is_some_and(|expires| expires < now + margin)
    }
}

/// Reads the tokens; `None` if there is no file, or no login in it.
pub(super) fn read(file: &RealPath) -> Result<Option<Tokens>, String> {
    let entry = match root(file)?.remove(ENTRY) {
        None | Some(Value::Null) => return Ok(None),
        Some(entry) => entry,
    };
    let text = |name: &str| {
        entry[name].as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let scopes = entry["scopes"].as_array().into_iter().flatten();
    let Some(access) = text("accessToken") else { return Ok(None) };
    Ok(Some(Tokens {
        access,
        refresh: text("refreshToken"),
        expires: entry["expiresAt"].as_u64().filter(|at| *at > 0).map(Duration::from_millis),
        scopes: scopes.filter_map(Value::as_str).map(str::to_owned).collect(),
        plan: text("subscriptionType"),
    }))
}

/// Writes the tokens in place of the earlier ones.
pub(super) fn write(file: &RealPath, tokens: &Tokens) -> Result<(), String> {
    let mut root = root(file)?;
    let entry = root.entry(ENTRY).or_insert_with(|| json!({}));
    let entry = entry.as_object_mut().ok_or(format!("{ENTRY} is not an object"))?;
    entry.insert("accessToken".to_owned(), json!(tokens.access));
    entry.insert("refreshToken".to_owned(), json!(tokens.refresh));
    let expires = tokens.expires.map(|expires| u64::try_from(expires.as_millis()));
    entry.insert("expiresAt".to_owned(), json!(expires.and_then(Result::ok)));
    entry.insert("scopes".to_owned(), json!(tokens.scopes));
    let text = serde_json::to_string(&root).map_err(|error| error.to_string())?;
    // Only the user reads the new tokens, although other users may have been able to read the earlier ones.
    let written = file.replace_with(0o600, |file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.map_err(|error| format!("it cannot be written: {error}"))
}

/// The whole file. An error never quotes it.
fn root(file: &RealPath) -> Result<Map<String, Value>, String> {
    match file.read_text(LONGEST) {
        Ok(text) if text.trim().is_empty() => Ok(Map::new()),
        Ok(text) => serde_json::from_str(text.trim_start_matches('\u{feff}'))
            .map_err(|error| format!("line {} is not valid JSON", error.line())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Map::new()),
        Err(error) => Err(error.to_string()),
    }
}

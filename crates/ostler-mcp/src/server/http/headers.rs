//! Headers that repeat a part of the message (MCP 2026-07-28), for proxies. They must not contradict it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hyper::header::HeaderMap;
use serde_json::Value;

use super::super::client::VERSION_KEY;
use super::super::refusal::{HEADER_MISMATCH, Refusal, STATELESS};
use crate::server::VERSIONS;

pub(super) const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";

/// Whether a message belongs to no session.
pub(super) fn is_stateless(headers: &HeaderMap, message: &Value) -> bool {
    let version = text(headers, VERSION);
    // An unknown version is refused as newer clients understand it.
    version.is_some_and(|version| !VERSIONS.contains(&version))
        || message["params"]["_meta"].get(VERSION_KEY).is_some()
}

/// Compares the headers with a request without a session.
pub(super) fn check(headers: &HeaderMap, message: &Value) -> Result<(), Refusal> {
    let version = message["params"]["_meta"][VERSION_KEY].as_str();
    // Without a version in the message, the message is refused for that reason.
    let expected = version.unwrap_or(STATELESS);
    compare(headers, VERSION, Some(expected), version.is_some())?;
    let method = message["method"].as_str();
    compare(headers, "mcp-method", method, true)?;
    let params = &message["params"];
    let name = match method {
        Some("tools/call" | "prompts/get") => params["name"].as_str(),
        Some("resources/read") => params["uri"].as_str(),
        _ => None,
    };
    compare(headers, "mcp-name", name, name.is_some())
}

fn compare(
    headers: &HeaderMap,
    name: &str,
    expected: Option<&str>,
    is_needed: bool,
) -> Result<(), Refusal> {
    let given = text(headers, name).map(str::trim);
    let matches = match (given, expected) {
        (None, _) => !is_needed,
        (Some(given), Some(expected)) => {
            given == expected || decoded(given).is_some_and(|given| given == expected)
        }
        // Nothing to compare with.
        (Some(_), None) => true,
    };
    if matches {
        return Ok(());
    }
    let message = match given {
        Some(given) => format!("the header `{name}` is `{given}`, which the message contradicts"),
        None => format!("the header `{name}` is missing"),
    };
    Err(Refusal::new(HEADER_MISMATCH, message, None))
}

/// The text of a value that cannot be in a header as it is.
fn decoded(value: &str) -> Option<String> {
    let inner = value.strip_prefix("=?base64?")?.strip_suffix("?=")?;
    String::from_utf8(BASE64.decode(inner).ok()?).ok()
}

pub(super) fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

//! The servers of `--mcp-config`: JSON like that of `.mcp.json`, the path of such a file, or a list of both.

use std::path::PathBuf;

use ostler_engine::project_file::Boundary;
use serde_json::Value;

use super::{Approval, ConfiguredServer, LONGEST_FILE, Scope, StartContext, StartError};

/// Stands for the file if the JSON is on the command line.
const OPTION: &str = "--mcp-config";

/// All servers of the command line, the last option first: if a name occurs twice, the later one wins.
///
/// # Errors
/// When a file cannot be read, or there is no JSON object with servers. A malformed entry is not an error here.
pub(super) fn read(context: &StartContext) -> Result<Vec<ConfiguredServer>, StartError> {
    let places = match &context.launch.mcp_config {
        None => return Ok(Vec::new()),
        Some(Value::Array(places)) => places.clone(),
        Some(place) => vec![place.clone()],
    };
    let mut found = Vec::new();
    for place in places.into_iter().rev() {
        let (file, config) = match place {
            Value::String(text) if text.trim_start().starts_with('{') => {
                let parsed = serde_json::from_str(&text);
                let error =
                    |error| refused(&PathBuf::from(OPTION), format!("not valid JSON: {error}"));
                (PathBuf::from(OPTION), parsed.map_err(error)?)
            }
            Value::String(path) => file(context.cwd.join(path))?,
            config => (PathBuf::from(OPTION), config),
        };
        let entries = super::entries(config).map_err(|reason| refused(&file, reason))?;
        found.extend(entries.into_iter().map(|(name, entry)| ConfiguredServer {
            name,
            scope: Scope::Dynamic,
            file: file.clone(),
            entry,
            approval: Approval::Approved,
        }));
    }
    Ok(found)
}

fn file(path: PathBuf) -> Result<(PathBuf, Value), StartError> {
    let text = Boundary::default().read_text(&path, LONGEST_FILE);
    let text = text.map_err(|refusal| refused(&path, format!("it cannot be read: {refusal}")))?;
    let parsed = serde_json::from_str(&text);
    let config = parsed.map_err(|error| refused(&path, format!("not valid JSON: {error}")))?;
    Ok((path, config))
}

fn refused(file: &std::path::Path, reason: String) -> StartError {
    StartError::Refused(format!("the MCP servers of --mcp-config: {}: {reason}", file.display()))
}

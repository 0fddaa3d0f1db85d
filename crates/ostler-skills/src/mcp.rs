//! The MCP servers of a project: the entries under `mcpServers` of its `.mcp.json`, passed on unchanged.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use ostler::options::McpServerConfig;
use ostler_base::paths::open_beneath;
use serde_json::{Map, Value};

const FILE: &str = ".mcp.json";
const LONGEST: u64 = 1024 * 1024;

/// The servers, and a note about the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    pub(crate) servers: BTreeMap<String, McpServerConfig>,
    pub note: Option<Note>,
}

/// A note about the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// There are no servers, which is fine; for the debug log.
    Debug(String),
    /// The file is invalid: a user expects servers that are missing.
    Warning(String),
}

/// Reads the servers. An invalid file does not stop a task.
pub fn load(project: &Path) -> Found {
    let none = |note| Found { servers: BTreeMap::new(), note: Some(note) };
    let mut text = String::new();
    let read = open_beneath(project, Path::new(FILE))
        .and_then(|file| file.take(LONGEST).read_to_string(&mut text));
    if let Err(error) = read {
        let text = format!("no MCP servers from {FILE} in {}: {error}", project.display());
        return none(Note::Debug(text));
    }
    match parse(&text) {
        Ok(Some((servers, problems))) => {
            let path = project.join(FILE);
            let left_out = || {
                let problems = problems.join("; ");
                format!("MCP servers of {} that are left out: {problems}", path.display())
            };
            let note = (!problems.is_empty()).then(|| Note::Warning(left_out()));
            Found { servers, note }
        }
        Ok(None) => none(Note::Debug(format!("{FILE} in {} has no mcpServers", project.display()))),
        Err(reason) => {
            let path = project.join(FILE);
            none(Note::Warning(format!("no MCP servers from {}: {reason}", path.display())))
        }
    }
}

type Servers = BTreeMap<String, McpServerConfig>;

/// The servers, and what is wrong with entries that are not valid; `None` if the file has no list of servers.
fn parse(text: &str) -> Result<Option<(Servers, Vec<String>)>, String> {
    let file: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let Some(entries) = file.get("mcpServers").and_then(Value::as_object) else { return Ok(None) };
    let (mut servers, mut problems) = (Servers::new(), Vec::new());
    for entry in entries {
        match server(entry) {
            Ok((name, config)) => _ = servers.insert(name, config),
            Err(reason) => problems.push(reason),
        }
    }
    Ok(Some((servers, problems)))
}

fn server((name, config): (&String, &Value)) -> Result<(String, McpServerConfig), String> {
    let config: Map<String, Value> =
        config.as_object().cloned().ok_or_else(|| format!("{name} is not an object"))?;
    // A server of type `sdk` runs inside a host, so a file cannot define one.
    if config.get("type").is_some_and(|kind| kind == "sdk") {
        return Err(format!("{name} has the type sdk, which is not possible in a file"));
    }
    let config = serde_json::from_value(Value::Object(config));
    Ok((name.clone(), config.map_err(|error| format!("{name}: {error}"))?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(text: &str) -> Found {
        let project = tempfile::tempdir().unwrap();
        std::fs::write(project.path().join(FILE), text).unwrap();
        load(project.path())
    }

    #[test]
    fn servers_are_passed_on_unchanged() {
        let config = json!({
            "playwright": {"command": "node", "args": ["x/index.js"]},
            "filesystem": {"command": "npx", "args": ["-y", "server", "<projects>"], "env": {"A": "${B}"}, "new": 1},
            "web": {"type": "http", "url": "https://x.example/mcp"},
        });
        let Found { servers, note } = found(&json!({"mcpServers": config}).to_string());
        assert_eq!((json!(servers), note), (config, None));
    }

    // Mutant: `parse` that returns the first problem.
    #[test]
    fn a_bad_entry_is_left_out_and_the_others_stay() {
        let config = json!({"bad": {"url": "http://x"}, "good": {"command": "x"}, "worse": 3});
        let Found { servers, note } = found(&json!({"mcpServers": config}).to_string());
        assert_eq!(servers.keys().collect::<Vec<_>>(), ["good"]);
        let Some(Note::Warning(note)) = note else { panic!() };
        assert!(note.contains("bad: ") && note.contains("worse is not an object"), "{note}");
    }

    #[test]
    fn a_missing_file_or_list_is_fine_and_an_invalid_file_is_reported() {
        let empty = tempfile::tempdir().unwrap();
        assert!(matches!(load(empty.path()).note, Some(Note::Debug(_))));
        for fine in ["{}", "[]", r#"{"mcpServers": []}"#, r#"{"mcpServers": null}"#] {
            assert!(matches!(found(fine).note, Some(Note::Debug(_))), "{fine}");
        }
        for odd in [
            "",
            "{",
            r#"{"mcpServers": {"a": 1}}"#,
            r#"{"mcpServers": {"a": {"args": []}}}"#,
            r#"{"mcpServers": {"a": {"type": "sdk", "name": "a"}}}"#,
        ] {
            let Found { servers, note } = found(odd);
            assert!(
                servers.is_empty() && matches!(note, Some(Note::Warning(_))),
                "{odd}: {note:?}"
            );
        }
    }

    #[test]
    fn a_link_that_leads_out_of_the_project_is_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let project = place.path().join("project");
        std::fs::create_dir(&project).unwrap();
        std::fs::write(place.path().join("other"), r#"{"mcpServers": {"a": {"command": "x"}}}"#)
            .unwrap();
        std::os::unix::fs::symlink("../other", project.join(FILE)).unwrap();
        assert!(load(&project).servers.is_empty());
    }
}

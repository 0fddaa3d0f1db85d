//! A skill: the fields of its head, and the text that the model follows.

use std::path::PathBuf;

use ostler_skill::{Document, split};
use serde_json::{Map, Value};

use super::field::field;
use super::inputs::Inputs;

/// A skill, ready to be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Skill {
    /// The id that clients use; unique in its source.
    pub id: String,
    /// Its name: letters, digits, dots, dashes and underscores.
    pub name: String,
    pub description: String,
    /// The fields of the head, as written.
    pub head: Map<String, Value>,
    /// The text that the model follows.
    pub content: String,
    /// The tools that the skill may use without approval; `None` when it has no list.
    pub tools: Option<Vec<String>>,
    pub model: Option<String>,
    /// The parameters that it declares.
    pub inputs: Inputs,
    pub source: Source,
    /// The folder with its other files.
    pub folder: Option<PathBuf>,
}

/// Where a skill comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Folder,
    Cms,
}

impl Source {
    /// Its name in a task's record.
    pub fn word(self) -> &'static str {
        match self {
            Self::Folder => "filesystem",
            Self::Cms => "strapi",
        }
    }
}

impl Skill {
    /// Makes a skill of a file's head and body.
    ///
    /// # Errors
    /// A message, if the skill cannot be used.
    pub(crate) fn new(id: &str, document: Document, source: Source) -> Result<Self, String> {
        let Document { head, body } = document;
        let name = head.text("name").unwrap_or_else(|| id.to_owned());
        if !is_name(&name) {
            return Err(format!(
                "\"{}\" is not a valid skill name: use letters, digits, dots, dashes and underscores, at most {LONGEST_NAME}",
                name.escape_debug()
            ));
        }
        Ok(Self {
            id: id.to_owned(),
            name,
            description: head.text("description").unwrap_or_default(),
            content: body.trim_start_matches(['\r', '\n']).to_owned(),
            tools: tools(&head.0)?,
            model: head.text("model").filter(|model| model != "inherit"),
            inputs: Inputs::of_head(&head.0)?,
            head: head.0,
            source,
            folder: None,
        })
    }
}

const LONGEST_NAME: usize = 100;

/// Whether a name is safe as a component of a path and in a prompt.
pub(crate) fn is_name(name: &str) -> bool {
    let is_fine = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty()
        && !name.starts_with('.')
        && name.len() <= LONGEST_NAME
        && name.chars().all(is_fine)
}

/// The list of tools: `allowed-tools`, or else all tools in the map of MCP tools.
fn tools(head: &Map<String, Value>) -> Result<Option<Vec<String>>, String> {
    let listed = field(head, &["allowed-tools", "allowedTools", "allowed_tools"]);
    if let Some(listed) = listed {
        return list("allowed-tools", listed).map(Some);
    }
    let Some(servers) = field(head, &["mcp-tools", "mcpTools", "mcp_tools"]) else {
        return Ok(None);
    };
    let wrong = || "mcp-tools must be lists of tools by the names of their servers".to_owned();
    let servers = servers.as_object().ok_or_else(wrong)?;
    let lists = servers.values().map(|tools| list("mcp-tools", tools));
    Ok(Some(lists.collect::<Result<Vec<_>, _>>()?.concat()))
}

/// A list, or names separated by commas. Anything else is an error: without a list the skill would have every tool.
fn list(field: &str, value: &Value) -> Result<Vec<String>, String> {
    let wrong = || format!("{field} must be a list of tools, or their names separated by commas");
    match value {
        Value::String(text) => Ok(split(text)),
        Value::Array(items) => {
            let name =
                |item: &Value| item.as_str().map(|name| name.trim().to_owned()).ok_or_else(wrong);
            items.iter().map(name).collect()
        }
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(head: &str) -> Result<Skill, String> {
        let document = ostler_skill::document(&format!("---\n{head}\n---\n\n# Title\n\nText.\n"))?;
        Skill::new("folder-name", document, Source::Folder)
    }

    fn tools_of(head: &str) -> Option<Vec<String>> {
        skill(head).unwrap().tools
    }

    #[test]
    fn a_skill_is_what_its_head_and_body_say() {
        let it = skill("name: web-to-markdown-ts\ndescription: Use when: x\nmodel: m").unwrap();
        assert_eq!(
            (it.name.as_str(), it.description.as_str()),
            ("web-to-markdown-ts", "Use when: x")
        );
        assert_eq!((it.content.as_str(), it.model.as_deref()), ("# Title\n\nText.\n", Some("m")));
        assert_eq!(skill("description: x").unwrap().name, "folder-name");
        assert_eq!(skill("model: inherit").unwrap().model, None);
    }

    #[test]
    fn tools_are_a_list_or_a_string_or_those_of_servers() {
        let expected = ["WebFetch", "Write", "Read"].map(str::to_owned).to_vec();
        assert_eq!(
            tools_of("allowed-tools:\n  - WebFetch\n  - Write\n  - Read"),
            Some(expected.clone())
        );
        assert_eq!(tools_of("allowed-tools: \"WebFetch, Write, Read\""), Some(expected.clone()));
        assert_eq!(tools_of("allowed-tools: WebFetch,Write , Read,"), Some(expected.clone()));
        assert_eq!(tools_of("allowedTools: [WebFetch, Write, Read]"), Some(expected.clone()));
        assert_eq!(
            tools_of("mcp-tools:\n  a: [WebFetch, Write]\n  b: [Read]"),
            Some(expected.clone())
        );
        assert_eq!(
            tools_of("mcpTools:\n  a: [X]\nallowed-tools: [WebFetch, Write, Read]"),
            Some(expected)
        );
        let commas = tools_of("allowed-tools: Bash(git log, git diff), Read").unwrap();
        assert_eq!(commas, ["Bash(git log, git diff)", "Read"]);
        assert_eq!(tools_of("name: x"), None);
        assert_eq!(
            tools_of("allowed-tools: \"\"\nmcp-tools: {a: [X]}"),
            Some(vec!["X".to_owned()])
        );
        assert_eq!(tools_of("allowed-tools: []"), Some(Vec::new()), "an empty list means no tools");
    }

    // Seen to fail when an invalid list counts as a missing one: the skill then has every tool.
    #[test]
    fn an_invalid_list_of_tools_is_an_error() {
        for head in [
            "allowed-tools: {a: b}",
            "allowed-tools: 3",
            "allowed-tools: [1]",
            "mcp-tools: [a]",
            "mcp-tools: {a: {b: c}}",
        ] {
            assert!(skill(head).is_err(), "{head}");
        }
    }

    // Seen to fail when names may begin with a dot.
    #[test]
    fn a_name_with_parts_of_a_path_is_refused() {
        for name in ["..", ".", "a/b", "a\\b", "../x", "a b", "\"a\\nb\"", ".hidden", "\"a\\0\""] {
            assert!(skill(&format!("name: {name}")).is_err(), "{name}");
        }
        assert!(is_name("ünïcode_1.2-x"));
    }
}

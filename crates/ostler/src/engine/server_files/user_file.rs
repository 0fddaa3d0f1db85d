//! The user's `~/.claude.json`, which the vendor's program writes too: servers for all projects and for one project, and
//! the user's choices about servers of projects.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use ostler_engine::project_file::{Boundary, Refusal};
use ostler_engine::settings::Problem;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde_json::{Map, Value};

use super::{Approval, ConfiguredServer, Scope, StartContext, kind, rules};

/// The name of the file.
pub(in crate::engine) const FILE: &str = ".claude.json";
/// The largest file, in bytes. The vendor's program keeps much else in it.
pub(in crate::engine) const LONGEST: u64 = 64 * 1024 * 1024;

/// What is used of the file.
#[derive(Debug, Default)]
pub(super) struct UserFile {
    path: PathBuf,
    servers: Value,
    /// The entry of this project.
    project: ProjectEntry,
    /// The file is there and cannot be read.
    pub(super) is_unreadable: bool,
}

/// The entry of a project. Its fields are checked one by one, so that an odd one harms nothing else.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ProjectEntry {
    mcp_servers: Value,
    disabled_mcp_servers: Value,
    pub(super) has_trust_dialog_accepted: Value,
    enable_all_project_mcp_servers: Value,
    enabled_mcpjson_servers: Value,
    disabled_mcpjson_servers: Value,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct File {
    mcp_servers: Value,
    projects: BTreeMap<String, Object<ProjectEntry>>,
}

/// A struct that is written as an object. Serde also reads structs from lists, where fields would seem to be missing.
#[derive(Default)]
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct OfMap<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for OfMap<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }

        from.deserialize_map(OfMap(PhantomData))
    }
}

/// The place of the file: in `$CLAUDE_CONFIG_DIR`, or in the home directory.
pub(super) fn path(context: &StartContext) -> Option<PathBuf> {
    let folder = context.var("CLAUDE_CONFIG_DIR").or_else(|| context.var("HOME"))?;
    Some(PathBuf::from(folder).join(FILE))
}

/// The folder that stands for the project in the file: the repository's, or the working directory outside of one.
pub(super) fn project_key(context: &StartContext) -> PathBuf {
    let project = rules::folders(context).project;
    repository(&project).unwrap_or(&project).to_owned()
}

/// The folder of the repository that contains a folder.
pub(super) fn repository(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|folder| folder.join(".git").symlink_metadata().is_ok())
}

impl UserFile {
    /// Reads the file. One that is missing is empty.
    pub(super) fn read(context: &StartContext) -> Result<Self, Problem> {
        let Some(path) = path(context) else { return Ok(Self::default()) };
        let problem = |reason: String| Problem {
            path: path.clone(),
            pointer: String::new(),
            reason: format!(
                "its MCP servers are left out, and no server of a project is started: {reason}"
            ),
        };
        let text = match Boundary::default().read_text(&path, LONGEST) {
            Ok(text) if text.trim().is_empty() => "{}".to_owned(),
            Ok(text) => text,
            Err(Refusal::Missing) => return Ok(Self { path, ..Self::default() }),
            Err(refusal) => return Err(problem(refusal.to_string())),
        };
        let Object(mut file) = serde_json::from_str::<Object<File>>(&text)
            .map_err(|error| problem(error.to_string()))?;
        let key = project_key(context);
        let Object(project) = file.projects.remove(&*key.to_string_lossy()).unwrap_or_default();
        Ok(Self { path, servers: file.mcp_servers, project, is_unreadable: false })
    }

    /// Stands for a file whose choices are not known.
    pub(super) fn unreadable() -> Self {
        Self { is_unreadable: true, ..Self::default() }
    }

    pub(super) fn project(&self) -> &ProjectEntry {
        &self.project
    }

    /// The servers for all projects.
    pub(super) fn user_servers(&self, warnings: &mut Vec<Problem>) -> Vec<ConfiguredServer> {
        self.servers_of(&self.servers, Scope::User, warnings)
    }

    /// The servers for this project only.
    pub(super) fn local_servers(&self, warnings: &mut Vec<Problem>) -> Vec<ConfiguredServer> {
        self.servers_of(&self.project.mcp_servers, Scope::Local, warnings)
    }

    fn servers_of(
        &self,
        servers: &Value,
        scope: Scope,
        warnings: &mut Vec<Problem>,
    ) -> Vec<ConfiguredServer> {
        let entries = match servers {
            Value::Null => return Vec::new(),
            Value::Object(entries) => entries,
            other => {
                let found = kind(other);
                warnings.push(Problem {
                    path: self.path.clone(),
                    pointer: "mcpServers".to_owned(),
                    reason: format!("expected an object with MCP servers by name, found {found}"),
                });
                return Vec::new();
            }
        };
        let server = |(name, entry): (&String, &Value)| ConfiguredServer {
            name: name.clone(),
            scope,
            file: self.path.clone(),
            entry: entry.clone(),
            approval: match self.project.is_disabled(name) {
                true => Approval::Disabled,
                false => Approval::Approved,
            },
        };
        entries.iter().map(server).collect()
    }
}

impl ProjectEntry {
    /// Whether the user has switched a server off. A list that is malformed switches everything off.
    pub(super) fn is_disabled(&self, name: &str) -> bool {
        match &self.disabled_mcp_servers {
            Value::Null => false,
            Value::Array(names) => names.iter().any(|it| it == name),
            _ => true,
        }
    }

    /// The choices about servers of `.mcp.json`, with the names that settings files use.
    pub(super) fn choices(&self) -> Map<String, Value> {
        let fields = [
            ("enableAllProjectMcpServers", &self.enable_all_project_mcp_servers),
            ("enabledMcpjsonServers", &self.enabled_mcpjson_servers),
            ("disabledMcpjsonServers", &self.disabled_mcpjson_servers),
        ];
        fields.into_iter().map(|(name, value)| (name.to_owned(), value.clone())).collect()
    }
}

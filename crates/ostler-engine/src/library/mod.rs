//! What files offer a session: agents, commands, skills, output styles, and plugins that bundle them.
//!
//! Only the heads of files are read here; a body is read when it is used. A malformed file is left out
//! and reported: none of them can make anything stricter, so leaving one out makes nothing wider.

mod agents;
mod commands;
mod plugins;
mod styles;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ostler_proto::agent::AgentDefinition;
use ostler_proto::message::system::PluginInfo;
use ostler_skill::{Document, Head};

pub use self::agents::{AgentKind, without_effect};
pub use self::commands::{Command, Sort};
pub use self::plugins::Plugin;
pub(crate) use self::styles::DEFAULT as DEFAULT_STYLE;
pub use self::styles::Style;
use crate::permission::ReadGuard;
use crate::project_file::Boundary;
use crate::settings::Problem;

/// The folders to read.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// The user's folder, `.claude` in the home directory.
    pub user: Option<PathBuf>,
    /// The project, if its files are wanted.
    pub project: Option<PathBuf>,
    /// Whether the user trusts the project. If not, its files are only text for the model.
    pub trusts_project: bool,
    /// Further working directories, which may bring skills.
    pub added: Vec<PathBuf>,
    /// Folders of plugins.
    pub plugins: Vec<PathBuf>,
    /// Files that permission rules forbid to read.
    pub denied: Arc<ReadGuard>,
}

/// Where something comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// It is part of the engine.
    BuiltIn,
    /// The user's folder.
    User,
    /// The project, or a further working directory.
    Project {
        /// Whether the user trusts it.
        is_trusted: bool,
    },
    /// A plugin, with its name and folder.
    Plugin(String, PathBuf),
    /// An MCP server, with its name.
    Server(String),
    /// The host.
    Host,
}

impl Origin {
    /// Whether it may do more than add text for the model: grant permissions, start servers, run hooks.
    pub fn is_trusted(&self) -> bool {
        !matches!(self, Self::Project { is_trusted: false })
    }

    /// The name in the protocol.
    pub fn word(&self) -> &'static str {
        match self {
            Self::BuiltIn => "built-in",
            Self::User => "user",
            Self::Project { .. } => "project",
            Self::Plugin(..) => "plugin",
            Self::Server(_) => "mcp",
            Self::Host => "host",
        }
    }

    /// The name, with the plugin's name before it if it comes from a plugin.
    fn name(&self, name: &str) -> String {
        match self {
            Self::Plugin(plugin, _) => format!("{plugin}:{name}"),
            _ => name.to_owned(),
        }
    }
}

/// Everything that files and the host offer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Library {
    /// Agents by name.
    pub agents: BTreeMap<String, AgentKind>,
    /// Commands and skills, in the order they are listed. No two have the same name.
    pub commands: Vec<Command>,
    /// Output styles in addition to the built-in ones.
    pub styles: Vec<Style>,
    /// Plugins in use.
    pub plugins: Vec<Plugin>,
    /// What was left out, and why.
    pub problems: Vec<Problem>,
}

/// Reads all places. Files nearer to the project win.
pub fn load(places: &Places) -> Library {
    let mut library = Library::default();
    let is_trusted = places.trusts_project;
    let denied = || Arc::clone(&places.denied);
    let of_project = |folder: &Path| match is_trusted {
        true => Boundary::anywhere(denied()),
        false => Boundary::inside(folder, denied()),
    };
    if let Some(user) = &places.user {
        library.take_folder(user, &Origin::User, &Boundary::anywhere(denied()));
    }
    // In the home directory, the project's folder is the user's folder.
    let project = places.project.as_ref().map(|project| (project, project.join(".claude")));
    if let Some((project, folder)) = project.filter(|(_, it)| Some(it) != places.user.as_ref()) {
        library.take_folder(&folder, &Origin::Project { is_trusted }, &of_project(project));
    }
    for folder in &places.added {
        let skills = folder.join(".claude/skills");
        library.take_skills(&skills, &Origin::Project { is_trusted }, &of_project(folder));
    }
    for folder in &places.plugins {
        library.take_plugin(folder);
    }
    library.commands.sort_by(|left, right| left.name.cmp(&right.name));
    library
}

impl Library {
    /// Adds the host's agents, which win over those of files.
    pub fn take_agents(&mut self, agents: &BTreeMap<String, AgentDefinition>) {
        for (name, definition) in agents {
            let kind = AgentKind::new(name, definition.clone(), Origin::Host);
            self.agents.insert(name.clone(), kind);
        }
    }

    /// Adds commands, except those whose names are taken.
    pub(crate) fn take_more(&mut self, commands: Vec<Command>) {
        for command in commands {
            if !self.commands.iter().any(|known| known.name == command.name) {
                self.commands.push(command);
            }
        }
    }

    /// Removes all skills but the wanted ones; commands stay.
    pub fn keep_skills(&mut self, wanted: &[String]) {
        let is_wanted = |name: &String| wanted.contains(name);
        self.commands.retain(|command| command.sort != Sort::Skill || is_wanted(&command.name));
    }

    /// A command or skill by its name, or by its name without the plugin's name if that is unique.
    pub fn command(&self, name: &str) -> Option<&Command> {
        let exact = self.commands.iter().find(|command| command.name == name);
        exact.or_else(|| {
            let mut others = self.commands.iter().filter(|command| command.alias() == Some(name));
            others.next().filter(|_| others.next().is_none())
        })
    }

    /// An output style by its name, built in or not.
    pub fn style(&self, name: &str) -> Option<Style> {
        let own = self.styles.iter().find(|style| style.name == name).cloned();
        own.or_else(|| styles::built_in().into_iter().find(|style| style.name == name))
    }

    /// The names of all output styles.
    pub fn style_names(&self) -> Vec<String> {
        let built_in = styles::built_in().into_iter().map(|style| style.name);
        let own = self.styles.iter().map(|style| style.name.clone());
        std::iter::once(styles::DEFAULT.to_owned()).chain(built_in).chain(own).collect()
    }

    /// The plugins as hosts see them.
    pub fn plugin_list(&self) -> Vec<PluginInfo> {
        self.plugins.iter().map(Plugin::info).collect()
    }

    fn take_folder(&mut self, folder: &Path, origin: &Origin, boundary: &Boundary) {
        self.take_agent_files(&folder.join("agents"), origin, boundary);
        self.take_commands(&folder.join("commands"), origin, boundary);
        self.take_skills(&folder.join("skills"), origin, boundary);
        self.take_styles(&folder.join("output-styles"), origin, boundary);
    }

    /// The entries of a folder, sorted. A folder that must not be read counts as empty and is reported.
    fn entries(&mut self, folder: &Path, boundary: &Boundary) -> Vec<PathBuf> {
        boundary.entries(folder).unwrap_or_else(|refusal| {
            self.problem(folder, format!("the folder is left out: {refusal}"));
            Vec::new()
        })
    }

    /// The Markdown files below a folder with the names of the folders between, in a fixed order.
    fn markdown_files(
        &mut self,
        folder: &Path,
        boundary: &Boundary,
    ) -> Vec<(Vec<String>, PathBuf)> {
        let mut walk = Walk::default();
        self.walk(folder, boundary, &mut walk);
        walk.found
    }

    fn walk(&mut self, folder: &Path, boundary: &Boundary, walk: &mut Walk) {
        // Links may lead in circles.
        let Ok(resolved) = folder.canonicalize() else { return };
        if !walk.seen.insert(resolved) {
            return;
        }
        for path in self.entries(folder, boundary) {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            if name.starts_with('.') || walk.found.len() >= MOST_FILES {
                continue;
            }
            if path.is_dir() && walk.between.len() < DEEPEST {
                walk.between.push(name.to_owned());
                self.walk(&path, boundary, walk);
                walk.between.pop();
            } else if path.extension().is_some_and(|extension| extension == "md") {
                walk.found.push((walk.between.clone(), path));
            }
        }
    }

    fn problem(&mut self, path: &Path, reason: impl Into<String>) {
        let problem =
            Problem { path: path.to_owned(), pointer: String::new(), reason: reason.into() };
        self.problems.push(problem);
    }
}

/// How deep folders are searched.
const DEEPEST: usize = 8;
/// Further files in one place are ignored: so many are a mistake.
const MOST_FILES: usize = 1000;

/// A walk through a folder and its subfolders.
#[derive(Default)]
struct Walk {
    between: Vec<String>,
    found: Vec<(Vec<String>, PathBuf)>,
    seen: BTreeSet<PathBuf>,
}

/// The head of a file, if it lies within the boundary.
fn head(boundary: &Boundary, path: &Path) -> Result<Head, String> {
    ostler_skill::head(boundary.open(path).map_err(|refusal| refusal.to_string())?)
}

/// A whole file, if it lies within the boundary.
fn read(boundary: &Boundary, path: &Path) -> Result<Document, String> {
    ostler_skill::read(boundary.open(path).map_err(|refusal| refusal.to_string())?)
}

/// Whether a name can be listed and typed.
fn is_name(name: &str) -> bool {
    let is_fine = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty() && name.len() <= 100 && name.chars().all(is_fine)
}

/// The file's name without its ending.
fn stem(path: &Path) -> &str {
    path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests;

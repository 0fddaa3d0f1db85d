//! Commands (`commands/**/*.md`) and skills (`skills/*/SKILL.md`): prompts that can be called by name.

use std::path::{Path, PathBuf};

use ostler_proto::build;
use ostler_proto::control::SlashCommand;

use super::plugins::rooted;
use super::{Library, Origin, head, is_name, read, stem};
use crate::project_file::Boundary;
use ostler_skill::Head;

/// The most characters of the first line, which replaces a missing description.
const FIRST_LINE: usize = 100;

/// A prompt that can be called by name.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Command {
    /// Its name, without the slash.
    pub name: String,
    /// Command, skill or prompt of a server.
    pub sort: Sort,
    /// What it does.
    pub description: String,
    /// The arguments it takes, as a hint for users.
    pub argument_hint: Option<String>,
    /// Rules for calls that run without approval during its turn.
    pub allowed_tools: Vec<String>,
    /// The model to use for it.
    pub model: Option<String>,
    /// Whether the model may call it.
    pub is_for_model: bool,
    /// Whether people may call it.
    pub is_for_people: bool,
    /// Where it comes from.
    pub origin: Origin,
    /// The file with its text.
    pub file: PathBuf,
    /// Another name for a prompt of a server.
    server_alias: Option<String>,
    /// Where the file may lie. It is checked again when the text is used.
    boundary: Boundary,
}

/// The sorts of prompts that can be called by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// A text.
    Command,
    /// A text with a folder of further files.
    Skill,
    /// A prompt that an MCP server fills in.
    Prompt,
}

impl Command {
    /// A prompt of an MCP server. Only people call it; the model has the server's tools.
    pub(crate) fn of_server(
        server: &str,
        (name, alias): (String, String),
        description: &str,
        argument_hint: Option<String>,
    ) -> Self {
        Self {
            name,
            sort: Sort::Prompt,
            description: description.to_owned(),
            argument_hint,
            allowed_tools: Vec::new(),
            model: None,
            is_for_model: false,
            is_for_people: true,
            origin: Origin::Server(server.to_owned()),
            file: PathBuf::new(),
            server_alias: Some(alias),
            boundary: Boundary::default(),
        }
    }

    /// As hosts see it.
    pub fn listed(&self) -> SlashCommand {
        let description = match &self.origin {
            Origin::Plugin(plugin, _) => format!("({plugin}) {}", self.description),
            origin => format!("{} ({})", self.description, origin.word()),
        };
        build!(SlashCommand {
            name: self.name.clone(),
            description,
            argument_hint: Some(self.argument_hint.clone().unwrap_or_default()),
            aliases: self.alias().map(|alias| vec![alias.to_owned()])
        })
    }

    /// The name of a plugin's skill without the plugin's name, or `server:prompt`.
    pub(super) fn alias(&self) -> Option<&str> {
        match (&self.origin, self.sort) {
            (Origin::Server(_), _) => self.server_alias.as_deref(),
            (Origin::Plugin(plugin, _), Sort::Skill) => {
                self.name.strip_prefix(plugin.as_str())?.strip_prefix(':')
            }
            _ => None,
        }
    }

    /// Its text, as it is in the file.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn body(&self) -> Result<String, String> {
        let document = read(&self.boundary, &self.file)
            .map_err(|reason| format!("{} cannot be used: {reason}", self.file.display()))?;
        let body = document.body.trim().to_owned();
        Ok(match &self.origin {
            Origin::Plugin(_, folder) => rooted(&body, folder),
            _ => body,
        })
    }

    /// The folder with a skill's further files.
    pub fn folder(&self) -> Option<&Path> {
        self.file.parent().filter(|_| self.sort == Sort::Skill)
    }
}

impl Library {
    pub(super) fn take_commands(&mut self, folder: &Path, origin: &Origin, boundary: &Boundary) {
        for (mut between, path) in self.markdown_files(folder, boundary) {
            between.push(stem(&path).to_owned());
            if !between.iter().all(|part| is_name(part)) {
                self.problem(&path, "the command is left out: its name cannot be typed");
                continue;
            }
            self.take_file(Sort::Command, between.join(":"), path, origin, boundary);
        }
    }

    pub(super) fn take_skills(&mut self, folder: &Path, origin: &Origin, boundary: &Boundary) {
        for folder in self.entries(folder, boundary) {
            let path = folder.join("SKILL.md");
            let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            // A folder without that file is not a skill; an unreadable file is a skill that is left out.
            if path.symlink_metadata().is_err() {
                continue;
            }
            if !is_name(name) {
                self.problem(&path, "the skill is left out: its name cannot be typed");
                continue;
            }
            self.take_file(Sort::Skill, name.to_owned(), path, origin, boundary);
        }
    }

    fn take_file(
        &mut self,
        sort: Sort,
        name: String,
        path: PathBuf,
        origin: &Origin,
        boundary: &Boundary,
    ) {
        let head = match head(boundary, &path) {
            Ok(head) => head,
            Err(reason) => return self.problem(&path, format!("{name} is left out: {reason}")),
        };
        let name = match (sort, head.text("name")) {
            (Sort::Skill, Some(said)) if is_name(&said) => said,
            _ => name,
        };
        let description = head.text("description").or_else(|| first_line(sort, &path, boundary));
        let Some(description) = description else {
            let reason = format!("{name} is left out: its head has no description");
            return self.problem(&path, reason);
        };
        let name = origin.name(&name);
        let command = Command {
            server_alias: None,
            boundary: boundary.clone(),
            ..command(sort, name, description, &head, path, origin)
        };
        // Files that are read later are nearer to the project and win.
        self.commands.retain(|known| known.name != command.name);
        self.commands.push(command);
    }
}

fn command(
    sort: Sort,
    name: String,
    description: String,
    head: &Head,
    file: PathBuf,
    origin: &Origin,
) -> Command {
    let allowed_tools = head.list("allowed-tools").unwrap_or_default();
    Command {
        name,
        sort,
        argument_hint: head.text("argument-hint"),
        // Rules grant permissions, so they count only in files that the user trusts.
        allowed_tools: if origin.is_trusted() { allowed_tools } else { Vec::new() },
        model: head.text("model").filter(|model| model != "inherit"),
        // A command without a description was not written for the model.
        is_for_model: head.flag("disable-model-invocation") != Some(true)
            && (sort == Sort::Skill || head.text("description").is_some()),
        is_for_people: head.flag("user-invocable") != Some(false),
        description,
        origin: origin.clone(),
        file,
        server_alias: None,
        boundary: Boundary::default(),
    }
}

/// The first line of a command, in place of a missing description.
fn first_line(sort: Sort, path: &Path, boundary: &Boundary) -> Option<String> {
    let body = read(boundary, path).ok().filter(|_| sort == Sort::Command)?.body;
    let line = body.lines().map(|line| line.trim_start_matches('#').trim());
    let line = line.into_iter().find(|line| !line.is_empty()).unwrap_or("(empty)");
    let cut: String = line.chars().take(FIRST_LINE).collect();
    Some(if cut.len() < line.len() { format!("{cut}…") } else { cut })
}

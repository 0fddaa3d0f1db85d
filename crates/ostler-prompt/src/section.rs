//! Sections: the parts of a prompt.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::prompt_error::PromptError;
use crate::template;
use crate::tool::Tool;
use crate::workspace::Workspace;

/// A part of a prompt; made of a [`Markdown`], a [`Workspace`] or [`Tools`].
#[derive(Clone, Debug)]
pub struct Section {
    pub(crate) title: String,
    pub(crate) key: String,
    pub(crate) content: Content,
    pub(crate) tools: Vec<Tool>,
}

#[derive(Clone, Debug)]
pub(crate) enum Content {
    Template { template: String, parameters: Result<Map<String, Value>, PromptError> },
    Workspace(Workspace),
    Nothing,
}

impl Section {
    pub(crate) fn workspace(&self) -> Option<Workspace> {
        match &self.content {
            Content::Workspace(workspace) => Some(workspace.clone()),
            _ => None,
        }
    }
}

/// A section of text: a template, its parameters, and its tools.
///
/// A placeholder is written `${name}`; a literal `${` is written `$${`.
#[derive(Clone, Debug)]
pub struct Markdown(Section);

impl Markdown {
    /// A section with a title, which the model reads, a key, which your program uses, and a template.
    pub fn new(
        title: impl Into<String>,
        key: impl Into<String>,
        template: impl Into<String>,
    ) -> Self {
        let content = Content::Template { template: template.into(), parameters: Ok(Map::new()) };
        Self(Section { title: title.into(), key: key.into(), content, tools: Vec::new() })
    }

    /// Sets the parameters: a struct or a map, with a field for every placeholder.
    #[must_use]
    pub fn params(mut self, params: impl Serialize) -> Self {
        if let Content::Template { parameters, .. } = &mut self.0.content {
            *parameters = template::parameters(&self.0.key, &params);
        }
        self
    }

    /// Adds a tool.
    #[must_use]
    pub fn tool(mut self, tool: Tool) -> Self {
        self.0.tools.push(tool);
        self
    }
}

impl From<Markdown> for Section {
    fn from(markdown: Markdown) -> Self {
        markdown.0
    }
}

/// A section of tools without text: the model reads about them in their own descriptions.
#[derive(Clone, Debug)]
pub struct Tools(Section);

impl Tools {
    /// A section with this key and these tools.
    pub fn new(key: impl Into<String>, tools: impl IntoIterator<Item = Tool>) -> Self {
        let (title, content) = (String::new(), Content::Nothing);
        let tools = tools.into_iter().collect();
        Self(Section { title, key: key.into(), content, tools })
    }
}

impl From<Tools> for Section {
    fn from(tools: Tools) -> Self {
        tools.0
    }
}

impl From<Workspace> for Section {
    fn from(workspace: Workspace) -> Self {
        let (title, key) = (workspace.title().to_owned(), workspace.key().to_owned());
        Self { title, key, content: Content::Workspace(workspace), tools: Vec::new() }
    }
}

impl From<&Workspace> for Section {
    fn from(workspace: &Workspace) -> Self {
        workspace.clone().into()
    }
}

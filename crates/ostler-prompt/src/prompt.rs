//! [`Prompt`]: a prompt as a value that is checked when it is built.

use std::fmt::Write as _;
use std::marker::PhantomData;
use std::sync::Arc;

use ostler_sdk::mcp::Server;

use crate::output::Output;
use crate::prompt_error::PromptError;
use crate::section::{Content, Section};
use crate::session::Session;
use crate::template;
use crate::tool::{self, Run, Tool};
use crate::workspace::Workspace;

/// A prompt for an agent. `T` is the type of the answer; `()` for no answer.
///
/// A prompt has a namespace, a key and a list of sections. It is rendered once, when it is built, so that all errors
/// are reported then; the same sections always give the same text.
///
/// ```
/// use ostler_prompt::{Markdown, Prompt};
///
/// #[derive(serde::Serialize)]
/// struct Task { folder: &'static str }
///
/// let prompt = Prompt::<()>::builder("review", "code")
///     .section(Markdown::new("Task", "task", "Review ${folder}.").params(Task { folder: "src" }))
///     .build()?;
/// assert_eq!(prompt.text(), "## 1. Task\n\nReview src.\n");
/// assert_eq!(prompt.name(), "review/code");
/// # Ok::<(), ostler_prompt::PromptError>(())
/// ```
///
/// A parameter without a placeholder, or a placeholder without a parameter, is an error when the prompt is built:
///
/// ```
/// use ostler_prompt::{Markdown, Prompt};
///
/// let prompt = Prompt::<()>::builder("review", "code").section(Markdown::new("Task", "task", "Review ${folder}."));
/// assert!(prompt.build().unwrap_err().to_string().contains("`folder`"));
/// ```
pub struct Prompt<T = ()> {
    pub(crate) inner: Arc<Inner>,
    answers: PhantomData<fn() -> T>,
}

pub(crate) struct Inner {
    namespace: String,
    key: String,
    name: String,
    text: String,
    tools: Vec<Tool>,
    workspaces: Vec<Workspace>,
}

impl<T> Clone for Prompt<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), answers: PhantomData }
    }
}

impl<T> std::fmt::Debug for Prompt<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prompt").field("name", &self.inner.name).finish_non_exhaustive()
    }
}

impl<T: Output> Prompt<T> {
    /// Starts a prompt.
    pub fn builder(namespace: impl Into<String>, key: impl Into<String>) -> PromptBuilder<T> {
        PromptBuilder {
            namespace: namespace.into(),
            key: key.into(),
            name: None,
            sections: Vec::new(),
            answers: PhantomData,
        }
    }
}

impl<T> Prompt<T> {
    /// The namespace, which groups prompts.
    pub fn namespace(&self) -> &str {
        &self.inner.namespace
    }

    /// Its key in the namespace.
    pub fn key(&self) -> &str {
        &self.inner.key
    }

    /// Its name in events: the given name, or `namespace/key`.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The text sent to the model.
    pub fn text(&self) -> &str {
        &self.inner.text
    }

    /// The tools of its sections, in order.
    pub fn tools(&self) -> &[Tool] {
        &self.inner.tools
    }

    /// The MCP server with the prompt's tools, the same that an agent in this process uses. Serve it to another process
    /// with [`serve_stdio`](ostler_sdk::mcp::Server::serve_stdio). `None` if no tool has a handler.
    pub fn tool_server(&self, session: &Session) -> Option<Server> {
        let prompt_name = self.name().into();
        let run = Run { session: session.clone(), prompt_name, deadline: None, budget: None };
        tool::server(self.tools(), &run)
    }

    /// The workspaces of its sections.
    pub fn workspaces(&self) -> &[Workspace] {
        &self.inner.workspaces
    }
}

/// Builds a [`Prompt`].
#[must_use = "`build` creates the prompt"]
pub struct PromptBuilder<T> {
    namespace: String,
    key: String,
    name: Option<String>,
    sections: Vec<Section>,
    answers: PhantomData<fn() -> T>,
}

impl<T: Output> PromptBuilder<T> {
    /// Sets a name for events instead of `namespace/key`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Adds a section: a [`Markdown`](crate::Markdown), a [`Workspace`], or [`Tools`](crate::Tools).
    pub fn section(mut self, section: impl Into<Section>) -> Self {
        self.sections.push(section.into());
        self
    }

    /// Checks and renders the prompt.
    ///
    /// # Errors
    /// When the prompt is not valid. The error names the section and says what to do.
    pub fn build(self) -> Result<Prompt<T>, PromptError> {
        let Self { namespace, key, name, sections, .. } = self;
        for part in namespace.split('/') {
            check_key("namespace", part)?;
        }
        check_key("key", &key)?;
        if sections.is_empty() {
            return Err(PromptError::Empty);
        }
        check_sections(&sections)?;
        T::check().map_err(PromptError::Answer)?;
        let text = render(&sections)?;
        let name = name.unwrap_or_else(|| format!("{namespace}/{key}"));
        let tools = sections.iter().flat_map(|section| section.tools.iter().cloned()).collect();
        let workspaces = sections.iter().filter_map(Section::workspace).collect();
        let inner = Inner { namespace, key, name, text, tools, workspaces };
        Ok(Prompt { inner: Arc::new(inner), answers: PhantomData })
    }
}

fn check_sections(sections: &[Section]) -> Result<(), PromptError> {
    for (index, section) in sections.iter().enumerate() {
        check_key("section key", &section.key)?;
        if sections[..index].iter().any(|other| other.key == section.key) {
            return Err(PromptError::SameKey { key: section.key.clone() });
        }
    }
    let tools: Vec<&Tool> = sections.iter().flat_map(|section| &section.tools).collect();
    for (index, tool) in tools.iter().enumerate() {
        tool::check(tool)?;
        if tools[..index].iter().any(|other| other.name() == tool.name()) {
            return Err(PromptError::SameTool { name: tool.name().to_owned() });
        }
    }
    Ok(())
}

/// The text of all sections, each with a numbered heading.
fn render(sections: &[Section]) -> Result<String, PromptError> {
    let mut text = String::new();
    let mut number = 0;
    for section in sections {
        let body = match &section.content {
            Content::Template { template, parameters } => {
                let parameters = parameters.as_ref().map_err(Clone::clone)?;
                template::fill(&section.key, template, parameters)?
            }
            Content::Workspace(workspace) => workspace.describe(),
            Content::Nothing => continue,
        };
        number += 1;
        if number > 1 {
            text.push('\n');
        }
        let title = section.title.replace(['\n', '\r'], " ");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "## {number}. {title}\n\n{}", body.trim_end());
    }
    if number == 0 {
        return Err(PromptError::Empty);
    }
    Ok(text)
}

fn check_key(what: &'static str, key: &str) -> Result<(), PromptError> {
    let is_plain = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit();
    let fits = key.len() <= 64
        && key.starts_with(is_plain)
        && key.chars().all(|character| is_plain(character) || matches!(character, '.' | '_' | '-'));
    match fits {
        true => Ok(()),
        false => Err(PromptError::Key { what, key: key.to_owned() }),
    }
}

//! Prompts: texts with arguments that users pick from a list.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Display};
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::Context;
use super::completion::Completions;
use crate::content::Content;

type Make = dyn Fn(PromptArguments, Context) -> BoxFuture<'static, Result<Vec<PromptMessage>, String>>
    + Send
    + Sync;

/// The values of a prompt's arguments.
pub type PromptArguments = BTreeMap<String, String>;

/// A prompt.
///
/// ```
/// use ostler_mcp::{Prompt, PromptMessage, Server};
///
/// let greet = Prompt::new("greet", "Greets a person", |arguments| async move {
///     Ok::<_, String>(vec![PromptMessage::user(format!("Say hello to {}.", arguments["name"]))])
/// });
/// let server = Server::new("manners", "1.0.0").prompt(greet.required("name", "Whom to greet"));
/// ```
#[derive(Clone)]
pub struct Prompt {
    name: String,
    listing: Map<String, Value>,
    arguments: Vec<Argument>,
    completions: Completions,
    make: Arc<Make>,
}

#[derive(Clone)]
struct Argument {
    name: String,
    description: String,
    required: bool,
}

/// One message of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptMessage {
    /// `user` or `assistant`.
    pub role: String,
    /// Its content.
    pub content: Content,
}

impl PromptMessage {
    /// A message of the user.
    pub fn user(text: impl Into<String>) -> Self {
        Self { role: "user".to_owned(), content: Content::text(text) }
    }

    /// A message of the model.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self { role: "assistant".to_owned(), content: Content::text(text) }
    }
}

impl Prompt {
    /// A prompt whose messages are made from its arguments.
    pub fn new<E, F, Fut>(name: impl Into<String>, description: impl Into<String>, make: F) -> Self
    where
        E: Display,
        F: Fn(PromptArguments) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<PromptMessage>, E>> + Send + 'static,
    {
        Self::with_context(name, description, move |arguments, _| make(arguments))
    }

    /// Like [`Prompt::new`], for a function that also receives the [`Context`] of the request.
    pub fn with_context<E, F, Fut>(
        name: impl Into<String>,
        description: impl Into<String>,
        make: F,
    ) -> Self
    where
        E: Display,
        F: Fn(PromptArguments, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<PromptMessage>, E>> + Send + 'static,
    {
        let listing = Map::from_iter([("description".to_owned(), description.into().into())]);
        let make = move |arguments, context| -> BoxFuture<'static, _> {
            let messages = make(arguments, context);
            Box::pin(async move { messages.await.map_err(|error| format!("{error:#}")) })
        };
        let (name, arguments, completions) = (name.into(), Vec::new(), Completions::default());
        Self { name, listing, arguments, completions, make: Arc::new(make) }
    }

    /// Sets the display name.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.listing.insert("title".to_owned(), title.into().into());
        self
    }

    /// Adds a required argument: without it the prompt's function is not called.
    #[must_use]
    pub fn required(self, name: impl Into<String>, description: impl Into<String>) -> Self {
        self.argument(name.into(), description.into(), true)
    }

    /// Adds an optional argument.
    #[must_use]
    pub fn optional(self, name: impl Into<String>, description: impl Into<String>) -> Self {
        self.argument(name.into(), description.into(), false)
    }

    /// Suggests values for an argument; the function receives what the user typed so far. At most 100 are sent.
    ///
    /// ```
    /// use ostler_mcp::{Prompt, PromptMessage};
    ///
    /// let paint = Prompt::new("paint", "Paints it", |arguments| async move {
    ///     Ok::<_, String>(vec![PromptMessage::user(format!("Paint it {}.", arguments["colour"]))])
    /// });
    /// let paint = paint.required("colour", "Which colour").complete("colour", |typed| {
    ///     ["red", "green"].into_iter().filter(|it| it.starts_with(typed)).map(str::to_owned).collect()
    /// });
    /// ```
    #[must_use]
    pub fn complete(
        mut self,
        argument: impl Into<String>,
        complete: impl Fn(&str) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        self.completions.insert(argument.into(), complete);
        self
    }

    pub(super) fn completions(&self) -> &Completions {
        &self.completions
    }

    fn argument(mut self, name: String, description: String, required: bool) -> Self {
        self.arguments.push(Argument { name, description, required });
        self
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Its entry in `prompts/list`.
    pub(super) fn to_value(&self) -> Value {
        let mut object = Map::from_iter([("name".to_owned(), self.name.clone().into())]);
        object.extend(self.listing.clone());
        if !self.arguments.is_empty() {
            let arguments = self.arguments.iter().map(|argument| {
                let Argument { name, description, required } = argument;
                json!({"name": name, "description": description, "required": required})
            });
            object.insert("arguments".to_owned(), arguments.collect());
        }
        object.into()
    }

    /// The first required argument that was not given.
    pub(super) fn missing(&self, given: &PromptArguments) -> Option<&str> {
        let missing =
            |argument: &&Argument| argument.required && !given.contains_key(&argument.name);
        self.arguments.iter().find(missing).map(|argument| argument.name.as_str())
    }

    /// The answer to `prompts/get`.
    pub(super) async fn make(
        &self,
        arguments: PromptArguments,
        context: Context,
    ) -> Result<Value, String> {
        let messages = (self.make)(arguments, context).await?;
        let messages: Vec<_> = messages
            .into_iter()
            .map(|message| json!({"role": message.role, "content": message.content.to_value()}))
            .collect();
        Ok(json!({"description": self.listing["description"], "messages": messages}))
    }
}

impl Debug for Prompt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Prompt").field("name", &self.name).finish_non_exhaustive()
    }
}

//! Resources: data with an address that a client may list and read, and templates for addresses.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Display};
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Map, Value};

use super::completion::Completions;
use super::template;
use crate::content::ResourceContents;

/// The values of a template's placeholders.
pub type Variables = BTreeMap<String, String>;

type Read =
    dyn Fn(String, Variables) -> BoxFuture<'static, Result<ResourceContents, String>> + Send + Sync;

/// A resource, or a template of resources.
///
/// ```
/// use ostler_mcp::{Resource, ResourceContents, Server};
///
/// let server = Server::new("notes", "1.0.0")
///     .resource(Resource::text("note://today", "today", "buy milk").mime_type("text/plain"))
///     .resource(Resource::template("note://{day}", "a day", |uri, variables| async move {
///         let day = &variables["day"];
///         Ok::<_, String>(ResourceContents::text(uri, format!("nothing on {day}")))
///     }));
/// ```
#[derive(Clone)]
pub struct Resource {
    /// The address, or the template.
    pattern: String,
    is_template: bool,
    listing: Map<String, Value>,
    completions: Completions,
    read: Arc<Read>,
}

impl Resource {
    /// A resource whose text never changes.
    pub fn text(uri: impl Into<String>, name: impl Into<String>, text: impl Into<String>) -> Self {
        let text: Arc<str> = text.into().into();
        Self::new(uri, name, move |uri| {
            let text = Arc::clone(&text);
            async move { Ok::<_, String>(ResourceContents::text(uri, &*text)) }
        })
    }

    /// A resource that is made when it is read; the function receives the address.
    pub fn new<E, F, Fut>(uri: impl Into<String>, name: impl Into<String>, read: F) -> Self
    where
        E: Display,
        F: Fn(String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ResourceContents, E>> + Send + 'static,
    {
        Self::build(uri.into(), false, name.into(), move |uri, _| read(uri))
    }

    /// A template of resources: `{name}` matches one segment of the address, `{+name}` anything. The function
    /// receives the address and the matched values.
    pub fn template<E, F, Fut>(
        template: impl Into<String>,
        name: impl Into<String>,
        read: F,
    ) -> Self
    where
        E: Display,
        F: Fn(String, Variables) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ResourceContents, E>> + Send + 'static,
    {
        Self::build(template.into(), true, name.into(), read)
    }

    fn build<E, F, Fut>(pattern: String, is_template: bool, name: String, read: F) -> Self
    where
        E: Display,
        F: Fn(String, Variables) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ResourceContents, E>> + Send + 'static,
    {
        let key = if is_template { "uriTemplate" } else { "uri" };
        let listing = Map::from_iter([
            (key.to_owned(), pattern.clone().into()),
            ("name".to_owned(), name.into()),
        ]);
        let read = move |uri, variables| -> BoxFuture<'static, _> {
            let contents = read(uri, variables);
            Box::pin(async move { contents.await.map_err(|error| format!("{error:#}")) })
        };
        let completions = Completions::default();
        Self { pattern, is_template, listing, completions, read: Arc::new(read) }
    }

    /// Sets the display name.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Self {
        self.with("title", title.into())
    }

    /// Sets the description.
    #[must_use]
    pub fn description(self, description: impl Into<String>) -> Self {
        self.with("description", description.into())
    }

    /// Sets the MIME type, also for contents without one.
    #[must_use]
    pub fn mime_type(self, mime_type: impl Into<String>) -> Self {
        self.with("mimeType", mime_type.into())
    }

    /// Suggests values for a placeholder of a template; the function receives what the user typed so far. At most 100
    /// are sent.
    #[must_use]
    pub fn complete(
        mut self,
        placeholder: impl Into<String>,
        complete: impl Fn(&str) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        self.completions.insert(placeholder.into(), complete);
        self
    }

    pub(super) fn completions(&self) -> &Completions {
        &self.completions
    }

    fn with(mut self, key: &str, value: String) -> Self {
        self.listing.insert(key.to_owned(), value.into());
        self
    }

    pub(super) fn pattern(&self) -> &str {
        &self.pattern
    }

    pub(super) fn is_template(&self) -> bool {
        self.is_template
    }

    /// Its entry in a list.
    pub(super) fn to_value(&self) -> Value {
        self.listing.clone().into()
    }

    /// The matched values, if the address belongs to this resource.
    pub(super) fn matches(&self, uri: &str) -> Option<Variables> {
        match self.is_template {
            true => template::matches(&self.pattern, uri),
            false => (self.pattern == uri).then(Variables::new),
        }
    }

    pub(super) async fn read(
        &self,
        uri: String,
        variables: Variables,
    ) -> Result<ResourceContents, String> {
        let mut contents = (self.read)(uri, variables).await?;
        if contents.mime_type.is_none() {
            let mime_type = self.listing.get("mimeType").and_then(Value::as_str);
            contents.mime_type = mime_type.map(str::to_owned);
        }
        Ok(contents)
    }
}

impl Debug for Resource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Resource").field("pattern", &self.pattern).finish_non_exhaustive()
    }
}

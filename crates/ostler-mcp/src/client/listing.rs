//! Lists of a server's tools, resources and prompts, with all their pages.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{CallOptions, Client, Error, PromptInfo, PromptResult, ResourceTemplate, ToolInfo};
use crate::content::{Content, ResourceContents, ResourceLink};
use crate::server::{PromptArguments, PromptMessage};

/// The most pages of a list.
const MOST_PAGES: usize = 1000;
/// The most messages of the largest size that a whole list may take.
const MOST_MESSAGES: usize = 2;

impl Client {
    /// All tools of the server.
    ///
    /// # Errors
    /// If the server does not answer, or its answer is malformed.
    pub async fn list_tools(&self) -> Result<Vec<ToolInfo>, Error> {
        if !self.offers("tools") {
            return Ok(Vec::new());
        }
        let session = self.session()?;
        let known = session.shared().known_tools.lock().clone();
        let tools: Vec<ToolInfo> = match known {
            Some(mut known) => self.items("list of tools", "tools", &mut known)?,
            None => self.list("list of tools", "tools/list", "tools").await?,
        };
        let as_tasks = tools.iter().filter(|tool| tool.requires_task());
        *session.shared().task_tools.lock() = as_tasks.map(|tool| tool.name.clone()).collect();
        Ok(tools)
    }

    /// All resources of the server.
    ///
    /// # Errors
    /// If the server does not answer, or its answer is malformed.
    pub async fn list_resources(&self) -> Result<Vec<ResourceLink>, Error> {
        if !self.offers("resources") {
            return Ok(Vec::new());
        }
        self.list("list of resources", "resources/list", "resources").await
    }

    /// All resource templates of the server.
    ///
    /// # Errors
    /// If the server does not answer, or its answer is malformed.
    pub async fn list_resource_templates(&self) -> Result<Vec<ResourceTemplate>, Error> {
        if !self.offers("resources") {
            return Ok(Vec::new());
        }
        let what = "list of resource templates";
        self.list(what, "resources/templates/list", "resourceTemplates").await
    }

    /// All prompts of the server.
    ///
    /// # Errors
    /// If the server does not answer, or its answer is malformed.
    pub async fn list_prompts(&self) -> Result<Vec<PromptInfo>, Error> {
        if !self.offers("prompts") {
            return Ok(Vec::new());
        }
        self.list("list of prompts", "prompts/list", "prompts").await
    }

    /// Reads a resource.
    ///
    /// # Errors
    /// If it does not exist, or the server's answer is malformed.
    pub async fn read_resource(&self, uri: &str) -> Result<Vec<ResourceContents>, Error> {
        let what = format!("resource \"{uri}\"");
        let params = json!({"uri": uri});
        let mut result =
            self.request(&what, "resources/read", params, CallOptions::default()).await?;
        self.items(&what, "contents", &mut result)
    }

    /// Renders a prompt.
    ///
    /// # Errors
    /// If it does not exist, an argument is missing, or the server's answer is malformed.
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: PromptArguments,
    ) -> Result<PromptResult, Error> {
        let what = format!("prompt \"{name}\"");
        let params = json!({"name": name, "arguments": arguments});
        let mut result = self.request(&what, "prompts/get", params, CallOptions::default()).await?;
        let description = result["description"].as_str().map(str::to_owned);
        let messages: Vec<Value> = self.items(&what, "messages", &mut result)?;
        let messages: Result<_, String> = messages.into_iter().map(message).collect();
        let messages = messages.map_err(|reason| self.malformed(&what, reason))?;
        Ok(PromptResult { description, messages })
    }

    /// All pages of a list, within the startup timeout: sessions wait for lists before they start, and a server that
    /// answers only the handshake must not block them.
    async fn list<T: DeserializeOwned>(
        &self,
        what: &str,
        method: &str,
        key: &str,
    ) -> Result<Vec<T>, Error> {
        let after = self.inner.options.startup_timeout;
        let pages = tokio::time::timeout(after, self.pages(what, method, key)).await;
        let (server, what) = (self.inner.name.clone(), what.to_owned());
        pages.unwrap_or(Err(Error::TimedOut { server, what, after }))
    }

    async fn pages<T: DeserializeOwned>(
        &self,
        what: &str,
        method: &str,
        key: &str,
    ) -> Result<Vec<T>, Error> {
        let (mut items, mut params) = (Vec::new(), Value::Null);
        let most = self.inner.options.message_limit.saturating_mul(MOST_MESSAGES);
        let mut size = 0_usize;
        for _ in 0..MOST_PAGES {
            let mut page =
                self.request(what, method, params.clone(), CallOptions::default()).await?;
            size = size.saturating_add(size_of(&page));
            if size > most {
                return Err(self.malformed(what, format!("it is larger than {most} bytes")));
            }
            items.extend(self.items::<T>(what, key, &mut page)?);
            let Some(cursor) = page["nextCursor"].as_str().filter(|cursor| !cursor.is_empty())
            else {
                return Ok(items);
            };
            let next = json!({"cursor": cursor});
            if next == params {
                return Err(self.malformed(
                    what,
                    "the cursor of the next page is that of the current page".to_owned(),
                ));
            }
            params = next;
        }
        Err(self.malformed(what, format!("there are more than {MOST_PAGES} pages")))
    }

    /// Takes a list out of an answer.
    fn items<T: DeserializeOwned>(
        &self,
        what: &str,
        key: &str,
        answer: &mut Value,
    ) -> Result<Vec<T>, Error> {
        let list = answer.get_mut(key).map(Value::take).unwrap_or_default();
        serde_path_to_error::deserialize(list)
            .map_err(|error| self.malformed(what, format!("`{key}`: {error}")))
    }
}

/// The size of a value as JSON, in bytes.
fn size_of(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Neither the writer nor a value can fail.
    serde_json::to_writer(&mut count, value).ok();
    count.0
}

fn message(mut message: Value) -> Result<PromptMessage, String> {
    let role = message["role"].as_str().unwrap_or_default().to_owned();
    let content = message.get_mut("content").map(Value::take).unwrap_or_default();
    let content = Content::from_value(content)?;
    Ok(PromptMessage { role, content })
}

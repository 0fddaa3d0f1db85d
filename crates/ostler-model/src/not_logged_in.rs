//! The model of a session without a key: it never answers. A session starts all the same, so that hosts can send commands,
//! read lists and get the same messages as with the vendor's program; only prompts for the model fail.

use futures::{StreamExt as _, stream};

use super::{EventStream, Model, ModelError, Request};

/// A model that no session can ask.
#[derive(Clone, Debug)]
pub struct NotLoggedIn {
    name: String,
}

impl NotLoggedIn {
    /// In place of the model of this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }
}

impl Model for NotLoggedIn {
    fn name(&self) -> &str {
        &self.name
    }

    fn respond(&self, _: Request) -> EventStream {
        stream::iter([Err(ModelError::NotLoggedIn)]).boxed()
    }
}

//! The Messages API as a [`Model`].

use std::sync::Arc;

use super::http::Api;
use super::{ApiConfig, EventStream, Model, ModelError, Request, attempts};

/// A model behind the Messages API.
#[derive(Clone, Debug)]
pub struct ApiModel {
    api: Arc<Api>,
}

impl ApiModel {
    /// Prepares a client; nothing is sent yet.
    ///
    /// # Errors
    /// When the address is not valid, a credential or header cannot be sent in a request, or the system's certificates
    /// cannot be read.
    pub fn new(config: ApiConfig) -> Result<Self, ModelError> {
        Ok(Self { api: Arc::new(Api::new(config)?) })
    }
}

impl Model for ApiModel {
    fn name(&self) -> &str {
        &self.api.config.model
    }

    fn respond(&self, request: Request) -> EventStream {
        attempts::respond(Arc::clone(&self.api), request)
    }

    fn prompt_began(&self) {
        self.api.prompt_began();
    }
}

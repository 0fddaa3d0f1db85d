//! Requests of the host that only read, or change something small. Each is answered at once.

mod about;
mod files;
pub(super) mod find;
mod reload;
mod settings;
mod usage;

use ostler_proto::control::AskEngine;
use serde_json::{Value, json};

pub(super) use self::about::models;
use super::Session;

impl Session {
    /// Answers a request; `None` for one that this engine does not know.
    pub(super) async fn look(&mut self, request: &AskEngine) -> Option<Result<Value, String>> {
        Some(match request {
            AskEngine::GetContextUsage(_) => Ok(self.context_usage()),
            AskEngine::GetUsage(_) => Ok(self.usage()),
            AskEngine::GetSessionCost(_) => Ok(json!({"text": self.cost()})),
            AskEngine::ListModels(_) => Ok(json!({"models": models(self.context.model.name())})),
            AskEngine::GetBinaryVersion(_) => {
                Ok(json!({"version": env!("CARGO_PKG_VERSION"), "buildTime": ""}))
            }
            AskEngine::RenameSession(rename) => self.rename(rename).await,
            // The engine does not behave differently with subscribers.
            AskEngine::SetHasSubscribers(_) => Ok(json!({})),
            AskEngine::EndSession(_) => {
                self.must_end = true;
                Ok(json!({}))
            }
            AskEngine::GetHooksListing(_) => Ok(json!(self.context.hooks.listing())),
            AskEngine::SetMcpPermissionModeOverride(set) => self.pin_server(set),
            AskEngine::ListPermissionRules(_) => Ok(self.permission_rules()),
            AskEngine::GetSettings(_) => Ok(self.settings()),
            AskEngine::ApplyFlagSettings(apply) => self.apply_settings(&apply.settings).await,
            _ => return None,
        })
    }
}

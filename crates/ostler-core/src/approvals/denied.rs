//! Deny rules that were added to a space after the engine started. They also apply to requests that are already
//! pending, so an approval of such a call is refused.

use ostler::engine::coverage;
use ostler_base::error::{self, ApiError, Fallible};
use serde_json::Value;

use super::Approvals;
use super::record::Approval;
use crate::model::space::Space;

impl Approvals {
    /// Refuses to allow a call that the session's space denies now. The request stays pending, and can be denied.
    pub(super) async fn refuse_denied(&self, id: &str, changed: Option<&Value>) -> Fallible<()> {
        let found = self.records.find::<Approval>(id).await?;
        let Some((approval, _)) = found else { return Err(error::not_found("approval", id)) };
        let input = changed.unwrap_or(&approval.input);
        match self.denied_by_space(&approval, input).await? {
            Some(rule) if approval.is_pending() => {
                let message = format!("the space denies this call by the rule {rule}");
                Err(ApiError::forbidden("denied_by_space", message)
                    .hint("deny the call, or have an administrator of the space remove the rule"))
            }
            _ => Ok(()),
        }
    }

    /// The current rule of the session's space that denies a call.
    pub(super) async fn denied_by_space(
        &self,
        asked: &Approval,
        input: &Value,
    ) -> Fallible<Option<String>> {
        let Some(space) = &asked.origin.space else { return Ok(None) };
        let Some((space, _)) = self.records.find::<Space>(space).await? else { return Ok(None) };
        let place = asked.origin.place(&self.everywhere);
        let mut denied = space.policy.denied.into_iter();
        Ok(denied.find(|rule| {
            // An unreadable rule might cover this call.
            let Some(rule) = coverage::parse(rule) else { return true };
            coverage::denies(&place, &rule, &asked.tool_name, input)
        }))
    }
}

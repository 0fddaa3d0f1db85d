//! The totals of a session, updated in its record in the same commit.

use ostler_base::error::Fallible;

use super::session_totals::SessionTotals;
use super::{NewRun, Sessions};
use crate::model::run::Session;
use crate::records::Kept as _;

impl Sessions {
    /// A write of the changed session, for the commit of what happened; `None` if the session is gone.
    pub(super) async fn session_put(
        &self,
        id: &str,
        change: impl Fn(&mut Session),
    ) -> Fallible<Option<ostler_store::Put>> {
        let Some((mut session, version)) = self.records.find::<Session>(id).await? else {
            return Ok(None);
        };
        change(&mut session);
        session.put(ostler_store::Expected::Version(version)).map(Some)
    }

    /// Adds a prompt to a session.
    pub(super) fn prompted(&self, session: &mut Session, new: &NewRun) {
        session.touch(self.clock.now());
        session.tally.runs += 1;
        session.said(&new.prompt);
    }

    /// Adds a prompt that was sent to an active run. It is in the log; if it is missing in the search, nothing fails.
    pub(super) async fn steered(&self, session: &str, text: &str) {
        let now = self.clock.now();
        let noted = self.records.update::<Session, ()>(session, |session| {
            session.touch(now);
            session.said(text);
            Ok(())
        });
        if let Err(error) = noted.await {
            tracing::warn!(session, %error, "a prompt could not be added to the session's record");
        }
    }
}

/// Whether a concurrent change of a session's record or sums requires reading them again.
pub(super) fn is_behind(error: &ostler_store::Error) -> bool {
    let of_session = [Session::KIND, SessionTotals::KIND];
    matches!(error, ostler_store::Error::Conflict { kind, .. } if of_session.contains(&kind.as_str()))
}
